//! Files in directories that others can write to, as a container can to the state of its instance: never a link, a pipe or more
//! than was asked for. The directories themselves are the caller's.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Larger than anything that abide writes into such a directory for others to read as a whole.
pub const STATE_LIMIT: u64 = 16 << 20;

/// Opens a file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    check(File::options().read(true).custom_flags(flags()).open(path)?)
}

/// Opens a file for appending, and makes it where it is not there.
pub fn append(path: &Path) -> io::Result<File> {
    check(File::options().append(true).create(true).mode(0o600).custom_flags(flags()).open(path)?)
}

/// Reads a file of at most [`STATE_LIMIT`] bytes.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(STATE_LIMIT + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > STATE_LIMIT {
        true => {
            Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {} MiB", STATE_LIMIT >> 20)))
        }
        false => Ok(bytes),
    }
}

fn flags() -> i32 {
    // Without NONBLOCK a pipe would keep us until something else opens it.
    (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed()
}

fn check(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_a_file_of_bounded_size_is_read_and_nothing_else_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        append(&path("file")).unwrap().write_all(b"a").unwrap();
        append(&path("file")).unwrap().write_all(b"b").unwrap();
        assert_eq!(read(&path("file")).unwrap(), b"ab");
        assert_eq!(read(&path("missing")).unwrap_err().kind(), io::ErrorKind::NotFound);

        std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        std::fs::create_dir(path("dir")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        for odd in ["link", "pipe", "dir", "socket"] {
            assert!(read(&path(odd)).is_err(), "{odd}");
            assert!(append(&path(odd)).is_err(), "{odd}");
        }
        // Sparse: it takes no room.
        File::create(path("large")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path("large")).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
