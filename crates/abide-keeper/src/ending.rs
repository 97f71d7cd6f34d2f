//! Ending processes: politely, then plainly, then by force.
//!
//! `SIGTERM` comes first, with `SIGCONT` for what is stopped. Interactive shells ignore `SIGTERM`, and what they
//! understand is `SIGHUP`, the loss of their terminal; so a process that ignores the one gets the other at once. Others get
//! `SIGHUP` only later: a program that is cleaning up after `SIGTERM` would be killed by it half-way. What is left
//! when the grace period is over gets `SIGKILL`, repeatedly, because it may be forking.

use std::time::{Duration, Instant};

use abide_model::{Pid, ProcessIdentity};
use abide_sys::process::{
    Stat, command_line, descendants, has_in_environment, ignores, own_pid, send_signal,
};
use abide_wire::capsule_part::CapsulePart;
use rustix::process::Signal;

use crate::daemons::{self, Daemon};

const KILL_AGAIN: Duration = Duration::from_millis(50);
/// A process in an uninterruptible system call cannot be killed; it is not waited for longer than this.
const KILL_FOR: Duration = Duration::from_secs(2);

/// What is to end.
#[derive(Debug, Clone)]
pub enum EndingScope {
    /// One session: the descendants of its leader, whatever is left of its terminal session, and what has left both but
    /// still has all of `mark` in its environment, as the tools of some agents do.
    Session {
        /// The process that was started.
        leader: Pid,
        /// Variables that only this session's processes have, as `NAME=value`.
        mark: Vec<Vec<u8>>,
    },
    /// Everything that descends from us but the mux: sessions, and what they left behind.
    Everything {
        /// What is left alone, with all that is below it.
        spared: Vec<ProcessIdentity>,
    },
}

/// Processes that are being ended.
#[derive(Debug)]
pub struct Ending {
    /// The daemons among them.
    pub daemons: Vec<Daemon>,
    scope: EndingScope,
    hangup_at: Option<Instant>,
    kill_at: Instant,
    give_up_at: Instant,
}

impl Ending {
    /// Asks politely and sets the times for the rest.
    pub fn begin(scope: EndingScope, mux: Option<Pid>, grace: Duration, now: Instant) -> Self {
        let meant = survivors(&scope, mux);
        let mut daemons = daemons::below(own_pid());
        daemons.retain(|daemon| meant.iter().any(|process| process.pid == daemon.process.pid));
        for process in meant {
            send(&process, Signal::TERM);
            send(&process, Signal::CONT);
            if ignores(process.pid, Signal::TERM) {
                send(&process, Signal::HUP);
            }
        }
        let kill_at = now + grace;
        Self { daemons, scope, hangup_at: Some(now + grace / 2), kill_at, give_up_at: kill_at + KILL_FOR }
    }

    /// When [`Ending::advance`] has something to do even if nothing happens.
    pub fn deadline(&self) -> Instant {
        self.hangup_at.unwrap_or(self.kill_at)
    }

    /// Goes on; true when nothing is left, or nothing can be done about it.
    pub fn advance(&mut self, mux: Option<Pid>, now: Instant) -> bool {
        let left = survivors(&self.scope, mux);
        if left.is_empty() {
            return true;
        }
        if self.hangup_at.is_some_and(|at| at <= now) {
            self.hangup_at = None;
            left.iter().for_each(|process| send(process, Signal::HUP));
        }
        if now >= self.give_up_at {
            tracing::warn!(count = left.len(), "processes that cannot be killed are left behind");
            return true;
        }
        if now >= self.kill_at {
            self.kill_at = now + KILL_AGAIN;
            left.iter().for_each(|process| send(process, Signal::KILL));
        }
        false
    }
}

fn survivors(scope: &EndingScope, mux: Option<Pid>) -> Vec<Stat> {
    let spared = match scope {
        EndingScope::Everything { spared } => &spared[..],
        EndingScope::Session { .. } => &[],
    };
    let ours = daemons::own_descendants(spared, |pid| Some(pid) == mux || holds_others(pid));
    match scope {
        EndingScope::Everything { .. } => ours,
        EndingScope::Session { leader, mark } => {
            let below = descendants(*leader, holds_others);
            let belongs = |process: &Stat| {
                process.pid == *leader
                    || process.session == *leader
                    || below.iter().any(|b| b.pid == process.pid)
                    || has_in_environment(process.pid, mark)
            };
            ours.into_iter().filter(belongs).collect()
        }
    }
}

/// Whether a process holds other instances: a keeper, or the tmux server that abide keeps sessions in. An instance that
/// was started from inside a session descends from it, and does not end with it.
pub fn holds_others(pid: Pid) -> bool {
    let line = command_line(pid);
    match &line[..] {
        [program, option, socket, ..] if option == b"-S" => {
            program.ends_with(b"tmux") && socket.ends_with(b"/abide")
        }
        line => CapsulePart::of(line) == Some(CapsulePart::Keeper),
    }
}

fn send(process: &Stat, signal: Signal) {
    // The process may be gone by now, which is what we want of it.
    let _ = send_signal(process.pid, signal);
}
