//! The link between the keeper and the mux: whole messages over a socket pair, with file descriptors.
//!
//! A packet is one JSON message. A message too long for a packet travels in a memfd that the packet carries as an
//! extra descriptor: the system's limit on packet size is lower than what a large environment needs, and only
//! root may raise it. Both ways the size is bounded, and what exceeds the bound is refused before it is sent.
//!
//! The same transport carries the launcher's first request to a new keeper (see `abide-keeper`).

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use abide_model::Pid;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::os_text::OsText;
use crate::session::{ProcessExit, SessionId, SpawnSpec, TerminalSize};

/// The version of what is said here. A mux refuses a keeper that says more than it knows.
pub const LINK_VERSION: u32 = 1;

pub const MAX_MESSAGE: usize = 1 << 20;
/// Longer messages travel in a memfd. Well below every system's default send buffer.
const MAX_INLINE: usize = 32 << 10;
/// The most descriptors that one message carries, its memfd included.
const MAX_FDS: usize = 4;

const INLINE: u8 = b'J';
const IN_MEMFD: u8 = b'M';

/// Messages from the keeper to the mux.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToMux {
    /// The first message; carries the listening socket.
    Hello {
        /// The version of the link that the keeper speaks; 0 for keepers that did not say so.
        #[serde(default)]
        link: u32,
        /// Which run of the instance this is.
        generation: u64,
        instance_dir: OsText,
        /// What the launcher wants of the mux; not understood by the keeper.
        options: serde_json::Value,
        /// How many sessions there are: their messages follow this one, before the mux answers any client.
        #[serde(default)]
        sessions: usize,
    },
    /// A session exists; carries its PTY master. Sent for every session at start, and for each new one.
    Session(SessionInfo),
    /// The session's process ended. Its last output may still be in the PTY: read on, then say [`ToKeeper::Drained`].
    Exited { id: SessionId, exit: ProcessExit },
    /// A [`ToKeeper::Spawn`] failed.
    SpawnFailed {
        /// The number of the request.
        request: u64,
        /// The system's error number, 0 where the system was not asked.
        errno: i32,
        /// What went wrong, and with what.
        text: String,
    },
    /// The capsule is stopping: notify the clients, and read the sessions to their end.
    Shutdown { note: String },
    /// The upgrade that was asked for will not happen; everything goes on as before.
    UpgradeFailed { text: String },
    /// Finish (bring the journals to disk, say good-bye) and exit: there is nothing more to do, or a new mux takes over.
    Retire,
    /// A message of a newer keeper.
    #[serde(other)]
    Unknown,
}

/// What the keeper knows about a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// The number of the [`ToKeeper::Spawn`] that this answers.
    pub request: Option<u64>,
    pub id: SessionId,
    /// What the operator called it when it was started.
    pub name: String,
    /// The program it was started with.
    pub program: String,
    /// Its process, which is also its process group and its terminal's session.
    pub pid: Pid,
    /// The PTY's present size.
    pub size: TerminalSize,
    /// How it ended, if it has.
    pub exited: Option<ProcessExit>,
    /// [`SpawnSpec::meta`].
    #[serde(default)]
    pub meta: serde_json::Value,
}

/// Messages from the mux to the keeper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToKeeper {
    /// The mux serves clients. A mux that does not say so in time is replaced.
    Ready,
    /// Start a session; answered by [`ToMux::Session`] or [`ToMux::SpawnFailed`] with the same number.
    Spawn {
        /// A number of the mux's choosing.
        request: u64,
        spec: Box<SpawnSpec>,
    },
    /// The same with the environment and file mode mask of a session that runs, which only the keeper knows.
    SpawnLike {
        /// A number of the mux's choosing.
        request: u64,
        /// What to start; its own environment is not looked at.
        spec: Box<SpawnSpec>,
        /// Whose environment it gets.
        like: SessionId,
    },
    /// Send a signal to the session's process group.
    Signal { id: SessionId, signal: i32 },
    /// End the session: politely first, then its whole process tree by force.
    Kill { id: SessionId },
    /// Everything that the session wrote was read: the keeper may close its PTY. Believed only after
    /// [`ToMux::Exited`]: a living process may open its terminal again.
    Drained { id: SessionId },
    /// Stop the capsule, because the operator wants so.
    Shutdown { note: String },
    /// Another process signalled the mux to end, as a logout does. It ends, and another mux may follow.
    Signalled { signal: i32 },
    /// Continue on another binary, without ending a session.
    Upgrade { exe: OsText },
    /// A message of a newer mux.
    #[serde(other)]
    Unknown,
}

/// Why a message could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The message exceeds [`MAX_MESSAGE`]. Nothing was sent.
    #[error(
        "a message of {0} bytes exceeds the limit of {MAX_MESSAGE}; shorten the arguments or the environment"
    )]
    TooLarge(usize),
    /// The other side does not read, and the buffer is full. Nothing was sent.
    #[error("the other side does not read its messages")]
    Full,
    /// The other side is gone.
    #[error("the other side has closed the link")]
    Closed,
    /// What arrived is not a message.
    #[error("not a message of this protocol: {0}")]
    Malformed(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for LinkError {
    fn from(err: Errno) -> Self {
        match err {
            Errno::AGAIN | Errno::NOBUFS => Self::Full,
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => Self::Closed,
            err => Self::Io(err.into()),
        }
    }
}

/// One end of a link.
#[derive(Debug)]
pub struct Link(OwnedFd);

impl Link {
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self(a), Self(b)))
    }

    /// Takes over a descriptor that the parent process left us.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Gives up the descriptor, to be handed to a child process.
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// Makes [`Link::send`] answer [`LinkError::Full`], and [`Link::recv`] `WouldBlock`, instead of waiting.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(&self.0, true)?)
    }

    /// Sends one message with `fds`, whole or not at all.
    pub fn send(&self, message: &impl Serialize, fds: &[BorrowedFd<'_>]) -> Result<(), LinkError> {
        let mut packet = vec![INLINE];
        serde_json::to_writer(&mut packet, message).map_err(io::Error::from)?;
        if packet.len() > MAX_MESSAGE {
            return Err(LinkError::TooLarge(packet.len()));
        }
        if packet.len() <= MAX_INLINE {
            return self.send_packet(&packet, fds);
        }
        let mut long = File::from(rustix::fs::memfd_create("abide-message", MemfdFlags::CLOEXEC)?);
        long.write_all(&packet[1..])?;
        let mut with_long = vec![long.as_fd()];
        with_long.extend_from_slice(fds);
        self.send_packet(&[IN_MEMFD], &with_long)
    }

    fn send_packet(&self, packet: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), LinkError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(LinkError::Malformed(format!("{} descriptors in one message", fds.len())));
        }
        loop {
            match rustix::net::sendmsg(&self.0, &[IoSlice::new(packet)], &mut control, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(err) => return Err(err.into()),
            }
        }
    }

    /// Receives one message and its descriptors; `None` when the other side is gone.
    pub fn recv<M: DeserializeOwned>(&self) -> Result<Option<(M, Vec<OwnedFd>)>, LinkError> {
        let mut packet = vec![0; MAX_INLINE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let buffers = &mut [IoSliceMut::new(&mut packet)];
            match rustix::net::recvmsg(&self.0, buffers, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Ok(received) => break received,
                // The other side left without reading everything. That is reported once; the messages it had sent come after it.
                Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(err) => return Err(LinkError::Io(err.into())),
            }
        };
        let mut fds = collect_fds(&mut control);
        if received.bytes == 0 {
            return Ok(None);
        }
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(LinkError::Malformed("longer than any message may be".to_owned()));
        }
        packet.truncate(received.bytes);
        let body = match packet.split_first() {
            Some((&INLINE, body)) => body.to_vec(),
            Some((&IN_MEMFD, _)) if !fds.is_empty() => read_memfd(fds.remove(0))?,
            _ => return Err(LinkError::Malformed("unknown packet".to_owned())),
        };
        let message = serde_json::from_slice(&body).map_err(|err| LinkError::Malformed(err.to_string()))?;
        Ok(Some((message, fds)))
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The descriptors that came with a message.
pub fn collect_fds(control: &mut RecvAncillaryBuffer<'_>) -> Vec<OwnedFd> {
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    rights.flatten().collect()
}

fn read_memfd(fd: OwnedFd) -> Result<Vec<u8>, LinkError> {
    let file = File::from(fd);
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    if length > MAX_MESSAGE {
        return Err(LinkError::TooLarge(length));
    }
    let mut body = vec![0; length];
    file.read_exact_at(&mut body, 0)?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn spawn_with_value_of(len: usize) -> ToKeeper {
        let spec = SpawnSpec {
            id: SessionId(1),
            name: String::new(),
            argv: vec!["sh".into()],
            env: vec![("BIG".into(), "v".repeat(len).into())],
            cwd: "/".into(),
            size: TerminalSize::default(),
            umask: Some(0o22),
            meta: serde_json::json!({"agent": "x"}),
        };
        ToKeeper::Spawn { request: 7, spec: Box::new(spec) }
    }

    #[test]
    fn messages_of_every_allowed_length_arrive_whole_with_their_descriptors() {
        let (a, b) = Link::pair().unwrap();
        for len in [0, 100, MAX_INLINE, 900 << 10] {
            let message = spawn_with_value_of(len);
            let (reader, mut writer) = io::pipe().unwrap();
            a.send(&message, &[reader.as_fd()]).unwrap();
            let (received, mut fds) = b.recv::<ToKeeper>().unwrap().unwrap();
            assert_eq!(received, message);
            assert_eq!(fds.len(), 1);
            writer.write_all(b"through").unwrap();
            drop((writer, reader));
            let mut text = String::new();
            File::from(fds.remove(0)).read_to_string(&mut text).unwrap();
            assert_eq!(text, "through");
        }
    }

    #[test]
    fn a_message_over_the_limit_is_refused_and_the_link_goes_on() {
        let (a, b) = Link::pair().unwrap();
        assert!(matches!(a.send(&spawn_with_value_of(MAX_MESSAGE), &[]), Err(LinkError::TooLarge(_))));
        a.send(&ToKeeper::Ready, &[]).unwrap();
        assert_eq!(b.recv::<ToKeeper>().unwrap().unwrap().0, ToKeeper::Ready);
    }

    #[test]
    fn a_peer_that_does_not_read_is_noticed_and_not_waited_for() {
        let (a, _b) = Link::pair().unwrap();
        a.set_nonblocking().unwrap();
        let full = (0..100_000).find_map(|_| a.send(&spawn_with_value_of(1000), &[]).err());
        assert!(matches!(full, Some(LinkError::Full)), "{full:?}");
    }

    #[test]
    fn a_peer_that_is_gone_is_the_end_and_not_a_signal() {
        let (a, b) = Link::pair().unwrap();
        a.send(&ToKeeper::Ready, &[]).unwrap();
        drop(b);
        assert!(a.recv::<ToKeeper>().unwrap().is_none());
        assert!(matches!(a.send(&ToKeeper::Ready, &[]), Err(LinkError::Closed)));
    }

    #[test]
    fn the_last_words_of_a_peer_that_did_not_listen_are_heard() {
        let (a, b) = Link::pair().unwrap();
        a.send(&ToKeeper::Ready, &[]).unwrap();
        b.send(&ToMux::Retire, &[]).unwrap();
        drop(b);
        assert_eq!(a.recv::<ToMux>().unwrap().unwrap().0, ToMux::Retire);
        assert!(a.recv::<ToMux>().unwrap().is_none());
    }

    #[test]
    fn messages_and_fields_of_a_newer_version_are_survived() {
        let (a, b) = Link::pair().unwrap();
        a.send(&serde_json::json!({"type": "levitate", "height": 3}), &[]).unwrap();
        a.send(&serde_json::json!({"type": "kill", "id": "s1", "softly": true}), &[]).unwrap();
        assert_eq!(b.recv::<ToKeeper>().unwrap().unwrap().0, ToKeeper::Unknown);
        let id = SessionId(1);
        assert_eq!(b.recv::<ToKeeper>().unwrap().unwrap().0, ToKeeper::Kill { id });
    }
}
