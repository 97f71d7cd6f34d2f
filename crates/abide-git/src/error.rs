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
    #[error("{} has no commit yet and this git can not make a worktree of that; commit something, or use `clone`", .0.display())]
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
    #[error(
        "branch `{name}` is checked out elsewhere; use `--base {name}` for a branch of its own, or `clone`"
    )]
    BranchInUse { name: String },
    /// The repository that a worktree belongs to is not there.
    #[error("the repository {} is gone; put it back and try again, or copy the files out of the tree", .0.display())]
    RepositoryGone(PathBuf),
    /// The repository that a worktree belongs to was moved, or is gone.
    #[error(
        "the repository {} is not where it was; put it back, or run `git worktree repair {}` where it is now",
        repo.display(), tree.display()
    )]
    RepositoryMoved { repo: PathBuf, tree: PathBuf },
    /// Something that is not ours is in the way.
    #[error("{} is in the way and is left alone; move it away, then try again", .0.display())]
    InTheWay(PathBuf),
    /// A path can not be written down.
    #[error("{} is not UTF-8 and can not be recorded; rename it, or give it as `shared`", .0.display())]
    NotText(PathBuf),
    /// What was written down about a tree can not be read.
    #[error("{} cannot be understood ({reason}); the tree is left as it is", path.display())]
    Record {
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// How a tree was made is not known any more.
    #[error(
        "{} is lost ({reason}); `abide resume` makes it again from what the tree says, `abide eject` moves the tree to the \
         trash all the same", path.display()
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
    /// This git can not try a merge.
    #[error("whether it was merged can not be found out: this git is older than 2.38, which can try a merge")]
    TooOld,
    /// The repository at the recorded path is not the one that a tree came from.
    #[error(
        "{} lacks {missing}: it is another repository than the one the tree came from, or its history was rewritten; \
         put that one back and try again, or copy the files out of {}", repo.display(), tree.display()
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
