//! What a process can do that stays for days beside others who need the machine.

use std::ffi::c_void;
use std::io;

use rustix::mm::Advice;

/// How long this process wants to run when it has the processor: hardly ever for longer than a key takes to be passed on.
const TURN_NANOS: u64 = 100_000;

/// Asks for short turns, and in exchange for its turn soon after it wakes up, however busy others are.
///
/// It gets no more of the processor than before. Kernels before 6.12 know no such wish and make nothing of it. Children
/// do not inherit it.
pub fn take_short_turns() -> io::Result<()> {
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_nice: rustix::process::getpriority_process(None)?,
        sched_priority: 0,
        sched_runtime: TURN_NANOS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the one takes no memory; of the structure the kernel reads as many bytes as it says to have, and keeps none.
    #[allow(unsafe_code)]
    let result = unsafe {
        if libc::sched_getscheduler(0) != libc::SCHED_OTHER {
            // Whoever started us with another policy knew why.
            return Ok(());
        }
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes the program's code out of this process's memory. What is needed again comes back from the page cache, as it
/// came when it was needed first.
///
/// The kernel maps code in generous pieces and keeps them, so what it took to start would be most of what a small
/// process has in memory for as long as it stays.
pub fn forget_code() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    let maps: Vec<Map<'_>> = maps.lines().filter_map(Map::parse).collect();
    let here = forget_code as fn() as usize;
    let Some(code) = maps.iter().find(|map| (map.start..map.end).contains(&here)) else { return };
    for map in maps.iter().filter(|map| map.file == code.file && map.is_never_written()) {
        map.forget();
    }
}

/// From how many bytes on a block of memory goes back to the system as soon as it is freed.
const LARGE: i32 = 1 << 20;

/// Has large blocks of memory go back to the system whenever they are freed.
///
/// The allocator otherwise keeps blocks as large as the largest that was ever freed: after a moment at an enormous size, a
/// terminal's worth of memory for as long as the process stays.
pub fn give_back_large_blocks() {
    // SAFETY: a setting of the allocator, which takes no memory.
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}

/// A piece of this process's memory.
struct Map<'a> {
    start: usize,
    end: usize,
    mode: &'a str,
    /// Where it begins in its file.
    offset: u64,
    /// Device, inode and path of its file.
    file: &'a str,
}

impl<'a> Map<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(4, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let (mode, offset, file) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            start: usize::from_str_radix(start, 16).ok()?,
            end: usize::from_str_radix(end, 16).ok()?,
            mode,
            offset: u64::from_str_radix(offset, 16).ok()?,
            file,
        })
    }

    /// Whether it is as it is in the file: code, and the constants behind the file's header. Others that are read only
    /// now were written to when the program was loaded.
    fn is_never_written(&self) -> bool {
        self.mode == "r-xp" || (self.mode == "r--p" && self.offset == 0)
    }

    fn forget(&self) {
        let start = self.start as *mut c_void;
        // SAFETY: nothing was ever written here, so what the next access finds is what was there before.
        #[allow(unsafe_code)]
        let result = unsafe { rustix::mm::madvise(start, self.end - self.start, Advice::LinuxDontNeed) };
        // Advice only saves memory.
        let _ = result;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many kilobytes of the code of this program are in memory.
    fn code_in_memory() -> u64 {
        let here = code_in_memory as fn() -> u64 as usize;
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let from_here = smaps
            .lines()
            .skip_while(|line| Map::parse(line).is_none_or(|map| !(map.start..map.end).contains(&here)));
        let resident = from_here.map_while(|line| Some(line.strip_prefix("Rss:"))).flatten().next();
        resident.unwrap().trim().strip_suffix(" kB").unwrap().parse().unwrap()
    }

    #[test]
    fn code_that_is_forgotten_leaves_memory_and_comes_back() {
        let before = code_in_memory();
        forget_code();
        let after = code_in_memory();
        assert!(after > 0, "the code that looks is there");
        assert!(after < before, "{after} kB are left of {before}");
    }

    fn pages_in_memory() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[test]
    fn large_blocks_go_back_when_they_are_freed_however_large_one_was_before() {
        give_back_large_blocks();
        let before = pages_in_memory();
        for megabytes in [24, 20, 16] {
            drop(std::hint::black_box(vec![1_u8; megabytes << 20]));
        }
        let kept = pages_in_memory().saturating_sub(before) * rustix::param::page_size();
        assert!(kept < 8 << 20, "{kept} bytes were kept");
    }

    #[test]
    fn short_turns_are_granted_to_anybody() {
        std::thread::spawn(take_short_turns).join().unwrap().unwrap();
    }
}
