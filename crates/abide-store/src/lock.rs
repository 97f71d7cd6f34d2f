//! Locks that the kernel releases when their holder ends.
//!
//! A lock is `flock` on a file that is never unlinked while it might be held: a second file of the same name would
//! be a second lock. The kernel releases it when its holder dies, so there are no stale locks to break.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use abide_model::{InstanceId, Pid};
use abide_sys::atomic;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::damage::Damage;
use crate::dir;
use crate::error::ReadError;
use crate::layout::LOCK;

/// Who else may hold the lock at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Others that share it.
    Shared,
    Alone,
}

/// Why a lock could not be taken.
pub(crate) enum LockFailure {
    /// Another process held it all the time.
    Busy {
        holder: Option<Pid>,
    },
    /// There is no lock file, and none was to be made.
    Absent,
    /// The lock file is not a file.
    Damaged(Damage),
    System(Errno),
}

impl LockFailure {
    /// The error for the lock of the instance directory of `id` at `place`.
    pub(crate) fn of_unit(self, id: InstanceId, place: &Path, waited: Duration) -> crate::StoreError {
        match self {
            Self::Absent => ReadError::NotFound(id).into(),
            Self::Damaged(reason) => ReadError::Damaged { id, reason }.into(),
            failure => failure.at(place.to_owned(), waited),
        }
    }

    /// The error for the lock of a directory at `path` that is not an instance directory.
    pub(crate) fn at(self, path: PathBuf, waited: Duration) -> crate::StoreError {
        match self {
            Self::Busy { holder } => crate::StoreError::Locked { path, holder, waited },
            Self::Absent => crate::IoFailure::new("lock", path, Errno::NOENT).into(),
            Self::Damaged(_) => crate::StoreError::Taken { path: path.join(LOCK) },
            Self::System(errno) => crate::IoFailure::new("lock", path, errno).into(),
        }
    }
}

/// Takes the lock of the directory `dir`, waiting at most `patience`, and makes its file if it is missing.
/// Closing the result releases it.
pub(crate) fn take(dir: impl AsFd, hold: Hold, patience: Duration) -> Result<OwnedFd, LockFailure> {
    let dir = dir.as_fd();
    let file = loop {
        match open(dir) {
            Err(LockFailure::Absent) => {}
            opened => break opened?,
        }
        match atomic::create_empty(dir, LOCK.as_ref(), Mode::RUSR | Mode::WUSR) {
            Ok(file) => break file,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(LockFailure::System(errno)),
        }
    };
    wait(file, hold, patience)
}

/// Takes the lock of `dir` for oneself if it is free now, and makes no file.
pub(crate) fn take_if_free(dir: impl AsFd) -> Result<OwnedFd, LockFailure> {
    wait(open(dir)?, Hold::Alone, Duration::ZERO)
}

fn open(dir: impl AsFd) -> Result<OwnedFd, LockFailure> {
    let dir = dir.as_fd();
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let found = match rustix::fs::openat(dir, LOCK, flags, Mode::empty()) {
        Ok(file) => match rustix::fs::fstat(&file).map(|s| dir::kind(&s)) {
            Ok(FileType::RegularFile) => return Ok(file),
            Ok(other) => Ok(other),
            Err(errno) => Err(errno),
        },
        Err(Errno::NOENT) => return Err(LockFailure::Absent),
        Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => dir::stat(dir, LOCK).map(|s| dir::kind(&s)),
        Err(errno) => Err(errno),
    };
    let kind = found.map_err(LockFailure::System)?;
    Err(Damage::unless_regular(LOCK, kind).map_or(LockFailure::System(Errno::AGAIN), LockFailure::Damaged))
}

fn wait(file: OwnedFd, hold: Hold, patience: Duration) -> Result<OwnedFd, LockFailure> {
    const LONGEST_PAUSE: Duration = Duration::from_millis(25);
    let operation = match hold {
        Hold::Shared => FlockOperation::NonBlockingLockShared,
        Hold::Alone => FlockOperation::NonBlockingLockExclusive,
    };
    let deadline = Instant::now() + patience;
    let mut pause = Duration::from_micros(200);
    loop {
        match rustix::fs::flock(&file, operation) {
            Ok(()) => return Ok(file),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(LockFailure::Busy { holder: holder(&file) });
                }
                std::thread::sleep(pause.min(left));
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(errno) => return Err(LockFailure::System(errno)),
        }
    }
}

/// The process that holds the lock, if the kernel shows it: some file systems show another device than they lock on.
fn holder(file: &OwnedFd) -> Option<Pid> {
    let stat = rustix::fs::fstat(file).ok()?;
    let (major, minor) = (rustix::fs::major(stat.st_dev), rustix::fs::minor(stat.st_dev));
    let locked = format!("{major:02x}:{minor:02x}:{}", stat.st_ino);
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    table.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_flock = fields.next() == Some("FLOCK");
        let pid = fields.nth(2)?;
        (is_flock && fields.next() == Some(&locked)).then(|| pid.parse().ok())?.filter(|pid| *pid > Pid(0))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn a_lock_that_is_held_names_its_holder_and_is_free_when_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let fd = fs::File::open(dir.path()).unwrap();
        let held = take(&fd, Hold::Alone, NOW).ok().unwrap();
        for hold in [Hold::Alone, Hold::Shared] {
            match take(&fd, hold, Duration::from_millis(5)) {
                Err(LockFailure::Busy { holder }) => assert_eq!(holder, Some(abide_sys::process::own_pid())),
                _ => panic!("it was taken twice"),
            }
        }
        assert!(matches!(take_if_free(&fd), Err(LockFailure::Busy { .. })));
        drop(held);
        let shared = [take(&fd, Hold::Shared, NOW).ok().unwrap(), take(&fd, Hold::Shared, NOW).ok().unwrap()];
        assert!(matches!(take_if_free(&fd), Err(LockFailure::Busy { .. })));
        drop(shared);
        assert!(take_if_free(&fd).is_ok());
    }

    #[test]
    fn a_missing_lock_file_is_made_only_by_those_who_wait() {
        let dir = tempfile::tempdir().unwrap();
        let fd = fs::File::open(dir.path()).unwrap();
        assert!(matches!(take_if_free(&fd), Err(LockFailure::Absent)));
        assert!(!dir.path().join(LOCK).exists());
        assert!(take(&fd, Hold::Alone, NOW).is_ok());
        assert!(dir.path().join(LOCK).exists());
    }
}
