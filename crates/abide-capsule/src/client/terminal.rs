//! The operator's terminal: taken over, and given back as it was on every way out.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios};

use super::ClientError;
use crate::session::Size;

/// Remembers title and wheel mode, and changes to the alternate screen.
const ENTER: &[u8] = b"\x1b[22;0t\x1b[?1007s\x1b[?1049h\x1b[2J\x1b[H";

/// Undoes whatever a session may have had us do. The wheel mode is on in terminals that can not restore it.
const LEAVE: &[u8] =
    b"\x1b[?2026l\x1b[m\x1b]8;;\x1b\\\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1004l\
\x1b[?1l\x1b>\x1b[0 q\x1b[?25h\x1b[?1007h\x1b[?1007r\x1b[?1049l\x1b[23;0t";

const LEAVE_KITTY: &[u8] = b"\x1b[<u";

/// How long a terminal that does not take its last bytes is waited for.
const LAST_BYTES: Duration = Duration::from_secs(1);
/// What a terminal that says it has room takes without making us wait.
const SMALL_WRITE: usize = 256;

/// What a panic has to put right, wherever it happens.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

struct Taken {
    output: OwnedFd,
    input: OwnedFd,
    before: Termios,
    kitty: bool,
}

/// Whether there is a terminal that we can use.
pub(super) fn check() -> Result<(), ClientError> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(ClientError::NotATerminal);
    }
    if std::env::var_os("TERM").is_none_or(|term| term == "dumb") {
        return Err(ClientError::DumbTerminal);
    }
    Ok(())
}

/// The terminal. Dropping it gives it back.
pub(super) struct Terminal {
    input: OwnedFd,
    output: OwnedFd,
    /// Our own opening of the terminal, on which not waiting is a matter between us and the system. Where we could not
    /// have one, the shell's is used, and written to in small pieces.
    own: bool,
    pending: Vec<u8>,
    written: usize,
}

impl Terminal {
    pub fn open() -> io::Result<Self> {
        let (input, own_input) = reopen(io::stdin().as_fd(), "/proc/self/fd/0")?;
        let (output, own) = reopen(io::stdout().as_fd(), "/proc/self/fd/1")?;
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                // First, so that what the hook prints can be read.
                give_back();
                before(panic);
            }));
        });
        Ok(Self { input, output, own: own && own_input, pending: Vec::new(), written: 0 })
    }

    /// Takes the terminal over.
    pub fn enter(&mut self) -> io::Result<()> {
        let before = rustix::termios::tcgetattr(&self.input)?;
        let mut raw = before.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(&self.input, OptionalActions::Now, &raw)?;
        let taken =
            Taken { output: self.output.try_clone()?, input: self.input.try_clone()?, before, kitty: false };
        if let Ok(mut slot) = TAKEN.lock() {
            *slot = Some(taken);
        }
        self.write(ENTER);
        Ok(())
    }

    /// Gives it back.
    pub fn leave(&mut self) {
        self.pending.clear();
        self.written = 0;
        give_back();
    }

    /// The terminal knows the kitty keyboard protocol: its present flags are put aside for the time of our stay.
    pub fn use_kitty(&mut self) {
        self.write(b"\x1b[>0u");
        if let Ok(mut slot) = TAKEN.lock()
            && let Some(taken) = slot.as_mut()
        {
            taken.kitty = true;
        }
    }

    pub fn size(&self) -> Size {
        let size = rustix::termios::tcgetwinsize(&self.output);
        let size = size.map(|size| Size { cols: size.ws_col, rows: size.ws_row });
        size.ok().filter(|size| size.cols > 0 && size.rows > 0).unwrap_or_default()
    }

    /// What was typed; nothing if nothing was, and an error if the terminal is gone.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match rustix::io::read(&self.input, &mut *buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => Ok(n),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(err) => Err(err.into()),
        }
    }

    /// Draws, as soon as the terminal takes it.
    pub fn write(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    pub fn pending(&self) -> usize {
        self.pending.len() - self.written
    }

    /// Writes as much as the terminal takes now. To be called when it has room.
    pub fn flush(&mut self) -> io::Result<()> {
        while self.pending() > 0 {
            let rest = &self.pending[self.written..];
            let piece = if self.own { rest } else { &rest[..rest.len().min(SMALL_WRITE)] };
            match rustix::io::write(&self.output, piece) {
                Ok(n) => self.written += n,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(()),
                Err(err) => return Err(err.into()),
            }
            if !self.own {
                break;
            }
        }
        if self.pending() == 0 {
            self.pending.clear();
            self.written = 0;
        }
        Ok(())
    }

    pub fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Opens a terminal once more for ourselves. `O_NONBLOCK` belongs to an opening, and the given one is shared with the
/// shell, which would find its input broken after us.
fn reopen(given: BorrowedFd<'_>, path: &str) -> io::Result<(OwnedFd, bool)> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(own) => Ok((own, true)),
        // Another user's terminal, as after `su`.
        Err(_) => Ok((given.try_clone_to_owned()?, false)),
    }
}

/// Puts the terminal right, once.
fn give_back() {
    // Whoever holds the lock at a panic is in the middle of this, or of entering; there is nothing better to do then.
    let Some(taken) = TAKEN.try_lock().ok().and_then(|mut slot| slot.take()) else { return };
    if taken.kitty {
        write_all(&taken.output, LEAVE_KITTY);
    }
    write_all(&taken.output, LEAVE);
    // Now, and not after draining: a terminal that is stopped never drains.
    let _ = rustix::termios::tcsetattr(&taken.input, OptionalActions::Now, &taken.before);
}

/// Writes to a terminal that may be stalled, for a while.
fn write_all(output: &OwnedFd, mut bytes: &[u8]) {
    let deadline = Instant::now() + LAST_BYTES;
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or_default();
        let mut fds = [PollFd::new(output, PollFlags::OUT)];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(0) => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        match rustix::io::write(output, &bytes[..bytes.len().min(SMALL_WRITE)]) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR | Errno::AGAIN) if !left.is_zero() => {}
            Err(_) => return,
        }
    }
}
