//! Directories as file descriptors, so that nothing is looked up twice and no link is followed.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, Stat};
use rustix::io::{Errno, Result};

const OPEN: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Room for a few hundred names per system call.
const ENTRY_BUFFER: usize = 32 * 1024;

/// The directory `name` in `parent`, which must not be a link.
pub(crate) fn open(parent: impl AsFd, name: impl AsRef<OsStr>) -> Result<OwnedFd> {
    rustix::fs::openat(parent, name.as_ref(), OPEN, Mode::empty())
}

/// A new directory with mode 0700 whatever the umask.
pub(crate) fn make(parent: impl AsFd, name: impl AsRef<OsStr>) -> Result<OwnedFd> {
    let (parent, name) = (parent.as_fd(), name.as_ref());
    rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
    rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
    open(parent, name)
}

/// The directory `name` in `parent`, made if it is not there.
pub(crate) fn ensure(parent: impl AsFd, name: &str) -> Result<OwnedFd> {
    let parent = parent.as_fd();
    match open(parent, name) {
        Err(Errno::NOENT) => match make(parent, name) {
            Err(Errno::EXIST) => open(parent, name),
            made => made,
        },
        opened => opened,
    }
}

/// What `name` in `parent` is, without following it.
pub(crate) fn stat(parent: impl AsFd, name: impl AsRef<OsStr>) -> Result<Stat> {
    rustix::fs::statat(parent, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW)
}

/// The kind of file that `stat` is about.
pub(crate) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Whether `name` in `parent` is the very directory that is open as `fd`.
pub(crate) fn is_still(fd: impl AsFd, parent: impl AsFd, name: impl AsRef<OsStr>) -> Result<bool> {
    let ours = rustix::fs::fstat(fd)?;
    match stat(parent, name) {
        Ok(there) => Ok((there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// What is in a directory, without `.` and `..`; the kind is `Unknown` on file systems that do not say.
pub(crate) fn entries(dir: impl AsFd) -> Result<Vec<(OsString, FileType)>> {
    let dir = dir.as_fd();
    rustix::fs::seek(dir, rustix::fs::SeekFrom::Start(0))?;
    let mut buffer = Vec::with_capacity(ENTRY_BUFFER);
    let mut reader = RawDir::new(dir, buffer.spare_capacity_mut());
    let mut found = Vec::new();
    while let Some(entry) = reader.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            found.push((OsStr::from_bytes(name).to_owned(), entry.file_type()));
        }
    }
    Ok(found)
}

/// Moves a directory to a place that must be free.
pub(crate) fn move_to_free(
    from: impl AsFd,
    name: impl AsRef<OsStr>,
    to: impl AsFd,
    new_name: impl AsRef<OsStr>,
) -> Result<()> {
    let (from, to, name, new_name) = (from.as_fd(), to.as_fd(), name.as_ref(), new_name.as_ref());
    match rustix::fs::renameat_with(from, name, to, new_name, RenameFlags::NOREPLACE) {
        // Network file systems do not know the flag. A plain rename never replaces a directory that holds anything,
        // which an instance directory always does, so only the answer for an empty one has to be made here.
        Err(Errno::INVAL | Errno::NOSYS) => match stat(to, new_name) {
            Ok(_) => Err(Errno::EXIST),
            Err(Errno::NOENT) => rustix::fs::renameat(from, name, to, new_name),
            Err(errno) => Err(errno),
        },
        moved => moved,
    }
}
