//! Files: bounded reads, whole writes, and the lock that keeps two changes from losing each other.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Gid, Mode, OFlags, Uid};

use crate::error::ConfigError;
use crate::text::shown_path;

/// More than any configuration needs, and little enough to be parsed at once.
const LARGEST: u64 = 1 << 20;

/// How long a change waits for another one to finish.
const PATIENCE: Duration = Duration::from_secs(10);

/// The file that changes are serialised by. Never removed: a process that waits for an unlinked lock file would end up
/// with a lock of its own.
const LOCK: &str = ".lock";

/// The end of the names of files that are being written.
const UNFINISHED: &str = ".abide-tmp";

/// Files of one configuration; knows how to name them in messages.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub(crate) home: PathBuf,
}

/// Held while a change is under way.
pub(crate) struct Lock(#[expect(dead_code, reason = "closing it is what releases the lock")] OwnedFd);

impl Disk {
    pub(crate) fn shown(&self, path: &Path) -> String {
        shown_path(path, &self.home)
    }

    fn failed(&self, action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ConfigError {
        let file = self.shown(path);
        move |source| ConfigError::Io { action, file, source }
    }

    /// The content of a file, or `None` if there is none.
    pub(crate) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, ConfigError> {
        // Opening a FIFO would wait for a writer, and opening a terminal could make it ours.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let mut file = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) if fs::symlink_metadata(path).is_ok() => {
                // Going on with defaults would ignore what the operator set.
                return Err(ConfigError::Refused(format!(
                    "{}: is a link to something that does not exist; restore its target, or remove the link",
                    self.shown(path)
                )));
            }
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
            // A socket cannot be opened at all.
            Err(rustix::io::Errno::NXIO) => return Err(self.not_a_file(path, "a socket or device")),
            Err(error) => return Err(self.failed("read", path)(error.into())),
        };
        let about = file.metadata().map_err(self.failed("read", path))?;
        let kind = about.file_type();
        if !kind.is_file() {
            let what = match () {
                () if kind.is_dir() => "a directory",
                () if kind.is_fifo() => "a pipe",
                () => "a device",
            };
            return Err(self.not_a_file(path, what));
        }
        let mut content = Vec::new();
        // The size is what it is while reading, not what it was before.
        (&mut file).take(LARGEST + 1).read_to_end(&mut content).map_err(self.failed("read", path))?;
        if content.len() as u64 > LARGEST {
            return Err(ConfigError::Refused(format!(
                "{}: is larger than the limit of {LARGEST} bytes; make it smaller, or move it away",
                self.shown(path)
            )));
        }
        Ok(Some(content))
    }

    fn not_a_file(&self, path: &Path, what: &'static str) -> ConfigError {
        let file = self.shown(path);
        ConfigError::Refused(format!(
            "{file}: is {what}, not a file; move it away, or put a file in its place"
        ))
    }

    /// Waits for the lock on `dir`, which is made if it is not there.
    pub(crate) fn lock(&self, dir: &Path) -> Result<Lock, ConfigError> {
        self.make_dir(dir)?;
        let path = dir.join(LOCK);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600))
            .map_err(|error| self.failed("lock", &path)(error.into()))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock(file)),
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    let dir = self.shown(dir);
                    return Err(ConfigError::Refused(format!(
                        "another abide is changing {dir}; try again when it is done"
                    )));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(self.failed("lock", &path)(error.into())),
            }
        }
    }

    fn make_dir(&self, dir: &Path) -> Result<(), ConfigError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(self.failed("make the directory", dir))
    }

    /// Writes a file whole or not at all. A link stays a link: what it points to is replaced.
    pub(crate) fn write(&self, _held: &Lock, path: &Path, content: &str) -> Result<(), ConfigError> {
        let failed = || self.failed("write", path);
        let target = match fs::symlink_metadata(path) {
            Ok(about) if about.is_symlink() => fs::canonicalize(path).map_err(failed())?,
            _ => path.to_owned(),
        };
        let (Some(dir), Some(name)) = (target.parent(), target.file_name()) else {
            return Err(self.not_a_file(path, "a directory"));
        };
        self.make_dir(dir)?;
        remove_unfinished(dir, name).map_err(failed())?;
        let unfinished = dir.join(unfinished_name(name, &std::process::id().to_string()));
        let written = write_new(&unfinished, content, fs::metadata(&target).ok())
            .and_then(|()| fs::rename(&unfinished, &target))
            .and_then(|()| sync_dir(dir));
        if written.is_err() {
            // The error that matters is the one that is returned.
            let _ = fs::remove_file(&unfinished);
        }
        written.map_err(failed())
    }

    /// Removes a file, or the link in its place.
    pub(crate) fn remove(&self, _held: &Lock, path: &Path) -> Result<(), ConfigError> {
        let removed = fs::remove_file(path).and_then(|()| path.parent().map_or(Ok(()), sync_dir));
        removed.map_err(self.failed("remove", path))
    }

    /// The names in `dir`, sorted; none if it is not there.
    pub(crate) fn names(&self, dir: &Path) -> Result<Vec<String>, ConfigError> {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("list", dir)(error)),
        };
        let mut names = entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()
            .map_err(self.failed("list", dir))?;
        names.sort();
        Ok(names)
    }
}

fn unfinished_name(name: &OsStr, unique: &str) -> String {
    format!(".{}.{unique}{UNFINISHED}", name.to_string_lossy())
}

/// Removes what a killed change to `name` left behind.
fn remove_unfinished(dir: &Path, name: &OsStr) -> io::Result<()> {
    let begin = format!(".{}.", name.to_string_lossy());
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let left = entry.file_name();
        let left = left.to_string_lossy();
        let unique = left.strip_prefix(&begin).and_then(|rest| rest.strip_suffix(UNFINISHED));
        if unique.is_some_and(|unique| unique.bytes().all(|b| b.is_ascii_digit())) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Writes a file that is not there yet, with owner and mode as `like` says, down to the disk.
fn write_new(path: &Path, content: &str, like: Option<fs::Metadata>) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?);
    if let Some(like) = like {
        let ours = file.metadata()?;
        if (ours.uid(), ours.gid()) != (like.uid(), like.gid()) {
            rustix::fs::fchown(&file, Some(Uid::from_raw(like.uid())), Some(Gid::from_raw(like.gid())))?;
        }
        rustix::fs::fchmod(&file, Mode::from_raw_mode(like.mode() & 0o7777))?;
    }
    file.write_all(content.as_bytes())?;
    file.sync_all()
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
