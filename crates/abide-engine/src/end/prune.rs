//! `abide prune`: what could go, why, and letting it go.

use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_config::{ConfigDir, Settings};
use abide_git::{Forgotten, Registration};
use abide_model::evidence::MountEvidence;
use abide_model::status::Ending;
use abide_model::{Decided, Instance, Liveness, Status};
use abide_store::{ReadError, Store, StoreEntry, TrashName, outcomes};
use abide_sys::clock;

use crate::end::{finish, trash};
use crate::error::EngineError;
use crate::running::containers::{self, ContainerLeftover};
use crate::running::keepers::{self, OrphanedCapsule};
use crate::running::processes::{Leftover, SessionProcesses};
use crate::running::{connect, liveness};
use crate::{reconcile, trees};

/// How long git may take to say what it knows, or to forget it.
const TO_LOOK: Duration = Duration::from_secs(20);

/// What the operator wants looked at.
#[derive(Debug, Clone, Default)]
pub struct PruneRequest {
    /// Only what has been kept, unattended, for longer than this.
    pub older_than: Option<Duration>,
    /// Only instances of this scope.
    pub scope: Option<Within>,
    /// Kept instances too, whatever they hold.
    pub restorable: bool,
    /// Nothing is changed: what was cut short is not finished either.
    pub dry_run: bool,
}

/// Some of the instances.
#[derive(Debug, Clone)]
pub enum Within {
    /// Those of a workspace.
    Workspace(String),
    /// Those of a directory, given without links, and of what is below it.
    Dir(PathBuf),
}

impl Within {
    /// Whether `instance` is one of them.
    pub fn holds(&self, instance: &Instance) -> bool {
        match self {
            Self::Workspace(name) => instance.scope.workspace.as_ref() == Some(name),
            Self::Dir(dir) => instance.scope.dir.starts_with(dir),
        }
    }
}

/// A kept instance that would be removed.
#[derive(Debug)]
pub struct DiscardedInstance {
    /// The instance.
    pub instance: Instance,
    /// What it holds that exists nowhere else.
    pub mounts: Vec<MountEvidence>,
    /// What still runs of its last run, and would be ended.
    pub leftovers: Vec<Leftover>,
}

/// A worktree that git is not made to forget.
#[derive(Debug)]
pub struct DoubtfulRegistration {
    pub registration: Registration,
    pub why: String,
}

/// What a prune would do.
#[derive(Debug)]
pub struct Plan {
    /// Kept instances that would be removed.
    pub instances: Vec<DiscardedInstance>,
    /// Removed instances that would go for good, with the reason.
    pub trash: Vec<Decided<TrashName>>,
    /// Worktrees that git still knows although neither they nor their instances exist.
    pub worktrees: Vec<Registration>,
    /// The same, but the tree may be elsewhere, or what git has of it be the only copy.
    pub doubtful: Vec<DoubtfulRegistration>,
    /// Instances whose removal was decided, tried again just now, and cannot be carried out.
    pub stuck: Vec<Instance>,
    /// Capsules that run although the directory of their instance is gone.
    pub orphaned: Vec<OrphanedCapsule>,
    /// What container engines have of instances that are gone, or that do not run.
    pub containers: Vec<ContainerLeftover>,
    /// How many kept instances are not touched because it was not asked for.
    pub left_alone: usize,
}

/// Finishes what was cut short, unless it is a dry run, and says what more could go. The repository that `dir` is in is looked at too.
pub fn plan(
    dir: &Path,
    store: &Store,
    config: &ConfigDir,
    settings: &Settings,
    request: &PruneRequest,
) -> Result<Plan, EngineError> {
    let entries = match request.dry_run {
        true => store.list()?,
        false => reconcile::reconcile(store, config)?,
    };
    let kept: Vec<&Instance> =
        entries.iter().filter_map(StoreEntry::sound).filter(|i| fits(store, i, request)).collect();
    let left_alone = if request.restorable { 0 } else { kept.len() };
    let chosen = if request.restorable { kept } else { Vec::new() };
    let processes = SessionProcesses::look();
    let discarded = |instance: &Instance| DiscardedInstance {
        instance: instance.clone(),
        mounts: trees::evidence(store, instance),
        leftovers: processes.leftovers(instance.id, &connect::instance_dir(store, instance.id)),
    };
    let instances = chosen.into_iter().map(discarded).collect();
    let trashed = store.trash_names()?;
    let (worktrees, doubtful) = orphans(dir, store, &trashed);
    let is_stuck = |instance: &&Instance| matches!(instance.status.status, Status::Ending(_));
    let stuck = entries.iter().filter_map(StoreEntry::sound).filter(is_stuck).cloned().collect();
    let (trash, orphaned) = (trash::expired(store, settings, None)?, keepers::orphaned(store));
    let containers = containers::leftovers(store)?;
    Ok(Plan { instances, trash, worktrees, doubtful, stuck, orphaned, containers, left_alone })
}

/// What git knows of ours in the repository of `dir` that is gone, as after an instance directory was deleted by hand: what it
/// can forget without loss, and the rest.
fn orphans(
    dir: &Path,
    store: &Store,
    trashed: &[TrashName],
) -> (Vec<Registration>, Vec<DoubtfulRegistration>) {
    // Not every directory has a repository.
    let known = abide_git::registered(dir, TO_LOOK).unwrap_or_default();
    let ours = |tree: &Path| tree.starts_with(store.layout().instances());
    // What was removed while its repository was away is still registered, and needs that to come back.
    let gone = |id| {
        matches!(store.read(id), Err(ReadError::NotFound(_))) && trashed.iter().all(|name| name.id != id)
    };
    let ended = outcomes::instances(store);
    let (mut lossless, mut doubtful) = (Vec::new(), Vec::new());
    for registration in known.into_iter().filter(|one| ours(&one.tree) && gone(one.id) && !one.tree.exists())
    {
        let why = match registration.only_copy(TO_LOOK) {
            // The home of the instance may be on a disk that is not mounted, or have been moved.
            _ if !ended.contains(&registration.id) => {
                let home = store.layout().home().display();
                format!(
                    "{home} never had that instance; mount the right file system there, or set ABIDE_HOME"
                )
            }
            Ok(None) => {
                lossless.push(registration);
                continue;
            }
            Ok(Some(why)) => why.to_owned(),
            Err(error) => error.to_string(),
        };
        doubtful.push(DoubtfulRegistration { registration, why });
    }
    (lossless, doubtful)
}

fn fits(store: &Store, instance: &Instance, request: &PruneRequest) -> bool {
    let kept = match instance.status.status {
        Status::Restorable(_) => true,
        // Without a dry run, what has died would have been settled by now.
        Status::Active => request.dry_run && liveness::of(store, instance).decision == Liveness::Dead,
        _ => false,
    };
    let age = instance.status.since.age(clock::now());
    let old = request.older_than.is_none_or(|limit| age > limit);
    let here = request.scope.as_ref().is_none_or(|scope| scope.holds(instance));
    kept && old && here
}

/// Carries `plan` out; `report` gets each thing that went, and each that did not with the reason.
pub fn carry_out(store: &Store, plan: &Plan, mut report: impl FnMut(&str, Result<(), String>)) {
    for DiscardedInstance { instance, .. } in &plan.instances {
        let gone = finish::discard(store, instance, Ending::Discard, "pruned by the operator").map(drop);
        report(&instance.id.display_name(), gone.map_err(|error| error.to_string()));
    }
    for orphan in &plan.orphaned {
        let gone = match keepers::end(orphan) {
            Ok(true) => Ok(()),
            Ok(false) => Err("it does not stop".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        report(&orphan.id.display_name(), gone);
    }
    for left in &plan.containers {
        let gone = containers::remove(store, left).map_err(|error| error.to_string());
        report(&left.names.join(", "), gone);
    }
    for entry in &plan.trash {
        let gone = trash::purge(store, &entry.decision).map_err(|error| error.to_string());
        report(&entry.decision.to_string(), gone);
    }
    for worktree in &plan.worktrees {
        let gone = match abide_git::forget(worktree, TO_LOOK) {
            Ok(Forgotten::Kept(why)) => Err(why.to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        report(&worktree.tree.display().to_string(), gone);
    }
}
