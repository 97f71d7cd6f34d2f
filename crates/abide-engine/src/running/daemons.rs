//! What a stop ends beyond the sessions themselves, and sparing it.

use abide_keeper::daemons;
use abide_keeper::daemons::Daemon;
use abide_model::{Instance, InstanceId, Place};
use abide_places::host::{self, scope};
use abide_store::Store;
use abide_sys::process::descendants;

use crate::error::Error;
use crate::running::connect;
use crate::substrate;

/// The field of the manifest, and of an outcome, that says what was spared at the end of the last run.
pub const SPARED: &str = "spared";

/// The daemons that were first started in sessions of the instance `id` and would end with it.
pub fn beyond_sessions(store: &Store, id: InstanceId) -> Vec<Daemon> {
    substrate::of(store, id).holders().into_iter().flat_map(daemons::below).collect()
}

/// How a daemon is named to the operator: `tmux: server (4711, with 3 processes)`.
pub fn described(daemon: &Daemon) -> String {
    let (name, pid) = (&daemon.name, daemon.process.pid);
    match daemon.below {
        0 => format!("{name} ({pid})"),
        1 => format!("{name} ({pid}, with a process below it)"),
        n => format!("{name} ({pid}, with {n} processes below it)"),
    }
}

/// Sees to it that `daemons` outlive the instance: they are written down, so that no sweep ends them, and moved out of the
/// instance directory that ends with it.
pub fn spare(store: &Store, instance: &Instance, daemons: &[Daemon]) -> Result<(), Error> {
    let id = instance.id;
    if instance.recipe.place != Place::Host {
        let name = id.display_name();
        return Err(Error::Other(format!("nothing outlives the {} of {name}", instance.recipe.place)));
    }
    if daemons.is_empty() {
        return Ok(());
    }
    let identities: Vec<_> = daemons.iter().map(|daemon| daemon.process.clone()).collect();
    daemons::spare(&connect::instance_dir(store, id), &identities)
        .map_err(|error| Error::Other(format!("what is to be spared could not be written down: {error}")))?;
    store.update(id, |instance| -> Result<(), Error> {
        let names: Vec<String> = daemons.iter().map(described).collect();
        instance.extra.insert(SPARED.to_owned(), names.into());
        Ok(())
    })?;
    let processes = || -> Vec<u32> {
        let with_below = |daemon: &Daemon| {
            let pid = daemon.process.pid;
            let below = descendants(pid.cast_signed(), |_| false);
            std::iter::once(pid)
                .chain(below.into_iter().map(|stat| stat.pid.cast_unsigned()))
                .collect::<Vec<_>>()
        };
        let all = daemons.iter().flat_map(with_below);
        all.filter(|pid| scope::own_unit(*pid).is_some()).collect()
    };
    if !processes().is_empty()
        && let Err(why) = host::move_spared(id, &processes)
    {
        // They run on where they are; the instance directory stays for as long as they do.
        tracing::warn!(%id, "what is spared was not moved: {why}");
    }
    Ok(())
}
