//! Whether an instance is alive: the one place that gathers what is known about it. [`abide_model::liveness`] decides.

use abide_model::liveness::{LivenessFacts, ProcessSight, RunEnd, SupervisorLock, liveness};
use abide_model::{Decided, HostIdentity, Instance, InstanceId, Liveness, ProcessIdentity, Status};
use abide_store::Store;
use abide_sys::{host, process};
use abide_wire::exit_record::ExitRecord;
use abide_wire::supervisor_lock::InstanceClaim;

use crate::error::EngineError;
use crate::running::connect;
use crate::substrate::{Substrate, Survey};

/// Whether the last run of `instance` is alive.
pub fn of(store: &Store, instance: &Instance) -> Decided<Liveness> {
    surveyed(store, instance, &Survey::default())
}

/// The same, with tmux servers asked once for all instances.
pub fn surveyed(store: &Store, instance: &Instance, survey: &Survey) -> Decided<Liveness> {
    judged(store, instance, survey.of(store, instance).as_ref())
}

/// Whether the run of `instance` that `held` is about is alive.
pub(crate) fn judged(store: &Store, instance: &Instance, held: &dyn Substrate) -> Decided<Liveness> {
    let lock = held.lock();
    let recorded = if instance.started_on.is_none() { recorded_start(store, instance) } else { None };
    match (&instance.status.status, instance.started_on.as_ref().or(recorded.as_ref())) {
        // Its end is decided already, and was seen by a process that could see it. A held lock contradicts that.
        (Status::Restorable(_) | Status::Ending(_), None) if lock == SupervisorLock::Free => {
            Decided::new(Liveness::Dead, "no run is recorded")
        }
        (_, start) => decide(store, lock, start, || run_end(store, instance)),
    }
}

/// Whether the end of the last run of `instance` is on record.
fn run_end(store: &Store, instance: &Instance) -> RunEnd {
    let record = ExitRecord::read(&connect::instance_dir(store, instance.id)).ok().flatten();
    let of_last = record.filter(|record| record.generation == instance.generation);
    match of_last.and_then(|record| record.reason) {
        Some(_) => RunEnd::Recorded,
        None => RunEnd::Unrecorded,
    }
}

/// Whether the process `by` that starts `instance` is alive.
pub fn of_starter(store: &Store, instance: &Instance, by: &ProcessIdentity) -> Decided<Liveness> {
    let start = instance.started_on.clone().unwrap_or_else(|| boot_of(by));
    let seen = match host::here().shares_processes_with(&start) {
        true => process::alive(by),
        false => Liveness::Unknown,
    };
    let lock = match seen {
        Liveness::Alive => SupervisorLock::Held,
        Liveness::Dead => SupervisorLock::Free,
        Liveness::Unknown => InstanceClaim::starter(&connect::instance_dir(store, instance.id)),
    };
    let Decided { decision, reason } = decide(store, lock, Some(&start), || RunEnd::Unrecorded);
    match decision {
        Liveness::Alive => Decided::new(decision, "the process that starts it is alive"),
        Liveness::Dead => Decided::new(decision, "the process that started it is dead"),
        Liveness::Unknown => Decided::new(decision, reason),
    }
}

/// Refuses to touch an instance of which it is not known whether it runs.
pub fn require_known(id: InstanceId, judged: &Decided<Liveness>) -> Result<(), EngineError> {
    match judged.decision {
        Liveness::Unknown => {
            Err(EngineError::LivenessUnknown { id, why: judged.reason.clone().into_owned() })
        }
        Liveness::Alive | Liveness::Dead => Ok(()),
    }
}

fn decide(
    store: &Store,
    lock: SupervisorLock,
    started_on: Option<&HostIdentity>,
    end: impl FnOnce() -> RunEnd,
) -> Decided<Liveness> {
    let home = host::file_system(store.layout().home());
    let sight = started_on.map_or(ProcessSight::Hidden, host::process_sight);
    // What can be seen needs no record, and a list of thousands reads none.
    let end = if sight == ProcessSight::Hidden { end() } else { RunEnd::Unrecorded };
    liveness(&LivenessFacts { lock, started_on, here: host::here(), home, end, sight })
}

/// Where an active instance was started according to its exit record. Earlier versions wrote it nowhere else.
fn recorded_start(store: &Store, instance: &Instance) -> Option<HostIdentity> {
    if instance.status.status != Status::Active {
        return None;
    }
    let record = ExitRecord::read(&connect::instance_dir(store, instance.id)).ok().flatten()?;
    Some(boot_of(&record.keeper))
}

/// What a process identity says of where it is.
fn boot_of(process: &ProcessIdentity) -> HostIdentity {
    let pid_namespace = host::here().pid_namespace;
    HostIdentity { machine: String::new(), boot: process.boot.clone(), pid_namespace }
}
