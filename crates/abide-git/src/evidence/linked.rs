//! Worktrees that hang on a repository in a tree of ours: each has its HEAD and its index in there, wherever its files
//! are, and is dead once the repository is gone.

use std::path::{Path, PathBuf};

use abide_model::evidence::{FileChange, MountEvidence};

use crate::command::{Git, GitDeadline};
use crate::error::GitError;
use crate::evidence::ignored;
use crate::evidence::refs::{self, Ref};
use crate::evidence::status::{self, GitStatus};
use crate::gitdir;

/// Everything that such worktrees keep in one repository.
#[derive(Default)]
pub(crate) struct LinkedWorktrees {
    /// Where their files are.
    pub places: Vec<PathBuf>,
    files: Vec<FileChange>,
    unknown: Vec<String>,
    /// Commits that only they name, each with what it is called.
    pub tips: Vec<(String, String)>,
}

impl LinkedWorktrees {
    /// Those of the repository with the git directory `dir`.
    pub(crate) fn of(dir: &Path, deadline: GitDeadline) -> Result<Self, GitError> {
        let mut all = Self::default();
        for (admin, tree) in gitdir::registrations(dir)? {
            let shown = ignored::named(&tree);
            if let Err(error) = all.add(&admin, &tree, &shown, deadline) {
                all.unknown.push(format!("{shown}: {error}"));
            }
            all.places.push(tree);
        }
        Ok(all)
    }

    fn add(&mut self, admin: &Path, tree: &Path, shown: &str, deadline: GitDeadline) -> Result<(), GitError> {
        let git = Git::of_repository(admin, deadline).without_own_filters()?;
        let has_files =
            gitdir::linked(tree).and_then(|dir| dir.canonicalize().ok()) == admin.canonicalize().ok();
        let status =
            if has_files { status::of(&git.clone().with("GIT_WORK_TREE", tree))? } else { staged(&git)? };
        self.files.extend(status.changes.iter().map(|change| FileChange {
            code: change.code.clone(),
            path: format!("{shown}/{}", change.path),
        }));
        self.unknown.extend(status.complaints.iter().map(|said| format!("{shown}: {said}")));
        if let (None, Some(head)) = (&status.branch, status.head) {
            self.tips.push((head, format!("{shown}: HEAD")));
        }
        let trail = gitdir::trail(&git, admin)?;
        self.tips.extend(trail.left.into_iter().map(|oid| {
            let label = format!("{shown}: HEAD at {oid:.10}, left");
            (oid, label)
        }));
        let own = refs::all(&git)?.into_iter().filter(|r| refs::is_of_one_worktree(&r.name));
        self.tips.extend(own.map(|Ref { oid, name, .. }| (oid, format!("{shown}: {name}"))));
        Ok(())
    }

    /// Adds what they have that was never committed to `found`, and names them.
    pub(crate) fn add_to(&self, found: &mut MountEvidence) {
        found.files.extend(self.files.iter().cloned());
        found.unknown.extend(self.unknown.iter().cloned());
        found.linked.extend(self.places.iter().map(|place| ignored::named(place)));
    }
}

/// The status of a worktree whose files are not there: what its index has, and HEAD has not.
fn staged(git: &Git) -> Result<GitStatus, GitError> {
    let head = git.try_run(["rev-parse", "--verify", "-q", "HEAD"])?.text();
    let branch = git.try_run(["symbolic-ref", "-q", "--short", "HEAD"])?.text();
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let mut status = GitStatus { head: some(head), branch: some(branch), ..GitStatus::default() };
    if status.head.is_some() {
        let out = git.run(["diff-index", "--cached", "--name-only", "-z", "HEAD", "--"])?;
        let names = out.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        status.changes = names
            .map(|name| FileChange {
                code: "M ".to_owned(),
                path: String::from_utf8_lossy(name).into_owned(),
            })
            .collect();
    }
    Ok(status)
}
