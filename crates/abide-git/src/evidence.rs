//! What trees hold that exists nowhere else: one answer for leaving and for coming back.

pub(crate) mod ahead;
pub(crate) mod beyond_git;
pub(crate) mod ignored;
pub(crate) mod inner;
pub(crate) mod linked;
pub(crate) mod merged;
pub(crate) mod nested;
pub(crate) mod refs;
pub(crate) mod status;

use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_model::Isolation;
use abide_model::evidence::MountEvidence;
use abide_model::recipe::Mount;
use abide_sys::pieces::in_pieces;
use serde::{Deserialize, Serialize};

use crate::command::{Git, GitDeadline};
use crate::error::GitError;
use crate::evidence::ahead::AheadQuery;
use crate::evidence::ignored::{Ignored, Uncompared};
use crate::evidence::inner::{Around, InnerRepositories};
use crate::evidence::linked::LinkedWorktrees;
use crate::evidence::nested::NestedRepositories;
use crate::evidence::refs::Ref;
use crate::evidence::status::GitStatus;
use crate::gitdir;
use crate::make::{clone, halfmade};
use crate::site::{Site, TreeRecord};

const BASELINE: &str = "baseline.json";

/// What was there before any work in the tree.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Baseline {
    /// Files that `git status` does not compare, in submodules too.
    pub ignored: Ignored,
    /// Where each submodule, and each other repository in the tree, was.
    #[serde(default)]
    pub modules: Vec<String>,
}

/// Looks at every mount, each given with its instance directory, all within `limit`, and answers in their order.
///
/// Whatever cannot be found out in time or at all is named in [`MountEvidence::unknown`].
pub fn evidence_of(mounts: &[(&Path, &Mount)], limit: Duration) -> Vec<MountEvidence> {
    let deadline = GitDeadline::within(limit);
    in_pieces(mounts, 1, |one| examine(one[0].0, one[0].1, deadline))
}

fn examine(instance_dir: &Path, mount: &Mount, deadline: GitDeadline) -> MountEvidence {
    let mut found = MountEvidence {
        target: mount.target.to_string_lossy().into_owned(),
        isolation: mount.isolation,
        ..MountEvidence::default()
    };
    if let Some(site) = Site::of(instance_dir, mount)
        && let Err(error) = look(&site, deadline, &mut found)
    {
        found.unknown.push(error.to_string());
    }
    found
}

/// Adds what is found to `found`, in the order in which people want to know.
fn look(site: &Site, deadline: GitDeadline, found: &mut MountEvidence) -> Result<(), GitError> {
    let Some(record) = site.existing_record()? else { return Ok(()) };
    if site.damaged_record().exists() {
        found.unknown.push("the record of how the tree was made is lost".to_owned());
    }
    if !record.complete {
        found.unknown.extend(halfmade::foreign(site, &record, deadline));
        return Ok(());
    }
    site.require_repository(&record)?;
    let tree = Tree::open(site, record.isolation, deadline)?;
    let Tree { git, git_dir, status, .. } = &tree;
    found.branch.clone_from(&status.branch);
    let lock = git_dir.join("index.lock");
    if lock.exists() {
        found.unknown.push(format!(
            "{}: a git command is running or crashed; remove the file if none is running",
            lock.display()
        ));
    }
    found.unknown.extend(tree.elsewhere()?);
    found.unknown.extend(status.complaints.iter().cloned());
    found.operation = gitdir::operation(git_dir).map(str::to_owned);
    let before = site.read::<Baseline>(BASELINE)?.unwrap_or_default();
    found.files.clone_from(&status.changes);
    let uncompared = tree.uncompared()?;
    found.files.extend(ignored::appeared(uncompared.files, &before.ignored));
    found.guesses.extend(uncompared.guesses);
    let linked = match record.isolation {
        Isolation::Clone => LinkedWorktrees::of(git_dir, deadline)?,
        _ => LinkedWorktrees::default(),
    };
    linked.add_to(found);
    let refs = refs::all(git)?;
    let trail = gitdir::trail(git, git_dir)?;
    let host_prefix = (record.isolation == Isolation::Clone).then(|| clone::host_prefix(&refs));
    let view = AheadQuery {
        git,
        isolation: record.isolation,
        status,
        refs: &refs,
        trail: &trail,
        host: Some(&record.repo),
        host_prefix: host_prefix.as_deref(),
        recorded: &record.refs,
        scratch: record.branch.as_deref().filter(|_| record.scratch),
        base: record.base_branch.as_deref().map(refs::short),
        made: record.at,
        linked: &linked,
    };
    view.look(&site.notes.join("spare"), "", found)?;
    found.stashes = stashes(git, &refs, &record, status, &trail)?;
    let inner = tree.inner();
    found.unknown.extend(inner.unknown);
    for repository in inner.found {
        repository.look(&before, &record, deadline, found)?;
    }
    // What is in the instance directory moves with it.
    let instance_dir = site.tree.ancestors().nth(2).unwrap_or(&site.tree);
    found.linked.retain(|place| !Path::new(place).starts_with(instance_dir));
    Ok(())
}

/// A tree that git can be asked about.
struct Tree<'a> {
    site: &'a Site,
    git: Git,
    git_dir: PathBuf,
    status: GitStatus,
    nested: NestedRepositories,
}

impl<'a> Tree<'a> {
    fn open(site: &'a Site, isolation: Isolation, deadline: GitDeadline) -> Result<Self, GitError> {
        let git_dir = gitdir::of_tree(&site.tree, isolation)?;
        let git = git_in(site, isolation, deadline)?;
        let status = status::of(&git)?;
        let nested = NestedRepositories::of(&site.tree, deadline.half());
        Ok(Self { site, git, git_dir, status, nested })
    }

    /// Why git does not compare the files that are here, if it does not.
    fn elsewhere(&self) -> Result<Option<String>, GitError> {
        let top = self.git.path(["rev-parse", "--show-toplevel"])?;
        let is_here = top.canonicalize().ok() == self.site.tree.canonicalize().ok();
        Ok((!is_here).then(|| {
            format!(
                "core.worktree points to {}, so changes to the files here cannot be detected",
                top.display()
            )
        }))
    }

    fn inner(&self) -> InnerRepositories {
        InnerRepositories::of(&Around {
            tree: &self.site.tree,
            git_dir: &self.git_dir,
            status: &self.status,
            nested: &self.nested,
            deadline: self.git.deadline(),
        })
    }

    /// What no comparison with a commit finds.
    fn uncompared(&self) -> Result<Uncompared, GitError> {
        let mut found = ignored::of(&self.git, &self.git_dir, &self.status, &self.nested.places)?;
        if self.git_dir.starts_with(&self.site.tree) {
            let beyond = beyond_git::of(&self.git)?;
            found.files.extend(beyond.files);
            found.guesses.extend(beyond.guesses);
        }
        Ok(found)
    }

    /// Everything in it that is not committed to its own repository.
    fn baseline(&self) -> Result<Baseline, GitError> {
        let found = self.uncompared()?;
        let mut given = Baseline { ignored: found.files, modules: Vec::new() };
        for inner in self.inner().found {
            given.modules.extend(inner.status.head);
            given.ignored.extend(inner.uncompared.files);
        }
        Ok(given)
    }
}

/// Git in the tree. A worktree has the settings of the host's repository, and so the filters that the operator chose.
fn git_in(site: &Site, isolation: Isolation, deadline: GitDeadline) -> Result<Git, GitError> {
    let git = Git::in_tree(&site.tree, deadline);
    Ok(if isolation == Isolation::Clone { git.without_own_filters()? } else { git })
}

/// The stashes that were made in this tree. All worktrees of a repository share one list.
fn stashes(
    git: &Git,
    refs: &[Ref],
    record: &TreeRecord,
    status: &GitStatus,
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
fn is_from_here(message: &str, record: &TreeRecord, status: &GitStatus, trail: &gitdir::Trail) -> bool {
    let on = message.strip_prefix("WIP on ").or_else(|| message.strip_prefix("On "));
    let Some((branch, _)) = on.and_then(|rest| rest.split_once(": ")) else { return true };
    branch == "(no branch)"
        || [&record.branch, &status.branch].into_iter().flatten().any(|name| name == branch)
        || trail.branches.contains(branch)
}

/// What is in a tree before its set-up runs: see [`settle`].
#[derive(Debug, Default)]
pub struct BeforeSetup(Baseline);

/// What the tree of `mount` holds now, to be compared after its set-up has run.
pub fn before_setup(instance_dir: &Path, mount: &Mount, limit: Duration) -> Result<BeforeSetup, GitError> {
    let Some(site) = Site::of(instance_dir, mount) else { return Ok(BeforeSetup(Baseline::default())) };
    let tree = Tree::open(&site, mount.isolation, GitDeadline::within(limit))?;
    Ok(BeforeSetup(tree.baseline()?))
}

/// Takes what the set-up made in the tree of `mount`, about which no operator wants to be asked, as given and not as work: what
/// is there now, and was not there, or not the same, before. What a person left there between two set-ups stays work.
pub fn settle(
    instance_dir: &Path,
    mount: &Mount,
    before: &BeforeSetup,
    limit: Duration,
) -> Result<(), GitError> {
    let Some(site) = Site::of(instance_dir, mount) else { return Ok(()) };
    let now = Tree::open(&site, mount.isolation, GitDeadline::within(limit))?.baseline()?;
    let mut given = site.read::<Baseline>(BASELINE)?.unwrap_or_default();
    let BeforeSetup(before) = before;
    given
        .ignored
        .extend(now.ignored.into_iter().filter(|(path, stamp)| before.ignored.get(path) != Some(stamp)));
    given.modules.extend(now.modules.into_iter().filter(|oid| !before.modules.contains(oid)));
    site.write(BASELINE, &given)
}

/// Takes everything that is in a tree which was just made as given.
pub(crate) fn settle_new(site: &Site, isolation: Isolation, deadline: GitDeadline) -> Result<(), GitError> {
    site.write(BASELINE, &Tree::open(site, isolation, deadline)?.baseline()?)
}
