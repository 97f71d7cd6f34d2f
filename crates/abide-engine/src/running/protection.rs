//! Whether what runs survives the next logout as things are now, and moving it where it does.

use abide_keeper::holds_others;
use abide_model::placement::{self, Exposure, Fate, Protection};
use abide_model::{InstanceId, Liveness, Pid, UnitMode};
use abide_places::host::scope::{ScopeOutcome, own_unit};
use abide_places::host::{Inspector, Login, move_instance, move_server};
use abide_store::Store;
use abide_sys::process;
use abide_wire::exit_record::ExitRecord;

use crate::running::connect;

/// How well one running instance is protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceProtection {
    /// The decision about it.
    pub decision: Protection,
    /// What the operator should know and do; `None` where nothing ends it.
    pub exposure: Option<Exposure>,
    supervisor: Pid,
    in_tmux: bool,
}

impl InstanceProtection {
    /// What to say about it where only what is in danger is named.
    pub fn danger(&self) -> Option<&Exposure> {
        let exposure = self.exposure.as_ref();
        exposure.filter(|_| matches!(self.decision.fate(), Fate::Lost | Fate::EndsWithService))
    }
}

/// Judges running instances. logind is asked at most once, however many they are.
pub struct Judge {
    mode: UnitMode,
    inspector: Inspector,
}

impl Judge {
    /// A judge of this login's instances, which are configured to be placed as `mode` says.
    pub fn here(mode: UnitMode) -> Self {
        Self { mode, inspector: Inspector::new(Login::here()) }
    }

    /// How well the instance `id` is protected; `None` while it does not run, as far as can be seen from here.
    pub fn judge(&self, store: &Store, id: InstanceId) -> Option<InstanceProtection> {
        let record = ExitRecord::read(&connect::instance_dir(store, id)).ok().flatten()?;
        if record.reason.is_some() || process::alive(&record.keeper) != Liveness::Alive {
            return None;
        }
        let facts = self.inspector.facts_of(record.keeper.pid);
        Some(InstanceProtection {
            decision: placement::protection(self.mode, &facts).decision,
            exposure: placement::exposure(self.mode, &facts),
            supervisor: record.keeper.pid,
            in_tmux: record.tmux.is_some(),
        })
    }
}

/// Moves the instance `id` where no logout ends it, if a move does that; gives its unit if it was moved.
pub fn protect(store: &Store, id: InstanceId, mode: UnitMode) -> Result<Option<String>, String> {
    let Some(found) = Judge::here(mode).judge(store, id) else { return Ok(None) };
    if !matches!(found.decision, Protection::Movable(_)) {
        return Ok(None);
    }
    let processes = || of_supervisor(found.supervisor);
    let moved = if found.in_tmux { move_server(&processes) } else { move_instance(id, &processes) };
    if let Err(why) = &moved {
        tracing::warn!(%id, "not moved: {why}");
    }
    let outcome = moved?;
    tracing::info!(%id, "{outcome}");
    note(store, id, &outcome);
    Ok(own_unit(found.supervisor))
}

/// The supervisor and everything that runs in its instance. Other instances that were started from inside stay where they
/// are.
fn of_supervisor(supervisor: Pid) -> Vec<Pid> {
    let below = process::descendants(supervisor, holds_others);
    let pids = below.into_iter().map(|stat| stat.pid);
    std::iter::once(supervisor).chain(pids).collect()
}

fn note(store: &Store, id: InstanceId, outcome: &ScopeOutcome) {
    let noted = store.update(id, |instance| -> Result<(), abide_store::StoreError> {
        instance.isolation = Some(outcome.to_string());
        Ok(())
    });
    if let Err(error) = noted {
        tracing::warn!(%id, "that it was moved could not be written down: {error}");
    }
}
