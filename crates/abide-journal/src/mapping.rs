//! A file mapped into memory, shared with the page cache.
#![allow(unsafe_code)] // A memory map is raw memory.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// The whole of one file. Only this process writes to it, and only through this value, while it is mapped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to this value alone and does not care which thread uses it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of `file`, which must exist.
    pub fn new(file: &File, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choosing touches no other memory.
        let start = unsafe { rustix::mm::mmap(std::ptr::null_mut(), len, prot, MapFlags::SHARED, file, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::Other)?;
        Ok(Self { start, len })
    }

    /// The bytes of `range`, which is cut to the map.
    pub fn bytes_mut(&mut self, range: Range<u64>) -> &mut [u8] {
        let (at, len) = self.clamp(&range);
        // SAFETY: `clamp` keeps `at + len` within the map, and `&mut self` makes this the only reference to it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at).as_ptr(), len) }
    }

    /// Stores a number of the header, after everything that was written before.
    pub fn store(&mut self, at: usize, value: u64) {
        debug_assert!(at.is_multiple_of(8) && at + 8 <= self.len);
        // SAFETY: `at` is an aligned place in the header; maps begin on a page boundary.
        let place = unsafe { AtomicU64::from_ptr(self.start.add(at).as_ptr().cast()) };
        place.store(value.to_le(), Ordering::Release);
    }

    /// Makes the pages of `range` present and writable without changing them, as writing to them would, except that
    /// a file system without room is an error here and a fatal signal there.
    pub fn populate(&mut self, range: Range<u64>) -> io::Result<()> {
        match self.advise(range.clone(), Advice::LinuxPopulateWrite) {
            // A kernel before 5.14 does not know the advice.
            Err(rustix::io::Errno::INVAL) => self.touch(range),
            result => return Ok(result?),
        }
        Ok(())
    }

    fn touch(&mut self, range: Range<u64>) {
        let bytes = self.bytes_mut(range);
        for at in (0..bytes.len()).step_by(crate::PAGE as usize).chain(bytes.len().checked_sub(1)) {
            let place = &raw mut bytes[at];
            // SAFETY: `place` is a byte of the slice. Volatile, because the access itself is what is wanted.
            unsafe { place.write_volatile(place.read_volatile()) };
        }
    }

    /// Takes the pages of `range` out of our memory. They stay in the page cache.
    pub fn forget(&mut self, range: Range<u64>) {
        // This only saves memory.
        let _ = self.advise(range, Advice::LinuxDontNeed);
    }

    fn advise(&mut self, range: Range<u64>, advice: Advice) -> rustix::io::Result<()> {
        let page = crate::PAGE;
        let (at, len) = self.clamp(&(range.start - range.start % page..range.end.next_multiple_of(page)));
        // SAFETY: the range is within the map, and neither advice changes what a shared file mapping holds.
        unsafe { rustix::mm::madvise(self.start.add(at).as_ptr().cast::<c_void>(), len, advice) }
    }

    fn clamp(&self, range: &Range<u64>) -> (usize, usize) {
        let clamp = |value: u64| usize::try_from(value).unwrap_or(usize::MAX).min(self.len);
        let (start, end) = (clamp(range.start), clamp(range.end));
        (start, end.saturating_sub(start))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the map is ours and nothing borrows from it any more. Failing to unmap leaks it, no worse.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
