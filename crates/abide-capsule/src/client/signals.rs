//! The signals that concern a client, taken over while it runs and given back afterwards.
#![allow(unsafe_code)] // The signal mask has no safe wrapper among our dependencies.

use std::{io, mem};

use crate::signals::SignalFd;

const SIGNALS: [i32; 7] =
    [libc::SIGWINCH, libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGCONT];

/// The signals, as events. Dropping this gives them back to the process.
pub(super) struct Taken {
    pub fd: SignalFd,
    before: libc::sigset_t,
}

impl Taken {
    pub fn take() -> io::Result<Self> {
        // SAFETY: sigset_t is plain data, and the call below fills it in.
        let mut before: libc::sigset_t = unsafe { mem::zeroed() };
        // SAFETY: no new mask is given, and `before` is a valid place for the present one.
        let err = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &raw mut before) };
        if err != 0 {
            return Err(io::Error::from_raw_os_error(err));
        }
        Ok(Self { fd: SignalFd::block(&SIGNALS)?, before })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // What came too late to matter must not end the caller in place of us.
        while let Ok(Some(_)) = self.fd.next() {}
        // SAFETY: `before` was filled in by the system.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}
