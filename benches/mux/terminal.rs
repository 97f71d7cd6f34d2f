//! The terminal that a person would sit at: a PTY of fixed size, the command that runs on it, and what it draws.
#![allow(unsafe_code)] // `pre_exec`: a controlling terminal can only be taken between fork and exec.

use std::error::Error;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::Result;
use crate::clock::Moment;
use crate::corpus::{MARK_LENGTH, may_hold_mark};

/// Every terminal has this many columns.
pub const COLUMNS: u16 = 200;
/// Every terminal has this many rows.
pub const ROWS: u16 = 50;

const CHUNK: usize = 64 * 1024;
const LAST_WORDS: usize = 400;
/// `CSI c`: what are you? Some clients draw nothing before they have an answer.
const WHO_ARE_YOU: &[u8] = b"\x1b[c";
const A_VT220_WITH_COLOUR: &[u8] = b"\x1b[?62;22c";

/// A terminal with a command on it. Dropping it closes it, as one closes a window.
pub struct Terminal {
    master: Option<OwnedFd>,
    child: Child,
    /// Output as it was read last, after the end of what was read before: a mark may span both.
    buffer: Box<[u8]>,
    kept: usize,
    end: usize,
    identified: bool,
}

impl Terminal {
    /// Runs `command` on a new terminal.
    pub fn open(mut command: Command) -> Result<Self> {
        let (master, slave) = open_pty()?;
        command.stdin(Stdio::from(slave.try_clone()?)).stdout(Stdio::from(slave.try_clone()?));
        command.stderr(Stdio::from(slave));
        let take_terminal = || {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
            Ok(())
        };
        // SAFETY: the closure makes system calls only; it neither allocates nor takes a lock.
        unsafe { command.pre_exec(take_terminal) };
        let child = command.spawn().map_err(|err| format!("{command:?}: {err}"))?;
        let buffer = vec![0; MARK_LENGTH + CHUNK].into();
        Ok(Self { master: Some(master), child, buffer, kept: 0, end: 0, identified: false })
    }

    /// Types.
    pub fn write(&self, keys: &[u8]) -> Result<()> {
        let written = rustix::io::write(self.master()?, keys)?;
        if written == keys.len() { Ok(()) } else { Err("the terminal does not take any more keys".into()) }
    }

    /// Reads until `mark` was drawn; gives the moment.
    pub fn wait_for(&mut self, mark: &str, limit: Duration) -> Result<Moment> {
        self.wait_for_all(&[mark], limit)
    }

    /// Reads until each of `marks` was drawn; gives the moment of the last.
    pub fn wait_for_all(&mut self, marks: &[&str], limit: Duration) -> Result<Moment> {
        let seen = self.look_for(marks, limit)?;
        seen.ok_or_else(|| format!("{} was not drawn within {limit:?}", marks.join(" or ")).into())
    }

    /// Reads until each of `marks` was drawn, but no longer than `limit`; gives the moment of the last.
    pub fn look_for(&mut self, marks: &[&str], limit: Duration) -> Result<Option<Moment>> {
        let deadline = Moment::after(limit);
        let mut missing = marks.to_vec();
        loop {
            let read = self.read(deadline)?;
            let now = Moment::now();
            // Output that never pauses must not outrun the limit.
            if read == 0 || now > deadline {
                return Ok(None);
            }
            let drawn = &self.buffer[..self.end];
            if may_hold_mark(drawn) {
                missing.retain(|mark| !holds(drawn, mark.as_bytes()));
                if missing.is_empty() {
                    return Ok(Some(now));
                }
            }
            let keep = self.end.min(MARK_LENGTH - 1);
            self.buffer.copy_within(self.end - keep..self.end, 0);
            self.kept = keep;
        }
    }

    /// Reads whatever is drawn for `span`.
    pub fn drain_for(&mut self, span: Duration) -> Result<()> {
        let deadline = Moment::after(span);
        while self.read(deadline)? > 0 && !deadline.remaining().is_zero() {}
        Ok(())
    }

    /// Reads what there is, after waiting for it if there is nothing; 0 when nothing came before `deadline`.
    fn read(&mut self, deadline: Moment) -> Result<usize> {
        let Some(master) = &self.master else { return Err("the terminal is closed".into()) };
        loop {
            match rustix::io::read(master, &mut self.buffer[self.kept..self.kept + CHUNK]) {
                Ok(0) | Err(Errno::IO) => return Err(self.ending()),
                Ok(read) => {
                    self.end = self.kept + read;
                    let drawn = &self.buffer[self.kept..self.end];
                    if !self.identified && holds(drawn, WHO_ARE_YOU) {
                        rustix::io::write(master, A_VT220_WITH_COLOUR)?;
                        self.identified = true;
                    }
                    return Ok(read);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let left = deadline.remaining();
                    if left.is_zero() {
                        return Ok(0);
                    }
                    wait_readable(master, left)?;
                }
                Err(err) => return Err(err.into()),
            }
        }
    }

    /// That the program is gone, with the end of what it said: the reason is usually there.
    fn ending(&self) -> Box<dyn Error> {
        let start = self.end.saturating_sub(LAST_WORDS).max(self.kept).min(self.end);
        let last = &self.buffer[start..self.end];
        let visible: String =
            String::from_utf8_lossy(last).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("the program on the terminal has ended: {}", visible.trim()).into()
    }

    fn master(&self) -> Result<&OwnedFd> {
        self.master.as_ref().ok_or_else(|| "the terminal is closed".into())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Hanging up is what ends a well-behaved client; the rest are not waited for.
        self.master = None;
        if !ends_within(&self.child, Duration::from_secs(2)) {
            let _ = kill_process(Pid::from_child(&self.child), Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Whether `child` ends within `limit`.
pub fn ends_within(child: &Child, limit: Duration) -> bool {
    let Ok(pidfd) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else { return true };
    wait_readable(&pidfd, limit).unwrap_or(false)
}

fn wait_readable(fd: &OwnedFd, limit: Duration) -> Result<bool> {
    let timeout = Timespec::try_from(limit)?;
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    match poll(&mut fds, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(err) => Err(err.into()),
    }
}

fn holds(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|part| part == wanted)
}

fn open_pty() -> Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::unlockpt(&master)?;
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&slave, size)?;
    Ok((master, slave))
}
