//! Signals to a process that is certainly the one that is meant.
#![allow(unsafe_code)] // A signal with a value to a pidfd has no safe wrapper.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};
use std::{io, mem};

use abide_model::{Liveness, ProcessIdentity};
use rustix::process::{PidfdFlags, Signal, pidfd_open};

use super::{alive, own_pid, to_rustix};
use crate::poll::{self, PollFd, PollFlags};

/// A process that stays the one that was meant, whatever becomes of its number.
#[derive(Debug)]
pub struct Pidfd(OwnedFd);

/// A signal that brings a value along, as the kernel reads it.
#[repr(C)]
struct SignalInfo {
    signal: i32,
    errno: i32,
    code: i32,
    sender: Sender,
}

#[repr(C)]
struct Sender {
    pid: i32,
    uid: u32,
    value: usize,
}

/// A signal, and the value that its sender gave with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedSignal {
    pub signal: Signal,
    pub value: i32,
}

impl Pidfd {
    /// The process, if it still runs and can be seen from here.
    pub fn open(process: &ProcessIdentity) -> io::Result<Self> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let pid = to_rustix(process.pid).ok_or_else(gone)?;
        let fd = pidfd_open(pid, PidfdFlags::empty())?;
        // Looked at only now: from here on the descriptor means whatever had the number when it was opened.
        if alive(process) == Liveness::Alive { Ok(Self(fd)) } else { Err(gone()) }
    }

    /// Sends `signal`.
    pub fn send(&self, signal: Signal) -> io::Result<()> {
        Ok(rustix::process::pidfd_send_signal(&self.0, signal)?)
    }

    /// Sends a signal with a value, which the receiver can tell from a plain one.
    pub fn queue(&self, queued: QueuedSignal) -> io::Result<()> {
        let value = usize::try_from(queued.value).unwrap_or(0);
        let sender =
            Sender { pid: own_pid().0.cast_signed(), uid: rustix::process::getuid().as_raw(), value };
        let own = SignalInfo { signal: queued.signal.as_raw(), errno: 0, code: libc::SI_QUEUE, sender };
        // SAFETY: siginfo_t is plain data.
        let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
        const { assert!(size_of::<SignalInfo>() <= size_of::<libc::siginfo_t>()) };
        // SAFETY: there is room for it, and the kernel reads these bytes as what `SignalInfo` describes.
        unsafe { (&raw mut info).cast::<SignalInfo>().write_unaligned(own) };
        let (call, fd, signal) = (libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), queued.signal.as_raw());
        // SAFETY: `info` outlives the call, and the descriptor is our own.
        match unsafe { libc::syscall(call, fd, signal, &raw const info, 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits for its end, at most for `limit`; whether it has ended.
    pub fn ends_within(&self, limit: Duration) -> bool {
        let deadline = Some(Instant::now() + limit);
        poll::wait(&mut [PollFd::new(&self.0, PollFlags::IN)], deadline).is_ok_and(|ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::process::{child_pid, identity};

    #[test]
    fn a_later_process_with_the_same_number_is_not_signalled() {
        let mut child = Command::new("sh").args(["-c", "read _"]).stdin(Stdio::piped()).spawn().unwrap();
        let process = identity(child_pid(&child)).unwrap();
        let other = ProcessIdentity { start: process.start + 1, ..process.clone() };
        assert!(Pidfd::open(&other).is_err());
        let fd = Pidfd::open(&process).unwrap();
        fd.send(Signal::KILL).unwrap();
        assert!(fd.ends_within(Duration::from_secs(20)));
        child.wait().unwrap();
        assert!(fd.send(Signal::KILL).is_err());
    }
}
