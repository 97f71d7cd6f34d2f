//! Starting a process on a terminal of its own.
#![allow(unsafe_code)] // `pre_exec`: what must happen between fork and exec has no safe form.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use abide_model::Pid;
use abide_sys::process::child_pid;
use abide_sys::signals;
use abide_wire::session::{SpawnSpec, TerminalSize};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::{InputModes, OptionalActions, Winsize};

/// What every terminal program may count on where the caller did not say otherwise.
const TERMINAL_ENV: [(&str, &str); 2] = [("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];

/// Why a session could not be started, as the requester sees it.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct SpawnError {
    pub errno: i32,
    pub text: String,
}

impl SpawnError {
    pub fn new(what: &str, err: impl Into<io::Error>) -> Self {
        let err = err.into();
        Self { errno: err.raw_os_error().unwrap_or(0), text: format!("{what}: {err}") }
    }
}

/// Starts `spec` as the leader of a new session and foreground group of a new PTY; gives its pid and the PTY's master.
///
/// The standard library's `Command` reports a failed exec through a pipe that a successful one closes, so an error
/// here carries the errno of the exec itself.
pub(super) fn spawn(spec: &SpawnSpec) -> Result<(Pid, OwnedFd), SpawnError> {
    check(spec)?;
    let (program, arguments) =
        spec.argv.split_first().ok_or_else(|| SpawnError::new("no program", Errno::INVAL))?;
    let cwd = open_cwd(spec)?;
    let (master, slave) =
        open_pty(spec.size).map_err(|err| SpawnError::new("cannot open a terminal", err))?;
    let stdio =
        || slave.try_clone().map(Stdio::from).map_err(|err| SpawnError::new("cannot open a terminal", err));

    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(TERMINAL_ENV);
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    command.stdin(stdio()?).stdout(stdio()?).stderr(stdio()?);
    signals::start_fresh(&mut command);
    let umask = spec.umask.map(Mode::from_raw_mode);
    let enter_terminal = move || {
        rustix::process::setsid()?;
        // As session leader without a terminal we get this one, and our group becomes its foreground group.
        rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        rustix::process::fchdir(cwd.as_fd())?;
        if let Some(umask) = umask {
            rustix::process::umask(umask);
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(enter_terminal) };

    let child = command.spawn().map_err(|err| {
        let name = program.as_os_str().display();
        let is_sought = !program.as_bytes().contains(&b'/');
        if is_sought && err.kind() == io::ErrorKind::NotFound {
            let text = format!("cannot start {name}: it is not on PATH");
            return SpawnError { errno: Errno::NOENT.raw_os_error(), text };
        }
        SpawnError::new(&format!("cannot start {name}"), err)
    })?;
    Ok((child_pid(&child), master))
}

/// Refuses what would be silently changed into something else on the way to the new process.
fn check(spec: &SpawnSpec) -> Result<(), SpawnError> {
    let bad_name = |name: &[u8]| name.is_empty() || name.contains(&b'=');
    if let Some((name, _)) = spec.env.iter().find(|(name, _)| bad_name(name.as_bytes())) {
        let what = format!("`{}` cannot name an environment variable", name.as_os_str().display());
        return Err(SpawnError::new(&what, Errno::INVAL));
    }
    let words = spec.argv.iter().chain(spec.env.iter().flat_map(|(name, value)| [name, value]));
    for word in words {
        CString::new(word.as_bytes()).map_err(|_| {
            SpawnError::new("an argument or environment value holds a NUL byte", Errno::INVAL)
        })?;
    }
    Ok(())
}

/// Opened here rather than in the child, so that a vanished directory and a missing program are different errors.
fn open_cwd(spec: &SpawnSpec) -> Result<OwnedFd, SpawnError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(spec.cwd.as_path(), flags, Mode::empty())
        .map_err(|err| SpawnError::new(&format!("working directory {}", spec.cwd.as_path().display()), err))
}

fn open_pty(size: TerminalSize) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&master)?;
    // Not by name: in a container `/dev/pts` may be another instance than the one the master came from.
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    let mut termios = rustix::termios::tcgetattr(&slave)?;
    // Without it, erasing in line mode removes one byte of a character.
    termios.input_modes |= InputModes::IUTF8;
    rustix::termios::tcsetattr(&slave, OptionalActions::Now, &termios)?;
    let winsize = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&slave, winsize)?;
    Ok((master, slave))
}

/// Marks every descriptor but the standard ones as not inherited: a session must get its terminal and nothing else.
/// Async-signal-safe.
pub(super) fn close_on_exec_all() {
    // SAFETY: only a flag of our own descriptors is changed; none is closed.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 {
        return;
    }
    // Kernels before 5.11. Descriptors beyond are not seen there in practice.
    for fd in 3..1024 {
        // SAFETY: as above; a number that is no open descriptor is refused harmlessly.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}
