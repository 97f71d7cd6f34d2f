//! Work that was merged as other commits: rebased, or squashed into one.
//!
//! It was if merging it once more, into the target or into a commit of the target's history since the work began, changes
//! nothing. Equal patches alone do not say so: a patch does not know where in a file it was made.

use std::collections::BTreeSet;
use std::path::Path;

use abide_sys::run::RunError;

use crate::command::{Git, quoted};
use crate::error::GitError;

/// Beyond these many candidates a merge is not looked for, and the work counts as not merged.
const TARGETS: usize = 8;

/// As many commits of a target's history are tried.
const TRIED: usize = 64;

/// Whether work was merged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    Yes,
    No,
    /// It could not be found out, for this reason.
    Unknown(String),
}

/// Whether one of `targets` has everything that `tip` changed, as commits of its own.
///
/// `spare` is a directory that does not exist yet, for objects that are needed for the question only.
pub(crate) fn into_any(git: &Git, tip: &str, targets: &[&str], spare: &Path) -> Merged {
    let mut result = Merged::No;
    for target in targets.iter().take(TARGETS) {
        let merged = into(git, tip, target, spare);
        let _ = std::fs::remove_dir_all(spare);
        match merged {
            Ok(true) => return Merged::Yes,
            Ok(false) => {}
            Err(GitError::TooOld) => result = Merged::Unknown(GitError::TooOld.to_string()),
            // The work counts as not merged then, which is the safe side.
            Err(error) => tracing::debug!(tip, target, "could not find out whether it was merged: {error}"),
        }
    }
    result
}

fn into(git: &Git, tip: &str, target: &str, spare: &Path) -> Result<bool, GitError> {
    let fork = git.text(["merge-base", target, tip])?;
    let trees = git.text(["rev-parse", &format!("{tip}^{{tree}}"), &format!("{fork}^{{tree}}")])?;
    // Work that was taken back again changes nothing, and would be found everywhere.
    if trees.split_once('\n').is_none_or(|(after, before)| after == before) {
        return Ok(false);
    }
    let git = aside(git, spare)?;
    if changes_nothing(&git, tip, target)? {
        return Ok(true);
    }
    // The target went on from there and changed the same places again. Only what touched the same files can have been it.
    let range = format!("{fork}..{target}");
    let files = git.run(["diff-tree", "-r", "-z", "--name-only", "--no-renames", &fork, tip])?.stdout;
    let files = [b"--\0".to_vec(), files].concat();
    let args = ["--literal-pathspecs", "rev-list", "--full-history", &range, "--stdin"];
    let touched = git.fed(args, &lines(&files))?.text();
    let mut tried = BTreeSet::from([target.to_owned()]);
    for commit in touched.lines().take(TRIED) {
        if tried.insert(commit.to_owned()) && changes_nothing(&git, tip, commit)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The paths of a list that ends each with a zero, one per line; one with a line break in it is left out.
fn lines(paths: &[u8]) -> Vec<u8> {
    let paths = paths.split(|byte| *byte == 0).filter(|path| !path.is_empty() && !path.contains(&b'\n'));
    paths.flat_map(|path| [path, b"\n"].concat()).collect()
}

/// Git that writes its objects to `spare`, and merges without the help of other programs: one that always keeps one side
/// would make everything look merged.
fn aside(git: &Git, spare: &Path) -> Result<Git, GitError> {
    let objects = git.path(["rev-parse", "--path-format=absolute", "--git-path", "objects"])?;
    let drivers = git.try_run(["config", "-z", "--name-only", "--get-regexp", r"^merge\..*\.driver$"])?;
    let _ = std::fs::create_dir_all(spare);
    let mut aside = git
        .clone()
        .with("GIT_OBJECT_DIRECTORY", spare)
        .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&objects))
        .configured("merge.renormalize", "false");
    for key in String::from_utf8_lossy(&drivers.stdout).split('\0').filter(|key| !key.is_empty()) {
        aside = aside.configured(key, "false");
    }
    Ok(aside)
}

/// Whether merging `tip` into `commit` gives what `commit` is already.
fn changes_nothing(git: &Git, tip: &str, commit: &str) -> Result<bool, GitError> {
    let out = git.try_run(["merge-tree", "--write-tree", "--no-messages", commit, tip])?;
    match out.status.code() {
        Some(0) => Ok(out.text() == git.text(["rev-parse", &format!("{commit}^{{tree}}")])?),
        // A conflict.
        Some(1) => Ok(false),
        _ if out.stderr.contains("usage:") => Err(GitError::TooOld),
        _ => {
            Err(RunError::Failed { program: "git".to_owned(), status: out.status, stderr: out.stderr }.into())
        }
    }
}
