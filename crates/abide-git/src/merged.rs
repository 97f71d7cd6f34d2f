//! Work that was merged as other commits: rebased, or squashed into one.

use std::collections::HashSet;
use std::path::Path;

use crate::command::{Git, quoted};
use crate::error::GitError;

/// Beyond these many candidates a merge is not looked for, and the work counts as not merged.
const TARGETS: usize = 8;

/// Whether one of `targets` has everything that `tip` changed, as commits of its own. Not finding out means no.
///
/// `spare` is a directory that does not exist yet, for objects that are needed for the question only.
pub(crate) fn into_any(git: &Git, tip: &str, targets: &[&str], spare: &Path) -> bool {
    targets.iter().take(TARGETS).any(|target| {
        let merged = rebased(git, tip, target).and_then(|yes| Ok(yes || squashed(git, tip, target, spare)?));
        let _ = std::fs::remove_dir_all(spare);
        merged.unwrap_or_else(|error| {
            tracing::debug!(tip, target, "could not find out whether it was merged: {error}");
            false
        })
    })
}

/// Whether for each commit of `tip` there is one in `target` with the same patch, and none of them is a merge, which can
/// hold work that no patch shows.
fn rebased(git: &Git, tip: &str, target: &str) -> Result<bool, GitError> {
    let both = format!("{target}...{tip}");
    let marked = |side| git.text(["rev-list", "--cherry-mark", side, &both]);
    let ours = marked("--right-only")?;
    if ours.is_empty() || !ours.lines().all(|line| line.starts_with('=')) {
        return Ok(false);
    }
    // These marks are set without regard to whitespace, which may be all the difference there is.
    let theirs = marked("--left-only")?;
    let theirs: HashSet<_> = patches(git, &theirs)?.into_iter().collect();
    let mine = patches(git, &ours)?;
    Ok(mine.len() == ours.lines().count() && mine.iter().all(|patch| theirs.contains(patch)))
}

/// The exact patches of those commits that are marked as having an equal; an empty commit has none.
fn patches(git: &Git, marked: &str) -> Result<Vec<String>, GitError> {
    let commits = marked.lines().filter_map(|line| line.strip_prefix('='));
    let commits: String = commits.flat_map(|oid| [oid, "\n"]).collect();
    let args = ["diff-tree", "--stdin", "--root", "-p", "--full-index", "--no-ext-diff", "--no-textconv"];
    let diffs = git.fed(args, commits.as_bytes())?;
    let ids = git.fed(["patch-id", "--verbatim"], &diffs.stdout)?.text();
    Ok(ids.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect())
}

/// Whether one commit in `target` has the patch that all commits of `tip` make together.
fn squashed(git: &Git, tip: &str, target: &str, spare: &Path) -> Result<bool, GitError> {
    let fork = git.text(["merge-base", target, tip])?;
    let trees = git.text(["rev-parse", &format!("{tip}^{{tree}}"), &format!("{fork}^{{tree}}")])?;
    let Some((tree, before)) = trees.split_once('\n') else { return Ok(false) };
    // Work that was taken back again changes nothing, and would be found everywhere.
    if tree == before {
        return Ok(false);
    }
    let objects = git.path(["rev-parse", "--path-format=absolute", "--git-path", "objects"])?;
    let aside = git
        .clone()
        .with("GIT_OBJECT_DIRECTORY", spare)
        .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&objects))
        .with("GIT_AUTHOR_NAME", "abide")
        .with("GIT_AUTHOR_EMAIL", "abide@localhost")
        .with("GIT_COMMITTER_NAME", "abide")
        .with("GIT_COMMITTER_EMAIL", "abide@localhost");
    let _ = std::fs::create_dir_all(spare);
    let whole = aside.text(["commit-tree", tree, "-p", &fork, "-m", "everything at once"])?;
    rebased(&aside, &whole, target)
}
