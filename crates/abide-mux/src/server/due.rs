//! What is done because it is time for it, and when that is.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use abide_model::Doing;

use crate::server::Server;
use crate::server::searching::is_searching;
use crate::session::MuxSession;

/// How soon to look whether a flush to disk is over, while another is waiting for it.
const DISK_CHECK: Duration = Duration::from_millis(500);

impl Server {
    /// When something is due without anything happening before.
    pub fn deadline(&self) -> Option<Instant> {
        let clients = self.clients.values().filter_map(|client| {
            if client.is_leaving() {
                return client.leaves_at();
            }
            if !client.greeted {
                return Some(client.greets_by);
            }
            let view = client.view.as_ref()?;
            let search = is_searching(view).then_some(self.now);
            let frame = view.frame_at().filter(|_| client.is_caught_up());
            [frame, search, view.message_until(), view.tokens_until()].into_iter().flatten().min()
        });
        let idle_disk = self.syncing.as_ref().is_none_or(JoinHandle::is_finished);
        let sessions = self.sessions.iter().filter_map(|session| {
            let sync = session.sync_at().map(|at| if idle_disk { at } else { at.max(self.now + DISK_CHECK) });
            let look = session.watching.look_at().filter(|_| session.exit.is_none());
            let pause = session.paused_until().filter(|until| *until > self.now);
            [session.drained_at(), sync, session.held_until(), look, pause].into_iter().flatten().min()
        });
        let waits = self.waiting.iter().filter_map(|wait| wait.deadline(&self.sessions, self.now));
        // Without other sessions or clients, none is kept waiting.
        let attention = self.attention.until().filter(|_| self.sessions.len() > 1);
        clients.chain(sessions).chain(waits).chain(attention).chain(self.last_seen.write_at()).min()
    }

    pub fn on_time(&mut self) {
        self.flush_tokens();
        self.go_on_searching();
        let now = self.now;
        self.attention.check(now);
        for view in self.clients.values_mut().filter_map(|client| client.view.as_mut()) {
            if view.message_until().is_some_and(|until| until <= now) {
                view.unsay();
            }
        }
        for index in 0..self.sessions.len() {
            if self.sessions[index].hold_ran_out(now) {
                self.touch_session(index);
            }
        }
    }

    /// What no picture waits for: it asks the kernel about processes, writes files and starts processes, which may take
    /// longer than everything that a key needs.
    pub fn after_drawing(&mut self) {
        if self.last_seen.write_at().is_some_and(|at| at <= self.now) {
            self.last_seen.write_down(&self.instance_dir);
        }
        self.look_at_sessions();
        self.keep_awake();
        self.check_waits();
        self.sync_journals();
        self.flush_clients();
    }

    /// Keeps the machine from going to sleep while the sessions are a reason to.
    fn keep_awake(&mut self) {
        let doing = self.sessions.iter().map(|session| match session.exit {
            Some(_) => Doing::Exited,
            None => session.watching.doing(),
        });
        let wanted = self.stopping.is_none() && self.options.keep_awake.wants(doing);
        self.awake.set(wanted, &self.options.name);
    }

    /// Brings journals to disk without waiting for it: a slow disk would stop every screen. The thread lives for the
    /// length of one flush, and there is never more than one.
    fn sync_journals(&mut self) {
        if self.syncing.as_ref().is_some_and(JoinHandle::is_finished) {
            self.syncing = None;
        }
        let due = |session: &&mut MuxSession| session.sync_at().is_some_and(|at| at <= self.now);
        if self.syncing.is_some() {
            return;
        }
        let jobs: Vec<_> = self.sessions.iter_mut().filter(due).filter_map(MuxSession::sync_job).collect();
        if jobs.is_empty() {
            return;
        }
        let work = move || {
            for job in jobs {
                if let Err(err) = job.run() {
                    tracing::warn!("a journal may not be on disk: {err}");
                }
            }
        };
        self.syncing = std::thread::Builder::new().stack_size(128 << 10).spawn(work).ok();
    }
}
