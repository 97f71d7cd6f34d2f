//! Taking a worktree out of the host's repository before its instance directory goes to the trash, with everything that only the
//! repository held of it: objects that nothing else reaches, its index, its HEAD, a rebase under way.
//!
//! The tree itself is not touched. A clone holds all of its repository and needs none of this.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_model::Isolation;
use abide_model::recipe::Mount;
use abide_sys::crash;
use abide_sys::run::RunError;
use serde::{Deserialize, Serialize};

use crate::command::{Git, GitDeadline, quoted};
use crate::error::{GitError, GitStep as _};
use crate::evidence::refs::{self, HEADS, Ref};
use crate::evidence::status::{self, GitStatus};
use crate::make::materialise;
use crate::removal::registration;
use crate::site::{Site, TreeRecord};
use crate::{files, gitdir};

pub(crate) const SAVED: &str = "saved.json";
const ADMIN: &str = "admin";
const OBJECTS: &str = "objects";

/// What is needed to put a worktree back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SavedWorktree {
    /// Where the repository kept what belonged to the worktree; none if it had forgotten the worktree already.
    pub admin: Option<PathBuf>,
    /// The commit HEAD was at.
    pub head: Option<String>,
    /// The commit that the tree's own branch was at, if there was such a branch.
    pub tip: Option<String>,
    /// The settings of that branch.
    pub settings: Vec<(String, String)>,
}

impl Site {
    /// Where a released worktree's part of the repository is.
    pub(crate) fn saved_admin(&self) -> PathBuf {
        self.notes.join(ADMIN)
    }

    /// Where the objects are that nothing else reached.
    pub(crate) fn saved_objects(&self) -> PathBuf {
        self.notes.join(OBJECTS)
    }

    pub(crate) fn packs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.saved_objects().join("pack")).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|e| e == "pack"))
            .collect()
    }

    /// Removes what a release saved, the note about it first: without that, the rest means nothing.
    pub(crate) fn forget_saved(&self) -> Result<(), GitError> {
        files::remove(&self.notes.join(SAVED))?;
        crash::point("git.restore.unnoted");
        files::remove(&self.saved_objects())?;
        files::remove(&self.saved_admin())
    }
}

/// What a release left in the host's repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Released {
    /// The tree's own branch, if another worktree needs it now.
    pub kept_branch: Option<String>,
    /// What stays in a repository that is not where it was, in words.
    pub left: Option<String>,
}

/// Whether the tree of `mount` was released and not yet restored, as far as that got.
pub fn is_released(instance_dir: &Path, mount: &Mount) -> bool {
    Site::of(instance_dir, mount).is_some_and(|site| site.notes.join(SAVED).exists())
}

/// Makes the host's repository forget the tree of `mount`, after saving in the instance directory what only the repository had. Called
/// again after a crash, it finishes; called without need, it does nothing.
pub fn release(instance_dir: &Path, mount: &Mount, limit: Duration) -> Result<Released, GitError> {
    match Site::of(instance_dir, mount) {
        Some(site) => release_site(&site, GitDeadline::within(limit)),
        None => Ok(Released::default()),
    }
}

pub(crate) fn release_site(site: &Site, deadline: GitDeadline) -> Result<Released, GitError> {
    let Some(record) = site.record()? else { return Ok(Released::default()) };
    if !record.complete {
        materialise::undo(site, &record, deadline)?;
        return Ok(Released::default());
    }
    if record.isolation != Isolation::Worktree {
        return Ok(Released::default());
    }
    if !record.repo.is_dir() {
        return Ok(Released { kept_branch: None, left: Some(left_in(&record, &site.tree)) });
    }
    let git = Git::of_repository(&record.repo, deadline).fetching();
    let registered = registration::of_tree(&record.repo, &site.tree)?;
    let saved = match site.read::<SavedWorktree>(SAVED)? {
        Some(saved) => saved,
        None => save(site, &record, &git, registered.clone())?,
    };
    crash::point("git.release.noted");
    if let Some(admin) = registered {
        // A saved copy that is there is whole, so that only the original is left to be removed.
        let kept = site.saved_admin();
        if kept.exists() || !files::move_dir(&admin, &kept, &kept.with_extension("half"))? {
            registration::remove(&record.repo, &admin)?;
        }
        registration::tidy(&record.repo);
    }
    crash::point("git.release.moved");
    let released = delete_branch(&record, &saved, &git)?;
    crash::point("git.release.branch");
    Ok(released)
}

/// What a repository that was moved still has of the tree at `tree`.
fn left_in(record: &TreeRecord, tree: &Path) -> String {
    let (repo, tree) = (record.repo.display(), tree.display());
    let branch = record.branch.as_deref().filter(|_| record.scratch);
    let and = branch.map(|branch| format!(" and the branch {branch}")).unwrap_or_default();
    let delete = branch.map(|branch| format!(" and `git branch -D {branch}`")).unwrap_or_default();
    format!(
        "{repo} was moved or removed; if it was moved, it still has the locked worktree {tree}{and}: \
         `git worktree unlock {tree}`, `git worktree prune`{delete} there remove them"
    )
}

/// Writes down, and packs, what the repository will not have any more.
fn save(
    site: &Site,
    record: &TreeRecord,
    git: &Git,
    admin: Option<PathBuf>,
) -> Result<SavedWorktree, GitError> {
    // Left over from a release that was taken back.
    site.forget_saved()?;
    let refs = refs::all(git)?;
    let tip = refs.iter().find(|r| is_scratch(r, record)).map(|r| r.oid.clone());
    let status = match status::of(&Git::in_tree(&site.tree, git.deadline())) {
        // A tree that git cannot read is kept as it is; there is no more to be had from it.
        Err(RunError::Failed { .. }) => GitStatus::default(),
        status => status?,
    };
    let mut wanted = match &admin {
        Some(admin) => gitdir::ids_in(&gitdir::git(admin, git), admin)?,
        None => BTreeSet::new(),
    };
    let moved = moved_here(record, &status, admin.as_deref(), git)?;
    wanted.extend(status.head.clone());
    wanted.extend(status.staged);
    wanted.extend(tip.clone());
    if status.announces_files {
        // The index names it for each such file.
        wanted.insert(git.text(["hash-object", "-t", "blob", "--stdin"])?);
    }
    pack(site, record, git, &wanted, &refs, &moved)?;
    crash::point("git.release.packed");
    let saved = SavedWorktree { admin, head: status.head, tip, settings: settings(git, record)? };
    site.write(SAVED, &saved)?;
    Ok(saved)
}

/// Whether the ref is the branch that was made for the tree.
fn is_scratch(r: &Ref, record: &TreeRecord) -> bool {
    record.scratch && r.name.strip_prefix(HEADS) == record.branch.as_deref()
}

/// The full names of the branches that the tree has worked on. They stay in the repository, but who knows at which commit.
fn moved_here(
    record: &TreeRecord,
    status: &GitStatus,
    admin: Option<&Path>,
    git: &Git,
) -> Result<BTreeSet<String>, GitError> {
    let mut names: BTreeSet<String> =
        [&record.branch, &status.branch].into_iter().flatten().cloned().collect();
    if let Some(admin) = admin {
        names.extend(gitdir::trail(&gitdir::git(admin, git), admin)?.branches);
    }
    Ok(names.into_iter().map(|name| format!("{HEADS}{name}")).collect())
}

/// Packs what `wanted` reaches and no ref that stays does; those of `moved` only as far as they reached when the tree was
/// made. A bundle would not do: it cannot hold what is only staged.
fn pack(
    site: &Site,
    record: &TreeRecord,
    git: &Git,
    wanted: &BTreeSet<String>,
    refs: &[Ref],
    moved: &BTreeSet<String>,
) -> Result<(), GitError> {
    // A log may name what was collected long ago.
    let mut input: String = existing(git, wanted)?.iter().flat_map(|oid| [oid, "\n"]).collect();
    if input.is_empty() {
        return Ok(());
    }
    let kept = refs.iter().filter(|r| refs::keeps(&r.name) && !is_scratch(r, record));
    let (moved, still): (Vec<&Ref>, Vec<&Ref>) = kept.partition(|r| moved.contains(&r.name));
    let then = moved.iter().filter_map(|r| record.refs.get(&r.name)).cloned().collect();
    let stay = still.into_iter().map(|r| r.oid.clone()).chain(existing(git, &then)?);
    input.extend(stay.map(|oid| format!("^{oid}\n")));
    // Git makes a pack where its objects are and renames it, which leads to no other file system: so they are here.
    let objects = site.saved_objects();
    let packs = objects.join("pack");
    fs::create_dir_all(&packs).doing("create", &packs)?;
    let git = git.clone().with("GIT_OBJECT_DIRECTORY", &objects);
    let git = git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&record.repo.join("objects")));
    let args = ["pack-objects", "-q", "--revs", "--non-empty"].map(AsRef::as_ref);
    git.fed(args.into_iter().chain([packs.join("pack").as_os_str()]), input.as_bytes())?;
    Ok(())
}

/// Those of `oids` that the repository has.
fn existing(git: &Git, oids: &BTreeSet<String>) -> Result<Vec<String>, GitError> {
    let input: String = oids.iter().flat_map(|oid| [oid, "\n"]).collect();
    let there = git.fed(["cat-file", "--batch-check=%(objectname)"], input.as_bytes())?.text();
    Ok(there.lines().filter(|line| !line.contains(' ')).map(str::to_owned).collect())
}

fn settings(git: &Git, record: &TreeRecord) -> Result<Vec<(String, String)>, GitError> {
    let Some(branch) = record.branch.as_ref().filter(|_| record.scratch) else { return Ok(Vec::new()) };
    let prefix = format!("branch.{branch}.");
    let all = git.settings("--local", r"^branch\.")?.into_iter();
    Ok(all.filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?.to_owned(), value))).collect())
}

/// Deletes the tree's own branch, unless it moved since it was saved or is checked out elsewhere.
fn delete_branch(record: &TreeRecord, saved: &SavedWorktree, git: &Git) -> Result<Released, GitError> {
    let (Some(branch), Some(tip)) = (&record.branch, &saved.tip) else { return Ok(Released::default()) };
    let full = format!("{HEADS}{branch}");
    let now = git.try_run(["rev-parse", "--verify", "-q", &full])?;
    let others = gitdir::registrations(&record.repo)?.into_iter().map(|(admin, _)| admin);
    // One whose branch cannot be found out may have this one.
    let used = others
        .chain([record.repo.clone()])
        .any(|dir| gitdir::head_branch(&dir, git).map_or(true, |branch| branch.as_ref() == Some(&full)));
    if now.status.success() && (used || now.text() != *tip) {
        return Ok(Released { kept_branch: Some(branch.clone()), left: None });
    }
    if now.status.success() {
        git.run(["update-ref", "-d", &full, tip])?;
    }
    if !saved.settings.is_empty() {
        git.try_run(["config", "--local", "--remove-section", &format!("branch.{branch}")])?;
    }
    Ok(Released::default())
}
