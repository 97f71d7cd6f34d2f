//! The pages of a database as they were at one moment: the file, and over it the log of what was written since.
//!
//! In WAL mode a writer appends changed pages to the log, and copies them into the file later. Both files are only ever
//! extended, or begun anew after everything was copied: so a state that nothing was appended to, and whose files are the
//! same afterwards, was not touched in between.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::files::{self, Look};

/// Pages that one look may read: far more than it needs, and an end to what a damaged database would lead into.
const MAX_PAGES: usize = 500_000;

/// A log that is longer was never copied, and reading it each time would take too long.
const MAX_LOG: u64 = 1 << 30;

const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// What tells a file from one that was changed, and from another in its place.
type Mark = (u64, u64, u64, i64, i64);

pub(super) struct Pages {
    path: PathBuf,
    file: File,
    mark: Mark,
    log: Option<Log>,
    size: usize,
    /// Bytes at the end of each page that are not SQLite's.
    reserved: usize,
    read: Cell<usize>,
}

/// What was written since the last copy.
struct Log {
    file: File,
    mark: Mark,
    /// Where the newest content of a page is.
    newest: HashMap<u32, u64>,
    /// Where the next change will be, and what is there now.
    end: u64,
    next: Vec<u8>,
}

impl Pages {
    /// The database as it is now; `None` if there is no such file.
    pub fn open(path: &Path) -> Look<Option<Self>> {
        let said = |error: io::Error| format!("{}: {error}", path.display());
        let file = match files::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(said(error)),
        };
        let mark = mark_of(&file).map_err(said)?;
        // Before anything is read of the file itself: what is copied from here on is in the log, and read from there.
        let log = Log::open(&beside(path, "-wal")).map_err(said)?;
        if beside(path, "-journal").symlink_metadata().is_ok_and(|meta| meta.len() > 0) {
            return Err(format!("{} is in the middle of a change", path.display()));
        }
        let mut header = [0; 100];
        let read = match log.as_ref().and_then(|log| log.newest.get(&1).map(|at| (log, *at))) {
            Some((log, at)) => log.file.read_exact_at(&mut header, at),
            None => file.read_exact_at(&mut header, 0),
        };
        read.map_err(said)?;
        let size = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 1 << 16,
            size => usize::from(size),
        };
        let is_utf8 = header[56..60] == [0, 0, 0, 1];
        if !header.starts_with(b"SQLite format 3\0") || !size.is_power_of_two() || size < 512 || !is_utf8 {
            return Err(format!("{} is not a database that can be read here", path.display()));
        }
        let (path, reserved) = (path.to_owned(), usize::from(header[20]));
        Ok(Some(Self { path, file, mark, log, size, reserved, read: Cell::new(0) }))
    }

    /// How much of each page is SQLite's.
    pub fn usable(&self) -> usize {
        self.size - self.reserved
    }

    /// The page of that number.
    pub fn page(&self, number: u32) -> Look<Vec<u8>> {
        self.read.set(self.read.get() + 1);
        if number == 0 || self.read.get() > MAX_PAGES {
            return Err(format!("{} is damaged or too large", self.path.display()));
        }
        let mut page = vec![0; self.size];
        let logged = self.log.as_ref().and_then(|log| Some((log, *log.newest.get(&number)?)));
        let read = match logged {
            Some((log, at)) => log.file.read_exact_at(&mut page, at),
            None => self.file.read_exact_at(&mut page, u64::from(number - 1) * self.size as u64),
        };
        read.map_err(|error| format!("{}: {error}", self.path.display()))?;
        page.truncate(self.usable());
        Ok(page)
    }

    /// Whether everything that was read belongs to one state.
    pub fn is_unchanged(&self) -> bool {
        let same =
            |path: &Path, mark: Option<Mark>| files::open(path).and_then(|file| mark_of(&file)).ok() == mark;
        let log = beside(&self.path, "-wal");
        // Two changes within one tick of the clock have the same time, but not the same place in the log.
        same(&self.path, Some(self.mark))
            && same(&log, self.log.as_ref().map(|log| log.mark))
            && self.log.as_ref().is_none_or(|log| log.at_end().is_ok_and(|now| now == log.next))
    }
}

impl Log {
    /// The log at `path`; `None` if there is none.
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = match files::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mark = mark_of(&file)?;
        if mark.2 > MAX_LOG {
            return Err(io::Error::other("its log is too long"));
        }
        let mut log = Self { file, mark, newest: HashMap::new(), end: LOG_HEADER as u64, next: Vec::new() };
        log.read()?;
        log.next = log.at_end()?;
        Ok(Some(log))
    }

    /// Reads which pages the log holds, up to the last change that is whole.
    fn read(&mut self) -> io::Result<()> {
        let mut from = BufReader::with_capacity(1 << 16, &self.file);
        let mut header = [0; LOG_HEADER];
        if fill(&mut from, &mut header)? != LOG_HEADER {
            return Ok(());
        }
        let (big_endian, size) = match (word(&header, 0), word(&header, 8)) {
            (0x377f_0682, size) => (false, size as usize),
            (0x377f_0683, size) => (true, size as usize),
            _ => return Ok(()),
        };
        let mut sum = checksum((0, 0), &header[..24], big_endian);
        if sum != (word(&header, 24), word(&header, 28)) || size > 1 << 16 {
            return Ok(());
        }
        let salt = &header[16..24];
        let mut frame = vec![0; FRAME_HEADER + size];
        let (mut at, mut unfinished) = (LOG_HEADER as u64, Vec::new());
        while fill(&mut from, &mut frame)? == frame.len() && frame[8..16] == *salt {
            sum = checksum(checksum(sum, &frame[..8], big_endian), &frame[FRAME_HEADER..], big_endian);
            if sum != (word(&frame, 16), word(&frame, 20)) {
                break;
            }
            unfinished.push((word(&frame, 0), at + FRAME_HEADER as u64));
            at += frame.len() as u64;
            // The last page of a change says how large the database is with it.
            if word(&frame, 4) != 0 {
                self.newest.extend(unfinished.drain(..));
                self.end = at;
            }
        }
        Ok(())
    }

    /// The beginning of the log, and of what follows its last change.
    fn at_end(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; LOG_HEADER + FRAME_HEADER];
        let mut read = 0;
        for (at, range) in [(0, 0..LOG_HEADER), (self.end, LOG_HEADER..LOG_HEADER + FRAME_HEADER)] {
            read += self.file.read_at(&mut bytes[range], at)?;
        }
        bytes.truncate(read);
        Ok(bytes)
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn mark_of(file: &File) -> io::Result<Mark> {
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("not a plain file"));
    }
    Ok((meta.dev(), meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
}

/// Reads until `buffer` is full or there is no more.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The big-endian number at `at`.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// The checksum of the log, continued over `bytes`.
fn checksum(sum: (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    let number = if big_endian { u32::from_be_bytes } else { u32::from_le_bytes };
    let (words, _) = bytes.as_chunks::<4>();
    let (pairs, _) = words.as_chunks::<2>();
    pairs.iter().fold(sum, |(one, two), [a, b]| {
        let one = one.wrapping_add(number(*a)).wrapping_add(two);
        (one, two.wrapping_add(number(*b)).wrapping_add(one))
    })
}
