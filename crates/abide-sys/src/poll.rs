//! Waiting for descriptors, no longer than until a given moment.

use std::io;
use std::time::Instant;

use rustix::event::Timespec;
pub use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

/// Waits until something can be done with one of `fds`, however often that is interrupted; gives with how many of them.
/// That is none only when `until` has come.
pub fn wait(fds: &mut [PollFd<'_>], until: Option<Instant>) -> io::Result<usize> {
    loop {
        let left = until.map(|at| at.saturating_duration_since(Instant::now()));
        // What is too far away to be said never comes.
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match rustix::event::poll(fds, timeout.as_ref()) {
            Err(Errno::INTR) => {}
            ready => return Ok(ready?),
        }
    }
}

/// What to wait for on a descriptor that may be read from and written to.
pub fn flags(reads: bool, writes: bool) -> PollFlags {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::IN, reads);
    flags.set(PollFlags::OUT, writes);
    flags
}
