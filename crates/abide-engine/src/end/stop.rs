//! `abide stop`: ending what runs of an instance, and keeping the rest.

use std::time::{Duration, Instant};

use abide_config::ConfigDir;
use abide_keeper::OperatorStop;
use abide_model::status::Gone;
use abide_model::{Instance, InstanceId, Liveness, Status, StatusEvent};
use abide_store::Store;
use abide_sys::clock;

use crate::conversation::current;
use crate::end::finish::{self, FinishOutcome};
use crate::error::EngineError;
use crate::running::{connect, liveness, processes};
use crate::{reconcile, substrate};

/// How long a start may take to be over, or to notice that its set-up command has ended.
const TO_START: Duration = Duration::from_secs(10);

/// Ends everything that runs of the instance `id`; what became of it then.
pub fn stop(store: &Store, config: &ConfigDir, id: InstanceId) -> Result<FinishOutcome, EngineError> {
    let Some(mut instance) = after_its_start(store, config, id)? else {
        let because = "its start was interrupted, and nothing in it was at risk".to_owned();
        return Ok(FinishOutcome::Removed { because, left: Vec::new() });
    };
    if matches!(instance.status.status, Status::Ending(_)) {
        instance = finish::take_back(store, id, &|notice| tracing::info!(%id, "{notice}"))?;
        if instance.status.status != Status::Active {
            return Ok(FinishOutcome::Kept("its removal was cancelled".to_owned()));
        }
    }
    let judged = liveness::of(store, &instance);
    liveness::require_known(id, &judged)?;
    let instance_dir = connect::instance_dir(store, id);
    if judged.decision == Liveness::Dead {
        processes::end_leftovers(&instance_dir, id)?;
    }
    current::look_closely(store, &instance);
    if !substrate::of(store, id).stop(OperatorStop::Stop) {
        return Err(EngineError::StillRuns(id));
    }
    // What the set-up command left is not below the supervisor, and does not end with it.
    processes::end_leftovers(&instance_dir, id)?;
    match finish::finish(store, id, reconcile::policy(config, &instance)) {
        Ok(FinishOutcome::Running) => Err(EngineError::StillRuns(id)),
        Err(EngineError::Store(error)) if error.is_full() => Err(EngineError::EndedUnwritten { id, error }),
        Ok(FinishOutcome::Kept(because)) if judged.decision == Liveness::Dead => {
            note_nothing_left(store, id)?;
            Ok(FinishOutcome::Kept(because))
        }
        ended => ended,
    }
}

/// Writes down that nothing is left of the last run of the kept instance `id`, whose supervisor died: a look from another
/// PID namespace could not see that.
fn note_nothing_left(store: &Store, id: InstanceId) -> Result<(), EngineError> {
    store.update(id, |instance| -> Result<(), EngineError> {
        if matches!(instance.status.status, Status::Restorable(_)) {
            instance.started_on = None;
        }
        Ok(())
    })
}

/// Takes the operator's word that nothing of the instance `id` runs anywhere, where that cannot be determined.
pub fn presume_dead(store: &Store, id: InstanceId) -> Result<(), EngineError> {
    store.update(id, |instance| -> Result<(), EngineError> {
        let judged = match &instance.status.status {
            Status::Starting { by, .. } => liveness::of_starter(store, instance, by),
            _ => liveness::of(store, instance),
        };
        if judged.decision != Liveness::Unknown {
            let (name, alive) = (id.display_name(), judged.decision);
            return Err(EngineError::Other(format!(
                "{name} is {alive}: {}; `abide stop {id}` stops it",
                judged.reason
            )));
        }
        let because = "the operator confirmed that it does not run anywhere";
        instance.apply(&StatusEvent::CapsuleGone(Gone::HostLost), because, clock::now())?;
        instance.started_on = None;
        Ok(())
    })
}

/// The instance once no process is starting it any more; `None` if it is gone then. Its set-up command, which may take long, is
/// ended, whereupon the start is given up.
fn after_its_start(
    store: &Store,
    config: &ConfigDir,
    id: InstanceId,
) -> Result<Option<Instance>, EngineError> {
    let deadline = Instant::now() + TO_START;
    let mut instance = store.read(id)?;
    loop {
        let Status::Starting { by, .. } = &instance.status.status else { return Ok(Some(instance)) };
        if Instant::now() > deadline {
            let starter = liveness::of_starter(store, &instance, by);
            liveness::require_known(id, &starter)?;
            let (name, by) = (id.display_name(), by.pid);
            return Err(EngineError::Other(match starter.decision {
                Liveness::Dead => format!(
                    "{name} was left half started by process {by}, which is gone, and cannot be cleaned up; \
                     `abide doctor` shows what is wrong with the disk"
                ),
                _ => format!(
                    "{name} is still being started by process {by}; stop it when it is up, or end that process"
                ),
            }));
        }
        if liveness::of_starter(store, &instance, by).decision == Liveness::Alive {
            processes::end_set_up(by.pid, id);
        }
        let Some(now) = reconcile::after_start(store, config, instance)? else { return Ok(None) };
        instance = now;
        std::thread::sleep(Duration::from_millis(50));
    }
}
