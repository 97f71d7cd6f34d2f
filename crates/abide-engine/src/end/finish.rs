//! The one finaliser: what becomes of an instance whose processes have ended, and how one is removed.
//!
//! Every path that ends an instance leads here, and nothing depends on the foreground process staying alive: each step
//! can be repeated, and the next process completes what a crash interrupted.

use std::time::{Duration, Instant};

use abide_keeper::OperatorStop;
use abide_model::decide::{self, EndFacts, Leave, Stopped};
use abide_model::evidence::Verdict;
use abide_model::session::SessionExit;
use abide_model::status::{Ending, Gone, Kept};
use abide_model::{
    Decided, Extra, Instance, InstanceId, Liveness, Policy, Session, SessionId, Status, StatusEvent,
    Timestamp,
};
use abide_places::place::TakeDown;
use abide_store::outcomes::{self, InstanceOutcome};
use abide_store::{InstanceLock, Store};
use abide_sys::{clock, crash, host};
use abide_wire::exit_record::{ExitRecord, StopReason};
use abide_wire::given_names::given_names;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::session::ProcessExit;
use abide_wire::supervisor_lock::{InstanceClaim, remove_stale_socket};

use crate::conversation::current::{self, LookDepth};
use crate::end::session_end;
use crate::error::EngineError;
use crate::running::containers::{self, ContainerEnd};
use crate::running::processes::{self, SessionProcesses};
use crate::running::{connect, daemons, liveness};
use crate::start::startup_check;
use crate::substrate::Survey;
use crate::trees;

/// How long a supervisor that has written down its end may take to be gone.
const TO_RELEASE_LOCK: Duration = Duration::from_secs(5);

/// What became of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishOutcome {
    /// It is still running.
    Running,
    /// It is kept, for this reason.
    Kept(String),
    Removed {
        because: String,
        /// What stays behind elsewhere, and how to remove it.
        left: Vec<String>,
    },
}

/// Decides about the instance `id`, whose capsule has stopped, and carries the decision out. What fails is tried again by
/// the next look.
///
/// `policy` is the scope's; `None` where the configuration could not be read, which counts as `keep`.
pub fn finish(store: &Store, id: InstanceId, policy: Option<Policy>) -> Result<FinishOutcome, EngineError> {
    // Without it others look at the trees a second time, which does no harm.
    let _claim = InstanceClaim::finishing(&connect::instance_dir(store, id));
    let finished = decide_and_carry_out(store, id, policy);
    match &finished {
        // Another process is at it, and knows better.
        Err(EngineError::Store(abide_store::StoreError::Locked { .. })) => {}
        Err(error) => note_obstacle(store, id, &error.to_string()),
        Ok(_) => {}
    }
    finished
}

/// Writes down what is in the way of a removal, so that every list shows it.
fn note_obstacle(store: &Store, id: InstanceId, obstacle: &str) {
    let is_new = |instance: &Instance| {
        matches!(instance.status.status, Status::Ending(_))
            && instance.status.obstacle.as_deref() != Some(obstacle)
    };
    if !store.read(id).is_ok_and(|instance| is_new(&instance)) {
        return;
    }
    let noted = store.update(id, |instance| -> Result<(), EngineError> {
        if is_new(instance) {
            instance.status.obstacle = Some(obstacle.to_owned());
        }
        Ok(())
    });
    if let Err(error) = noted {
        tracing::warn!(%id, "what is in the way of its removal could not be written down: {error}");
    }
}

/// Takes back the removal of the instance `id`, which was not carried out, and gives it as it is then: what was not ended
/// yet runs on. Its trees are made known to git again, as far as they were given up.
pub fn take_back(store: &Store, id: InstanceId, progress: &dyn Fn(&str)) -> Result<Instance, EngineError> {
    let instance = store.update(id, |instance| -> Result<Instance, EngineError> {
        let judged = liveness::of(store, instance);
        liveness::require_known(id, &judged)?;
        let event = StatusEvent::RemovalTakenBack { runs: judged.decision == Liveness::Alive };
        instance.apply(&event, "the operator cancelled its removal", clock::now())?;
        Ok(instance.clone())
    })?;
    trees::reconnect(store, &instance, progress)
        .map_err(|problem| EngineError::Other(format!("{} is kept, but {problem}", id.display_name())))
}

fn decide_and_carry_out(
    store: &Store,
    id: InstanceId,
    policy: Option<Policy>,
) -> Result<FinishOutcome, EngineError> {
    let instance_dir = connect::instance_dir(store, id);
    if !is_over(store, &store.read(id)?)? {
        return Ok(FinishOutcome::Running);
    }
    let (mut lock, record, verdict, end) = looked_at(store, id, &instance_dir, policy)?;
    let mut instance = lock.instance().clone();
    if let Some(record) = &record {
        note_sessions(&mut instance, record);
        session_end::note(&instance_dir, &mut instance, record);
        note_names(&mut instance, &instance_dir);
        daemons::note_ended(&mut instance, record);
        startup_check::note(&instance_dir, &mut instance, record);
    }
    let mut decided = false;
    if instance.status.status == Status::Active {
        // It may have been started again while its trees were looked at.
        if !is_over(store, &instance)? {
            return Ok(FinishOutcome::Running);
        }
        let (mut event, mut because) = decision_on(&instance, record.as_ref(), policy, verdict);
        because = end.what.unwrap_or(because);
        if let (StatusEvent::LeftFinishing(_), Some(guest)) = (&event, trees::guest(store, id)) {
            (event, because) = (StatusEvent::LeftKeeping(Kept::Unknown), guest);
        }
        tracing::info!(%id, "finish: {because}");
        // Whatever the table refuses stays as it is, and is looked at again below.
        decided = instance.apply(&event, &because, clock::now()).unwrap_or(false);
        if SessionProcesses::look().leftovers(id, &instance_dir).is_empty() {
            instance.started_on = None;
        }
    }
    if instance != *lock.instance() {
        lock.write(&instance)?;
    }
    crash::point("engine.finish.stamped");
    let because = instance.status.because.clone();
    match instance.status.status {
        Status::Ending(_) => {
            stop_processes(store, &instance_dir, &instance)?;
            // The container itself stays until the trash lets go of the instance.
            containers::take_down(store, &instance, TakeDown::Free)?;
            crash::point("engine.finish.stopped");
            // What may be work stays in the trash for its whole time.
            lock.note_work(trees::may_hold_work(store, &instance))?;
            let left = trees::release(store, &instance).map_err(|problem| {
                EngineError::Other(format!("{} cannot be removed yet: {problem}", id.display_name()))
            })?;
            left.iter().for_each(|left| tracing::warn!(%id, "{left}"));
            crash::point("engine.finish.released");
            let name = lock.trash(clock::now())?;
            crash::point("engine.finish.trashed");
            tracing::info!(%id, %name, "removed: {because}");
            note_outcome(store, &instance, InstanceOutcome::Removed, &because);
            Ok(FinishOutcome::Removed { because, left })
        }
        Status::Restorable(_) => {
            // Not before the decision is on disk: without its socket a run that goes on could not be reached.
            if let Err(error) = remove_stale_socket(&instance_dir) {
                tracing::warn!(%id, "the socket of a dead capsule cannot be removed: {error}");
            }
            // Several processes handle one end: the keeper's hook, and the process that asked it to stop.
            if decided {
                if let Err(error) = containers::take_down(store, &instance, TakeDown::Free) {
                    tracing::warn!(%id, "what only a running container needs is left to the next sweep: {error}");
                }
                note_outcome(store, &instance, InstanceOutcome::Kept, &because);
            }
            Ok(FinishOutcome::Kept(because))
        }
        _ => Ok(FinishOutcome::Running),
    }
}

/// Takes the lock of the instance `id`, with its exit record and what its trees hold. What takes its time is done before:
/// others do not wait that long, and what agents said last is bound under a lock that comes first.
fn looked_at(
    store: &Store,
    id: InstanceId,
    instance_dir: &InstanceDir,
    policy: Option<Policy>,
) -> Result<(InstanceLock, Option<ExitRecord>, Verdict, ContainerEnd), EngineError> {
    loop {
        let active = store.read(id).ok().filter(|instance| instance.status.status == Status::Active);
        let seen = active.map(|instance| current::follow(store, instance, None, LookDepth::Brief));
        let end =
            seen.as_ref().map_or(Ok(ContainerEnd::default()), |seen| containers::end_of(store, seen))?;
        let believed = |record: ExitRecord, instance: &Instance| match instance.recipe.container {
            Some(_) => ExitRecord { reason: end.reason, ..record },
            None => record,
        };
        let record_of =
            |instance: &Instance| record_of(instance_dir, instance).map(|record| believed(record, instance));
        let record = seen.as_ref().and_then(record_of);
        let verdict = seen.map_or(Verdict::Unknown, |i| verdict(store, &i, record.as_ref(), policy));
        let lock = store.lock(id)?;
        let now = record_of(lock.instance());
        // One that has ended only since was not looked at.
        if now == record || lock.instance().status.status != Status::Active {
            return Ok((lock, now, verdict, end));
        }
    }
}

/// The exit record of the last run of `instance`.
fn record_of(instance_dir: &InstanceDir, instance: &Instance) -> Option<ExitRecord> {
    ExitRecord::read(instance_dir).ok().flatten().filter(|record| record.generation == instance.generation)
}

/// `instance` as it is: one that the operator stopped is not active, even while that cannot be written down.
pub fn as_it_is(store: &Store, instance: Instance) -> Instance {
    let instance_dir = connect::instance_dir(store, instance.id);
    let was_stopped = instance.status.status == Status::Active
        && record_of(&instance_dir, &instance)
            .is_some_and(|record| record.reason == Some(StopReason::Operator));
    let mut stopped = instance.clone();
    let because = "the operator stopped it, but that could not be recorded; the next `abide ls` tries again";
    let event = StatusEvent::CapsuleGone(Gone::Stopped);
    match was_stopped && stopped.apply(&event, because, clock::now()).is_ok() {
        true => stopped,
        false => instance,
    }
}

/// What the trees of `instance` hold, if that decides what becomes of it: only one policy asks what would be lost.
fn verdict(
    store: &Store,
    instance: &Instance,
    record: Option<&ExitRecord>,
    policy: Option<Policy>,
) -> Verdict {
    let ended = record.is_some_and(|record| record.reason == Some(StopReason::LastSessionEnded));
    match instance.policy.or(policy) {
        Some(Policy::Ask) if ended => trees::verdict(store, instance),
        _ => Verdict::Unknown,
    }
}

/// Whether the run of an active instance is over; an error where that is not known. What is not active has no run.
fn is_over(store: &Store, instance: &Instance) -> Result<bool, EngineError> {
    if instance.status.status != Status::Active {
        return Ok(true);
    }
    let deadline = Instant::now() + TO_RELEASE_LOCK;
    loop {
        let judged = liveness::of(store, instance);
        liveness::require_known(instance.id, &judged)?;
        // One that has written down its end lets go of its lock in a moment.
        let leaving = || {
            record_of(&connect::instance_dir(store, instance.id), instance)
                .is_some_and(|r| r.reason.is_some())
        };
        match judged.decision {
            Liveness::Alive if leaving() && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            decision => return Ok(decision == Liveness::Dead),
        }
    }
}

/// What the exit record of an active instance means for it, whose run is over.
fn decision_on(
    instance: &Instance,
    record: Option<&ExitRecord>,
    policy: Option<Policy>,
    verdict: Verdict,
) -> (StatusEvent, String) {
    let stopped = match record.and_then(|record| record.reason) {
        Some(StopReason::LastSessionEnded) => {
            // There is no decision to remove it.
            if let Some(why) = instance.sessions.iter().find_map(Session::cut_short) {
                return (StatusEvent::CapsuleGone(Gone::Crashed), why);
            }
            Stopped::LastSessionEnded
        }
        Some(StopReason::Sigterm) => Stopped::Signalled,
        Some(StopReason::Fatal) => Stopped::Fatal,
        Some(StopReason::Operator) => {
            return (StatusEvent::CapsuleGone(Gone::Stopped), "the operator stopped it".to_owned());
        }
        None => return gone_without_a_word(instance, record),
    };
    let policy = instance.policy.or(policy).unwrap_or(Policy::Keep);
    let Decided { decision, reason } = decide::leave(&EndFacts { policy, stopped, verdict });
    let event = match decision {
        Leave::Finish(why) => StatusEvent::LeftFinishing(why),
        Leave::Keep(kept) => StatusEvent::LeftKeeping(kept),
    };
    (event, reason.into_owned())
}

/// What held the sessions died without writing why.
fn gone_without_a_word(instance: &Instance, record: Option<&ExitRecord>) -> (StatusEvent, String) {
    let recorded = || record.map(|record| record.keeper.boot.clone());
    let boot = instance.started_on.as_ref().map(|start| start.boot.clone()).or_else(recorded);
    match (boot, record) {
        (Some(boot), _) if boot != host::boot_id() => {
            (StatusEvent::CapsuleGone(Gone::HostLost), "the machine was restarted".to_owned())
        }
        (_, Some(_)) => (StatusEvent::CapsuleGone(Gone::Crashed), "its supervisor died".to_owned()),
        (_, None) => (StatusEvent::CapsuleGone(Gone::Crashed), "its supervisor left no record".to_owned()),
    }
}

/// Takes over which sessions the keeper wrote down that were started from inside.
fn note_sessions(instance: &mut Instance, record: &ExitRecord) {
    for recorded in &record.sessions {
        let id = recorded.id;
        if instance.sessions.iter().all(|session| session.id != id) {
            instance.last_session = instance.last_session.max(id.0);
            let argv = recorded.argv.iter().map(|word| word.as_os_str().to_string_lossy().into_owned());
            let (name, cwd) = (recorded.name.clone(), recorded.cwd.as_path().to_owned());
            let created = recorded.started_ms.map_or_else(clock::now, moment);
            instance.sessions.push(Session::new(id, name, argv.collect(), cwd, created));
        }
    }
}

/// Takes over the names that the operator gave to sessions while they ran.
fn note_names(instance: &mut Instance, instance_dir: &InstanceDir) {
    for (id, name) in given_names(instance_dir) {
        let session = instance.sessions.iter_mut().find(|session| session.id == id);
        if let Some(session) = session.filter(|_| !name.is_empty()) {
            session.name = name;
        }
    }
}

/// Notes that the operator looks at session `id` of the instance. One that was started from inside is written down with it.
pub fn note_visit(store: &Store, instance: InstanceId, id: SessionId) -> Result<(), EngineError> {
    let instance_dir = connect::instance_dir(store, instance);
    store.update(instance, |instance| -> Result<(), EngineError> {
        if let Some(record) = record_of(&instance_dir, instance) {
            note_sessions(instance, &record);
        }
        if let Some(session) = instance.sessions.iter_mut().find(|session| session.id == id) {
            session.attached = Some(clock::now());
        }
        Ok(())
    })
}

pub(crate) fn moment(ms: u64) -> Timestamp {
    Timestamp(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// The end of a session that ended by itself.
pub(crate) fn exit_of(exit: ProcessExit, at: Timestamp) -> SessionExit {
    let (code, signal) = match exit {
        ProcessExit::Code(code) => (Some(code), None),
        ProcessExit::Signal(signal) => (None, Some(signal)),
    };
    SessionExit { code, signal, stopped: false, at, why: None, cut: None, extra: Extra::new() }
}

/// Makes sure that nothing runs of what is about to be removed.
fn stop_processes(store: &Store, instance_dir: &InstanceDir, instance: &Instance) -> Result<(), EngineError> {
    let held = Survey::default().of(store, instance);
    let judged = liveness::judged(store, instance, held.as_ref());
    liveness::require_known(instance.id, &judged)?;
    if judged.decision == Liveness::Alive && !held.stop(OperatorStop::Remove) {
        return Err(EngineError::StillRuns(instance.id));
    }
    processes::end_leftovers(instance_dir, instance.id).map(drop)
}

fn note_outcome(store: &Store, instance: &Instance, outcome: InstanceOutcome, reason: &str) {
    let line = outcomes::OutcomeRecord {
        at: clock::now(),
        id: instance.id,
        scope: instance.scope.short_name(),
        role: instance.role.clone(),
        outcome,
        reason: reason.to_owned(),
        decided_by: instance.status.decided_by,
        extra: daemons::of_outcome(instance),
    };
    if let Err(error) = outcomes::append(store, &line) {
        tracing::warn!(id = %instance.id, "the outcome could not be written down: {error}");
    }
}

/// Notes that the operator, who saw the kept instance as `seen`, chose to keep it. A later run is not touched.
pub fn keep(store: &Store, seen: &Instance) -> Result<(), EngineError> {
    let kept = store.update(seen.id, |instance| -> Result<Option<Instance>, EngineError> {
        let same = instance.generation == seen.generation;
        Ok((same && instance.keep_by_choice(clock::now())).then(|| instance.clone()))
    })?;
    if let Some(kept) = kept {
        note_outcome(store, &kept, InstanceOutcome::Kept, &kept.status.because);
    }
    Ok(())
}

/// Removes the instance because the operator, who saw it as `seen`, or the policy wants it so.
pub fn discard(
    store: &Store,
    seen: &Instance,
    why: Ending,
    because: &str,
) -> Result<FinishOutcome, EngineError> {
    if let Some(guest) = trees::guest_of(store, seen) {
        let name = seen.id.display_name();
        return Err(EngineError::Other(format!("{name} cannot be removed: {guest}; eject that first")));
    }
    containers::require_answer(store, seen)?;
    store.update(seen.id, |instance| -> Result<(), EngineError> {
        liveness::require_known(instance.id, &liveness::of(store, instance))?;
        // A decision about an earlier run did not consider the work of a later one.
        if instance.generation != seen.generation {
            let name = seen.id.display_name();
            return Err(EngineError::Other(format!(
                "{name} was started again in the meantime; check it and decide again"
            )));
        }
        instance.apply(&StatusEvent::Discarded(why), because, clock::now())?;
        Ok(())
    })?;
    finish(store, seen.id, None)
}
