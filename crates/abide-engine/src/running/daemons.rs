//! What a stop ends beyond the sessions themselves, and sparing it.

use abide_keeper::daemons::{self, Daemon};
use abide_model::liveness::SupervisorLock;
use abide_model::{Extra, Instance, InstanceId, Liveness, Pid, Place, SessionId, vars};
use abide_places::host::{self, scope};
use abide_store::Store;
use abide_sys::process::{self, descendants, in_environment};
use abide_wire::exit_record::ExitRecord;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::SessionStatus;

use crate::error::EngineError;
use crate::running::connect;
use crate::running::processes::{Leftover, SessionProcesses, generations};
use crate::substrate;

/// The field of the manifest, and of an outcome, that says what was spared at the end of the last run.
const SPARED: &str = "spared";

/// The same of what was ended with the last run, beyond its sessions.
const ENDED_AS_WELL: &str = "ended_as_well";

/// The daemons that ended with the last run of `instance`.
pub fn ended_as_well(instance: &Instance) -> Vec<String> {
    let names = instance.extra.get(ENDED_AS_WELL).and_then(|names| names.as_array());
    names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Takes over which daemons ended with the run that `record` is about.
pub(crate) fn note_ended(instance: &mut Instance, record: &ExitRecord) {
    if !record.ended_as_well.is_empty() {
        instance.extra.insert(ENDED_AS_WELL.to_owned(), record.ended_as_well.clone().into());
    }
}

/// What is said of daemons at the end of the last run of `instance`, for the outcome.
pub(crate) fn of_outcome(instance: &Instance) -> Extra {
    let known = instance.extra.iter().filter(|(name, _)| [SPARED, ENDED_AS_WELL].contains(&name.as_str()));
    known.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Forgets what became of the daemons of the last run of `instance`, which is started again.
pub(crate) fn forget(instance: &mut Instance) {
    [SPARED, ENDED_AS_WELL].into_iter().for_each(|name| drop(instance.extra.remove(name)));
}

/// What would end with an instance beyond the sessions that it holds.
#[derive(Debug, Default)]
pub struct BeyondSessions {
    /// What was first started in a session and has left it.
    pub daemons: Vec<Daemon>,
    /// What has outlived its keeper and is of a session. Spared, it would write into the conversation of the next run.
    pub survivors: Vec<Leftover>,
}

/// What would end with the instance `id`.
pub fn beyond_sessions(store: &Store, id: InstanceId) -> BeyondSessions {
    let held = substrate::of(store, id);
    let instance_dir = connect::instance_dir(store, id);
    let left = SessionProcesses::look().leftovers(id, &instance_dir);
    let daemon = |left: Leftover| {
        let process = process::identity(left.pid)?;
        Some(Daemon { process, name: left.name, below: 0 })
    };
    if held.lock() != SupervisorLock::Free {
        let holders = held.holders();
        let supervised: Vec<Pid> = holders.iter().flat_map(|holder| generations(*holder)).flatten().collect();
        // What the set-up command left was never below a holder. Without a holder it cannot be distinguished from a session.
        let outside = left.into_iter().filter(|left| !holders.is_empty() && !supervised.contains(&left.pid));
        let outside = outside.filter_map(daemon);
        let daemons = holders.iter().copied().flat_map(daemons::below).chain(outside).collect();
        return BeyondSessions { daemons, survivors: Vec::new() };
    }
    let of_sessions = session_processes(&instance_dir);
    let (survivors, daemons) =
        left.into_iter().partition(|left| of_sessions.as_ref().is_none_or(|known| known.contains(&left.pid)));
    BeyondSessions { daemons: Vec::into_iter(daemons).filter_map(daemon).collect(), survivors }
}

/// The processes that the last run started as its sessions, and what is below them, as far as they live; `None` where it
/// is not on record which those are.
fn session_processes(instance_dir: &InstanceDir) -> Option<Vec<Pid>> {
    let record = ExitRecord::read(instance_dir).ok().flatten()?;
    let first: Option<Vec<_>> = record.sessions.into_iter().map(|session| session.process).collect();
    let alive = first?.into_iter().filter(|first| process::alive(first) == Liveness::Alive);
    Some(alive.flat_map(|first| generations(first.pid)).flatten().collect())
}

/// The daemons that ending session `session` of the instance `id` ends too: those that were first started in it, and all
/// where no other session runs.
pub fn beyond_session(store: &Store, id: InstanceId, session: SessionId) -> Vec<Daemon> {
    let mut daemons = beyond_sessions(store, id).daemons;
    let status = substrate::of(store, id).status();
    let runs_beside = |other: &SessionStatus| other.id != session && other.exit.is_none();
    if status.is_ok_and(|status| status.sessions.iter().any(runs_beside)) {
        let own = session.to_string();
        daemons
            .retain(|daemon| in_environment(daemon.process.pid, vars::ABIDE_SESSION).as_ref() == Some(&own));
    }
    daemons
}

/// Sees to it that `daemons` outlive the instance: they are written down, so that no sweep ends them, and moved out of the
/// systemd scope that ends with it.
pub fn spare(store: &Store, instance: &Instance, daemons: &[Daemon]) -> Result<(), EngineError> {
    let id = instance.id;
    if instance.recipe.place != Place::Host {
        let name = id.display_name();
        return Err(EngineError::Other(format!(
            "nothing would survive the {} of {name}",
            instance.recipe.place
        )));
    }
    if daemons.is_empty() {
        return Ok(());
    }
    let identities: Vec<_> = daemons.iter().map(|daemon| daemon.process.clone()).collect();
    daemons::spare(&connect::instance_dir(store, id), &identities)
        .map_err(|error| EngineError::Other(format!("the daemons to keep could not be recorded: {error}")))?;
    store.update(id, |instance| -> Result<(), EngineError> {
        let names: Vec<String> = daemons.iter().map(Daemon::to_string).collect();
        instance.extra.insert(SPARED.to_owned(), names.into());
        Ok(())
    })?;
    let processes = || -> Vec<Pid> {
        let with_below = |daemon: &Daemon| {
            let pid = daemon.process.pid;
            let below = descendants(pid, |_| false);
            std::iter::once(pid).chain(below.into_iter().map(|stat| stat.pid)).collect::<Vec<_>>()
        };
        let all = daemons.iter().flat_map(with_below);
        all.filter(|pid| scope::own_unit(*pid).is_some()).collect()
    };
    if !processes().is_empty()
        && let Err(why) = host::move_spared(id, &processes)
    {
        // They run on where they are; the systemd scope stays for as long as they do.
        tracing::warn!(%id, "what is spared was not moved: {why}");
    }
    Ok(())
}
