//! Whether the host's repository moved on while a tree was kept.

use std::path::Path;
use std::time::Duration;

use abide_model::recipe::Mount;

use crate::command::{Git, GitDeadline};
use crate::error::GitError;
use crate::evidence::refs::{self, short};
use crate::site::Site;

/// How the branch that a tree began at differs from what it was then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
    /// It has new commits, and perhaps lost some.
    Moved {
        branch: String,
        /// Commits it has now and had not then.
        new: u64,
        /// Commits it had then and has not now: it was rewritten.
        lost: u64,
    },
    Gone {
        branch: String,
    },
    /// The repository itself is gone, or not where it was.
    RepositoryGone,
}

/// How the host's repository diverged since the tree of `mount` was made; `None` if it did not.
pub fn adrift(instance_dir: &Path, mount: &Mount, limit: Duration) -> Result<Option<Drift>, GitError> {
    let Some(site) = Site::of(instance_dir, mount) else { return Ok(None) };
    let Some(record) = site.record()? else { return Ok(None) };
    let (Some(name), Some(then)) = (record.base_branch, record.base) else { return Ok(None) };
    // The tree's own work on a branch is not the host's.
    if record.branch.as_deref() == Some(short(&name)) && record.isolation == abide_model::Isolation::Worktree
    {
        return Ok(None);
    }
    if !record.repo.is_dir() {
        return Ok(Some(Drift::RepositoryGone));
    }
    let git = Git::of_repository(&record.repo, GitDeadline::within(limit));
    let branch = short(&name).to_owned();
    let now = refs::all(&git)?.into_iter().find(|r| r.name == name).map(|r| r.oid);
    let Some(now) = now else { return Ok(Some(Drift::Gone { branch })) };
    if now == then {
        return Ok(None);
    }
    let counts = git.text(["rev-list", "--left-right", "--count", &format!("{then}...{now}"), "--"])?;
    let (lost, new) = counts.split_once('\t').unwrap_or_default();
    let number = |text: &str| text.parse().unwrap_or(0);
    Ok(Some(Drift::Moved { branch, new: number(new), lost: number(lost) }))
}
