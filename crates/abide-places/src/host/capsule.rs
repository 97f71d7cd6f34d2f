//! Sessions in a capsule of abide's own.

use std::path::PathBuf;
use std::time::Duration;

use abide_client as client;
use abide_client::{AttachEnd, AttachOptions, OnShown};
use abide_config::{JournalLimit, Settings};
use abide_keeper::OperatorStop;
use abide_model::liveness::SupervisorLock;
use abide_model::{Liveness, Permission, Pid, SessionId};
use abide_sys::clock::eventually;
use abide_sys::process::{self, Pidfd};
use abide_wire::exit_record::ExitRecord;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::mux_options::{LiveSettings, MuxOptions};
use abide_wire::protocol::{
    Call, Configure, Connection, EvidenceReply, GetEvidence, GetStatus, Input, Kill, Send, Shutdown,
    Snapshot, SnapshotReply, StatusReply, Until, Upgrade, Wait, WaitReply,
};
use abide_wire::supervisor_lock::supervisor_lock;

use crate::connect::{self, PATIENCE};
use crate::host::keepers;
use crate::substrate::{NoAnswer, Substrate};

/// How long a capsule may take to end its sessions: their grace, and the reading of their last words.
const TO_STOP: Duration = Duration::from_secs(15);

/// How long a mux may take to hear that its capsule is to stop.
const TO_HEAR: Duration = Duration::from_secs(2);

/// The capsule that serves an instance directory.
pub(crate) struct Capsule(pub InstanceDir);

impl Capsule {
    fn ask<C: Call>(&self, request: &C) -> Result<C::Reply, NoAnswer> {
        Ok(connect::connect(&self.0)?.call(request, PATIENCE)?)
    }
}

impl Substrate for Capsule {
    fn lock(&self) -> SupervisorLock {
        supervisor_lock(&self.0)
    }

    fn holders(&self) -> Vec<Pid> {
        let record = ExitRecord::read(&self.0).ok().flatten();
        let keeper = record.filter(|record| process::alive(&record.keeper) == Liveness::Alive);
        keeper.map(|record| record.keeper.pid).into_iter().collect()
    }

    fn status(&self) -> Result<StatusReply, NoAnswer> {
        self.ask(&GetStatus {})
    }

    /// Asks through the mux, which notifies the attached clients. If it does not answer, signals the keeper.
    fn stop(&self, reason: OperatorStop) -> bool {
        // Opened first: when its lock is free, it is gone but for a moment, and its record may be another's.
        let keeper =
            ExitRecord::read(&self.0).ok().flatten().and_then(|record| Pidfd::open(&record.keeper).ok());
        let request = Shutdown { reason: reason.note().to_owned() };
        let asked = Connection::connect(&self.0, TO_HEAR)
            .and_then(|mut capsule| capsule.call(&request, TO_HEAR))
            .map_err(|error| error.to_string());
        let asked = asked.map(drop).or_else(|error| {
            tracing::warn!(instance_dir = %self.0.path().display(), "the capsule is not asked through its mux: {error}");
            keepers::signal(&self.0, reason).map_err(|error| error.to_string())
        });
        if let Err(error) = asked {
            tracing::warn!(instance_dir = %self.0.path().display(), "asking the keeper to stop: {error}");
        }
        eventually(TO_STOP, || self.lock() == SupervisorLock::Free)
            && keeper.is_none_or(|keeper| keeper.ends_within(TO_HEAR))
    }

    fn end(&self, session: &SessionId) -> Result<(), NoAnswer> {
        self.ask(&Kill { session: *session }).map(drop)
    }

    fn send(&self, session: &SessionId, input: Vec<Input>) -> Result<(), NoAnswer> {
        self.ask(&Send { session: *session, input }).map(drop)
    }

    fn screen(&self, session: &SessionId, ask: &Snapshot) -> Result<SnapshotReply, NoAnswer> {
        self.ask(&Snapshot { session: Some(*session), ..ask.clone() })
    }

    fn evidence(&self, session: &SessionId) -> Result<EvidenceReply, NoAnswer> {
        self.ask(&GetEvidence { session: *session })
    }

    fn wait(
        &self,
        session: &SessionId,
        until: Until,
        timeout_ms: Option<u64>,
    ) -> Result<WaitReply, NoAnswer> {
        // The capsule keeps the time; we only have to outlast it.
        let patience = timeout_ms.map_or(Duration::MAX, |ms| Duration::from_millis(ms) + PATIENCE);
        let request = Wait { session: *session, until, timeout_ms };
        Ok(connect::connect(&self.0)?.call(&request, patience)?)
    }

    fn attach(&self, options: &AttachOptions, on_shown: OnShown<'_>) -> Result<AttachEnd, NoAnswer> {
        Ok(client::attach(&self.0, options, on_shown)?)
    }

    fn configure(&self, settings: &Settings) -> Result<bool, NoAnswer> {
        self.ask(&Configure { settings: mux_settings(settings).live }).map(|_| true)
    }

    fn upgrade(&self, exe: PathBuf) -> Result<bool, NoAnswer> {
        self.ask(&Upgrade { exe: exe.into() }).map(|_| true)
    }
}

/// What the settings say about every mux.
pub fn mux_settings(settings: &Settings) -> MuxOptions {
    let allowed = |permission: Permission| permission == Permission::Allow;
    MuxOptions {
        scrollback: usize::try_from(settings.scrollback).unwrap_or(usize::MAX),
        journal_bytes: match settings.journal {
            JournalLimit::Off => 0,
            JournalLimit::Newest(size) => size.bytes(),
        },
        live: LiveSettings {
            prefix: settings.prefix,
            status_bar: settings.status_bar,
            clipboard: allowed(settings.terminal.clipboard),
            links: allowed(settings.terminal.links),
            notifications: allowed(settings.terminal.notifications),
        },
        keep_awake: settings.keep_awake,
        ..MuxOptions::default()
    }
}
