//! The keeper: what it tells, and telling it.

use std::io;

use super::server::{MuxError, Server, stop_message};
use super::session::Session;
use crate::link::{LinkError, SessionInfo, ToKeeper, ToMux};
use crate::protocol::ByeReason;

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
        let ring = self.unit.journal(&info.id);
        let mut session = Session::take_over(info.clone(), master, &ring, self);
        if let Some(name) = self.earlier.names.get(&info.id).filter(|name| !name.is_empty()) {
            session.name.clone_from(name);
        }
        self.sessions.retain(|known| known.id != info.id);
        self.sessions.push(session);
        self.session_came(&info);
    }

    /// The capsule stops. Who watches is told so now; who asked for something is answered until the end.
    fn stop(&mut self, note: String) {
        let message = stop_message(&note);
        for client in self.clients.values_mut().filter(|client| client.view.is_some()) {
            client.bye(ByeReason::Shutdown, &message, None);
        }
        self.stopping = Some(note);
    }

    /// Tells the keeper something. If it does not hear, it is gone, which the next round finds out.
    pub fn tell_keeper(&self, message: &ToKeeper) {
        if let Err(err) = self.link.send(message, &[]) {
            tracing::warn!("the keeper could not be told something: {err}");
        }
    }
}
