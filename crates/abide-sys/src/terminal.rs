//! The operator's terminal: taken over, and given back as it was on every way out, a panic included.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, Termios};

use crate::poll::{self, PollFd, PollFlags};

/// Remembers title and wheel mode, and changes to the alternate screen.
const ENTER: &[u8] = b"\x1b[22;0t\x1b[?1007s\x1b[?1049h\x1b[2J\x1b[H";

/// Undoes whatever a session may have had us do. The wheel mode is on in terminals that cannot restore it.
const LEAVE: &[u8] = b"\x1b[m\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1004l\
\x1b[?1l\x1b>\x1b[?25h\x1b[?1007h\x1b[?1007r\x1b[?1049l\x1b[23;0t";

/// The same for what not every terminal knows.
const LEAVE_EXTENSIONS: &[u8] = b"\x1b[?2026l\x1b[>4m\x1b]8;;\x1b\\\x1b[0 q";

const LEAVE_KITTY: &[u8] = b"\x1b[<u";

/// How long a terminal that does not take its last bytes is waited for.
const LAST_BYTES: Duration = Duration::from_secs(1);
/// How long the process that borrowed the terminal may take to give it back.
const LETS_GO: Duration = Duration::from_millis(500);
/// What a terminal that says it has room takes without making us wait.
const SMALL_WRITE: usize = 256;

/// What a panic has to put right, wherever it happens.
static TAKEN: Mutex<Option<TerminalToRestore>> = Mutex::new(None);

struct TerminalToRestore {
    output: OwnedFd,
    input: OwnedFd,
    before: Termios,
    kitty: bool,
    extensions: bool,
    lent: Option<UnixStream>,
}

/// The terminal. Dropping it gives it back.
pub struct OperatorTerminal {
    input: OwnedFd,
    output: OwnedFd,
    /// Our own opening of the terminal, on which not waiting is a matter between us and the system. Where we could not
    /// have one, the shell's is used, and written to in small pieces.
    own: bool,
    pending: Vec<u8>,
    written: usize,
}

impl OperatorTerminal {
    /// The terminal of standard input and output, which stays as it is until [`Self::enter`].
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
        let (output, input) = (self.output.try_clone()?, self.input.try_clone()?);
        let taken = TerminalToRestore { output, input, before, kitty: false, extensions: false, lent: None };
        if let Ok(mut slot) = TAKEN.lock() {
            *slot = Some(taken);
        }
        self.write(ENTER);
        Ok(())
    }

    pub fn leave(&mut self) {
        self.pending.clear();
        self.written = 0;
        give_back();
    }

    /// The terminal knows the kitty keyboard protocol: its present flags are put aside for the time of our stay.
    pub fn use_kitty(&mut self) {
        self.write(b"\x1b[>0u");
        with_taken(|taken| taken.kitty = true);
    }

    /// The terminal may be sent links, shapes of the cursor and synchronized output, which are undone at the end.
    pub fn use_extensions(&mut self) {
        with_taken(|taken| taken.extensions = true);
    }

    /// Whether it is ours, which ends with a panic anywhere.
    pub fn is_taken(&self) -> bool {
        with_taken(|_| ()).is_some()
    }

    /// What another process could read and draw by: an opening that is not the shell's, of one terminal for both.
    pub fn lendable(&self) -> Option<BorrowedFd<'_>> {
        let node = |fd: &OwnedFd| rustix::fs::fstat(fd).ok().map(|stat| (stat.st_dev, stat.st_ino));
        (self.own && node(&self.input) == node(&self.output)).then(|| self.input.as_fd())
    }

    /// Takes note of the connection whose other side has the terminal; it lets go when that is hung up, which is
    /// waited for before anything is put right. `None` when it is not lent any more.
    pub fn lent_over(&mut self, connection: Option<UnixStream>) {
        with_taken(|taken| taken.lent = connection);
    }

    /// Forgets what was typed before: it was meant for the program that had the terminal then.
    pub fn discard_typed(&self) {
        // A terminal that cannot do this has only unread input.
        let _ = rustix::termios::tcflush(&self.input, QueueSelector::IFlush);
    }

    /// Columns and rows, if the terminal says.
    pub fn size(&self) -> Option<(u16, u16)> {
        size_of(&self.output)
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

    /// How many bytes the terminal has not taken yet.
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

    /// What to wait for before reading.
    pub fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// What to wait for before flushing.
    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }
}

impl Drop for OperatorTerminal {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Stops this process, as Ctrl-Z does; the signal that lets it go on is waiting when it does.
pub fn stop() {
    // A process may always stop itself.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
}

/// Columns and rows of a terminal, if it is one and says.
pub fn size_of(terminal: impl AsFd) -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
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

fn with_taken<T>(work: impl FnOnce(&mut TerminalToRestore) -> T) -> Option<T> {
    TAKEN.lock().ok()?.as_mut().map(work)
}

/// Puts the terminal right, once.
fn give_back() {
    // A holder of the lock at a panic is in the middle of this, or of entering; there is nothing better to do then.
    let Some(taken) = TAKEN.try_lock().ok().and_then(|mut slot| slot.take()) else { return };
    if let Some(connection) = &taken.lent {
        hang_up(connection);
    }
    if taken.extensions {
        write_all(&taken.output, LEAVE_EXTENSIONS);
    }
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
    while !bytes.is_empty() && is_ready(output, PollFlags::OUT, deadline) {
        match rustix::io::write(output, &bytes[..bytes.len().min(SMALL_WRITE)]) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return,
        }
    }
}

/// Ends a connection, and waits for the other side to do the same.
fn hang_up(connection: &UnixStream) {
    let deadline = Instant::now() + LETS_GO;
    let mut rest = [0; 4096];
    // Where the connection is over already there is nothing to wait for.
    let mut open = connection.shutdown(Shutdown::Write).is_ok();
    while open && is_ready(connection, PollFlags::IN, deadline) {
        let read = rustix::io::read(connection, &mut rest);
        open = matches!(read, Ok(1..) | Err(Errno::INTR | Errno::AGAIN));
    }
}

/// Waits until something can be done; `false` when the time is over.
fn is_ready(fd: impl AsFd, flags: PollFlags, deadline: Instant) -> bool {
    matches!(poll::wait(&mut [PollFd::new(&fd, flags)], Some(deadline)), Ok(1..))
}
