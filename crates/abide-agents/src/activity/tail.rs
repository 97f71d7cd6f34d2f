//! The end of a transcript, read again whenever the file has changed.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use abide_model::Timestamp;
use serde_json::Value;

use super::{Statement, Tail};
use crate::files;

/// How much of the end is read, and how much if that says nothing: one record may hold a whole file.
const SIZES: [u64; 2] = [32 << 10, 1 << 20];
/// How often a transcript that is not there is looked for.
const SEARCH_EVERY: Duration = Duration::from_secs(5);

/// The transcript of a session.
#[derive(Debug)]
pub(super) struct Transcript {
    read: Option<Tail>,
    /// When the session was started.
    started: SystemTime,
    path: Option<PathBuf>,
    searched: Option<Instant>,
    /// Length and time of the file when it was last read, and what it said.
    seen: Option<(u64, SystemTime)>,
    said: Option<Statement>,
}

impl Transcript {
    pub fn new(read: Option<Tail>, started: Timestamp) -> Self {
        Self { read, started: time(started), path: None, searched: None, seen: None, said: None }
    }

    /// The session has another transcript now.
    pub fn forget(&mut self) {
        (self.path, self.searched, self.seen, self.said) = (None, None, None, None);
    }

    pub fn is_at(&mut self, path: PathBuf) {
        if self.path.as_ref() != Some(&path) {
            self.forget();
            self.path = Some(path);
        }
    }

    /// Whether it should be looked for now.
    pub fn may_search(&mut self, now: Instant) -> bool {
        self.read.is_some() && self.path.is_none() && self.is_due(now)
    }

    /// Whether another look around is due, which then counts as done.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let recently = |at: Instant| now.saturating_duration_since(at) < SEARCH_EVERY;
        let due = !self.searched.is_some_and(recently);
        if due {
            self.searched = Some(now);
        }
        due
    }

    /// When it was last written to, if it was found.
    pub fn written(&self) -> Option<SystemTime> {
        self.path.as_ref()?.metadata().ok()?.modified().ok()
    }

    /// What its end says, and when that was written. What an earlier run wrote says nothing about this one.
    pub fn look(&mut self) -> Option<(Statement, SystemTime)> {
        let (read, path) = (self.read?, self.path.as_ref()?);
        let mut file = files::open(path).ok()?;
        let metadata = file.metadata().ok().filter(Metadata::is_file)?;
        let (length, modified) = (metadata.len(), metadata.modified().ok()?);
        if modified < self.started {
            return None;
        }
        if self.seen != Some((length, modified)) {
            let mut ends = SIZES.iter().filter_map(|size| end(&mut file, length, *size).ok());
            self.said = ends.find_map(|end| read(&end));
            self.seen = Some((length, modified));
        }
        self.said.clone().map(|statement| (statement, modified))
    }
}

/// Whether the file at `path` was made since `started`.
pub(super) fn was_begun_since(path: &Path, started: Timestamp) -> bool {
    path.metadata().and_then(|file| file.created()).is_ok_and(|at| at >= time(started))
}

fn time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(at.0).unwrap_or_default())
}

fn end(file: &mut File, length: u64, size: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(length.saturating_sub(size)))?;
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The records of a transcript's end, the last one first. A line that is cut or torn is passed over, as agents do.
pub(crate) fn backwards(end: &[u8]) -> impl Iterator<Item = Value> + '_ {
    end.rsplit(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// The text of a message, which is a string or a list of parts.
pub(crate) fn text_of(content: &Value) -> &str {
    let first = content.as_array().and_then(|parts| parts.iter().find_map(|part| part["text"].as_str()));
    content.as_str().or(first).unwrap_or_default()
}
