//! The isolated trees of an instance: made at its first start, looked at when it ends, given up when it is removed.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_git::{CloneObjects, Drift, Repair, WantedTree};
use abide_model::evidence::{self, FileChange, HostRepo, MountEvidence, Verdict};
use abide_model::recipe::Mount;
use abide_model::{Instance, InstanceId, Isolation, Status};
use abide_store::{Store, StoreEntry};
use abide_sys::crash;

use crate::error::EngineError;
use crate::start::launch::LaunchContext;
use crate::start::setup;

/// How long making a tree may take: a large repository on a slow disk does take minutes.
const TO_MAKE: Duration = Duration::from_secs(30 * 60);
/// How long all trees of an instance may take to be looked at. Whatever is not known by then counts as work.
const TO_LOOK: Duration = Duration::from_secs(20);
/// How long a tree may take to be released, or to be known to git again.
const TO_RELEASE: Duration = Duration::from_secs(60);

/// What a launch wants of its own directory, beside what its workspace says of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// How the directory is given.
    pub isolation: Option<Isolation>,
    /// Where its tree begins.
    pub base: Option<String>,
    /// An existing branch for it.
    pub branch: Option<String>,
}

/// The mounts of an instance that is launched from `dir`, in an instance directory at `instance_dir`. A wish is for the directory itself, or for
/// the configured mount that holds it.
pub fn plan(dir: &Path, configured: &[abide_config::Mount], wish: &Wish, instance_dir: &Path) -> Vec<Mount> {
    let mount = |source: &Path, target: &Path, isolation, copy: &[String], read_only| Mount {
        source: source.to_owned(),
        target: target.to_owned(),
        isolation,
        read_only,
        copy: copy.to_vec(),
        ..Mount::default()
    };
    let mut mounts: Vec<Mount> = configured
        .iter()
        .map(|m| mount(&m.source, m.target_path(), m.isolation, &m.copy, m.read_only))
        .collect();
    let holds = |mount: &Mount| dir.starts_with(&mount.source);
    let own = match mounts.iter().position(holds) {
        Some(own) => Some(own),
        None if wish.isolation.is_some() => {
            mounts.push(mount(dir, dir, Isolation::Shared, &[], false));
            Some(mounts.len() - 1)
        }
        None => None,
    };
    if let Some(own) = own.map(|own| &mut mounts[own]) {
        own.isolation = wish.isolation.unwrap_or(own.isolation);
        (own.base, own.branch) = (wish.base.clone(), wish.branch.clone());
    }
    let mut taken: Vec<String> = Vec::new();
    for mount in mounts.iter_mut().filter(|mount| mount.isolation != Isolation::Shared) {
        let name = abide_git::tree_name(&mount.source, &taken.iter().map(String::as_str).collect::<Vec<_>>());
        taken.push(name.clone());
        mount.tree = Some(name);
        // On the host there is no other place to see a tree than where it is.
        mount.target = abide_git::tree(instance_dir, mount).unwrap_or_else(|| mount.target.clone());
    }
    mounts
}

/// Whether `instance` has neither a tree to make nor a set-up command to run.
pub fn is_ready_at_once(instance: &Instance) -> bool {
    isolated(instance).next().is_none() && instance.recipe.setup.is_empty()
}

/// Makes the directories of `instance` ready for its sessions, and gives it as it is then. What was ready before is only
/// connected: a preserved tree is never brought up to date, and made anew only if it is gone.
pub fn ready(ctx: &LaunchContext<'_>, instance: &Instance) -> Result<Instance, EngineError> {
    let mut instance = instance.clone();
    if instance.prepared {
        instance = reconnect(ctx.store, &instance, ctx.progress)?;
        if !repair(ctx, &instance)? {
            return Ok(instance);
        }
        // Whatever the set-up made is gone, too.
        instance = ctx.store.update(instance.id, |now| -> Result<Instance, EngineError> {
            now.prepared = false;
            Ok(now.clone())
        })?;
    }
    instance = with_current_setup(ctx, &instance)?;
    if instance.recipe.mounts.iter().any(|mount| mount.tree.is_some()) {
        instance = make(ctx, &instance)?;
        crash::point("engine.trees.made");
    }
    if !instance.recipe.setup.is_empty() {
        // Inside, once there is an inside.
        if instance.recipe.container.is_some() {
            return Ok(instance);
        }
        set_up(ctx, &instance)?;
    }
    ctx.store.update(instance.id, |now| -> Result<Instance, EngineError> {
        now.prepared = true;
        Ok(now.clone())
    })
}

/// Makes worktrees work again that were removed by hand, or forgotten by git; whether the files of one are new.
fn repair(ctx: &LaunchContext<'_>, instance: &Instance) -> Result<bool, EngineError> {
    let instance_dir = ctx.store.layout().instance_dir(instance.id);
    let mut is_new = false;
    for mount in isolated(instance) {
        let rebuilt = abide_git::rebuild_record(instance.id, &instance_dir, mount, TO_LOOK)?;
        rebuilt.iter().for_each(|notice| (ctx.progress)(notice));
        let progress = &mut |line: &str| (ctx.progress)(line);
        is_new |=
            abide_git::repair(instance.id, &instance_dir, mount, TO_MAKE, progress)? == Some(Repair::Remade);
        let is_gone = abide_git::tree(&instance_dir, mount).is_some_and(|tree| !tree.exists());
        if let (true, Some(fault)) = (is_gone, abide_git::fault(&instance_dir, mount, TO_LOOK)) {
            return Err(EngineError::Other(format!(
                "{fault}; `abide eject {}` removes the rest",
                instance.id
            )));
        }
    }
    Ok(is_new)
}

/// The instance with the set-up command that is configured now: one that failed may have been corrected since.
fn with_current_setup(ctx: &LaunchContext<'_>, instance: &Instance) -> Result<Instance, EngineError> {
    let Some(current) = ctx.setup.as_ref().filter(|current| **current != instance.recipe.setup) else {
        return Ok(instance.clone());
    };
    match current.is_empty() {
        true => (ctx.progress)("the set-up command was removed from the configuration, so none is run"),
        false => (ctx.progress)("the set-up command has changed since the last start"),
    }
    ctx.store.update(instance.id, |now| -> Result<Instance, EngineError> {
        now.recipe.setup.clone_from(current);
        Ok(now.clone())
    })
}

/// Why git does not work in the trees of `instance`, each with what to do.
pub fn faults(store: &Store, instance: &Instance) -> Vec<String> {
    let instance_dir = store.layout().instance_dir(instance.id);
    isolated(instance).filter_map(|mount| abide_git::fault(&instance_dir, mount, TO_LOOK)).collect()
}

/// Worktrees elsewhere that belong to a clone of `instance`, and do not work without it.
pub fn linked_elsewhere(store: &Store, instance: &Instance) -> Vec<PathBuf> {
    let instance_dir = store.layout().instance_dir(instance.id);
    isolated(instance).flat_map(|mount| abide_git::linked_elsewhere(&instance_dir, mount)).collect()
}

/// Refuses if the trees of `instance`, whose instance directory is at `instance_dir` in the trash, cannot be given back to their repositories.
pub fn check_restore(instance_dir: &Path, instance: &Instance) -> Result<(), EngineError> {
    isolated(instance).try_for_each(|mount| Ok(abide_git::check_restore(instance_dir, mount, TO_RELEASE)?))
}

/// Runs the set-up command. What it makes, even if it fails, is not work; what was there before it ran is.
pub(crate) fn set_up(ctx: &LaunchContext<'_>, instance: &Instance) -> Result<(), EngineError> {
    let instance_dir = ctx.store.layout().instance_dir(instance.id);
    let look = |mount| Ok((mount, abide_git::before_setup(&instance_dir, mount, TO_LOOK)?));
    let before: Vec<_> = isolated(instance).map(look).collect::<Result<_, EngineError>>()?;
    let done = setup::run(ctx, instance);
    crash::point("engine.trees.set-up");
    let settled = before
        .iter()
        .try_for_each(|(mount, before)| abide_git::settle(&instance_dir, mount, before, TO_LOOK));
    done.and(settled.map_err(EngineError::from))
}

fn make(ctx: &LaunchContext<'_>, instance: &Instance) -> Result<Instance, EngineError> {
    let instance_dir = ctx.store.layout().instance_dir(instance.id);
    let mut moves: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut mounts = instance.recipe.mounts.clone();
    for mount in mounts.iter_mut().filter(|mount| mount.tree.is_some()) {
        let made = abide_git::materialise(
            &WantedTree {
                id: instance.id,
                instance_dir: &instance_dir,
                mount,
                base: mount.base.as_deref(),
                branch: mount.branch.as_deref(),
                limit: TO_MAKE,
                objects: match instance.recipe.container {
                    Some(_) => CloneObjects::Copied,
                    None => CloneObjects::Linked,
                },
            },
            &mut |line| (ctx.progress)(line),
        )?;
        made.notices.iter().for_each(|notice| (ctx.progress)(notice));
        moves.push((mount.source.clone(), made.workdir));
        mount.branch = made.branch;
    }
    let moved = |dir: &Path| {
        let inside = moves.iter().find_map(|(from, to)| Some(to.join(dir.strip_prefix(from).ok()?)));
        // A plain directory joined with nothing would end in a slash.
        inside.map_or_else(|| dir.to_owned(), |dir| dir.components().collect())
    };
    ctx.store.update(instance.id, |now| -> Result<Instance, EngineError> {
        now.recipe.mounts = mounts;
        now.recipe.cwd = moved(&now.recipe.cwd);
        for session in &mut now.sessions {
            session.cwd = moved(&session.cwd);
        }
        Ok(now.clone())
    })
}

/// What the isolated mounts of `instance` hold that exists nowhere else.
pub fn evidence(store: &Store, instance: &Instance) -> Vec<MountEvidence> {
    evidence_of_all(store, &[instance]).into_iter().flatten().collect()
}

/// The same for each of `instances`, in the time that one may take.
pub fn evidence_of_all(store: &Store, instances: &[&Instance]) -> Vec<Vec<MountEvidence>> {
    let instance_dirs: Vec<_> =
        instances.iter().map(|instance| store.layout().instance_dir(instance.id)).collect();
    let of_each = instances.iter().zip(&instance_dirs);
    let mounts: Vec<(&Path, &Mount)> = of_each
        .flat_map(|(instance, instance_dir)| isolated(instance).map(|mount| (instance_dir.as_path(), mount)))
        .collect();
    let mut found = abide_git::evidence_of(&mounts, TO_LOOK).into_iter();
    // Only an instance directory with a tree can have another instance in it.
    let all = if mounts.is_empty() { Ok(Vec::new()) } else { store.list() };
    let of_one = |(instance, instance_dir): (&&Instance, &PathBuf)| {
        let mut of_it: Vec<MountEvidence> = found.by_ref().take(isolated(instance).count()).collect();
        if let Some(first) = of_it.first_mut() {
            add_beside(instance_dir, instance, first);
            first.unknown.extend(guest_among(&all, instance_dir, instance.id));
        }
        of_it
    };
    instances.iter().zip(&instance_dirs).map(of_one).collect()
}

/// Adds what is next to the trees, named as it is seen from the first of them. Git does not look there.
fn add_beside(instance_dir: &Path, instance: &Instance, found: &mut MountEvidence) {
    let mounts: Vec<&Mount> = isolated(instance).collect();
    match abide_git::beside(instance_dir, &mounts) {
        Ok(names) => found.files.extend(
            names.iter().map(|name| FileChange { code: "??".to_owned(), path: format!("../{name}") }),
        ),
        Err(error) => found.unknown.push(error.to_string()),
    }
}

/// The other instance that works in the directory of instance `id`, or why that is unknown: a directory in use must not
/// be removed.
pub fn guest(store: &Store, id: InstanceId) -> Option<String> {
    guest_among(&store.list(), &store.layout().instance_dir(id), id)
}

/// The same, where the instance is at hand: only an instance directory with a tree can have another instance in it.
pub fn guest_of(store: &Store, instance: &Instance) -> Option<String> {
    isolated(instance).next().and_then(|_| guest(store, instance.id))
}

fn guest_among(
    all: &Result<Vec<StoreEntry>, abide_store::StoreError>,
    instance_dir: &Path,
    host: InstanceId,
) -> Option<String> {
    let all = match all {
        Ok(all) => all,
        Err(error) => return Some(format!("it is unknown whether another instance works in it: {error}")),
    };
    let is_in = |dir: &Path| dir.starts_with(instance_dir);
    let works_here = |other: &&Instance| {
        other.id != host
            && !matches!(other.status.status, Status::Ending(_))
            && (is_in(&other.scope.dir)
                || is_in(&other.recipe.cwd)
                || other.sessions.iter().any(|session| is_in(&session.cwd)))
    };
    let other = all.iter().filter_map(StoreEntry::sound).find(works_here)?;
    Some(format!("{} works in it", other.id.display_name()))
}

fn isolated(instance: &Instance) -> impl Iterator<Item = &Mount> {
    instance.recipe.mounts.iter().filter(|mount| mount.tree.is_some())
}

/// Whether the trees of `instance` may hold something that exists nowhere else.
pub fn may_hold_work(store: &Store, instance: &Instance) -> bool {
    evidence::may_hold_work(&evidence(store, instance))
}

/// What all of that amounts to.
pub fn verdict(store: &Store, instance: &Instance) -> Verdict {
    evidence::verdict(&evidence(store, instance))
}

/// Gives the trees of `instance` up before its instance directory goes to the trash: git forgets them, and everything that brings them
/// back is in the instance directory.
///
/// Returns what stays behind in a repository that is not where it was.
pub fn release(store: &Store, instance: &Instance) -> Result<Vec<String>, EngineError> {
    let instance_dir = store.layout().instance_dir(instance.id);
    let mut left = Vec::new();
    for mount in isolated(instance) {
        let rebuilt = abide_git::rebuild_record(instance.id, &instance_dir, mount, TO_RELEASE)?;
        rebuilt.iter().for_each(|notice| tracing::warn!(id = %instance.id, "{notice}"));
    }
    abide_git::release_beside(&instance_dir, &isolated(instance).collect::<Vec<_>>(), TO_RELEASE)?;
    for mount in isolated(instance) {
        let released = abide_git::release(&instance_dir, mount, TO_RELEASE)?;
        if let Some(branch) = released.kept_branch {
            tracing::warn!(id = %instance.id, branch, "the branch is used elsewhere and stays");
        }
        left.extend(released.left);
    }
    Ok(left)
}

/// Whether the trees of `instance` must be registered with git again: it came out of the trash, and that step was not completed.
pub fn are_released(store: &Store, instance: &Instance) -> bool {
    let is_released = |mount| abide_git::is_released(&store.layout().instance_dir(instance.id), mount);
    isolated(instance).any(is_released)
}

/// Makes git know the trees of `instance` again, if it does not, and gives it as it is then.
pub fn reconnect(
    store: &Store,
    instance: &Instance,
    progress: &dyn Fn(&str),
) -> Result<Instance, EngineError> {
    if !are_released(store, instance) {
        return Ok(instance.clone());
    }
    let instance_dir = store.layout().instance_dir(instance.id);
    // Two that do the same at once would be in each other's way.
    let mut lock = store.lock(instance.id)?;
    let mut now = lock.instance().clone();
    // First: what is noted about the mounts is what leads here again.
    abide_git::restore_beside(&instance_dir, TO_RELEASE)?.iter().for_each(|notice| progress(notice));
    for mount in now.recipe.mounts.iter_mut().filter(|mount| mount.tree.is_some()) {
        let restored = abide_git::restore(&instance_dir, mount, TO_RELEASE)?;
        restored.notices.iter().for_each(|notice| progress(notice));
        mount.branch = restored.branch;
    }
    lock.write(&now)?;
    Ok(now)
}

/// What became of the repositories of `instance` since its trees were made. The worst case is returned.
pub fn host_repo(store: &Store, instance: &Instance) -> HostRepo {
    let instance_dir = store.layout().instance_dir(instance.id);
    let (mut moved, mut diverged, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for mount in isolated(instance) {
        let source = mount.source.display();
        if let Some(fault) = abide_git::fault(&instance_dir, mount, TO_LOOK) {
            unknown.push(fault);
        }
        match abide_git::adrift(&instance_dir, mount, TO_LOOK) {
            Ok(None) => {}
            Ok(Some(drift)) => {
                let on = matches!(drift, Drift::Moved { lost: 0, .. });
                let into = if on { &mut moved } else { &mut diverged };
                into.push(format!("{source}: {}", in_words(drift)));
            }
            Err(error) => unknown.push(format!("{source}: {error}")),
        }
    }
    match (diverged.is_empty(), unknown.is_empty(), moved.is_empty()) {
        (false, ..) => HostRepo::Diverged(diverged),
        (_, false, _) => HostRepo::Unknown(unknown),
        (.., false) => HostRepo::Moved(moved),
        _ => HostRepo::Unchanged,
    }
}

fn in_words(drift: Drift) -> String {
    let commits = |n: u64| if n == 1 { "1 commit".to_owned() } else { format!("{n} commits") };
    match drift {
        Drift::Moved { branch, new, lost: 0 } => format!("{branch} has {} more now", commits(new)),
        Drift::Moved { branch, new, lost } => {
            format!("{branch} was rewritten: {} more and {} fewer now", commits(new), commits(lost))
        }
        Drift::Gone { branch } => format!("{branch} is gone"),
        Drift::RepositoryGone => "it was moved or removed".to_owned(),
    }
}
