//! What the host's repository knows of our worktrees: which they are, and how it forgets one.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_model::InstanceId;
use abide_sys::clock::eventually;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::command::{Git, GitDeadline};
use crate::error::{GitError, GitStep as _};
use crate::evidence::ahead::SafeCommits;
use crate::evidence::refs::{self, HEADS, SCRATCH};
use crate::gitdir;

/// A worktree of ours that a repository knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub id: InstanceId,
    /// Where the tree should be.
    pub tree: PathBuf,
    /// The branch it has checked out; none for a detached HEAD.
    pub branch: Option<String>,
    repo: PathBuf,
    admin: PathBuf,
}

/// Why our worktrees are locked; it also says whose they are.
pub(crate) fn reason(id: InstanceId) -> String {
    format!("in use by abide {}", id.display_name())
}

fn owner(admin: &Path) -> Option<InstanceId> {
    let reason = fs::read_to_string(admin.join("locked")).ok()?;
    reason.trim_end().strip_prefix("in use by abide ab-")?.parse().ok()
}

/// The worktrees of the repository that `dir` is in that belong to instances.
pub fn registered(dir: &Path, limit: Duration) -> Result<Vec<Registration>, GitError> {
    let git = Git::at(dir, GitDeadline::within(limit));
    let repo = git.path(["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
    let git = Git::of_repository(&repo, git.deadline());
    let mut found = Vec::new();
    for (admin, tree) in gitdir::registrations(&repo)? {
        let Some(id) = owner(&admin) else { continue };
        let branch = gitdir::head_branch(&admin, &git)?;
        let branch = branch.and_then(|full| full.strip_prefix(HEADS).map(str::to_owned));
        found.push(Registration { id, tree, branch, repo: repo.clone(), admin });
    }
    Ok(found)
}

/// What became of a worktree whose instance is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forgotten {
    /// Nothing of it is left.
    Whole,
    /// Its branch stays, because it has commits that nothing else has.
    KeptBranch(String),
    /// All of it stays, for this reason.
    Kept(&'static str),
}

impl Registration {
    /// The commands by which the operator makes the repository forget it.
    pub fn by_hand(&self) -> String {
        let (repo, tree) = (self.repo.display(), self.tree.display());
        format!("`git -C {repo} worktree unlock {tree}` and `git -C {repo} worktree prune`")
    }

    /// Why forgetting the worktree could lose something, if it could: its git directory alone has the index, the state of
    /// an operation, and commits that it was at without a branch.
    pub fn only_copy(&self, limit: Duration) -> Result<Option<&'static str>, GitError> {
        let repo = Git::of_repository(&self.repo, GitDeadline::within(limit));
        let git = gitdir::git(&self.admin, &repo);
        if gitdir::operation(&self.admin).is_some() {
            return Ok(Some("it is in the middle of a merge, a rebase or the like"));
        }
        if self.admin.join("index").exists()
            && !git.try_run(["diff-index", "--cached", "--quiet", "HEAD", "--"])?.status.success()
        {
            return Ok(Some("its index has staged changes that nothing else may have"));
        }
        let mut tips = gitdir::trail(&git, &self.admin)?.left;
        if self.branch.is_none() {
            tips.insert(git.text(["rev-parse", "--verify", "HEAD"])?);
        }
        let refs = refs::all(&repo)?;
        let kept = refs.iter().filter(|r| refs::keeps(&r.name)).map(|r| &r.oid);
        let only_here = SafeCommits::new(&repo, kept).beyond(tips.iter().map(String::as_str))?;
        Ok((!only_here.is_empty()).then_some("its HEAD was at commits that nothing else has"))
    }
}

/// Makes the repository forget a worktree whose tree is gone. To be called only if its instance is gone too.
pub fn forget(registration: &Registration, limit: Duration) -> Result<Forgotten, GitError> {
    let Registration { id, tree, branch, repo, admin } = registration;
    if tree.symlink_metadata().is_ok() {
        return Ok(Forgotten::Kept("its tree is still there"));
    }
    if owner(admin) != Some(*id) {
        return Ok(Forgotten::Kept("it no longer belongs to abide"));
    }
    if let Some(why) = registration.only_copy(limit)? {
        return Ok(Forgotten::Kept(why));
    }
    let git = Git::of_repository(repo, GitDeadline::within(limit));
    let refs = refs::all(&git)?;
    let full = branch.as_ref().map(|name| format!("{HEADS}{name}"));
    let tip = full.as_ref().and_then(|full| refs.iter().find(|r| r.name == *full)).map(|r| r.oid.clone());
    let kept = refs.iter().filter(|r| refs::keeps(&r.name)).map(|r| &r.oid);
    let only_copy = !SafeCommits::new(&git, kept).beyond(tip.as_deref())?.is_empty();
    // The branch before the registration: after a crash in between, the registration still leads here.
    let kept_branch = match (full, tip) {
        (Some(_), Some(_)) if only_copy => branch.clone(),
        (Some(full), Some(tip)) if full.starts_with(SCRATCH) => {
            git.run(["update-ref", "-d", &full, &tip])?;
            None
        }
        _ => None,
    };
    remove(repo, admin)?;
    Ok(kept_branch.map_or(Forgotten::Whole, Forgotten::KeptBranch))
}

/// Waits until no other tree is being registered in `repo`, for as long as what is returned is held: git takes another's
/// half-written registration for a damaged one, and gives up. The lock is on the directory itself, so it leaves no file.
pub(crate) fn turn(repo: &Path, deadline: GitDeadline) -> Result<File, GitError> {
    let dir = File::open(repo).doing("open", repo)?;
    // Where locks do not work, there is no more to be done than what git itself does.
    let is_taken = || flock(&dir, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    match eventually(deadline.left(), || !is_taken()) {
        true => Ok(dir),
        false => Err(GitError::io("wait for a turn in", repo, io::ErrorKind::TimedOut.into())),
    }
}

/// The directory in which `repo` keeps what belongs to the worktree at `tree`, also if that has moved since with the
/// instance directory that it is in, and so with the name of its instance.
pub(crate) fn of_tree(repo: &Path, tree: &Path) -> Result<Option<PathBuf>, GitError> {
    let known = gitdir::registrations(repo)?;
    let id = tree.ancestors().nth(2).and_then(Path::file_name).and_then(|name| name.to_str()?.parse().ok());
    // Where something is at the old place, ours is a copy of it.
    let moved = |(admin, at): &&(PathBuf, PathBuf)| {
        id.is_some()
            && owner(admin) == id
            && at.file_name() == tree.file_name()
            && at.symlink_metadata().is_err()
    };
    let found = known.iter().find(|(_, at)| at == tree).or_else(|| known.iter().find(moved));
    Ok(found.map(|(admin, _)| admin.clone()))
}

/// Deletes what `repo` keeps for a worktree, as `git worktree prune` would. The file by which it is found goes last, so
/// that a deletion which was cut short is found again.
pub(crate) fn remove(repo: &Path, admin: &Path) -> Result<(), GitError> {
    let delete = || -> io::Result<()> {
        for entry in fs::read_dir(admin)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false if entry.file_name() != "gitdir" => fs::remove_file(entry.path())?,
                false => {}
            }
        }
        fs::remove_dir_all(admin)
    };
    match delete() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::io("remove", admin, error)),
        _ => {
            tidy(repo);
            Ok(())
        }
    }
}

/// Removes the directory of worktrees once it is empty, as git does.
pub(crate) fn tidy(repo: &Path) {
    let _ = fs::remove_dir(repo.join("worktrees"));
}
