//! Reading a journal back: what to restore, and what to replay on top of it.
//!
//! Reading changes nothing, so it serves the next mux as well as a client that looks at a session that has ended.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use abide_sys::untrusted;
use abide_wire::session::TerminalSize;

use crate::checkpoint::{self, Checkpoint};
use crate::layout::{self, HEADER_LEN, Header};

/// Output is handed over in pieces of at most this many bytes.
const PIECE: u64 = 64 << 10;
/// How far to look for a place where a cut stream can be entered.
const ENTRY_WITHIN: u64 = 64 << 10;

/// What a journal holds.
#[derive(Debug)]
pub struct Recovered {
    /// The state to begin with, if there is one; else an empty terminal.
    pub checkpoint: Option<Checkpoint>,
    /// Whether the beginning is missing: the ring went round, and no checkpoint covers it.
    pub truncated: bool,
    /// The terminal's size at the end, where it is known.
    pub size: Option<TerminalSize>,
    pub slot: Option<usize>,
    pub header: Header,
    /// What is to be replayed.
    pub from: u64,
    pub to: u64,
    resizes: Vec<(u64, TerminalSize)>,
    file: File,
}

/// A piece of what is to be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk<'a> {
    /// The terminal got this size.
    Resize(TerminalSize),
    /// The session wrote this.
    Output(&'a [u8]),
}

/// Why there is nothing to recover.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// There is no such file.
    #[error("there is no journal")]
    Missing,
    /// The file is not a journal that this version can read.
    #[error("not a journal: {0}")]
    Foreign(&'static str),
    /// It could not be read.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for RecoverError {
    fn from(err: io::Error) -> Self {
        if err.kind() == io::ErrorKind::NotFound { Self::Missing } else { Self::Io(err) }
    }
}

impl Recovered {
    /// Reads the journal at `path`.
    pub fn read(path: &Path) -> Result<Self, RecoverError> {
        let file = untrusted::open(path)?;
        let metadata = file.metadata()?;
        if metadata.len() < HEADER_LEN {
            return Err(RecoverError::Foreign("it is too short"));
        }
        let mut page = vec![0; HEADER_LEN as usize];
        file.read_exact_at(&mut page, 0)?;
        let header = Header::parse(&page, metadata.len()).map_err(RecoverError::Foreign)?;

        let to = if header.is_of_this_boot()? { received(&file, &header)? } else { header.synced };
        let oldest = layout::oldest(header.head.max(to), header.capacity);
        let usable = |position: u64| (oldest..=to).contains(&position);
        let (slot, checkpoint) = checkpoint::newest(path, header.ring_id, usable).unzip();
        let truncated = checkpoint.is_none() && oldest > 0;
        let from = match &checkpoint {
            Some(checkpoint) => checkpoint.position,
            None if truncated => entry(&file, header.capacity, oldest.min(to), to)?,
            None => 0,
        };
        let resizes = resizes_to_replay(&header, &page, checkpoint.as_ref(), from, to);
        let size = header.resize_table(&page).last().map(|(_, _, size)| *size);
        Ok(Self { checkpoint, truncated, size, slot, header, from, to, resizes, file })
    }

    /// Which run of the instance wrote it last.
    pub fn generation(&self) -> u64 {
        self.header.generation
    }

    /// Hands over everything after the checkpoint, in order.
    pub fn replay(&self, mut each: impl FnMut(Chunk<'_>)) -> io::Result<()> {
        let mut at = self.from;
        for (position, size) in &self.resizes {
            self.output(at, *position, &mut each)?;
            at = *position;
            each(Chunk::Resize(*size));
        }
        self.output(at, self.to, &mut each)
    }

    fn output(&self, from: u64, to: u64, each: &mut impl FnMut(Chunk<'_>)) -> io::Result<()> {
        let mut buffer = vec![0; PIECE.min(to.saturating_sub(from)) as usize];
        let mut at = from;
        while at < to {
            let n = read_at(&self.file, self.header.capacity, at, to, &mut buffer)?;
            each(Chunk::Output(&buffer[..n]));
            at += n as u64;
        }
        Ok(())
    }
}

/// Reads from `at` on, but not past `to`, the buffer, or the end of the ring.
fn read_at(file: &File, capacity: u64, at: u64, to: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let offset = at % capacity;
    let n = (to - at).min(capacity - offset).min(buffer.len() as u64) as usize;
    file.read_exact_at(&mut buffer[..n], HEADER_LEN + offset)?;
    Ok(n)
}

/// The end of what was received: the head, and what was read but not committed when the reader died.
fn received(file: &File, header: &Header) -> io::Result<u64> {
    let window = layout::window(header.capacity);
    let room = window.min(header.capacity - header.head % header.capacity);
    let mut buffer = vec![0; room as usize];
    let n = read_at(file, header.capacity, header.head, header.head + room, &mut buffer)?;
    let last = buffer[..n].iter().rposition(|&byte| byte != 0);
    Ok(header.head + last.map_or(0, |last| last as u64 + 1))
}

/// Where a stream that lost its beginning can be entered: after a line end, or at an escape. Anywhere else may be the
/// middle of a character or a sequence, whose rest would be shown as text.
fn entry(file: &File, capacity: u64, oldest: u64, to: u64) -> io::Result<u64> {
    let until = to.min(oldest + ENTRY_WITHIN);
    let mut buffer = vec![0; (until - oldest) as usize];
    let mut at = oldest;
    while at < until {
        let n = read_at(file, capacity, at, until, &mut buffer)?;
        if let Some(i) = buffer[..n].iter().position(|&byte| byte == b'\n' || byte == 0x1b) {
            return Ok(at + i as u64 + u64::from(buffer[i] == b'\n'));
        }
        at += n as u64;
    }
    Ok(oldest)
}

fn resizes_to_replay(
    header: &Header,
    page: &[u8],
    checkpoint: Option<&Checkpoint>,
    from: u64,
    to: u64,
) -> Vec<(u64, TerminalSize)> {
    let mut table = header.resize_table(page);
    table.retain(|(index, _, _)| checkpoint.is_none_or(|checkpoint| *index >= checkpoint.resizes));
    // Of what came before the beginning only the last counts: it is the size at the beginning.
    let earlier = table.iter().filter(|(_, position, _)| *position < from).count();
    let table = table.into_iter().skip(earlier.saturating_sub(1));
    let mut last = from;
    table
        .map(|(_, position, size)| {
            // What an unclean end of the machine has mixed up is put in order: sizes matter more than places.
            last = position.clamp(last, to.max(last));
            (last, size)
        })
        .collect()
}
