//! Coming back: starting an instance again that is kept, and all of them after a crash or a reboot.

use std::time::Duration;

use abide_model::status::Refusal;
use abide_model::{Event, Instance, InstanceId, Status};
use abide_store::{Entry, Store};
use abide_sys::{clock, process};

use crate::live;
use crate::start::{self, StartError, Started, Surroundings};

/// How long after its start an instance is looked at again before it counts as up.
const SETTLE: Duration = Duration::from_millis(500);

/// After so many failures in a row nothing more is started: what fails them all will fail the rest too.
const BRAKE: usize = 3;

/// Why an instance did not come back. It is kept as it was.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// Its status does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] abide_store::Error),
    /// It did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It started and ended at once.
    #[error("it ended at once; `abide explain {0}` says what is known")]
    EndedAtOnce(InstanceId),
}

/// Brings a kept instance back: the same unit, the same tabs with their scrollback, the sessions that ran when it stopped.
pub fn resume(around: &Surroundings<'_>, id: InstanceId) -> Result<Started, ResumeError> {
    let instance = around.store.update(id, |instance| -> Result<Instance, ResumeError> {
        instance.apply(&Event::Resume { by: process::this() }, "resumed by the operator", clock::now())?;
        let coming_back: Vec<_> = instance.sessions_to_resume().iter().map(|session| session.id).collect();
        // A tab that had been closed stays closed.
        instance.sessions.retain(|session| coming_back.contains(&session.id));
        for session in &mut instance.sessions {
            session.exit = None;
            session.generation += 1;
        }
        Ok(instance.clone())
    })?;
    Ok(start::start(around, &instance)?)
}

/// The instances that a crash, a stop or a reboot took down, oldest first. What was kept on purpose is not among them.
pub fn interrupted(entries: &[Entry]) -> Vec<&Instance> {
    use abide_model::status::Kept;
    let lost = |status: &Status| {
        matches!(status, Status::Restorable(Kept::Crashed | Kept::Stopped | Kept::HostLost))
    };
    let sound = entries.iter().filter_map(|entry| match entry {
        Entry::Sound(instance) => Some(instance),
        Entry::Damaged { .. } => None,
    });
    sound.filter(|instance| lost(&instance.status.status)).collect()
}

/// Brings `ids` back one after the other, each looked at before the next is begun: all at once they would fight over
/// shared credentials. `told` hears how each one went. Returns how many were left out because too many had failed.
pub fn resume_all(
    around: &Surroundings<'_>,
    ids: &[InstanceId],
    mut told: impl FnMut(InstanceId, Result<(), ResumeError>),
) -> usize {
    let mut failures = 0;
    for (index, &id) in ids.iter().enumerate() {
        if failures >= BRAKE {
            return ids.len() - index;
        }
        let outcome = resume(around, id).and_then(|_| verify(around.store, id));
        failures = if outcome.is_ok() { 0 } else { failures + 1 };
        told(id, outcome);
    }
    0
}

/// Whether the instance is still up a moment after its start.
fn verify(store: &Store, id: InstanceId) -> Result<(), ResumeError> {
    std::thread::sleep(SETTLE);
    match live::status(&live::unit(store, id)) {
        Ok(status) if status.sessions.iter().any(|session| session.exit.is_none()) => Ok(()),
        _ => Err(ResumeError::EndedAtOnce(id)),
    }
}
