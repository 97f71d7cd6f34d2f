//! Coming back: starting an instance again that is kept, and all of them after a crash or a reboot.

use abide_agents::Fatal;
use abide_keeper::LaunchError;
use abide_model::brake::{Account, ResumeResult};
use abide_model::session_end::Cut;
use abide_model::{Instance, InstanceId, Liveness, Session, Status, StatusEvent};
use abide_store::{Store, StoreEntry};
use abide_sys::{clock, host, process};

use crate::conversation::begin;
use crate::conversation::current::{self, LookDepth};
use crate::end::finish;
use crate::error::EngineError;
use crate::running::{daemons, liveness};
use crate::start::launch::{self, LaunchContext, Started};
use crate::start::{moved, startup_check};

/// Brings a kept instance back: the same instance directory, the same tabs with their scrollback, the sessions that ran when it stopped.
pub fn resume(ctx: &LaunchContext<'_>, id: InstanceId) -> Result<Started, EngineError> {
    // What was reported in the last run counts for that run only.
    let before = ctx.store.read(id)?;
    let now = finish::as_it_is(ctx.store, before.clone());
    if now.status.status != before.status.status {
        return Err(EngineError::Other(format!("{}: {}", id.display_name(), now.status.because)));
    }
    if matches!(before.status.status, Status::Ending(_)) {
        (ctx.progress)(&format!("{} was being removed; the removal is cancelled", id.display_name()));
        finish::take_back(ctx.store, id, ctx.progress)?;
    }
    if let Some(missing) = moved::missing(ctx.store, &before) {
        return Err(EngineError::DirectoryMissing(missing));
    }
    let before = current::follow(ctx.store, before, None, LookDepth::Close);
    begin::refuse_open(ctx.store, &before)?;
    // Before it is written down that it starts: a look from another PID namespace goes by this alone.
    let claim = launch::claim(ctx.store, id)?;
    let instance = ctx.store.update(id, |instance| -> Result<Instance, EngineError> {
        refuse_running(ctx, instance)?;
        let resume = StatusEvent::Resume { by: process::this() };
        let refused = |why| EngineError::ResumeRefused { id, why };
        instance.apply(&resume, "resumed by the operator", clock::now()).map_err(refused)?;
        daemons::forget(instance);
        instance.started_on = Some(host::here().clone());
        instance.close_ended();
        for session in &mut instance.sessions {
            session.exit = None;
            session.generation += 1;
        }
        Ok(instance.clone())
    })?;
    let mut started = launch::start(ctx, &instance, claim)?;
    started.warnings.extend(instance.sessions.iter().filter_map(left_open));
    let was_astray = instance.sessions.iter().filter_map(Session::astray_notice);
    started.warnings.extend(was_astray.map(|notice| format!("in its last run, {notice}")));
    started.warnings.extend(instance.sessions.iter().filter_map(Session::below_notice));
    Ok(started)
}

/// What the operator should know of a session that was cut.
fn left_open(session: &Session) -> Option<String> {
    let interruption = session.interruption.as_ref()?;
    let advice = match interruption.cut {
        Cut::Turn | Cut::Question => {
            "; `abide resume --continue-turn` has the agent finish the turn, if it can"
        }
        Cut::Error => "",
    };
    Some(format!("when {} last ended, {interruption}{advice}", session.name))
}

/// Refuses to start beside a run that lives, or may live. What was taken for dead is seen to run by the next look.
fn refuse_running(ctx: &LaunchContext<'_>, instance: &Instance) -> Result<(), EngineError> {
    let is_kept = matches!(instance.status.status, Status::Restorable(_));
    if !is_kept && instance.status.status != Status::Active {
        return Ok(());
    }
    let judged = liveness::of(ctx.store, instance);
    liveness::require_known(instance.id, &judged)?;
    match judged.decision {
        Liveness::Alive if is_kept => Err(LaunchError::AlreadyRunning.into()),
        _ => Ok(()),
    }
}

/// The instances that a crash, a stop or a reboot took down, oldest first. What was kept on purpose is not among them.
pub fn interrupted(entries: &[StoreEntry]) -> Vec<&Instance> {
    use abide_model::status::Kept;
    let lost = |status: &Status| {
        matches!(status, Status::Restorable(Kept::Crashed | Kept::Stopped | Kept::HostLost))
    };
    entries.iter().filter_map(StoreEntry::sound).filter(|instance| lost(&instance.status.status)).collect()
}

/// What became of an instance that was to be brought back.
#[derive(Debug)]
pub enum Resumption {
    /// It was started, and came up.
    Back(Started),
    /// Another process had brought it back already, or is doing so.
    RunsAlready,
}

/// Brings the instance back and watches it come up. One after the other is brought back so: all at once they would fight
/// over shared credentials.
pub fn resume_watched(ctx: &LaunchContext<'_>, id: InstanceId) -> Result<Resumption, EngineError> {
    let mut started = match resume(ctx, id) {
        // Whatever refused it: a start of ours that failed would have left it as one that does not run.
        Err(_) if runs(ctx, id) => return Ok(Resumption::RunsAlready),
        started => started?,
    };
    startup_check::verify(ctx.store, id)?;
    started.warnings.extend(astray_notice(ctx.store, id));
    Ok(Resumption::Back(started))
}

/// What the operator should know of sessions that run in another conversation than their own.
pub fn astray_notice(store: &Store, id: InstanceId) -> Vec<String> {
    let instance = store.read(id);
    instance.iter().flat_map(|instance| &instance.sessions).filter_map(Session::astray_notice).collect()
}

fn runs(ctx: &LaunchContext<'_>, id: InstanceId) -> bool {
    let now = ctx.store.read(id).map(|instance| instance.status.status);
    matches!(now, Ok(Status::Active | Status::Starting { .. }))
}

/// How a resume of `instance` went, and for which accounts that counts: where one agent failed, only for that one's.
pub fn result_for<T>(instance: &Instance, outcome: &Result<T, EngineError>) -> (Vec<Account>, ResumeResult) {
    let all = Account::all_of(instance);
    match outcome {
        Ok(_) => (all, ResumeResult::Up),
        Err(EngineError::Boot(failure)) => {
            let failed = instance.sessions.iter().find(|session| session.name == failure.session);
            let result = match failure.fatal {
                Some(Fatal::Auth) => ResumeResult::NotLoggedIn,
                _ => ResumeResult::Failed,
            };
            (failed.and_then(Account::of).map_or(all, |account| vec![account]), result)
        }
        Err(_) => (all, ResumeResult::Failed),
    }
}
