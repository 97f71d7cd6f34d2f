//! The host's repository, as a tree is about to be taken from it.

use std::path::{Path, PathBuf};

use abide_sys::run::RunError;

use crate::command::{Git, GitDeadline};
use crate::error::GitError;
use crate::evidence::refs::{self, Ref};

/// What is known about the repository that a mount's source is in.
pub(crate) struct SourceRepository {
    pub git: Git,
    /// The directory that all its worktrees share.
    pub repo: PathBuf,
    /// The git directory of the worktree that the source is in.
    pub git_dir: PathBuf,
    /// The top of that worktree; of a bare repository, itself.
    pub top: PathBuf,
    /// Where the source is below the top.
    pub prefix: PathBuf,
    pub bare: bool,
    /// The commit HEAD is at; none before the first.
    pub head: Option<String>,
    /// The full name of the branch HEAD is on.
    pub head_branch: Option<String>,
    pub refs: Vec<Ref>,
}

impl SourceRepository {
    pub(crate) fn at(dir: &Path, deadline: GitDeadline) -> Result<Self, GitError> {
        let dir = dir.canonicalize().map_err(|error| GitError::io("find", dir, error))?;
        let git = Git::at(&dir, deadline).fetching();
        // One path per call: a path may hold the line break that would tell two of them apart.
        let repo = git.path(["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        let repo = repo.map_err(|error| match error {
            RunError::Failed { stderr, .. } if stderr.contains("not a git repository") => {
                GitError::NotARepository(dir.clone())
            }
            error => error.into(),
        })?;
        let git_dir = git.path(["rev-parse", "--absolute-git-dir"])?;
        let bare = git.text(["rev-parse", "--is-bare-repository"])? == "true";
        let prefix = if bare { PathBuf::new() } else { git.path(["rev-parse", "--show-prefix"])? };
        let top = if bare { repo.clone() } else { git.path(["rev-parse", "--show-toplevel"])? };
        let head = git.try_run(["rev-parse", "--verify", "-q", "HEAD^{commit}"])?.text();
        let head_branch = git.try_run(["symbolic-ref", "-q", "HEAD"])?.text();
        let some = |text: String| Some(text).filter(|text| !text.is_empty());
        let refs = refs::all(&git)?;
        Ok(Self {
            repo,
            git_dir,
            top,
            prefix,
            bare,
            head: some(head),
            head_branch: some(head_branch),
            refs,
            git,
        })
    }

    /// The commit of the ref with this full name.
    pub(crate) fn tip(&self, name: &str) -> Option<&str> {
        self.refs.iter().find(|r| r.name == name).map(|r| r.oid.as_str())
    }

    /// What `name` means here: its commit, and the full name of the branch if it is one.
    pub(crate) fn resolve(&self, name: &str) -> Result<(String, Option<String>), GitError> {
        let commit = format!("{name}^{{commit}}");
        let out = self.git.try_run(["rev-parse", "--verify", "-q", "--end-of-options", &commit])?;
        if !out.status.success() {
            return Err(GitError::NoSuchBase { name: name.to_owned(), repo: self.top.clone() });
        }
        let full = [name.to_owned(), format!("{}{name}", refs::HEADS), format!("{}{name}", refs::REMOTES)];
        let full = match name {
            "HEAD" => self.head_branch.clone(),
            _ => full.into_iter().find(|full| self.tip(full).is_some()),
        };
        Ok((out.text(), full))
    }

    /// How many files of the host's tree differ from its HEAD, and so are not in a tree that is taken from a commit.
    pub(crate) fn uncommitted(&self) -> usize {
        if self.bare {
            return 0;
        }
        let out = self.git.run(["status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal"]);
        out.map_or(0, |out| out.stdout.split(|b| *b == 0).filter(|entry| !entry.is_empty()).count())
    }
}
