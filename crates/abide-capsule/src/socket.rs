//! The capsule's listening socket: binding, connecting and accepting, with the other side's user checked.
//!
//! A socket address holds 107 bytes of path and home directories are longer than that, so both sides go through a
//! descriptor of the directory (`/proc/self/fd/N/sock`), which is always short.
#![allow(unsafe_code)] // Asking for the peer's user has no safe wrapper that fits.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{Mode, OFlags};

use crate::unit::SOCKET_NAME;

/// The identity of a socket file, by which its owner knows that it was not replaced by another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SocketFile {
    dev: u64,
    ino: u64,
}

/// Listens in `run_dir`, in place of any socket file there. Only the holder of the keeper's lock may call this.
pub fn bind(run_dir: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let dir = open_dir(run_dir)?;
    let path = short_path(&dir);
    match fs::remove_file(&path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    let file = identify(&path)?;
    Ok((listener, file))
}

/// Removes the socket file of `run_dir` if it still is `file`: a successor's socket must be left alone.
pub fn unbind(run_dir: &Path, file: SocketFile) -> io::Result<()> {
    let dir = open_dir(run_dir)?;
    let path = short_path(&dir);
    match identify(&path) {
        Ok(found) if found == file => fs::remove_file(&path),
        Ok(_) => Ok(()),
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(err),
    }
}

/// Connects to the socket in `run_dir`, provided that it is served by our own user.
pub fn connect(run_dir: &Path) -> io::Result<UnixStream> {
    let dir = open_dir(run_dir)?;
    let stream = UnixStream::connect(short_path(&dir))?;
    require_own_user(&stream)?;
    Ok(stream)
}

/// Accepts one connection. A peer of another user, root included, is turned away with `PermissionDenied`.
pub fn accept(listener: &UnixListener) -> io::Result<UnixStream> {
    let (stream, _) = listener.accept()?;
    require_own_user(&stream)?;
    Ok(stream)
}

fn require_own_user(stream: &UnixStream) -> io::Result<()> {
    let (peer, own) = (peer_uid(stream)?, rustix::process::geteuid().as_raw());
    if peer == own {
        return Ok(());
    }
    let text = format!("the other side runs as user {peer}, not {own}");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Not rustix's `socket_peercred`: it takes the peer's pid to be non-zero, and to a capsule in a container every client
/// outside has pid 0.
fn peer_uid(stream: &UnixStream) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let (fd, place) = (stream.as_raw_fd(), (&raw mut peer).cast());
    // SAFETY: `place` has room for `len` bytes, and any bytes make a valid `ucred`.
    match unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut len) } {
        0 => Ok(peer.uid),
        _ => Err(io::Error::last_os_error()),
    }
}

fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(dir, flags, Mode::empty())?)
}

fn short_path(dir: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET_NAME}", dir.as_raw_fd()))
}

fn identify(path: &Path) -> io::Result<SocketFile> {
    let meta = fs::symlink_metadata(path)?;
    Ok(SocketFile { dev: meta.dev(), ino: meta.ino() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_directory_deeper_than_a_socket_address_can_hold_still_works() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(100)).join("e".repeat(200));
        fs::create_dir_all(&deep).unwrap();
        let (listener, _) = bind(&deep).unwrap();
        let mode = fs::metadata(deep.join(SOCKET_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut client = connect(&deep).unwrap();
        let mut server = accept(&listener).unwrap();
        client.write_all(b"x").unwrap();
        let mut byte = [0];
        server.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }

    #[test]
    fn a_successors_socket_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (_first, first_file) = bind(dir.path()).unwrap();
        // Keeps the first inode in use, so that the second can not get the same number.
        fs::hard_link(dir.path().join(SOCKET_NAME), dir.path().join("kept")).unwrap();
        let (_second, second_file) = bind(dir.path()).unwrap();
        unbind(dir.path(), first_file).unwrap();
        assert!(dir.path().join(SOCKET_NAME).exists());
        unbind(dir.path(), second_file).unwrap();
        assert!(!dir.path().join(SOCKET_NAME).exists());
    }
}
