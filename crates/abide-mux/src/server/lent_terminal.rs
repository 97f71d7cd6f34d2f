//! A client's terminal that is lent to us: what is typed there is read, and what is to be seen drawn, without the client
//! in between, which would have to be woken up twice for each key.
//!
//! Closing the descriptor gives the terminal back. Whether and when that is done, and what is drawn, is decided
//! elsewhere.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use abide_wire::session::TerminalSize;
use rustix::fs::OFlags;

use crate::server::client::Outgoing;

pub(crate) struct Lent {
    terminal: File,
    /// The client has drawn everything that it was sent, and leaves the terminal to us.
    pub is_ours: bool,
    pub out: Outgoing,
}

impl Lent {
    /// Takes a descriptor for a terminal, provided that it is one, and that using it never makes us wait. To make it so
    /// is not up to us: the opening may be the one by which a shell reads.
    pub fn take(fd: OwnedFd) -> Option<Self> {
        let flags = rustix::fs::fcntl_getfl(&fd).ok()?;
        let usable = flags.contains(OFlags::NONBLOCK | OFlags::RDWR) && rustix::termios::isatty(&fd);
        usable.then(|| Self { terminal: fd.into(), is_ours: false, out: Outgoing::default() })
    }

    /// What was typed; nothing if nothing was, and an error if the terminal is gone.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match (&self.terminal).read(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(err) if matches!(err.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            read => read,
        }
    }

    /// Its size, if it says.
    pub fn size(&self) -> Option<TerminalSize> {
        abide_sys::terminal::size_of(&self.terminal).map(|(cols, rows)| TerminalSize { cols, rows })
    }

    /// Draws as much as the terminal takes now.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush(&self.terminal)
    }
}

impl AsFd for Lent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }
}
