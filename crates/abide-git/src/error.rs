//! What can go wrong, each with what to do next.

use std::io;
use std::path::{Path, PathBuf};

use abide_sys::run::RunError;

/// Why something about a tree could not be done or found out.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no repository to take a tree from.
    #[error("{} is not in a git repository; give it as `shared`, or run `git init` there", .0.display())]
    NotARepository(PathBuf),
    /// There is nothing yet that a worktree could hold.
    #[error("{} has no commit yet, and this version of git cannot make a worktree of it; commit something, or use `clone`", .0.display())]
    NoCommit(PathBuf),
    /// The base names no commit.
    #[error("`{name}` names no commit in {}; `git branch -a` lists its branches", repo.display())]
    NoSuchBase {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        repo: PathBuf,
    },
    /// The branch does not exist.
    #[error("{} has no branch `{name}`; make it with `git branch {name}`, or start from a commit with `--base`", repo.display())]
    NoSuchBranch {
        /// What was asked for.
        name: String,
        /// Where it was looked for.
        repo: PathBuf,
    },
    /// A branch can be checked out in one worktree at a time.
    #[error("branch `{name}` is checked out elsewhere; use `--base {name}` for a new branch, or `clone`")]
    BranchInUse { name: String },
    /// The repository that a worktree belongs to is not there.
    #[error("the repository {} is gone; put it back and try again, or copy the files out of the tree", .0.display())]
    RepositoryGone(PathBuf),
    /// The repository that a worktree belongs to was moved, or is gone.
    #[error(
        "the repository {} was moved or removed; put it back, or run `git worktree repair {}` in its new place",
        repo.display(), tree.display()
    )]
    RepositoryMoved { repo: PathBuf, tree: PathBuf },
    /// Something that is not ours is in the way.
    #[error("{} is in the way and is left alone; move it away, then try again", .0.display())]
    InTheWay(PathBuf),
    /// A path cannot be written down.
    #[error("{} is not UTF-8 and cannot be recorded; rename it, or give it as `shared`", .0.display())]
    NotText(PathBuf),
    /// What was written down about a tree cannot be read.
    #[error("{} cannot be parsed ({reason}); the tree is left as it is", path.display())]
    Record {
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// How a tree was made is not known any more.
    #[error(
        "{} is lost ({reason}); `abide resume` recreates it from the tree, `abide eject` moves the tree to the trash anyway", path.display()
    )]
    LostRecord {
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A tree is not what its record says.
    #[error("{}: {reason}", path.display())]
    Broken {
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Git could not look at something.
    #[error("{0}")]
    Unreadable(String),
    /// This git cannot try a merge.
    #[error("it is unknown whether it was merged: that needs git 2.38 or later")]
    TooOld,
    /// The repository at the recorded path is not the one that a tree came from.
    #[error(
        "{} lacks {missing}: it is not the repository that the tree came from, or its history was rewritten; \
         restore the original and try again, or copy the files out of {}", repo.display(), tree.display()
    )]
    AnotherRepository {
        repo: PathBuf,
        /// What the tree needs and it does not have.
        missing: String,
        tree: PathBuf,
    },
    /// Git failed, or did not answer in time.
    #[error(transparent)]
    Git(#[from] RunError),
    /// The system refused something.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        doing: &'static str,
        /// What it was about.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl GitError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source }
    }
}

/// Gives what the system refused its context.
pub(crate) trait GitStep<T> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, GitError>;
}

impl<T, E: Into<io::Error>> GitStep<T> for Result<T, E> {
    fn doing(self, doing: &'static str, path: &Path) -> Result<T, GitError> {
        self.map_err(|error| GitError::io(doing, path, error.into()))
    }
}
