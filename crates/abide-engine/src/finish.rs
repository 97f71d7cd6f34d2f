//! The one finaliser: what becomes of an instance whose processes have ended, and how one is removed.
//!
//! Every path that ends an instance leads here, and nothing depends on the foreground process staying alive: each step
//! can be repeated, and whoever comes next finishes what a crash cut short.

use std::path::PathBuf;

use abide_capsule::keeper::{ExitRecord, StopReason};
use abide_capsule::session::Exit as ProcessExit;
use abide_capsule::unit::Unit;
use abide_model::decide::{self, Leave, Leaving, Stopped};
use abide_model::evidence::Verdict;
use abide_model::session::Exit;
use abide_model::status::{Ending, Gone};
use abide_model::{
    Decided, Event, Extra, Instance, InstanceId, Policy, Session, SessionId, Status, Timestamp,
};
use abide_store::{Error, Store, outcomes};
use abide_sys::{clock, crash, process};

use crate::follow::{self, Look};
use crate::trees::{self, TreeError};
use crate::{boot, live, processes, substrate};

/// The labelled points of this module.
pub const CRASH_POINTS: &[&str] =
    &["engine.finish.stamped", "engine.finish.stopped", "engine.finish.released", "engine.finish.trashed"];

/// What became of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is still running.
    Running,
    /// It is kept, for this reason.
    Kept(String),
    /// It was removed, for this reason.
    Removed(String),
}

/// Why an instance could not be brought to its end. The next look tries again.
#[derive(Debug, thiserror::Error)]
pub enum FinishError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] Error),
    /// It does not stop, so everything stays where it is.
    #[error(
        "ab-{0} does not stop, and is not removed while it runs; `abide explain {0}` names its processes"
    )]
    StillRuns(InstanceId),
    /// A tree can not be given up, so everything stays where it is.
    #[error("{} can not be removed yet: {problem}", .id.display_name())]
    Tree {
        /// The instance.
        id: InstanceId,
        /// What went wrong.
        problem: TreeError,
    },
}

/// Decides about the instance `id`, whose capsule has stopped, and carries the decision out.
///
/// `policy` is the scope's; `None` where the configuration could not be read, which counts as `keep`.
pub fn finish(store: &Store, id: InstanceId, policy: Option<Policy>) -> Result<Outcome, FinishError> {
    let unit = live::unit(store, id);
    // Before the lock: what agents said last is bound under a lock that comes first.
    if let Ok(instance) = store.read(id)
        && instance.status.status == Status::Active
    {
        follow::follow(store, instance, None, Look::Brief);
    }
    let mut lock = store.lock(id)?;
    let mut instance = lock.instance().clone();
    let record =
        ExitRecord::read(&unit).ok().flatten().filter(|record| record.generation == instance.generation);
    if let Some(record) = &record {
        note_sessions(&mut instance, record);
        boot::note(&unit, &mut instance, record);
    }
    let mut decided = false;
    if instance.status.status == Status::Active {
        let Some((event, because)) = verdict_on(store, &instance, &unit, record.as_ref(), policy) else {
            return Ok(Outcome::Running);
        };
        tracing::info!(%id, "finish: {because}");
        // A keeper that was killed could not take its socket with it. Before the decision is written down: nobody looks
        // at what a kept instance still has there.
        let _ = std::fs::remove_file(unit.socket());
        // Whatever the table refuses stays as it is, and is looked at again below.
        decided = instance.apply(&event, &because, clock::now()).unwrap_or(false);
    }
    if instance != *lock.instance() {
        lock.write(&instance)?;
    }
    crash::point("engine.finish.stamped");
    let because = instance.status.because.clone();
    match instance.status.status {
        Status::Ending(_) => {
            if !stop_processes(&unit, id) {
                return Err(FinishError::StillRuns(id));
            }
            crash::point("engine.finish.stopped");
            trees::release(store, &instance).map_err(|problem| FinishError::Tree { id, problem })?;
            crash::point("engine.finish.released");
            let name = lock.trash(clock::now())?;
            crash::point("engine.finish.trashed");
            tracing::info!(%id, %name, "removed: {because}");
            note_outcome(store, &instance, "removed", &because);
            Ok(Outcome::Removed(because))
        }
        Status::Restorable(_) => {
            // Several come here for one end: the hook of the keeper, and whoever asked it to stop.
            if decided {
                note_outcome(store, &instance, "kept", &because);
            }
            Ok(Outcome::Kept(because))
        }
        _ => Ok(Outcome::Running),
    }
}

/// What an active instance's exit record means for it; `None` while its capsule lives, or while nobody can tell.
fn verdict_on(
    store: &Store,
    instance: &Instance,
    unit: &Unit,
    record: Option<&ExitRecord>,
    policy: Option<Policy>,
) -> Option<(Event, String)> {
    let Some(record) = record else {
        return Some((Event::CapsuleGone(Gone::Crashed), "its supervisor left no record".to_owned()));
    };
    let stopped = match record.reason {
        Some(StopReason::LastSessionEnded) => {
            // Nobody has decided that this is the end of it.
            if let Some(why) = instance.sessions.iter().find_map(Session::cut_short) {
                return Some((Event::CapsuleGone(Gone::Crashed), why));
            }
            Stopped::LastSessionEnded
        }
        Some(StopReason::Sigterm) => Stopped::Signalled,
        Some(StopReason::Fatal) => Stopped::Fatal,
        Some(StopReason::Operator) => {
            return Some((Event::CapsuleGone(Gone::Stopped), "the operator stopped it".to_owned()));
        }
        None => return gone_without_a_word(unit, record),
    };
    let policy = instance.policy.or(policy).unwrap_or(Policy::Keep);
    // Only one policy asks what would be lost, and finding out may take a while.
    let verdict = if policy == Policy::Ask { trees::verdict(store, instance) } else { Verdict::Unknown };
    let Decided { decision, reason } = decide::leave(&Leaving { policy, stopped, verdict });
    let event = match decision {
        Leave::Finish(why) => Event::LeftFinishing(why),
        Leave::Keep(kept) => Event::LeftKeeping(kept),
    };
    Some((event, reason.into_owned()))
}

/// The record says `running`: what holds the sessions lives, or died without writing.
fn gone_without_a_word(unit: &Unit, record: &ExitRecord) -> Option<(Event, String)> {
    match substrate::at(unit.clone()).lives() {
        Some(true) | None => None,
        Some(false) if record.keeper.boot != process::boot_id() => {
            Some((Event::CapsuleGone(Gone::HostLost), "the machine was started anew".to_owned()))
        }
        Some(false) => Some((Event::CapsuleGone(Gone::Crashed), "its supervisor died".to_owned())),
    }
}

/// Takes over what the keeper wrote down: how sessions ended, and which were started from inside.
fn note_sessions(instance: &mut Instance, record: &ExitRecord) {
    for recorded in &record.sessions {
        let Ok(id) = recorded.id.as_str().parse::<SessionId>() else { continue };
        if instance.sessions.iter().all(|session| session.id != id) {
            instance.last_session = instance.last_session.max(id.0);
            let argv = recorded.argv.iter().map(|word| word.as_os_str().to_string_lossy().into_owned());
            let cwd = recorded.cwd.as_path().to_owned();
            instance.sessions.push(started_inside(id, recorded.name.clone(), argv.collect(), cwd));
        }
        let Some(session) = instance.sessions.iter_mut().find(|session| session.id == id) else { continue };
        session.exit = recorded.exit.map(|exit| exit_of(exit, recorded.ended_ms, recorded.stopped));
    }
}

/// A session that was not loaded but opened beside another.
pub(crate) fn started_inside(id: SessionId, name: String, argv: Vec<String>, cwd: PathBuf) -> Session {
    Session {
        id,
        name,
        agent: None,
        argv,
        cwd,
        generation: 1,
        setup: None,
        label: None,
        conversation: None,
        parked: Vec::new(),
        created: clock::now(),
        attached: None,
        exit: None,
        extra: Extra::new(),
    }
}

pub(crate) fn exit_of(exit: ProcessExit, ended_ms: Option<u64>, stopped: bool) -> Exit {
    let (code, signal) = match exit {
        ProcessExit::Code(code) => (Some(code), None),
        ProcessExit::Signal(signal) => (None, Some(signal)),
    };
    let at = ended_ms.and_then(|ms| i64::try_from(ms).ok()).map_or_else(clock::now, Timestamp);
    Exit { code, signal, stopped, at, why: None, extra: Extra::new() }
}

/// Makes sure that nothing runs of what is about to be removed; whether that is so.
fn stop_processes(unit: &Unit, id: InstanceId) -> bool {
    let held = substrate::at(unit.clone());
    let stopped = held.lives() == Some(false) || held.stop("it is being removed");
    if stopped {
        processes::end_leftovers(id);
    }
    stopped
}

fn note_outcome(store: &Store, instance: &Instance, outcome: &str, reason: &str) {
    let line = outcomes::Outcome {
        at: clock::now(),
        id: instance.id,
        scope: instance.scope.short_name(),
        role: instance.role.clone(),
        outcome: outcome.to_owned(),
        reason: reason.to_owned(),
        extra: Extra::new(),
    };
    if let Err(error) = outcomes::append(store, &line) {
        tracing::warn!(id = %instance.id, "the outcome could not be written down: {error}");
    }
}

/// Clears up after a start that failed: nothing of a first start that holds no work is left behind, unless `keep` says
/// that it is worth coming back to.
pub fn start_failed(store: &Store, id: InstanceId, why: &str, keep: bool) {
    let cleared = store.update(id, |instance| -> Result<(), Error> {
        let event = match trees::verdict(store, instance) {
            Verdict::Clean if !keep => Event::StarterDied { at_risk: false },
            _ => Event::SetupFailed,
        };
        let _ = instance.apply(&event, &format!("the start failed: {why}"), clock::now());
        Ok(())
    });
    let cleared = cleared.map_err(FinishError::from);
    if let Err(error) = cleared.and_then(|()| finish(store, id, None).map(drop)) {
        tracing::warn!(%id, "could not clear up after a failed start: {error}");
    }
}

/// Removes the instance because the operator, who saw it as `seen`, or the policy wants it so.
pub fn discard(store: &Store, seen: &Instance, why: Ending, because: &str) -> Result<Outcome, DiscardError> {
    store.update(seen.id, |instance| -> Result<(), DiscardError> {
        // Whoever decided about an earlier run has not seen what was done in a later one.
        if instance.generation != seen.generation {
            return Err(DiscardError::StartedAgain(seen.id));
        }
        instance.apply(&Event::Discarded(why), because, clock::now())?;
        Ok(())
    })?;
    Ok(finish(store, seen.id, None)?)
}

/// Why an instance was not removed.
#[derive(Debug, thiserror::Error)]
pub enum DiscardError {
    /// Its status does not allow it.
    #[error(transparent)]
    Refused(#[from] abide_model::status::Refusal),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] Error),
    /// It was decided, and could not be carried out yet.
    #[error(transparent)]
    Finish(#[from] FinishError),
    /// It is not what was decided about any more.
    #[error("{} was started again meanwhile; look at it and decide anew", .0.display_name())]
    StartedAgain(InstanceId),
}
