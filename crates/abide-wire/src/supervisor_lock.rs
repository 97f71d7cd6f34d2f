//! The lock that a keeper holds all its life: what says that it lives.
//!
//! The file is never unlinked while its directory exists: a second file of the same name would be a second lock. The
//! kernel releases the lock however its holder ends, and its state is visible across PID namespaces.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use abide_model::liveness::SupervisorLock;

use crate::instance_dir::InstanceDir;

/// For how long a keeper that begins waits for a lock that others hold only to test or to change something.
const TO_BEGIN: Duration = Duration::from_secs(1);
/// How long others may take to change the record.
const TO_CHANGE: Duration = Duration::from_secs(3);
/// How often a lock that several hold together is tested before it is believed to be held.
const SHARED_TESTS: usize = 4;

/// Whether a supervisor of `instance_dir` lives: a keeper, or panes of tmux.
pub fn supervisor_lock(instance_dir: &InstanceDir) -> SupervisorLock {
    test(&instance_dir.keeper_lock(), File::try_lock_shared).or(test_shared(&instance_dir.panes_lock()))
}

/// Tests a lock that several hold together. Others that test it get in the way for an instant, a holder stays.
fn test_shared(path: &Path) -> SupervisorLock {
    for _ in 0..SHARED_TESTS {
        match test(path, File::try_lock) {
            SupervisorLock::Held => std::thread::sleep(Duration::from_millis(1)),
            other => return other,
        }
    }
    test(path, File::try_lock)
}

/// Tests a lock without keeping it. A file that was never made is a lock that was never held.
fn test(path: &Path, take: impl Fn(&File) -> Result<(), TryLockError>) -> SupervisorLock {
    let mut options = File::options();
    // Neither a link nor a pipe in its place may keep us, or lead elsewhere.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = match options.read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return SupervisorLock::Free,
        Err(_) => return SupervisorLock::Unreadable,
    };
    match take(&file) {
        Ok(()) => SupervisorLock::Free,
        Err(TryLockError::WouldBlock) => SupervisorLock::Held,
        Err(TryLockError::Error(_)) => SupervisorLock::Unreadable,
    }
}

/// A lock that a process holds for as long as it does something for an instance.
#[derive(Debug)]
pub struct InstanceClaim(#[expect(dead_code, reason = "the open file is the lock")] File);

impl InstanceClaim {
    /// Says that this process starts `instance_dir`, until this is dropped or the process ends.
    pub fn starting(instance_dir: &InstanceDir) -> io::Result<Self> {
        instance_dir.prepare_run()?;
        Ok(Self(wait(open(&instance_dir.starter_lock())?, TO_BEGIN)?))
    }

    /// Says that this process decides what becomes of `instance_dir`, until this is dropped or the process ends. Others may
    /// decide beside it; those that only look leave it to this one.
    pub fn finishing(instance_dir: &InstanceDir) -> io::Result<Self> {
        Ok(Self(wait(open(&instance_dir.finisher_lock())?, Duration::ZERO)?))
    }

    /// Whether a process decides what becomes of `instance_dir`.
    pub fn is_finishing(instance_dir: &InstanceDir) -> bool {
        test(&instance_dir.finisher_lock(), File::try_lock_shared) == SupervisorLock::Held
    }

    /// Whether a process starts `instance_dir`. A lock that was never taken says nothing about a process that cannot be seen.
    pub fn starter(instance_dir: &InstanceDir) -> SupervisorLock {
        let path = instance_dir.starter_lock();
        if path.symlink_metadata().is_ok() {
            test(&path, File::try_lock_shared)
        } else {
            SupervisorLock::Unreadable
        }
    }
}

/// Takes the lock for a keeper that begins; `WouldBlock` where another one has it.
pub fn take(instance_dir: &InstanceDir) -> io::Result<File> {
    wait(open(&instance_dir.keeper_lock())?, TO_BEGIN)
}

/// Takes the lock under which the panes of tmux change the record. Not the keeper's: that one says who lives.
pub fn take_to_change(instance_dir: &InstanceDir) -> io::Result<File> {
    wait(open(&instance_dir.record_lock())?, TO_CHANGE)
}

/// Removes the socket that a keeper left which was killed. The caller has made sure that no other is being started.
pub fn remove_stale_socket(instance_dir: &InstanceDir) -> io::Result<()> {
    let socket = instance_dir.socket();
    match socket.symlink_metadata() {
        Ok(_) if supervisor_lock(instance_dir) == SupervisorLock::Free => std::fs::remove_file(socket),
        _ => Ok(()),
    }
}

/// The lock of the panes of tmux: each holds it as long as its process lives, however that ends.
pub struct PaneLock(#[expect(dead_code, reason = "the open file is the lock")] File);

impl PaneLock {
    /// Takes up a place among the panes of `instance_dir`.
    pub fn new(instance_dir: &InstanceDir) -> io::Result<Self> {
        let file = open(&instance_dir.panes_lock())?;
        file.lock_shared()?;
        Ok(Self(file))
    }

    /// Whether any pane of `instance_dir` is there, if only to say its last output.
    pub fn any(instance_dir: &InstanceDir) -> io::Result<bool> {
        match open(&instance_dir.panes_lock())?.try_lock() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(err)) => Err(err),
        }
    }
}

/// Makes every lock of `instance_dir` that is not there. A container sees each of them as a mount that it can neither write nor
/// replace, which needs a file beforehand.
pub fn make_all(instance_dir: &InstanceDir) -> io::Result<()> {
    for path in instance_dir.locks() {
        let file = open(&path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other(format!("{} is not a file", path.display())));
        }
    }
    Ok(())
}

/// Opens a lock, and makes it where it is not there yet. In a container it is there and cannot be written, which a lock need not be.
fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let mut options = File::options();
    match options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            File::options().read(true).custom_flags(flags).open(path)
        }
        opened => opened,
    }
}

fn wait(lock: File, limit: Duration) -> io::Result<File> {
    let deadline = Instant::now() + limit;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::Error(err)) => return Err(err),
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance_dir() -> (tempfile::TempDir, InstanceDir) {
        let dir = tempfile::tempdir().unwrap();
        let instance_dir = InstanceDir::new(dir.path());
        instance_dir.prepare_run().unwrap();
        (dir, instance_dir)
    }

    #[test]
    fn a_lock_is_held_for_as_long_as_its_holder_keeps_it() {
        let (_dir, instance_dir) = instance_dir();
        assert_eq!(supervisor_lock(&instance_dir), SupervisorLock::Free, "it was never made");
        let held = take(&instance_dir).unwrap();
        assert_eq!(supervisor_lock(&instance_dir), SupervisorLock::Held);
        drop(held);
        assert_eq!(supervisor_lock(&instance_dir), SupervisorLock::Free);
    }

    #[test]
    fn panes_that_hold_their_lock_together_are_a_sign_of_life() {
        let (_dir, instance_dir) = instance_dir();
        let panes = [PaneLock::new(&instance_dir).unwrap(), PaneLock::new(&instance_dir).unwrap()];
        assert_eq!(supervisor_lock(&instance_dir), SupervisorLock::Held);
        drop(panes);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..50).for_each(|_| assert_eq!(supervisor_lock(&instance_dir), SupervisorLock::Free))
                });
            }
        });
    }

    #[test]
    fn what_is_no_lock_says_nothing() {
        let (_dir, instance_dir) = instance_dir();
        std::os::unix::fs::symlink("/dev/null", instance_dir.keeper_lock()).unwrap();
        assert_eq!(supervisor_lock(&instance_dir), SupervisorLock::Unreadable);
    }

    #[test]
    fn a_starter_that_never_claimed_is_not_known_to_be_gone() {
        let (_dir, instance_dir) = instance_dir();
        assert_eq!(InstanceClaim::starter(&instance_dir), SupervisorLock::Unreadable);
        let claim = InstanceClaim::starting(&instance_dir).unwrap();
        assert_eq!(InstanceClaim::starter(&instance_dir), SupervisorLock::Held);
        drop(claim);
        assert_eq!(InstanceClaim::starter(&instance_dir), SupervisorLock::Free);
    }

    #[test]
    fn a_socket_is_removed_only_where_no_keeper_lives() {
        let (_dir, instance_dir) = instance_dir();
        std::fs::write(instance_dir.socket(), "").unwrap();
        let held = take(&instance_dir).unwrap();
        remove_stale_socket(&instance_dir).unwrap();
        assert!(instance_dir.socket().exists());
        drop(held);
        remove_stale_socket(&instance_dir).unwrap();
        assert!(!instance_dir.socket().exists());
        remove_stale_socket(&instance_dir).unwrap();
    }
}
