//! The journal: what a session wrote, kept so that a mux that dies loses nothing.
//!
//! A journal is a ring file that is mapped into memory, and PTY output is read *into the map*: from the moment that
//! `read` returns the bytes are in the page cache, where the death of the reader cannot touch them. Three rules
//! make every moment a safe one to be killed at:
//!
//! - The `window` bytes ahead of the head are zero before anything is read into them, and a single read goes
//!   nowhere else. Non-zero bytes there were received and not yet committed, up to
//!   the last of them. (Zero bytes at the very end of such a read are missed; NUL means nothing to a terminal.)
//! - The window of the *next* head is zeroed before the head moves to it.
//! - A checkpoint, the opaque state of a terminal at some position, is written to the older of two slots, so that
//!   a torn one leaves the other.
//!
//! After a reboot less can be said: the disk may have got the pages in any order. Then only what was followed by a
//! completed [`SyncJob`] counts.
//!
//! A journal that cannot be on disk (turned off, disk full) is the same thing with nothing to recover: keeping the
//! session going is worth more than being able to redraw it. Where a file system copies what is rewritten, a page that
//! had its space once may need new space later: every page is made writable before it is written to, and where that
//! fails the journal goes on in memory. This module neither parses output nor knows what a
//! checkpoint holds.

mod checkpoint;
mod layout;
mod mapping;
pub mod rebuild;
mod recover;
pub mod snapshot;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use abide_wire::session::TerminalSize;
use rustix::fs::FallocateFlags;

pub use checkpoint::Checkpoint;
pub use recover::{Chunk, RecoverError, Recovered};

use checkpoint::Slots;
use layout::{HEADER_LEN, Header, MAX_RESIZES};
use mapping::Mapping;

const MIN_CAPACITY: u64 = 64 << 10;
const PAGE: u64 = 4096;
/// Consumed pages are taken out of our memory in batches of this many bytes; they stay in the page cache.
const FORGET_BATCH: u64 = 256 << 10;
/// What is read into when there is no file; a PTY gives no more than a page at once.
const MEMORY_WINDOW: usize = 16 << 10;

/// What one session wrote.
#[derive(Debug)]
pub struct Journal {
    store: JournalStorage,
    head: u64,
}

#[derive(Debug)]
enum JournalStorage {
    Ring(Box<Ring>),
    Memory(Vec<u8>),
}

#[derive(Debug)]
struct Ring {
    file: File,
    map: Mapping,
    capacity: u64,
    /// Zeroed and in memory up to here.
    prepared_to: u64,
    /// Taken out of memory up to here.
    forgotten_to: u64,
    resizes: u64,
    size: Option<TerminalSize>,
    slots: Slots,
}

/// Brings a journal to disk; may be run in another thread than the one that reads.
#[derive(Debug)]
pub struct SyncJob {
    ring: File,
    slot: Option<File>,
    head: u64,
}

impl Journal {
    /// A journal that keeps nothing.
    pub fn memory() -> Self {
        Self { store: JournalStorage::Memory(vec![0; MEMORY_WINDOW]), head: 0 }
    }

    /// Opens the journal at `path`, or creates it with `capacity` bytes. What was there is to be replayed before
    /// the first [`Journal::commit`]. This never fails: a file that is not ours is set aside, and where there can be
    /// no file there is a journal in memory and a warning.
    pub fn open(path: &Path, capacity: u64, generation: u64) -> (Self, Option<Recovered>) {
        match Self::try_open(path, capacity, generation) {
            Ok(opened) => opened,
            Err(err) => {
                tracing::warn!("{} cannot be used, so this session has no journal: {err}", path.display());
                (Self::memory(), None)
            }
        }
    }

    fn try_open(path: &Path, capacity: u64, generation: u64) -> io::Result<(Self, Option<Recovered>)> {
        let recovered = match Recovered::read(path) {
            Ok(recovered) => recovered,
            Err(RecoverError::Missing) => return Ok((Self::create(path, capacity, generation)?, None)),
            Err(RecoverError::Io(err)) => return Err(err),
            Err(RecoverError::Foreign(why)) => {
                let aside = set_aside(path)?;
                tracing::warn!(
                    "{} is no journal ({why}) and was renamed to {}",
                    path.display(),
                    aside.display()
                );
                return Ok((Self::create(path, capacity, generation)?, None));
            }
        };
        let journal = Self::resume(path, &recovered, generation).unwrap_or_else(|err| {
            tracing::warn!(
                "{} can be read but not written, so nothing is added to it: {err}",
                path.display()
            );
            Self::memory()
        });
        Ok((journal, Some(recovered)))
    }

    /// Under another name until it is whole, so that a death in between leaves nothing that looks damaged.
    fn create(path: &Path, capacity: u64, generation: u64) -> io::Result<Self> {
        let capacity = capacity.max(MIN_CAPACITY).next_multiple_of(PAGE);
        let header = Header::new(capacity, generation)?;
        let unfinished = path.with_extension("ring.new");
        let filled = fill(&unfinished, &header).and_then(|file| {
            std::fs::rename(&unfinished, path)?;
            Ok(file)
        });
        let file = filled.inspect_err(|_| {
            // On a full disk it would hold blocks for nothing; if it cannot be removed, the next one is made over it.
            let _ = std::fs::remove_file(&unfinished);
        })?;
        let mut ring = Ring::map(file, capacity, Slots::fresh(path, header.ring_id))?;
        ring.prepare(0)?;
        Ok(Self { store: JournalStorage::Ring(Box::new(ring)), head: 0 })
    }

    fn resume(path: &Path, recovered: &Recovered, generation: u64) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let slots = Slots::after(path, recovered.header.ring_id, recovered.slot, recovered.from);
        if !recovered.header.is_of_this_boot()? {
            slots.forget_all_but(recovered.slot);
        }
        let mut ring = Ring::map(file, recovered.header.capacity, slots)?;
        ring.resizes = recovered.header.resizes;
        ring.size = recovered.size;
        ring.slots.resizes = recovered.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.resizes);
        ring.prepared_to = recovered.to;
        ring.forgotten_to = recovered.to - recovered.to % PAGE;
        ring.prepare(recovered.to)?;
        ring.map.store(layout::HEAD, recovered.to);
        // Only now: a head that an earlier boot left unsynced must not be taken for one of this boot.
        layout::stamp(&ring.file, generation)?;
        Ok(Self { store: JournalStorage::Ring(Box::new(ring)), head: recovered.to })
    }

    /// Whether the death of this process leaves anything to recover.
    pub fn is_on_disk(&self) -> bool {
        matches!(self.store, JournalStorage::Ring(_))
    }

    /// Where to read the next output into; never empty.
    pub fn space(&mut self) -> &mut [u8] {
        let head = self.head;
        if let JournalStorage::Ring(ring) = &mut self.store
            && let Err(err) = ring.make_writable(head)
        {
            self.give_up(&err);
        }
        match &mut self.store {
            JournalStorage::Memory(buffer) => buffer,
            JournalStorage::Ring(ring) => {
                let place = ring.place(head, ring.room(head));
                ring.map.bytes_mut(place)
            }
        }
    }

    /// Goes on in memory.
    fn give_up(&mut self, err: &io::Error) {
        tracing::warn!("a journal has no room on its disk, so its session goes on without one: {err}");
        self.store = Self::memory().store;
    }

    /// Takes note that `n` bytes were read into [`Journal::space`], and gives them back for parsing.
    pub fn commit(&mut self, n: usize) -> &[u8] {
        let start = self.head;
        if let JournalStorage::Ring(ring) = &mut self.store {
            let end = start + (n as u64).min(ring.room(start));
            if let Err(err) = ring.commit(start..end) {
                let read = ring.map.bytes_mut(ring.place(start, end - start)).to_vec();
                self.give_up(&err);
                if let JournalStorage::Memory(buffer) = &mut self.store {
                    buffer[..read.len()].copy_from_slice(&read);
                }
            }
        }
        match &mut self.store {
            JournalStorage::Memory(buffer) => {
                let n = n.min(buffer.len());
                self.head += n as u64;
                &buffer[..n]
            }
            JournalStorage::Ring(ring) => {
                let n = (n as u64).min(ring.room(start));
                self.head += n;
                ring.map.bytes_mut(ring.place(start, n))
            }
        }
    }

    /// Takes note of the terminal's size from here on.
    pub fn resized(&mut self, size: TerminalSize) {
        let JournalStorage::Ring(ring) = &mut self.store else { return };
        if ring.size == Some(size) {
            return;
        }
        if let Err(err) = ring.map.populate(0..HEADER_LEN) {
            return self.give_up(&err);
        }
        ring.size = Some(size);
        let (at, position, packed) = layout::resize_entry(ring.resizes, self.head, size);
        ring.map.store(at, position);
        ring.map.store(at + 8, packed);
        ring.resizes += 1;
        // Last: an entry that is not counted yet does not exist.
        ring.map.store(layout::RESIZES, ring.resizes);
    }

    /// Whether a checkpoint is wanted, before the ring or the table of sizes overwrites what follows the last one.
    pub fn due(&self) -> bool {
        let JournalStorage::Ring(ring) = &self.store else { return false };
        let unsaved = self.head.saturating_sub(ring.slots.position);
        unsaved >= ring.capacity / 2 || ring.resizes.saturating_sub(ring.slots.resizes) >= MAX_RESIZES * 3 / 4
    }

    /// Stores the terminal's state at this position.
    pub fn checkpoint(&mut self, blob: &[u8]) -> io::Result<()> {
        let JournalStorage::Ring(ring) = &mut self.store else { return Ok(()) };
        ring.slots.write(self.head, ring.resizes, blob)
    }

    /// The work of bringing everything so far to disk; `None` where there is none.
    pub fn sync_job(&mut self) -> io::Result<Option<SyncJob>> {
        let JournalStorage::Ring(ring) = &mut self.store else { return Ok(None) };
        Ok(Some(SyncJob { ring: ring.file.try_clone()?, slot: ring.slots.take_unsynced(), head: self.head }))
    }
}

impl SyncJob {
    /// Waits for the disk. That it succeeded is itself written down, which is what a reader after a reboot goes by.
    pub fn run(self) -> io::Result<()> {
        if let Some(slot) = self.slot {
            slot.sync_data()?;
        }
        self.ring.sync_data()?;
        self.ring.write_all_at(&self.head.to_le_bytes(), layout::SYNCED as u64)?;
        self.ring.sync_data()
    }
}

impl Ring {
    fn map(file: File, capacity: u64, slots: Slots) -> io::Result<Self> {
        let map = Mapping::new(&file, HEADER_LEN + capacity)?;
        Ok(Self { file, map, capacity, prepared_to: 0, forgotten_to: 0, resizes: 0, size: None, slots })
    }

    /// How much can be read in one piece at `head`.
    fn room(&self, head: u64) -> u64 {
        layout::window(self.capacity).min(self.capacity - head % self.capacity)
    }

    /// Where `length` bytes from `position` on are in the map. They must not go round the end.
    fn place(&self, position: u64, length: u64) -> Range<u64> {
        let start = HEADER_LEN + position % self.capacity;
        start..start + length
    }

    /// Makes the pages writable that the next read and its commit write to. A page that was written back is
    /// write-protected, and a process that is killed while the kernel waits for such a page in the middle of a read loses
    /// what was being copied. The first pages are all that a PTY fills.
    fn make_writable(&mut self, head: u64) -> io::Result<()> {
        let place = self.place(head, self.room(head));
        self.map.populate(place.start..place.end.min(place.start + 2 * PAGE))?;
        self.map.populate(0..HEADER_LEN)
    }

    fn commit(&mut self, read: Range<u64>) -> io::Result<()> {
        self.prepare(read.end)?;
        self.map.store(layout::HEAD, read.end);
        if read.start.saturating_sub(self.forgotten_to) >= FORGET_BATCH {
            let until = read.start - read.start % PAGE;
            for piece in self.pieces(self.forgotten_to..until) {
                self.map.forget(piece);
            }
            self.forgotten_to = until;
        }
        Ok(())
    }

    /// Makes sure that the window at `head` is zero.
    fn prepare(&mut self, head: u64) -> io::Result<()> {
        let window = layout::window(self.capacity);
        if self.prepared_to >= head + window {
            return Ok(());
        }
        for piece in self.pieces(self.prepared_to..head + 2 * window) {
            self.map.populate(piece.clone())?;
            self.map.bytes_mut(piece).fill(0);
        }
        self.prepared_to = head + 2 * window;
        Ok(())
    }

    /// A range of positions as ranges of the map: one, or two where it goes round the end.
    fn pieces(&self, positions: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let (start, length) = (positions.start % self.capacity, positions.end - positions.start);
        let first = length.min(self.capacity - start);
        let pieces = [(start, first), (0, length - first)];
        pieces.into_iter().filter(|(_, length)| *length > 0).map(|(at, length)| {
            let at = HEADER_LEN + at;
            at..at + length
        })
    }
}

fn fill(path: &Path, header: &Header) -> io::Result<File> {
    let mut options = File::options();
    let file = options.read(true).write(true).create(true).truncate(true).mode(0o600).open(path)?;
    allocate(&file, HEADER_LEN + header.capacity)?;
    file.write_all_at(&header.to_bytes(), 0)?;
    Ok(file)
}

/// Gives the file its blocks, because writing through the map to a disk that has become full is a fatal signal.
fn allocate(file: &File, length: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, length) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP) => {
            let zeroes = vec![0; 64 << 10];
            let mut at = 0;
            while at < length {
                let n = (length - at).min(zeroes.len() as u64);
                file.write_all_at(&zeroes[..usize::try_from(n).unwrap_or(0)], at)?;
                at += n;
            }
            Ok(())
        }
        Err(err) => Err(err.into()),
    }
}

/// Renames a file that cannot be used: it may belong to another program, or be worth a look.
pub fn set_aside(path: &Path) -> io::Result<PathBuf> {
    for n in 0..1000 {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".damaged-{n}"));
        let aside = PathBuf::from(name);
        if std::fs::symlink_metadata(&aside).is_err() {
            std::fs::rename(path, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "there are too many damaged journals; remove them"))
}
