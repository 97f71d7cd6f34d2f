//! Sessions that have ended and whose journals are on their way to disk: each in a thread of its own, because a slow disk
//! would stop every screen. The keeper closes a terminal only after that, so an instance does not end before it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use abide_journal::{Journal, SyncJob};
use abide_term::Term;
use abide_wire::session::SessionId;
use rustix::event::EventfdFlags;

/// The work of bringing all of a session's journal to disk, which may take as long as the disk likes.
pub(crate) struct Settlement {
    pub id: SessionId,
    pub journal: Journal,
    pub term: Term,
}

impl Settlement {
    /// Writes the last checkpoint and waits for the disk.
    pub fn run(mut self) {
        if !self.journal.is_on_disk() {
            return;
        }
        let written = self.journal.checkpoint(&self.term.dump()).and_then(|()| self.journal.sync_job());
        if let Err(err) = written.and_then(|job| job.map_or(Ok(()), SyncJob::run)) {
            tracing::warn!(session = %self.id, "its journal may not be on disk: {err}");
        }
    }
}

/// The threads, and a descriptor that is readable when one of them is done.
pub(crate) struct Settling {
    wakes: Arc<OwnedFd>,
    done: (Sender<SessionId>, Receiver<SessionId>),
    threads: Vec<JoinHandle<()>>,
}

impl Settling {
    pub fn new() -> io::Result<Self> {
        let wakes = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { wakes: Arc::new(wakes), done: channel(), threads: Vec::new() })
    }

    /// Begins to bring a session's journal to disk.
    pub fn begin(&mut self, id: SessionId, settlement: Settlement) {
        let (wakes, done) = (Arc::clone(&self.wakes), self.done.0.clone());
        let report = move || {
            // The other end is in this very value, and the counter can count more sessions than there are.
            let _ = done.send(id);
            let _ = rustix::io::write(&*wakes, &1u64.to_ne_bytes());
        };
        let after = report.clone();
        let work = move || {
            settlement.run();
            after();
        };
        self.threads.retain(|thread| !thread.is_finished());
        match std::thread::Builder::new().stack_size(256 << 10).spawn(work) {
            Ok(thread) => self.threads.push(thread),
            Err(err) => {
                tracing::warn!(session = %id, "no thread is left to bring its journal to disk: {err}");
                report();
            }
        }
    }

    /// The sessions whose journals have come to disk since the last call.
    pub fn finished(&mut self) -> Vec<SessionId> {
        let _ = rustix::io::read(&*self.wakes, &mut [0; 8]);
        self.done.1.try_iter().collect()
    }

    /// The same, after waiting for all of them.
    pub fn wait_for_all(&mut self) -> Vec<SessionId> {
        for thread in std::mem::take(&mut self.threads) {
            // A panic in it was reported; that it is over is all that matters.
            let _ = thread.join();
        }
        self.finished()
    }
}

impl AsFd for Settling {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }
}
