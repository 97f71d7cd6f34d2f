//! What trees hold that exists nowhere else: one answer for leaving and for coming back.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use abide_model::Isolation;
use abide_model::evidence::MountEvidence;
use abide_model::recipe::Mount;
use serde::{Deserialize, Serialize};

use crate::ahead::View;
use crate::command::{Deadline, Git};
use crate::error::GitError;
use crate::ignored::{self, Ignored};
use crate::refs::{self, Ref};
use crate::site::{Record, Site};
use crate::status::{self, Status};
use crate::{gitdir, submodule};

const BASELINE: &str = "baseline.json";

/// What was there before anybody worked in the tree.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Baseline {
    /// Files that `git status` does not compare, in submodules too.
    pub ignored: Ignored,
    /// Where each submodule was.
    #[serde(default)]
    pub modules: Vec<String>,
}

/// Looks at every mount, each given with the directory of its unit, all within `limit`, and answers in their order.
///
/// Whatever can not be found out in time or at all is named in [`MountEvidence::unknown`]. A tree that was never
/// finished holds nothing: nobody worked in it.
pub fn evidence_of(mounts: &[(&Path, &Mount)], limit: Duration) -> Vec<MountEvidence> {
    let deadline = Deadline::within(limit);
    let workers = std::thread::available_parallelism().map_or(2, usize::from).min(mounts.len());
    let left = Mutex::new(mounts.iter().enumerate());
    let found = Mutex::new(vec![MountEvidence::default(); mounts.len()]);
    let work = || {
        // The lock is held for the choice alone.
        let next = || left.lock().unwrap_or_else(|poison| poison.into_inner()).next();
        while let Some((index, (unit, mount))) = next() {
            let evidence = examine(unit, mount, deadline);
            found.lock().unwrap_or_else(|poison| poison.into_inner())[index] = evidence;
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(work);
        }
        work();
    });
    found.into_inner().unwrap_or_else(|poison| poison.into_inner())
}

fn examine(unit: &Path, mount: &Mount, deadline: Deadline) -> MountEvidence {
    let mut found = MountEvidence {
        target: mount.target.to_string_lossy().into_owned(),
        isolation: mount.isolation,
        ..MountEvidence::default()
    };
    if let Some(site) = Site::of(unit, mount)
        && let Err(error) = look(&site, deadline, &mut found)
    {
        found.unknown.push(error.to_string());
    }
    found
}

/// Adds what is found to `found`, in the order in which people want to know.
fn look(site: &Site, deadline: Deadline, found: &mut MountEvidence) -> Result<(), GitError> {
    let Some(record) = site.record()?.filter(|record| record.complete) else { return Ok(()) };
    found.branch.clone_from(&record.branch);
    let git_dir = gitdir::of_tree(&site.tree, record.isolation)?;
    let lock = git_dir.join("index.lock");
    if lock.exists() {
        found
            .unknown
            .push(format!("{}: a git command is running, or died; remove it if none is", lock.display()));
    }
    found.operation = gitdir::operation(&git_dir).map(str::to_owned);
    let git = git_in(site, record.isolation, deadline)?;
    let status = status::of(&git)?;
    let before = site.read::<Baseline>(BASELINE)?.unwrap_or_default();
    found.files.clone_from(&status.changes);
    found.files.extend(ignored::appeared(ignored::of(&git, &git_dir, &status)?, &before.ignored));
    let refs = refs::all(&git)?;
    let trail = gitdir::trail(&git, &git_dir)?;
    let view = View {
        git: &git,
        isolation: record.isolation,
        status: &status,
        refs: &refs,
        trail: &trail,
        recorded: &record.refs,
        scratch: record.branch.as_deref().filter(|_| record.scratch),
        base: record.base_branch.as_deref().map(refs::short),
    };
    found.ahead = view.ahead(Some(&record.repo), &site.notes.join("spare"))?;
    found.stashes = stashes(&git, &refs, &record, &status, &trail)?;
    for module in gitdir::modules(&git_dir) {
        submodule::look(&module, &site.tree, &before, deadline, found)?;
    }
    Ok(())
}

/// Git in the tree. A worktree has the settings of the host's repository, and so the filters that the operator chose.
fn git_in(site: &Site, isolation: Isolation, deadline: Deadline) -> Result<Git, GitError> {
    let git = Git::in_tree(&site.tree, deadline);
    Ok(if isolation == Isolation::Clone { git.without_own_filters()? } else { git })
}

/// The stashes that were made in this tree. All worktrees of a repository share one list.
fn stashes(
    git: &Git,
    refs: &[Ref],
    record: &Record,
    status: &Status,
    trail: &gitdir::Trail,
) -> Result<Vec<String>, GitError> {
    let top = refs.iter().find(|r| r.name == refs::STASH);
    if top.is_none_or(|top| record.stashes.first() == Some(&top.oid)) {
        return Ok(Vec::new());
    }
    let mut found = refs::stashes(git, refs)?;
    found.retain(|(oid, message)| {
        !record.stashes.contains(oid)
            && (record.isolation == Isolation::Clone || is_from_here(message, record, status, trail))
    });
    Ok(found.into_iter().map(|(_, message)| message).collect())
}

/// Whether a stash with this message was made in the tree; one made without a branch may have been.
fn is_from_here(message: &str, record: &Record, status: &Status, trail: &gitdir::Trail) -> bool {
    let on = message.strip_prefix("WIP on ").or_else(|| message.strip_prefix("On "));
    let Some((branch, _)) = on.and_then(|rest| rest.split_once(": ")) else { return true };
    branch == "(no branch)"
        || [&record.branch, &status.branch].into_iter().flatten().any(|name| name == branch)
        || trail.branches.contains(branch)
}

/// Takes everything that is in the tree of `mount` now as given, not as work: to be called when the set-up is done, whose
/// products nobody wants to be asked about.
pub fn settle(unit: &Path, mount: &Mount, limit: Duration) -> Result<(), GitError> {
    match Site::of(unit, mount) {
        Some(site) => settle_site(&site, mount.isolation, Deadline::within(limit)),
        None => Ok(()),
    }
}

pub(crate) fn settle_site(site: &Site, isolation: Isolation, deadline: Deadline) -> Result<(), GitError> {
    let git = git_in(site, isolation, deadline)?;
    let git_dir = gitdir::of_tree(&site.tree, isolation)?;
    let ignored = ignored::of(&git, &git_dir, &status::of(&git)?)?;
    let mut given = Baseline { ignored, modules: Vec::new() };
    for module in gitdir::modules(&git_dir) {
        let module = submodule::open(&module, &site.tree, deadline)?;
        given.modules.extend(module.status.head);
        given.ignored.extend(module.ignored);
    }
    site.write(BASELINE, &given)
}
