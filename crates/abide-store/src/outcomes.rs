//! How instances ended, as a log that outlives them: one JSON object per line.

use std::os::fd::OwnedFd;

use abide_model::{Extra, InstanceId, Timestamp};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::dir;
use crate::error::{Doing as _, IoFailure, Result};
use crate::layout::{LOG, OUTCOMES};
use crate::store::Store;
use abide_sys::atomic;

/// What became of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// When.
    pub at: Timestamp,
    /// Which instance.
    pub id: InstanceId,
    /// What it was launched from.
    pub scope: String,
    /// With which role.
    pub role: String,
    /// What became of it: `removed`, `kept`, `restored`, `purged`, ….
    pub outcome: String,
    /// Why.
    pub reason: String,
    /// Anything else worth knowing.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How much is read at a time when looking for the last lines.
const BLOCK: u64 = 64 << 10;

/// Adds one line, in one write: lines of several processes never mix.
pub fn append(store: &Store, outcome: &Outcome) -> Result<()> {
    let path = store.layout().outcomes_file();
    let mut line =
        serde_json::to_vec(outcome).map_err(|_| IoFailure::new("write a line to", &path, Errno::INVAL))?;
    line.push(b'\n');
    let file = open_to_append(&store.open_section(LOG)?).doing("open", &path)?;
    // A line that a crash or a full disk cut short must not swallow this one.
    if is_cut_short(&file).doing("read", &path)? {
        line.insert(0, b'\n');
    }
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        match rustix::io::write(&file, rest) {
            Ok(n) => rest = &rest[n..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(IoFailure::new("write a line to", path, errno).into()),
        }
    }
    Ok(())
}

/// The last `n` outcomes, oldest first. Lines that are not outcomes are passed over.
pub fn last(store: &Store, n: usize) -> Result<Vec<Outcome>> {
    let path = store.layout().outcomes_file();
    let Some(log) = store.open_section_if_there(LOG)? else {
        return Ok(Vec::new());
    };
    let file = match open(&log, OFlags::RDONLY) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(errno) => return Err(IoFailure::new("open", path, errno).into()),
    };
    let end = rustix::fs::fstat(&file).doing("look at", &path)?.st_size.try_into().unwrap_or(0);
    let mut tail = Vec::new();
    let mut start: u64 = end;
    loop {
        let found: Vec<Outcome> =
            whole_lines(&tail, start).filter_map(|l| serde_json::from_slice(l).ok()).collect();
        if found.len() >= n || start == 0 {
            return Ok(found.into_iter().rev().take(n).rev().collect());
        }
        let from = start.saturating_sub(BLOCK.max(end - start));
        let mut block = read_range(&file, from, start).doing("read", &path)?;
        block.append(&mut tail);
        (tail, start) = (block, from);
    }
}

/// The lines of a file's tail that begins at `start`, without a first one whose beginning is missing.
fn whole_lines(tail: &[u8], start: u64) -> impl Iterator<Item = &[u8]> {
    tail.split(|byte| *byte == b'\n').skip(usize::from(start > 0))
}

fn read_range(file: &OwnedFd, from: u64, to: u64) -> rustix::io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(to - from).map_err(|_| Errno::NOMEM)?];
    let mut len = 0;
    while len < bytes.len() {
        match rustix::io::pread(file, &mut bytes[len..], from + len as u64) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}

fn is_cut_short(file: &OwnedFd) -> rustix::io::Result<bool> {
    let size = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0);
    Ok(size > 0 && read_range(file, size - 1, size)? != b"\n")
}

fn open_to_append(log: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::APPEND;
    match open(log, flags) {
        Err(Errno::NOENT) => match atomic::create_empty(log, OUTCOMES.as_ref(), Mode::RUSR | Mode::WUSR) {
            Ok(_) | Err(Errno::EXIST) => open(log, flags),
            Err(errno) => Err(errno),
        },
        opened => opened,
    }
}

fn open(log: &OwnedFd, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let safe = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(log, OUTCOMES, flags | safe, Mode::empty())?;
    match dir::kind(&rustix::fs::fstat(&file)?) {
        FileType::RegularFile => Ok(file),
        _ => Err(Errno::INVAL),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn outcome(n: i64) -> Outcome {
        Outcome {
            at: Timestamp(n),
            id: InstanceId::from_bits(n.unsigned_abs()),
            scope: "/work/shop".into(),
            role: "default".into(),
            outcome: "removed".into(),
            reason: "x".repeat(300),
            extra: Extra::new(),
        }
    }

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("home")).unwrap();
        (dir, store)
    }

    #[test]
    fn the_last_ones_come_back_in_the_order_they_happened() {
        let (_dir, store) = store();
        assert!(last(&store, 5).unwrap().is_empty());
        // More than one block of the file, so that a line lies across two of them.
        for n in 0..500 {
            append(&store, &outcome(n)).unwrap();
        }
        for n in [0, 1, 7, 499, 500, 9999] {
            let expected: Vec<_> = (0..500).skip(500usize.saturating_sub(n)).map(outcome).collect();
            assert_eq!(last(&store, n).unwrap(), expected, "the last {n}");
        }
    }

    #[test]
    fn a_line_that_was_cut_short_costs_only_itself() {
        let (_dir, store) = store();
        append(&store, &outcome(1)).unwrap();
        let path = store.layout().outcomes_file();
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(br#"{"at":"1970-01-01T00:"#).unwrap();
        append(&store, &outcome(2)).unwrap();
        assert_eq!(last(&store, 9).unwrap(), [outcome(1), outcome(2)]);
    }

    #[test]
    fn a_link_in_its_place_is_not_written_through() {
        let (dir, store) = store();
        let target = dir.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, store.layout().outcomes_file()).unwrap();
        assert!(append(&store, &outcome(1)).is_err());
        assert!(last(&store, 1).is_err());
        assert_eq!(std::fs::read(target).unwrap(), b"precious");
    }
}
