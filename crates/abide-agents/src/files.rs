//! Looking at what agents keep on disk: bounded, within the agent's own directory, and never trusting what is there.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use abide_model::Timestamp;
use abide_model::conversation::{Located, TranscriptCandidate};
pub(crate) use abide_sys::untrusted::open;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Entries of one directory that are looked at.
const MAX_ENTRIES: usize = 20_000;

/// How much of a transcript is read to learn whose it is. Agents say so in their first records.
const HEAD: u64 = 256 * 1024;

/// Lines of a head that are tried.
const MAX_RECORDS: usize = 512;

/// Transcripts that one discovery opens, the newest first.
const MAX_OPENED: usize = 256;

/// An answer, or why there is none.
pub(crate) type FileResult<T> = Result<T, String>;

/// An agent's directory, without links. Whatever leads out of it is not looked at.
pub(crate) struct Root(PathBuf);

pub(crate) struct PlainFile {
    path: PathBuf,
    size: u64,
    modified: Timestamp,
    begun: Option<Timestamp>,
}

/// What a transcript says about itself.
#[derive(Debug, Default)]
pub(crate) struct About {
    /// Its conversation's id, where the name of the file does not hold it.
    pub(crate) id: Option<String>,
    /// The directory its conversation began in.
    pub(crate) cwd: Option<String>,
    /// Whether it is of an agent that another agent started.
    pub(crate) sub_agent: bool,
}

impl PlainFile {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }
}

impl Root {
    /// A directory that is not there is no answer: it may be one that is not mounted yet.
    pub(crate) fn open(dir: &Path) -> FileResult<Self> {
        fs::canonicalize(dir).map(Self).map_err(|error| said(dir, &error))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The directories in `dir`, by name.
    pub(crate) fn dirs(&self, dir: &Path) -> FileResult<Vec<PathBuf>> {
        self.entries(dir, fs::FileType::is_dir)
    }

    /// The plain files in `dir`, by name.
    pub(crate) fn files(&self, dir: &Path) -> FileResult<Vec<PathBuf>> {
        self.entries(dir, fs::FileType::is_file)
    }

    fn entries(&self, dir: &Path, wanted: fn(&fs::FileType) -> bool) -> FileResult<Vec<PathBuf>> {
        let listing = match fs::read_dir(dir) {
            Ok(listing) => listing,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(said(dir, &error)),
        };
        self.hold(dir)?;
        let mut paths = Vec::new();
        for (count, entry) in listing.enumerate() {
            if count == MAX_ENTRIES {
                return Err(format!("{} holds too many files", dir.display()));
            }
            let entry = entry.map_err(|error| said(dir, &error))?;
            if entry.file_type().is_ok_and(|kind| wanted(&kind)) {
                paths.push(entry.path());
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// The plain file at `path`, if anything is there.
    pub(crate) fn file(&self, path: &Path) -> FileResult<Option<PlainFile>> {
        let meta = match fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(said(path, &error)),
        };
        if !meta.is_file() {
            return Err(format!("{} is not a plain file", path.display()));
        }
        self.hold(path.parent().unwrap_or(path))?;
        let modified = meta.modified().ok().and_then(timestamp).unwrap_or(Timestamp(0));
        let begun = meta.created().ok().and_then(timestamp);
        Ok(Some(PlainFile { path: path.to_owned(), size: meta.len(), modified, begun }))
    }

    fn hold(&self, dir: &Path) -> FileResult<()> {
        match fs::canonicalize(dir) {
            Ok(real) if real.starts_with(&self.0) => Ok(()),
            Ok(real) => {
                Err(format!("{} points out of {}, to {}", dir.display(), self.0.display(), real.display()))
            }
            Err(error) => Err(said(dir, &error)),
        }
    }

    /// Judges the transcript at `path` of a conversation in `cwd`; `about` reads its head.
    pub(crate) fn judge(
        &self,
        path: &Path,
        cwd: &Path,
        about: impl Fn(&[u8]) -> About,
    ) -> FileResult<Located> {
        let Some(seen) = self.file(path)?.filter(|seen| seen.size > 0) else { return Ok(Located::Missing) };
        match about(&head(&seen.path)?).cwd {
            Some(recorded) if !same_dir(&recorded, cwd) => {
                Err(format!("{} was recorded in {recorded}", path.display()))
            }
            _ => Ok(Located::Found(seen.path)),
        }
    }

    /// Which of the transcripts `named` by id were written since `since` in `cwd`, or anywhere, the newest first. What
    /// cannot be read is passed over.
    pub(crate) fn candidates(
        &self,
        named: impl IntoIterator<Item = (String, PathBuf)>,
        cwd: Option<&Path>,
        since: Timestamp,
        about: impl Fn(&[u8]) -> About,
    ) -> Vec<TranscriptCandidate> {
        let seen = |(id, path): (String, PathBuf)| self.file(&path).ok().flatten().map(|seen| (id, seen));
        let mut recent: Vec<(String, PlainFile)> = named
            .into_iter()
            .filter_map(seen)
            .filter(|(_, seen)| seen.size > 0 && seen.modified >= since)
            .collect();
        recent.sort_by(|(_, a), (_, b)| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
        recent.truncate(MAX_OPENED);
        let matching = recent.into_iter().filter_map(|(named, PlainFile { path, size, modified, begun })| {
            let About { id, cwd: recorded, sub_agent } = about(&head(&path).ok()?);
            let recorded = recorded?;
            let own = !sub_agent && cwd.is_none_or(|cwd| same_dir(&recorded, cwd));
            let cwd = || real(cwd.unwrap_or(Path::new(&recorded)));
            own.then(|| TranscriptCandidate {
                id: id.unwrap_or(named),
                path,
                cwd: cwd(),
                modified,
                begun,
                size,
                title: None,
            })
        });
        matching.collect()
    }
}

fn timestamp(at: SystemTime) -> Option<Timestamp> {
    let since = at.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Timestamp)
}

/// The first bytes of the plain file at `path`.
pub(crate) fn head(path: &Path) -> FileResult<Vec<u8>> {
    let read = |file: File| {
        let mut bytes = Vec::new();
        file.take(HEAD).read_to_end(&mut bytes).map(|_| bytes)
    };
    open(path).and_then(read).map_err(|error| said(path, &error))
}

/// Whether the last record of the transcript at `path` was cut short, as by a kill or a full disk.
pub(crate) fn is_torn(path: &Path) -> bool {
    const TAIL: u64 = 1024 * 1024;
    let tail = || -> io::Result<Vec<u8>> {
        let mut file = open(path)?;
        let from = file.metadata()?.len().saturating_sub(TAIL);
        file.seek(io::SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let Ok(bytes) = tail() else { return false };
    let last = bytes.rsplit(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    last.is_some_and(|line| serde_json::from_slice::<IgnoredAny>(line).is_err())
}

/// The records of a head that are a `T`. A line that is cut, torn or of another kind is passed over, as agents do.
pub(crate) fn records<'a, T: Deserialize<'a> + 'a>(head: &'a [u8]) -> impl Iterator<Item = T> + 'a {
    head.split(|byte| *byte == b'\n').take(MAX_RECORDS).filter_map(|line| serde_json::from_slice(line).ok())
}

/// `path` without links, or as it is if it is not there.
pub(crate) fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether two names mean the same directory.
pub(crate) fn same_dir(recorded: &str, cwd: &Path) -> bool {
    let recorded = Path::new(recorded);
    recorded == cwd || (recorded.is_absolute() && real(recorded) == real(cwd))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn said(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
