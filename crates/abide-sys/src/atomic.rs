//! Files that are there whole or not at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

/// Writes `name` in the directory `dir` so that a reader, a crash or a full disk meets the old contents or the new ones,
/// never a part of them. The mode is exactly `mode`, whatever the umask; what a link `name` pointed to stays as it was.
pub fn write(dir: impl AsFd, name: impl AsRef<OsStr>, bytes: &[u8], mode: u32) -> io::Result<()> {
    replace(dir.as_fd(), name.as_ref(), bytes, mode, Durability::Synced)
}

/// Like [`write()`], to a path whose directory exists.
pub fn write_path(path: &Path, bytes: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    let (dir, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    replace(File::open(dir)?.as_fd(), name, bytes, mode, durability)
}

/// Whether a file is on the disk when writing it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    Synced,
    /// A power cut may undo it.
    Unsynced,
}

fn replace(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    bytes: &[u8],
    mode: u32,
    durability: Durability,
) -> io::Result<()> {
    let durable = durability == Durability::Synced;
    let mut temp = OsStr::new(".").to_owned();
    temp.push(name);
    temp.push(format!(".{:016x}.tmp", random()?));
    create_with(dir, &temp, bytes, Mode::from_raw_mode(mode), durable)?;
    if let Err(errno) = rustix::fs::renameat(dir, &temp, dir, name) {
        let _ = rustix::fs::unlinkat(dir, &temp, AtFlags::empty());
        return Err(errno.into());
    }
    if durable { Ok(rustix::fs::fsync(dir)?) } else { Ok(()) }
}

/// A new file with these contents, on the disk when this returns; on failure there is no such file.
pub fn create(dir: impl AsFd, name: impl AsRef<OsStr>, bytes: &[u8], mode: Mode) -> rustix::io::Result<()> {
    create_with(dir.as_fd(), name.as_ref(), bytes, mode, true)
}

fn create_with(
    dir: BorrowedFd<'_>,
    name: &OsStr,
    bytes: &[u8],
    mode: Mode,
    durable: bool,
) -> rustix::io::Result<()> {
    let file = create_empty(dir, name, mode)?;
    let written = fill(&file, bytes).and_then(|()| if durable { rustix::fs::fsync(&file) } else { Ok(()) });
    if written.is_err() {
        let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
    }
    written
}

/// A new, empty file with exactly `mode`.
pub fn create_empty(dir: impl AsFd, name: &OsStr, mode: Mode) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, name, flags, mode)?;
    rustix::fs::fchmod(&file, mode)?;
    Ok(file)
}

fn fill(file: &OwnedFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

pub fn random() -> rustix::io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn the_new_contents_replace_the_old_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let fd = File::open(dir.path()).unwrap();
        write(&fd, "a", b"one", 0o600).unwrap();
        write(&fd, "a", b"two", 0o644).unwrap();
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"two");
        assert_eq!(fs::metadata(dir.path().join("a")).unwrap().permissions().mode() & 0o7777, 0o644);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_replaced_and_what_it_pointed_to_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("target"), "precious").unwrap();
        symlink("target", dir.path().join("a")).unwrap();
        write(File::open(dir.path()).unwrap(), "a", b"new", 0o600).unwrap();
        assert_eq!(fs::read(dir.path().join("target")).unwrap(), b"precious");
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"new");
    }

    #[test]
    fn a_failed_write_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/b"), "in the way").unwrap();
        assert!(write(File::open(dir.path()).unwrap(), "a", b"new", 0o600).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(fs::read(dir.path().join("a/b")).unwrap(), b"in the way");
    }
}
