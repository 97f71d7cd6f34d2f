//! The capsule's listening socket: binding, connecting and accepting, with the other side's user checked.
//!
//! A socket address holds 107 bytes of path and home directories are longer than that, so both sides go through a
//! descriptor of the directory (`/proc/self/fd/N/sock`), which is always short.
#![allow(unsafe_code)] // Asking for the peer's user has no safe wrapper that fits.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use abide_model::Pid;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};

use crate::instance_dir::SOCKET_NAME;
use crate::link::collect_fds;

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

/// Connects to the socket in `run_dir`, provided that it is there, and not a link to another, and is served by our own user.
pub fn connect(run_dir: &Path) -> io::Result<UnixStream> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let socket = rustix::fs::openat(open_dir(run_dir)?, SOCKET_NAME, flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&socket)?.st_mode) != FileType::Socket {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "what is in the place of the socket is none",
        ));
    }
    let stream = UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd()))?;
    require_own_user(&stream)?;
    Ok(stream)
}

/// Accepts one connection. A peer of another user, root included, is turned away with `PermissionDenied`.
pub fn accept(listener: &UnixListener) -> io::Result<UnixStream> {
    let (stream, _) = listener.accept()?;
    require_own_user(&stream)?;
    Ok(stream)
}

/// Sends a few bytes together with a descriptor; gives how many bytes went.
pub fn send_with(stream: &UnixStream, bytes: &[u8], fd: BorrowedFd<'_>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let (mut control, fds) = (SendAncillaryBuffer::new(&mut space), [fd]);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    Ok(rustix::net::sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
}

/// Receives bytes, and the descriptor that came with them. If a message carries several, all are closed and none is returned.
pub fn receive(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let buffers = &mut [IoSliceMut::new(buffer)];
    let received = rustix::net::recvmsg(stream, buffers, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = collect_fds(&mut control);
    let one = fds.len() == 1 && !received.flags.contains(ReturnFlags::CTRUNC);
    Ok((received.bytes, fds.pop().filter(|_| one)))
}

fn require_own_user(stream: &UnixStream) -> io::Result<()> {
    let (peer, own) = (peer(stream)?.uid, rustix::process::geteuid().as_raw());
    if peer == own {
        return Ok(());
    }
    let text = format!("the other side runs as user {peer}, not {own}");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Whether the other side runs beside us, and in no container.
pub fn is_neighbour(stream: &UnixStream) -> bool {
    let processes = |whose: &str| fs::read_link(format!("/proc/{whose}/ns/pid")).ok();
    let ours = processes("self");
    ours.is_some() && ours == peer_pid(stream).and_then(|peer| processes(&peer.to_string()))
}

/// The process on the other side; `None` where it cannot be seen from here.
pub fn peer_pid(stream: &UnixStream) -> Option<Pid> {
    peer(stream).ok().and_then(|peer| u32::try_from(peer.pid).ok()).filter(|pid| *pid > 0).map(Pid)
}

/// Not rustix's `socket_peercred`: it takes the peer's pid to be non-zero, and to a capsule in a container every client
/// outside has pid 0.
fn peer(stream: &UnixStream) -> io::Result<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    let (fd, place) = (stream.as_raw_fd(), (&raw mut peer).cast());
    // SAFETY: `place` has room for `len` bytes, and any bytes make a valid `ucred`.
    match unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, place, &raw mut len) } {
        0 => Ok(peer),
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
    use std::os::fd::AsFd;

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
    fn what_a_link_in_place_of_the_socket_points_to_is_not_connected_to() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (listener, _) = bind(other.path()).unwrap();
        listener.set_nonblocking(true).unwrap();
        std::os::unix::fs::symlink(other.path().join(SOCKET_NAME), dir.path().join(SOCKET_NAME)).unwrap();
        assert!(connect(dir.path()).is_err());
        assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        fs::remove_file(dir.path().join(SOCKET_NAME)).unwrap();
        fs::write(dir.path().join(SOCKET_NAME), "").unwrap();
        assert!(connect(dir.path()).is_err());
    }

    #[test]
    fn one_descriptor_arrives_with_its_bytes_and_several_are_all_closed() {
        let (client, server) = UnixStream::pair().unwrap();
        let mut buffer = [0; 8];
        for count in [1, 2, 5] {
            let (reader, writer) = io::pipe().unwrap();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let fds = vec![writer.as_fd(); count];
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
            let sent = rustix::net::sendmsg(&client, &[IoSlice::new(b"x")], &mut control, SendFlags::empty());
            assert_eq!(sent.unwrap(), 1);
            let (n, fd) = receive(&server, &mut buffer).unwrap();
            assert_eq!((n, fd.is_some()), (1, count == 1));
            if let Some(fd) = &fd {
                assert!(rustix::io::fcntl_getfd(fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
            }
            drop((writer, fd));
            assert_eq!((&reader).read(&mut buffer).unwrap(), 0, "no other process holds it");
        }
        send_with(&client, b"y", server.as_fd()).unwrap();
        assert!(receive(&server, &mut buffer).unwrap().1.is_some());
    }

    #[test]
    fn a_successors_socket_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (_first, first_file) = bind(dir.path()).unwrap();
        // Keeps the first inode in use, so that the second cannot get the same number.
        fs::hard_link(dir.path().join(SOCKET_NAME), dir.path().join("kept")).unwrap();
        let (_second, second_file) = bind(dir.path()).unwrap();
        unbind(dir.path(), first_file).unwrap();
        assert!(dir.path().join(SOCKET_NAME).exists());
        unbind(dir.path(), second_file).unwrap();
        assert!(!dir.path().join(SOCKET_NAME).exists());
    }
}
