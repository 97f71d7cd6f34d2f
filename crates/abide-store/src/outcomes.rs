//! How instances ended, as a log that outlives them: one JSON object per line.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use abide_model::{DecidedBy, Extra, InstanceId, Timestamp};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::dir;
use crate::error::{IoFailure, Result, StoreStep as _};
use crate::layout::{LOG, OUTCOMES};
use crate::store::Store;
use abide_sys::atomic;

/// What became of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InstanceOutcome {
    Removed,
    Kept,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeRecord {
    pub at: Timestamp,
    pub id: InstanceId,
    /// What it was launched from.
    pub scope: String,
    pub role: String,
    pub outcome: InstanceOutcome,
    pub reason: String,
    /// Whose decision it was, where it needed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<DecidedBy>,
    /// Anything else worth knowing.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The instances that the log has a line of.
pub fn instances(store: &Store) -> BTreeSet<InstanceId> {
    let log = std::fs::read_to_string(store.layout().outcomes_file()).unwrap_or_default();
    let records = log.lines().filter_map(|line| serde_json::from_str::<OutcomeRecord>(line).ok());
    records.map(|record| record.id).collect()
}

/// Adds one line, in one write: lines of several processes never mix.
pub fn append(store: &Store, outcome: &OutcomeRecord) -> Result<()> {
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

fn is_cut_short(file: &OwnedFd) -> rustix::io::Result<bool> {
    let size = u64::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0);
    let mut last = [b'\n'];
    rustix::io::pread(file, &mut last, size.saturating_sub(1))?;
    Ok(last != [b'\n'])
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

    fn outcome(n: i64) -> OutcomeRecord {
        OutcomeRecord {
            at: Timestamp(n),
            id: InstanceId::from_bits(n.unsigned_abs()),
            scope: "/work/shop".into(),
            role: "default".into(),
            outcome: InstanceOutcome::Removed,
            reason: "x".into(),
            decided_by: None,
            extra: Extra::new(),
        }
    }

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("home")).unwrap();
        (dir, store)
    }

    fn written(store: &Store) -> Vec<OutcomeRecord> {
        let text = std::fs::read_to_string(store.layout().outcomes_file()).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    #[test]
    fn a_line_that_was_cut_short_costs_only_itself() {
        let (_dir, store) = store();
        append(&store, &outcome(1)).unwrap();
        let path = store.layout().outcomes_file();
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(br#"{"at":"1970-01-01T00:"#).unwrap();
        append(&store, &outcome(2)).unwrap();
        assert_eq!(written(&store), [outcome(1), outcome(2)]);
    }

    #[test]
    fn a_link_in_its_place_is_not_written_through() {
        let (dir, store) = store();
        let target = dir.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, store.layout().outcomes_file()).unwrap();
        assert!(append(&store, &outcome(1)).is_err());
        assert_eq!(std::fs::read(target).unwrap(), b"precious");
    }
}
