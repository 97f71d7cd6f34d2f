//! Handing a running capsule to another binary: when, and what crosses.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

use abide_wire::link::ToMux;
use abide_wire::os_text::OsText;

use crate::upgrade::{self, SavedSession, UpgradeState};
use crate::{Keeper, KeeperSession, RETIRE_WITHIN};

/// The new binary was found fit; the old mux is on its way out.
pub(super) struct PendingUpgrade {
    pub exe: OsText,
    pub retired_by: Instant,
}

impl Keeper {
    pub(super) fn begin_upgrade(&mut self, exe: OsText) {
        let busy = self.stop.is_some() || self.upgrade.is_some() || !self.kills.is_empty();
        let fit = if busy {
            Err("a session is being ended or upgraded; try again in a few seconds".to_owned())
        } else {
            upgrade::check(exe.as_path())
        };
        match fit {
            Ok(()) => {
                self.upgrade = Some(PendingUpgrade { exe, retired_by: Instant::now() + RETIRE_WITHIN });
                self.mux.retire();
            }
            Err(text) => self.mux.send(ToMux::UpgradeFailed { text }, None),
        }
    }

    /// What is being ended is ended by whom it was begun: the new program would know nothing of it, and take the end of a
    /// stopped session for its own wish.
    pub(super) fn call_off_upgrade(&mut self) {
        if self.upgrade.take().is_some() {
            tracing::warn!("the upgrade is called off, because something is being ended");
            self.mux.revive(Instant::now());
        }
    }

    /// Once the old mux is gone, becomes the new program. If that fails, everything goes on as before.
    pub(super) fn advance_upgrade(&mut self, now: Instant) {
        let Some(upgrade) = &mut self.upgrade else { return };
        if self.mux.pid().is_some() {
            if now >= upgrade.retired_by {
                upgrade.retired_by = now + RETIRE_WITHIN;
                self.mux.abandon("it does not finish");
            }
            return;
        }
        let exe = upgrade.exe.clone();
        let state = self.state();
        let masters = self.sessions.iter().map(|session| session.master.as_fd());
        let keep: Vec<_> = masters.chain([self.lock.as_fd(), self.listener.as_fd()]).collect();
        let err = upgrade::exec(&exe, &state, &keep);
        tracing::error!("the upgrade failed, going on as before: {err}");
        self.upgrade = None;
        self.mux.revive(now);
    }

    fn state(&self) -> UpgradeState {
        let saved = |session: &KeeperSession| SavedSession {
            spec: session.spec.clone(),
            pid: session.pid,
            master: session.master.as_raw_fd(),
            exit: session.exit.map(|(exit, _)| exit),
        };
        UpgradeState {
            config: self.config.clone(),
            lock: self.lock.as_raw_fd(),
            listener: self.listener.as_raw_fd(),
            socket: self.socket,
            record: self.record.clone(),
            had_sessions: self.had_sessions,
            sessions: self.sessions.iter().map(saved).collect(),
        }
    }
}
