//! The first page of a ring file, and where things are in it. All numbers are little-endian.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{SystemTime, UNIX_EPOCH};

use abide_sys::host::boot_id;
use abide_wire::session::TerminalSize;

/// The ring begins after this many bytes.
pub const HEADER_LEN: u64 = 4096;
/// No setting makes a ring larger. One that is would be read for hours.
const MAX_CAPACITY: u64 = 1 << 30;
/// How many changes of size are remembered.
pub const MAX_RESIZES: u64 = 250;

const MAGIC: [u8; 8] = *b"abidejnl";
const VERSION: u32 = 1;

const CAPACITY: usize = 16;
const RING_ID: usize = 24;
const GENERATION: usize = 32;
const BOOT: usize = 40;
const BOOT_LEN: usize = 16;
pub const HEAD: usize = 56;
/// Total bytes known to be on disk.
pub const SYNCED: usize = 64;
/// Total changes of size.
pub const RESIZES: usize = 72;
/// The last of them, 16 bytes each: the position, then columns and rows.
const RESIZE_TABLE: usize = 96;

/// How far ahead of the head is zero; one read may fill no more. Twice that much of the oldest data is given up.
pub fn window(capacity: u64) -> u64 {
    (capacity / 8).min(16 << 10)
}

/// The oldest position that can still be in the ring when the head is at `head`.
pub fn oldest(head: u64, capacity: u64) -> u64 {
    (head + 2 * window(capacity)).saturating_sub(capacity)
}

/// Where the entry for the `index`th change of size is, and its two numbers.
pub fn resize_entry(index: u64, position: u64, size: TerminalSize) -> (usize, u64, u64) {
    (resize_place(index), position, u64::from(size.cols) | u64::from(size.rows) << 16)
}

fn resize_place(index: u64) -> usize {
    // Below 250, so the conversion cannot fail.
    RESIZE_TABLE + 16 * usize::try_from(index % MAX_RESIZES).unwrap_or(0)
}

/// What the first page says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub capacity: u64,
    /// Tells this ring's checkpoints from those of another at the same path.
    pub ring_id: u64,
    pub generation: u64,
    pub boot: [u8; BOOT_LEN],
    pub head: u64,
    pub synced: u64,
    pub resizes: u64,
}

impl Header {
    pub fn new(capacity: u64, generation: u64) -> io::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ring_id = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        Ok(Self { capacity, ring_id, generation, boot: boot_bytes()?, head: 0, synced: 0, resizes: 0 })
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut page = vec![0; RESIZE_TABLE];
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &(HEADER_LEN as u32).to_le_bytes());
        put(CAPACITY, &self.capacity.to_le_bytes());
        put(RING_ID, &self.ring_id.to_le_bytes());
        put(GENERATION, &self.generation.to_le_bytes());
        put(BOOT, &self.boot);
        put(HEAD, &self.head.to_le_bytes());
        put(SYNCED, &self.synced.to_le_bytes());
        put(RESIZES, &self.resizes.to_le_bytes());
        page
    }

    /// Reads the first page of a file of `file_len` bytes; the error says what is wrong with it.
    pub fn parse(page: &[u8], file_len: u64) -> Result<Self, &'static str> {
        if page.len() < RESIZE_TABLE || page[..8] != MAGIC {
            return Err("it does not begin like one");
        }
        if u32_at(page, 8) != VERSION || u64::from(u32_at(page, 12)) != HEADER_LEN {
            return Err("it is of another version");
        }
        let mut boot = [0; BOOT_LEN];
        boot.copy_from_slice(&page[BOOT..BOOT + BOOT_LEN]);
        let header = Self {
            capacity: u64_at(page, CAPACITY),
            ring_id: u64_at(page, RING_ID),
            generation: u64_at(page, GENERATION),
            boot,
            head: u64_at(page, HEAD),
            synced: u64_at(page, SYNCED),
            resizes: u64_at(page, RESIZES),
        };
        let whole = header.capacity.checked_add(HEADER_LEN) == Some(file_len);
        let capacities = crate::MIN_CAPACITY..=MAX_CAPACITY;
        if !whole || !capacities.contains(&header.capacity) || !header.capacity.is_multiple_of(crate::PAGE) {
            return Err("its length is not what it says");
        }
        // Room for arithmetic on positions; a terminal at full speed needs centuries to get there.
        let plausible = 1 << 62;
        if header.head >= plausible || header.synced > header.head || header.resizes >= plausible {
            return Err("its positions make no sense");
        }
        Ok(header)
    }

    /// Whether the page cache of the process that wrote this is still there.
    pub fn is_of_this_boot(&self) -> io::Result<bool> {
        Ok(self.boot == boot_bytes()?)
    }

    /// The changes of size that are still known, oldest first, with their numbers.
    pub fn resize_table(&self, page: &[u8]) -> Vec<(u64, u64, TerminalSize)> {
        let first = self.resizes.saturating_sub(MAX_RESIZES);
        let entry = |index: u64| {
            let at = resize_place(index);
            let packed = u64_at(page, at + 8).to_le_bytes();
            let cols = u16::from_le_bytes([packed[0], packed[1]]);
            let rows = u16::from_le_bytes([packed[2], packed[3]]);
            (index, u64_at(page, at), TerminalSize { cols, rows })
        };
        (first..self.resizes).map(entry).collect()
    }
}

/// Writes down who continues the ring.
pub fn stamp(file: &File, generation: u64) -> io::Result<()> {
    file.write_all_at(&generation.to_le_bytes(), GENERATION as u64)?;
    file.write_all_at(&boot_bytes()?, BOOT as u64)
}

fn boot_bytes() -> io::Result<[u8; BOOT_LEN]> {
    let text = boot_id().replace('-', "");
    let number = u128::from_str_radix(&text, 16);
    Ok(number.map_err(|err| io::Error::new(io::ErrorKind::InvalidData, err))?.to_be_bytes())
}

fn u32_at(page: &[u8], at: usize) -> u32 {
    page.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(page: &[u8], at: usize) -> u64 {
    page.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
