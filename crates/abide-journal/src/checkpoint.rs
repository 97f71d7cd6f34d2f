//! Checkpoints: the opaque state of a terminal at some position, in two slot files beside the ring.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use abide_sys::untrusted;

const MAGIC: [u8; 8] = *b"abideckp";
/// Magic, ring, position, changes of size, length, checksum.
const HEADER_LEN: usize = 48;
/// No terminal's state is larger; a file that is must be something else.
const MAX_LEN: u64 = 256 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The position it holds for.
    pub position: u64,
    pub blob: Vec<u8>,
    /// How many changes of size it contains.
    pub resizes: u64,
}

/// The two slots of a ring, as a writer sees them.
#[derive(Debug)]
pub struct Slots {
    paths: [PathBuf; 2],
    ring_id: u64,
    next: usize,
    /// Where the newest checkpoint is, or where there is nothing before.
    pub position: u64,
    pub resizes: u64,
    unsynced: Option<File>,
}

impl Slots {
    /// For a new ring at `ring`: whatever checkpoints lie there are of another.
    pub fn fresh(ring: &Path, ring_id: u64) -> Self {
        let slots = Self::after(ring, ring_id, None, 0);
        slots.forget_all_but(None);
        slots
    }

    /// Removes what is not in slot `newest`. After a power failure that may be ahead of its ring, and as soon as the ring
    /// has grown as far again, with other bytes, it would seem to belong there.
    pub fn forget_all_but(&self, newest: Option<usize>) {
        for (_, path) in self.paths.iter().enumerate().filter(|(slot, _)| Some(*slot) != newest) {
            // What is not there is forgotten, and what cannot be removed is the next to be written over.
            let _ = std::fs::remove_file(path);
        }
    }

    /// For a ring whose newest checkpoint is in slot `newest`.
    pub fn after(ring: &Path, ring_id: u64, newest: Option<usize>, position: u64) -> Self {
        let next = newest.map_or(0, |newest| 1 - newest);
        Self { paths: slot_paths(ring), ring_id, next, position, resizes: 0, unsynced: None }
    }

    /// Writes the older slot. If this is cut short at any point, the newer one is still whole.
    pub fn write(&mut self, position: u64, resizes: u64, blob: &[u8]) -> io::Result<()> {
        let mut header = MAGIC.to_vec();
        for number in [self.ring_id, position, resizes, blob.len() as u64] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        let sum = checksum(&header, blob);
        header.extend_from_slice(&sum.to_le_bytes());
        let mut options = File::options();
        let file =
            options.write(true).create(true).truncate(false).mode(0o600).open(&self.paths[self.next])?;
        file.write_all_at(&header, 0)?;
        file.write_all_at(blob, HEADER_LEN as u64)?;
        file.set_len((HEADER_LEN + blob.len()) as u64)?;
        self.next = 1 - self.next;
        (self.position, self.resizes) = (position, resizes);
        self.unsynced = Some(file);
        Ok(())
    }

    pub fn take_unsynced(&mut self) -> Option<File> {
        self.unsynced.take()
    }
}

/// The newest whole checkpoint for which `usable` holds, and its slot.
pub fn newest(ring: &Path, ring_id: u64, usable: impl Fn(u64) -> bool) -> Option<(usize, Checkpoint)> {
    let paths = slot_paths(ring);
    let found = paths.iter().enumerate().filter_map(|(slot, path)| Some((slot, read(path, ring_id)?)));
    found.filter(|(_, checkpoint)| usable(checkpoint.position)).max_by_key(|(_, c)| (c.position, c.resizes))
}

fn read(path: &Path, ring_id: u64) -> Option<Checkpoint> {
    let file = untrusted::open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_LEN).read_to_end(&mut bytes).ok()?;
    let (header, blob) = bytes.split_at_checked(HEADER_LEN)?;
    let number = |at: usize| header.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let whole = header.starts_with(&MAGIC)
        && number(8)? == ring_id
        && number(32)? == blob.len() as u64
        && number(40)? == checksum(&header[..40], blob);
    whole.then(|| Some(Checkpoint { position: number(16)?, resizes: number(24)?, blob: blob.to_vec() }))?
}

fn slot_paths(ring: &Path) -> [PathBuf; 2] {
    [ring.with_extension("ckpt0"), ring.with_extension("ckpt1")]
}

/// Notices torn and mixed-up writes; it does not protect against an attacker.
fn checksum(header: &[u8], blob: &[u8]) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = MIX ^ blob.len() as u64;
    for part in [header, blob] {
        let (words, rest) = part.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        for word in words.iter().chain([&last]) {
            sum = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(MIX).rotate_left(29);
        }
    }
    sum
}
