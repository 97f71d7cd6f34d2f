//! Bringing what is written down in line with what is there. Runs at the start of the verbs that say how instances are, or
//! go by it for more than one.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use abide_config::ConfigDir;
use abide_model::evidence::Verdict;
use abide_model::status::{Ending, Kept};
use abide_model::{Instance, Liveness, Policy, Status, StatusEvent, decide};
use abide_store::{ReadError, Store, StoreEntry};
use abide_sys::clock;
use abide_sys::pieces::{QUICK, in_pieces};
use abide_wire::exit_record::ExitRecord;
use abide_wire::supervisor_lock::InstanceClaim;

use crate::end::finish;
use crate::error::EngineError;
use crate::running::{connect, liveness};
use crate::substrate::Survey;
use crate::trees;

/// How long a look waits for an instance directory that another process has locked.
const PATIENCE: Duration = Duration::from_millis(250);

/// The policy that holds for `instance`; `None` where the configuration cannot be read.
pub fn policy(config: &ConfigDir, instance: &Instance) -> Option<Policy> {
    let settings = config.load().ok()?;
    let Some(name) = &instance.scope.workspace else { return Some(settings.policy) };
    match config.workspace(&name.parse().ok()?) {
        Ok(workspace) => Some(workspace.policy.unwrap_or(settings.policy)),
        // The workspace was removed since; what holds for all directories holds for this one.
        Err(abide_config::ConfigError::NoSuchWorkspace { .. }) => Some(settings.policy),
        Err(_) => None,
    }
}

/// What is done about an instance that another process settles at this moment, which takes as long as git does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettledElsewhere {
    /// It is settled here too: what comes next needs to know what became of it.
    SettleToo,
    /// It is given as it is.
    Leave,
}

/// Looks at every instance, and gives what there is afterwards. A list that cannot be read is an error, and then nothing
/// is touched.
pub fn reconcile(store: &Store, config: &ConfigDir) -> Result<Vec<StoreEntry>, EngineError> {
    reconcile_beside(store, config, SettledElsewhere::SettleToo)
}

/// The same, with `elsewhere` for what another process is at.
pub fn reconcile_beside(
    store: &Store,
    config: &ConfigDir,
    elsewhere: SettledElsewhere,
) -> Result<Vec<StoreEntry>, EngineError> {
    // A process that holds the lock for longer is settling the instance, and a list must not wait for that.
    let store = &store.clone().with_patience(PATIENCE);
    let mut changed = false;
    let entries = store.list()?;
    let survey = Survey::default();
    for instance in unsettled(store, &entries, &survey) {
        let is_settled_elsewhere = || InstanceClaim::is_finishing(&connect::instance_dir(store, instance.id));
        let is_kept = matches!(instance.status.status, Status::Restorable(_));
        if elsewhere == SettledElsewhere::SettleToo || is_kept || !is_settled_elsewhere() {
            changed |= settle(store, config, instance, &survey);
        }
    }
    abide_places::tmux::sweep(store, &survey);
    changed |= trim(store, config, &entries);
    if let Err(error) = store.sweep() {
        tracing::warn!("sweep: {error}");
    }
    if !changed {
        return Ok(entries);
    }
    // Read again: what was settled has another status now, or is gone.
    let as_it_is = |entry| match entry {
        StoreEntry::Sound(instance) => StoreEntry::Sound(Box::new(finish::as_it_is(store, *instance))),
        damaged => damaged,
    };
    Ok(store.list()?.into_iter().map(as_it_is).collect())
}

/// The instances that are not kept, and those that something has to be done about. Thousands may be kept, and nearly all of
/// them are as they are written down.
fn unsettled<'a>(store: &Store, entries: &'a [StoreEntry], survey: &Survey) -> Vec<&'a Instance> {
    let unsettled_of = |entries: &'a [StoreEntry]| -> Vec<&'a Instance> {
        let sound = entries.iter().filter_map(StoreEntry::sound);
        sound.filter(|instance| !is_kept_as_written(store, instance, survey)).collect()
    };
    in_pieces(entries, QUICK, unsettled_of).into_iter().flatten().collect()
}

fn is_kept_as_written(store: &Store, instance: &Instance, survey: &Survey) -> bool {
    matches!(instance.status.status, Status::Restorable(_))
        && liveness::surveyed(store, instance, survey).decision != Liveness::Alive
        && !trees::are_released(store, instance)
        && !has_socket(store, instance)
}

/// Whether a socket is there: of a run that ended without removing it.
fn has_socket(store: &Store, instance: &Instance) -> bool {
    connect::instance_dir(store, instance.id).socket().symlink_metadata().is_ok()
}

/// Removes what a workspace or a plain directory keeps beyond its limit. What was kept a moment ago counts at the next look.
fn trim(store: &Store, config: &ConfigDir, entries: &[StoreEntry]) -> bool {
    let (Ok(settings), Ok(workspaces)) = (config.load(), config.workspaces()) else { return false };
    let mut of_scopes: BTreeMap<LimitScope<'_>, Vec<&Instance>> = BTreeMap::new();
    let kept = |i: &&Instance| matches!(i.status.status, Status::Restorable(_));
    for instance in entries.iter().filter_map(StoreEntry::sound).filter(kept) {
        let scope = match &instance.scope.workspace {
            Some(name) => LimitScope::Workspace(name),
            None => LimitScope::Dir(&instance.scope.dir),
        };
        of_scopes.entry(scope).or_default().push(instance);
    }
    let max_of = |scope: &LimitScope<'_>| match scope {
        LimitScope::Dir(_) => settings.keep_max,
        LimitScope::Workspace(name) => {
            let named = workspaces.iter().find(|(other, _)| other == name);
            named.and_then(|(_, workspace)| workspace.as_ref().ok()).map_or(0, |workspace| workspace.keep_max)
        }
    };
    let mut changed = false;
    for (scope, kept) in of_scopes {
        let max = usize::try_from(max_of(&scope)).unwrap_or(0);
        // Looking at the trees takes a while, so only where there are too many.
        if max != 0 && kept.len() > max {
            changed |= trim_scope(store, &scope, kept, max);
        }
    }
    changed
}

/// What a limit is for.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LimitScope<'a> {
    Workspace(&'a str),
    Dir(&'a Path),
}

/// Removes the surplus of one scope, of which `kept` is there: whether anything went.
fn trim_scope(store: &Store, scope: &LimitScope<'_>, mut kept: Vec<&Instance>, max: usize) -> bool {
    kept.sort_by_key(|instance| instance.status.since);
    let verdict = |instance: &&Instance| match instance.status.status {
        // Interrupted, so the operator may expect it to come back.
        Status::Restorable(Kept::Crashed | Kept::Stopped | Kept::HostLost | Kept::SetupFailed) => {
            Verdict::Unknown
        }
        // A limit that is set for all does not overrule what the operator said of this one.
        _ if instance.policy == Some(Policy::Keep) => Verdict::Unknown,
        _ => trees::verdict(store, instance),
    };
    let verdicts: Vec<Verdict> = kept.iter().map(verdict).collect();
    let name = match scope {
        LimitScope::Workspace(name) => (*name).to_owned(),
        LimitScope::Dir(dir) => dir.display().to_string(),
    };
    let mut changed = false;
    for index in decide::surplus(&verdicts, max) {
        let because = format!("`{name}` keeps at most {max}, and nothing in it is at risk");
        match finish::discard(store, kept[index], Ending::Policy, &because) {
            Ok(_) => changed = true,
            Err(error) => tracing::warn!(id = %kept[index].id, "trim: {error}"),
        }
    }
    changed
}

/// Settles one instance; whether anything about it may have changed. What is not known to be dead is left as it is.
fn settle(store: &Store, config: &ConfigDir, instance: &Instance, survey: &Survey) -> bool {
    let id = instance.id;
    let alive = || liveness::surveyed(store, instance, survey).decision;
    let settled = match &instance.status.status {
        Status::Active if alive() != Liveness::Dead => return false,
        Status::Active => finish::finish(store, id, policy(config, instance)).map(drop),
        Status::Ending(_) if alive() == Liveness::Unknown => return false,
        Status::Ending(_) => finish::finish(store, id, None).map(drop),
        // While another process makes the trees, or may be doing so, there is nothing to see in them.
        Status::Starting { by, .. }
            if liveness::of_starter(store, instance, by).decision != Liveness::Dead =>
        {
            return false;
        }
        Status::Starting { .. } => match alive() {
            Liveness::Alive if has_started(store, instance) => {
                let because = "the capsule runs, but the process that started it did not record that";
                stamp(store, instance, &StatusEvent::CapsuleSeen, because)
            }
            // A keeper that lost its launcher ends by itself.
            Liveness::Alive | Liveness::Unknown => return false,
            Liveness::Dead => {
                let at_risk = trees::verdict(store, instance) != Verdict::Clean;
                let because = "the process that started it is dead";
                stamp(store, instance, &StatusEvent::StarterDied { at_risk }, because)
                    .and_then(|()| finish::finish(store, id, None).map(drop))
            }
        },
        Status::Restorable(_) if alive() == Liveness::Alive => {
            stamp(store, instance, &StatusEvent::CapsuleSeen, "its supervisor turned out to be alive")
        }
        Status::Restorable(_) if trees::are_released(store, instance) => {
            let progress = |notice: &str| tracing::info!(%id, "{notice}");
            trees::reconnect(store, instance, &progress).map(drop)
        }
        Status::Restorable(_) if has_socket(store, instance) => finish::finish(store, id, None).map(drop),
        Status::Restorable(_) | Status::Damaged(_) => return false,
    };
    if let Err(error) = settled {
        tracing::warn!(%id, "reconcile: {error}");
    }
    true
}

/// `instance` once a start that was cut short is settled; `None` if it is gone then.
pub fn after_start(
    store: &Store,
    config: &ConfigDir,
    instance: Instance,
) -> Result<Option<Instance>, EngineError> {
    if !matches!(instance.status.status, Status::Starting { .. }) {
        return Ok(Some(instance));
    }
    settle(store, config, &instance, &Survey::default());
    match store.read(instance.id) {
        Err(ReadError::NotFound(_)) => Ok(None),
        read => Ok(Some(read?)),
    }
}

/// Whether the keeper of this run has said that its first session runs.
fn has_started(store: &Store, instance: &Instance) -> bool {
    let record = ExitRecord::read(&connect::instance_dir(store, instance.id)).ok().flatten();
    record.is_some_and(|record| record.generation == instance.generation && record.reason.is_none())
}

fn stamp(store: &Store, instance: &Instance, event: &StatusEvent, because: &str) -> Result<(), EngineError> {
    store.update(instance.id, |now| -> Result<(), EngineError> {
        // Another process may have settled it in the meantime; its decision stands.
        if now.generation == instance.generation && now.status == instance.status {
            let _ = now.apply(event, because, clock::now());
        }
        Ok(())
    })
}
