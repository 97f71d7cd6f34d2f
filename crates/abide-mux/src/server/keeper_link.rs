//! Messages from and to the keeper.

use std::collections::VecDeque;
use std::io;

use abide_wire::link::{Link, LinkError, SessionInfo, ToKeeper, ToMux};
use abide_wire::protocol::ByeReason;

use crate::server::endings::stop_message;
use crate::server::{MuxError, Server};
use crate::session::MuxSession;

/// Messages that the keeper has not taken; more than the sessions that it may have.
const MAX_TO_KEEPER: usize = 4096;

impl Server {
    /// Hears everything that the keeper has said so far.
    pub fn hear_keeper(&mut self) -> Result<(), MuxError> {
        loop {
            match self.link.recv::<ToMux>() {
                Ok(Some((message, fds))) => self.on_message(message, fds.into_iter().next()),
                Ok(None) => return Err(MuxError::NoKeeper),
                Err(LinkError::Io(err)) if err.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(LinkError::Malformed(text)) => tracing::warn!("unreadable message of the keeper: {text}"),
                Err(err) => return Err(err.into()),
            }
        }
    }

    pub fn on_message(&mut self, message: ToMux, fd: Option<std::os::fd::OwnedFd>) {
        match message {
            ToMux::Session(info) => match fd {
                Some(master) => self.take_over(info, master),
                None => tracing::warn!(session = %info.id, "it came without its terminal"),
            },
            ToMux::Exited { id, exit } => {
                let now = self.now;
                if let Some(session) = self.session_mut(&id) {
                    session.exited(exit, now);
                }
            }
            ToMux::SpawnFailed { request, errno, text } => self.spawn_failed(request, errno, &text),
            ToMux::Shutdown { note } => self.stop(note),
            ToMux::UpgradeFailed { text } => self.upgrade_failed(&text),
            ToMux::Retire => self.retiring = true,
            ToMux::Hello { .. } | ToMux::Unknown => tracing::warn!("the keeper sent something unexpected"),
        }
    }

    fn take_over(&mut self, info: SessionInfo, master: std::os::fd::OwnedFd) {
        let ring = self.instance_dir.journal(&info.id);
        let mut session = MuxSession::take_over(info.clone(), master, &ring, self);
        if let Some(name) = self.earlier.names.get(&info.id).filter(|name| !name.is_empty()) {
            session.name.clone_from(name);
        }
        self.sessions.retain(|known| known.id != info.id);
        self.sessions.push(session);
        self.session_came(&info);
    }

    /// The capsule stops. Attached clients are notified now; requests are answered until the end.
    fn stop(&mut self, note: String) {
        let message = stop_message(&note);
        for client in self.clients.values_mut().filter(|client| client.view.is_some()) {
            client.bye(ByeReason::Shutdown, &message, None);
        }
        self.stopping = Some(note);
    }

    /// Tells the keeper something, as soon as it has room for it.
    pub fn tell_keeper(&mut self, message: ToKeeper) {
        self.to_keeper.0.push_back(message);
        self.to_keeper.flush(&self.link);
    }
}

/// Messages that the keeper had no room for yet. None is dropped: an end that it did not hear of would keep the instance
/// alive for ever.
#[derive(Debug, Default)]
pub(crate) struct ToKeeperQueue(VecDeque<ToKeeper>);

impl ToKeeperQueue {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends what the link has room for.
    pub fn flush(&mut self, link: &Link) {
        while let Some(message) = self.0.front() {
            match link.send(message, &[]) {
                Ok(()) => {}
                Err(LinkError::Full) if self.0.len() <= MAX_TO_KEEPER => return,
                // If it is gone, the next round finds that out.
                Err(err) => tracing::warn!("a message to the keeper was lost: {err}"),
            }
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_wire::session::SessionId;

    #[test]
    fn a_keeper_that_does_not_read_for_a_while_hears_everything_afterwards() {
        let (ours, theirs) = Link::pair().unwrap();
        ours.set_nonblocking().unwrap();
        theirs.set_nonblocking().unwrap();
        let mut queue = ToKeeperQueue::default();
        for n in 1..=3000 {
            queue.0.push_back(ToKeeper::Drained { id: SessionId(n) });
            queue.flush(&ours);
        }
        assert!(!queue.is_empty(), "the link has room for all, so nothing was tested");
        let mut heard = Vec::new();
        while let Ok(Some((ToKeeper::Drained { id }, _))) = theirs.recv() {
            heard.push(id);
            queue.flush(&ours);
        }
        assert_eq!(heard, (1..=3000).map(SessionId).collect::<Vec<_>>());
    }
}
