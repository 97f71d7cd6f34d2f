//! Transcripts as files to which an agent only ever appends, and the copies of them: how the two compare, and how a copy
//! grows.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use abide_sys::untrusted;
use serde::de::IgnoredAny;

/// How a file compares with the copy of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compared {
    Same,
    /// The file begins with all that the copy holds.
    Grown,
    /// The copy begins with all that the file holds.
    Shrunk,
    /// One says something else than the other.
    Differs,
}

/// How much of both is compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum Compare {
    /// Where they begin, and where the shorter one ends: as often as a turn ends.
    Ends,
    All,
}

/// What a comparison of the ends reads of each end.
const END: u64 = 64 << 10;

/// How much is compared at a time.
const CHUNK: usize = 64 << 10;

/// Whether a file is one to which its agent only appends.
pub(super) fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}

/// Compares `file` with the `copy` of it.
pub(super) fn compare(file: &Path, copy: &Path, how: Compare) -> io::Result<Compared> {
    let (mut file, mut copy) = (untrusted::open(file)?, untrusted::open(copy)?);
    let (theirs, ours) = (file.metadata()?.len(), copy.metadata()?.len());
    let common = theirs.min(ours);
    let ranges = match how {
        Compare::Ends if common > 2 * END => vec![(0, END), (common - END, END)],
        _ => vec![(0, common)],
    };
    for (at, length) in ranges {
        if !are_equal(&mut file, &mut copy, at, length)? {
            return Ok(Compared::Differs);
        }
    }
    Ok(match theirs.cmp(&ours) {
        std::cmp::Ordering::Less => Compared::Shrunk,
        std::cmp::Ordering::Equal => Compared::Same,
        std::cmp::Ordering::Greater => Compared::Grown,
    })
}

fn are_equal(one: &mut File, other: &mut File, at: u64, length: u64) -> io::Result<bool> {
    let mut read = [one, other].map(|file| file.seek(SeekFrom::Start(at)).map(|_| file.take(length)));
    let [Ok(one), Ok(other)] = &mut read else { return Err(io::Error::other("it cannot be read")) };
    let (mut left, mut right) = (vec![0; CHUNK], vec![0; CHUNK]);
    loop {
        let (n, m) = (fill(one, &mut left)?, fill(other, &mut right)?);
        if left[..n] != right[..m] {
            return Ok(false);
        }
        if n == 0 {
            return Ok(true);
        }
    }
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

/// Whether every line of `file` is a record. The last one may be cut: agents pass over that.
pub(super) fn is_sound(file: &Path) -> io::Result<bool> {
    let mut lines = BufReader::new(untrusted::open(file)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        lines.read_until(b'\n', &mut line)?;
        let Some(record) = line.strip_suffix(b"\n") else {
            let is_cut = line.starts_with(b"{") && !line.iter().any(u8::is_ascii_control);
            return Ok(line.is_empty() || is_cut);
        };
        if !record.is_empty() && serde_json::from_slice::<IgnoredAny>(record).is_err() {
            return Ok(false);
        }
    }
}

/// Appends to `copy` what `file` has beyond it. Cut short by a crash, it is a shorter copy, and still one.
pub(super) fn append(file: &Path, copy: &Path) -> io::Result<()> {
    let (mut from, mut to) = (untrusted::open(file)?, File::options().append(true).open(copy)?);
    from.seek(SeekFrom::Start(to.metadata()?.len()))?;
    io::copy(&mut from, &mut to)?;
    to.sync_data()?;
    mark(file, copy)
}

/// Notes that `copy` is of `file` as it was last written to, so that the two need not be read to know that.
pub(super) fn mark(file: &Path, copy: &Path) -> io::Result<()> {
    let written = fs::metadata(file)?.modified()?;
    File::options().append(true).open(copy)?.set_modified(written)
}
