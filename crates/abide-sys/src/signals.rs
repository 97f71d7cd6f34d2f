//! Signals as readable events (a signalfd over a blocked set), and as a started program should find them.
#![allow(unsafe_code)] // signalfd, dispositions and the signal mask have no safe wrapper among our dependencies.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::{io, mem};

const AT_A_TERMINAL: [i32; 7] =
    [libc::SIGWINCH, libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGCONT];

/// Delivers blocked signals to a poll loop. Everything else about them (handlers, interrupted calls) never happens.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

impl SignalFd {
    /// Blocks `signals` for the calling thread and those it starts later, and delivers them here instead.
    pub fn block(signals: &[i32]) -> io::Result<Self> {
        let set = signal_set(signals);
        // SAFETY: `set` is initialised, and no old mask is asked for.
        let err = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        if err != 0 {
            return Err(io::Error::from_raw_os_error(err));
        }
        // SAFETY: `set` is initialised; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave us this descriptor, and nothing else knows it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next pending signal, if there is one.
    pub fn next(&self) -> io::Result<Option<i32>> {
        Ok(self.next_with_value()?.map(|arrived| arrived.signal))
    }

    /// The next pending signal with the value that its sender gave with it.
    pub fn next_with_value(&self) -> io::Result<Option<ArrivedSignal>> {
        // SAFETY: `signalfd_siginfo` is plain data.
        let mut info: libc::signalfd_siginfo = unsafe { mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: all of it is initialised, and any bytes make a valid one.
        let bytes = unsafe { std::slice::from_raw_parts_mut((&raw mut info).cast::<u8>(), size) };
        match rustix::io::read(&self.0, bytes) {
            Ok(n) if n == size => {
                let queued = info.ssi_code == libc::SI_QUEUE;
                Ok(Some(ArrivedSignal {
                    signal: info.ssi_signo.cast_signed(),
                    value: queued.then_some(info.ssi_int),
                }))
            }
            Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(err) => Err(err.into()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivedSignal {
    pub signal: i32,
    /// The value that came with it; `None` for a plain signal.
    pub value: Option<i32>,
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The signals that concern a program at a terminal, taken over while it has the terminal and given back afterwards.
pub struct TerminalSignals {
    pub fd: SignalFd,
    before: libc::sigset_t,
}

impl TerminalSignals {
    /// Takes over what the terminal, and other processes that end this one, may send. Call it with one thread.
    pub fn take() -> io::Result<Self> {
        Self::of(&AT_A_TERMINAL)
    }

    /// Takes over `signals` only. Call it with one thread.
    pub fn of(signals: &[i32]) -> io::Result<Self> {
        // SAFETY: sigset_t is plain data, and the call below fills it in.
        let mut before: libc::sigset_t = unsafe { mem::zeroed() };
        // SAFETY: no new mask is given, and `before` is a valid place for the present one.
        let err = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &raw mut before) };
        if err != 0 {
            return Err(io::Error::from_raw_os_error(err));
        }
        Ok(Self { fd: SignalFd::block(signals)?, before })
    }
}

impl Drop for TerminalSignals {
    fn drop(&mut self) {
        // What came too late to matter must not end the caller in place of us.
        while let Ok(Some(_)) = self.fd.next() {}
        // SAFETY: `before` was filled in by the system.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// Lets the program that `command` starts begin with all signals unblocked and meaning what they mean by default. It
/// would inherit what we block, and what our own launcher ignored (as `nohup` does), and could not be ended then.
pub fn start_fresh(command: &mut Command) {
    // SAFETY: `reset` makes system calls only; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(reset) };
}

/// Has the system ask the program that `command` starts to end when the thread that starts it does, however that ends.
pub fn end_with_us(command: &mut Command) {
    let parent = rustix::process::getpid();
    let asked = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
        // A parent that died before that sends nothing any more.
        if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    };
    // SAFETY: the closure makes system calls only; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(asked) };
}

fn reset() -> io::Result<()> {
    // The kernel's `struct sigaction`, which has no more words than this anywhere; all zero is SIG_DFL.
    let default = [0_u64; 8];
    for signal in 1..=64 {
        // Not `sigaction`: the C library refuses to touch the signals that it uses itself, and those are inherited, too.
        // SAFETY: `default` outlives the call; signals that cannot be set (KILL, STOP) are refused harmlessly.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), std::ptr::null_mut::<u64>(), 8)
        };
    }
    let none = signal_set(&[]);
    // SAFETY: `none` is initialised, and no old mask is asked for.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) } {
        0 => Ok(()),
        err => Err(io::Error::from_raw_os_error(err)),
    }
}

fn signal_set(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: sigset_t is plain data, and sigemptyset initialises it whole.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is a valid place for a set.
    unsafe { libc::sigemptyset(&raw mut set) };
    for &signal in signals {
        // SAFETY: `set` was initialised above.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}
