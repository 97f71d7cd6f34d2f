//! Clearing up after a start that failed.

use abide_model::evidence::Verdict;
use abide_model::{InstanceId, StatusEvent};
use abide_store::Store;
use abide_sys::clock;

use crate::end::finish::finish;
use crate::error::EngineError;
use crate::trees;

/// What becomes of a first start that failed and holds no work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedStart {
    /// It is worth coming back to.
    Keep,
    Remove,
}

/// Clears up after a start that failed. What holds work is kept in either case.
pub fn clear_up(store: &Store, id: InstanceId, why: &str, without_work: FailedStart) {
    let verdict = store.read(id).map_or(Verdict::Unknown, |instance| trees::verdict(store, &instance));
    let cleared = store.update(id, |instance| -> Result<(), EngineError> {
        let event = match verdict {
            Verdict::Clean if without_work == FailedStart::Remove => {
                StatusEvent::StarterDied { at_risk: false }
            }
            _ => StatusEvent::SetupFailed,
        };
        let _ = instance.apply(&event, &format!("the start failed: {why}"), clock::now());
        // It left no process, which a look from another PID namespace could not see.
        instance.started_on = None;
        Ok(())
    });
    if let Err(error) = cleared.and_then(|()| finish(store, id, None).map(drop)) {
        tracing::warn!(%id, "could not clear up after a failed start: {error}");
    }
}
