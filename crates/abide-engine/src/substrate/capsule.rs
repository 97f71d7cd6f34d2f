//! Sessions in a capsule of abide's own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use abide_client as client;
use abide_client::{AttachEnd, AttachOptions};
use abide_config::{JournalLimit, Settings};
use abide_keeper::{Config, Launching, OWN_IMAGE, OperatorStop};
use abide_model::SessionId;
use abide_model::liveness::SupervisorLock;
use abide_model::{Instance, InstanceId, Permission};
use abide_places::host::scope;
use abide_places::host::scope::ScopeOutcome;
use abide_sys::process::{self, Pidfd};
use abide_wire::exit_record::ExitRecord;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::mux_options::MuxOptions;
use abide_wire::os_text::OsText;
use abide_wire::protocol::{
    Configure, Connection, EvidenceReply, GetEvidence, GetStatus, Input, Kill, Send, Shutdown, Snapshot,
    SnapshotReply, Spawn, StatusReply, Until, Upgrade, Wait, WaitReply,
};
use abide_wire::supervisor_lock::supervisor_lock;

use super::{NoAnswer, Substrate};
use crate::conversation::session_traces;
use crate::error::Error;
use crate::running::connect;
use crate::running::connect::PATIENCE;
use crate::running::keepers;
use crate::start::launch::{LaunchContext, LaunchReport, NotStarted, spec};

/// How long a capsule may take to end its sessions: their grace, and the reading of their last words.
const TO_STOP: Duration = Duration::from_secs(15);

/// How long a mux that is just being started may take until it starts further sessions. A machine that boots is slow,
/// and a session that is given up here is one that the operator misses.
const TO_START: Duration = Duration::from_secs(30);

/// How long a mux may take to hear that its capsule is to stop.
const TO_HEAR: Duration = Duration::from_secs(2);

/// The capsule of an instance directory.
pub(super) struct Capsule(pub InstanceDir);

impl Substrate for Capsule {
    fn lock(&self) -> SupervisorLock {
        supervisor_lock(&self.0)
    }

    fn holders(&self) -> Vec<i32> {
        let record = ExitRecord::read(&self.0).ok().flatten();
        let keeper = record.filter(|record| process::alive(&record.keeper) == Some(true));
        keeper.map(|record| record.keeper.pid.cast_signed()).into_iter().collect()
    }

    fn status(&self) -> Result<StatusReply, NoAnswer> {
        Ok(connect::connect(&self.0)?.call(&GetStatus {}, PATIENCE)?)
    }

    /// Asks through the mux, which tells whoever is attached; where that does not answer, asks the keeper by a signal.
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
        let deadline = Instant::now() + TO_STOP;
        while self.lock() != SupervisorLock::Free {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        keeper.is_none_or(|keeper| keeper.ends_within(TO_HEAR))
    }

    fn end(&self, session: &SessionId) -> Result<(), NoAnswer> {
        connect::connect(&self.0)?.call(&Kill { session: *session }, PATIENCE)?;
        Ok(())
    }

    fn send(&self, session: &SessionId, input: Vec<Input>) -> Result<(), NoAnswer> {
        connect::connect(&self.0)?.call(&Send { session: *session, input }, PATIENCE)?;
        Ok(())
    }

    fn screen(&self, session: &SessionId, ask: &Snapshot) -> Result<SnapshotReply, NoAnswer> {
        let request = Snapshot { session: Some(*session), ..ask.clone() };
        Ok(connect::connect(&self.0)?.call(&request, PATIENCE)?)
    }

    fn evidence(&self, session: &SessionId) -> Result<EvidenceReply, NoAnswer> {
        Ok(connect::connect(&self.0)?.call(&GetEvidence { session: *session }, PATIENCE)?)
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

    fn attach(&self, options: &AttachOptions) -> Result<AttachEnd, NoAnswer> {
        Ok(client::attach(&self.0, options)?)
    }

    fn configure(&self, settings: &Settings) -> Result<bool, NoAnswer> {
        let configure = Configure { settings: mux_settings(settings).live() };
        connect::connect(&self.0)?.call(&configure, PATIENCE)?;
        Ok(true)
    }

    fn upgrade(&self, exe: PathBuf) -> Result<bool, NoAnswer> {
        connect::connect(&self.0)?.call(&Upgrade { exe: exe.into() }, PATIENCE)?;
        Ok(true)
    }
}

/// Starts a keeper for `instance`, and its sessions in it.
pub(super) fn launch(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    report: &mut LaunchReport,
) -> Result<ScopeOutcome, Error> {
    let first = instance.sessions.first().ok_or(Error::NoSession(instance.id))?;
    let spec = spec(ctx, instance, first, &mut report.warnings)?;
    let instance_dir = connect::instance_dir(ctx.store, instance.id);
    let config = keeper_config(ctx, instance, instance_dir.path());
    session_traces::observe(&instance_dir);
    let argv = [ctx.exe.as_os_str(), "capsule".as_ref(), "keeper".as_ref()].map(OsText::from);
    let begin = || Launching::begin(&argv, config.clone(), &instance_dir.keeper_log());
    let mut launching = begin()?;
    let isolation = isolate(ctx, instance.id, &launching);
    if matches!(isolation, ScopeOutcome::FellBack { .. }) {
        // systemd may carry out later what it did not answer in time, and would move this keeper alone, away from what it
        // has started by then. Another one has another number.
        launching.abandon();
        launching = begin()?;
    }
    let launched = launching.start(spec)?;
    tracing::info!(id = %instance.id, keeper = launched.keeper.pid, session = launched.session_pid, "started");
    start_others(ctx, instance, report);
    Ok(isolation)
}

/// Moves the keeper out of the login before anything runs in it: whatever it starts is then where it is.
fn isolate(ctx: &LaunchContext<'_>, id: InstanceId, launching: &Launching) -> ScopeOutcome {
    let keeper = launching.keeper().pid;
    scope::place(keeper, id, ctx.settings.unit, ctx.settings.linger)
}

/// Starts the sessions after the first. One that does not start must not take the others down; it is reported, and the
/// next resume tries it again.
fn start_others(ctx: &LaunchContext<'_>, instance: &Instance, report: &mut LaunchReport) {
    let Some((_, others)) = instance.sessions.split_first().filter(|(_, others)| !others.is_empty()) else {
        return;
    };
    let mut capsule = match Connection::connect(&connect::instance_dir(ctx.store, instance.id), TO_START) {
        Ok(capsule) => capsule,
        Err(why) => {
            let missing = others.iter().map(|session| NotStarted::new(session, &why));
            return report.not_started.extend(missing);
        }
    };
    for session in others {
        let spec = spec(ctx, instance, session, &mut report.warnings);
        let asked = spec.map_err(|e| e.to_string()).and_then(|spec| {
            let spawn = Spawn { spec: Box::new(spec), focus: false };
            capsule.call(&spawn, TO_START).map_err(|e| e.to_string())
        });
        if let Err(why) = asked {
            report.not_started.push(NotStarted::new(session, why));
        }
    }
}

fn keeper_config(ctx: &LaunchContext<'_>, instance: &Instance, instance_dir: &Path) -> Config {
    let own = |words: &[&str]| -> Vec<OsText> {
        std::iter::once(OWN_IMAGE.into()).chain(words.iter().map(Into::into)).collect()
    };
    let mut config = Config::new(instance_dir.as_os_str(), instance.generation, own(&["capsule", "mux"]));
    config.on_exit = own(&["capsule", "finish", instance.id.as_str()]);
    config.options = serde_json::to_value(mux_options(ctx.settings, instance)).unwrap_or_default();
    config
}

fn mux_options(settings: &Settings, instance: &Instance) -> MuxOptions {
    let name = instance.name.clone().unwrap_or_else(|| instance.id.display_name());
    MuxOptions { name, ..mux_settings(settings) }
}

/// What the settings say about every mux.
pub(super) fn mux_settings(settings: &Settings) -> MuxOptions {
    let allowed = |permission: Permission| permission == Permission::Allow;
    MuxOptions {
        scrollback: usize::try_from(settings.scrollback).unwrap_or(usize::MAX),
        journal_bytes: match settings.journal {
            JournalLimit::Off => 0,
            JournalLimit::Newest(size) => size.bytes(),
        },
        prefix: settings.prefix,
        status_bar: settings.status_bar,
        clipboard: allowed(settings.terminal.clipboard),
        links: allowed(settings.terminal.links),
        notifications: allowed(settings.terminal.notifications),
        keep_awake: settings.keep_awake,
        ..MuxOptions::default()
    }
}
