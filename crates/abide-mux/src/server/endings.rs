//! How sessions end, and how the mux itself does.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use abide_sys::poll::{self, PollFd, PollFlags};
use abide_wire::link::ToKeeper;
use abide_wire::protocol::{ByeReason, Event};
use abide_wire::session::ProcessExit;

use crate::server::Server;
use crate::session::MuxSession;

/// How long clients that do not read are waited for at the end.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How many ended sessions are remembered, for requests that ask how they ended.
const MAX_ENDED: usize = 256;

impl Server {
    /// Deals with the sessions whose output is over.
    pub fn finish_sessions(&mut self) {
        let now = self.now;
        let over = |session: &MuxSession| session.drained_at().is_some_and(|at| at <= now);
        if !self.sessions.iter().any(over) {
            return;
        }
        let (ended, living) = std::mem::take(&mut self.sessions).into_iter().partition(over);
        self.sessions = living;
        let ended: Vec<MuxSession> = ended;
        for session in ended {
            self.session_ended(session);
        }
    }

    fn session_ended(&mut self, mut session: MuxSession) {
        // First: by what was typed into it, its end is judged.
        self.last_seen.write_down(&self.instance_dir);
        let exit = session.exit.unwrap_or(ProcessExit::Code(0));
        if crate::server::spawn::is_passing(&session) && self.stopping.is_none() {
            crate::server::spawn::forget_journal(&session, &self.instance_dir);
            self.tell_keeper(ToKeeper::Drained { id: session.id });
        } else {
            // The keeper is notified when it is on disk, and no screen waits for that.
            self.settling.begin(session.id, session.take_settlement());
        }
        if self.ended.len() == MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back((session.id, exit));
        self.emit(&Event::Exited { session: session.id, exit }, Some(&session.id));
        self.session_waits_end(&session.id, exit);
        self.layout.retain(|id| *id != session.id);
        self.earlier.names.remove(&session.id);
        self.refit = true;
        let label = session.label().to_owned();
        if self.layout.tabs().is_empty() {
            let message = format!("{label} ended ({exit})");
            for client in self.clients.values_mut().filter(|client| client.view.is_some()) {
                client.bye(ByeReason::SessionEnded, &message, Some(exit));
            }
        } else {
            self.say_to_all(&format!("{label} ended ({exit})"));
        }
    }

    pub fn tell_settled(&mut self) {
        for id in self.settling.finished() {
            self.tell_keeper(ToKeeper::Drained { id });
        }
    }

    /// Brings everything to disk and says good-bye.
    pub fn leave(mut self) {
        let (reason, message) = match &self.stopping {
            Some(note) => (ByeReason::Shutdown, stop_message(note)),
            None => (ByeReason::Restarting, "the screen is being rebuilt".to_owned()),
        };
        self.last_seen.write_down(&self.instance_dir);
        self.upgrade_begins();
        for client in self.clients.values_mut() {
            client.bye(reason, &message, None);
        }
        // Before the disk, which may take its time.
        self.flush_clients();
        if let Some(syncing) = self.syncing.take() {
            // Its own errors were reported; that it is over is all that matters.
            let _ = syncing.join();
        }
        for id in self.settling.wait_for_all() {
            self.tell_keeper(ToKeeper::Drained { id });
        }
        for session in &mut self.sessions {
            session.take_settlement().run();
        }
        let deadline = Instant::now() + LAST_WORDS;
        loop {
            self.flush_clients();
            self.clients.retain(|_, client| !client.is_over(deadline));
            let clients = self.clients.values();
            let mut fds: Vec<_> =
                clients.map(|client| PollFd::from_borrowed_fd(client.as_fd(), PollFlags::OUT)).collect();
            let over = fds.is_empty() || Instant::now() >= deadline;
            if over || poll::wait(&mut fds, Some(deadline)).is_err() {
                return;
            }
        }
    }
}

/// What the operator reads when the capsule stops.
pub(crate) fn stop_message(note: &str) -> String {
    if note.is_empty() {
        "the instance was stopped".to_owned()
    } else {
        format!("the instance was stopped: {note}")
    }
}
