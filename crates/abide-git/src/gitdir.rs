//! What git keeps for one working tree: where that is, what goes on there, where HEAD has been. Plain files are read as
//! such; only where refs are not in files of their own is git asked for them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use abide_model::Isolation;

use crate::command::{Git, GitDeadline};
use crate::error::{GitError, GitStep as _};
use crate::evidence::refs;

/// Larger files in a git directory hold no ids of commits that matter.
const SMALL: u64 = 4 << 20;

/// The git directory of the tree at `tree`, made as `isolation`.
pub(crate) fn of_tree(tree: &Path, isolation: Isolation) -> Result<PathBuf, GitError> {
    let broken = |reason| Err(GitError::Broken { path: tree.to_owned(), reason });
    let link = tree.join(".git");
    if tree.symlink_metadata().is_err() {
        return broken("it is gone; a resume recreates a worktree from its branch, if that still exists");
    }
    let Ok(meta) = fs::symlink_metadata(&link) else { return broken("its .git is missing") };
    match isolation {
        Isolation::Clone if meta.is_dir() => Ok(link),
        Isolation::Worktree if meta.is_file() => {
            let bytes = fs::read(&link).doing("read", &link)?;
            match bytes.strip_prefix(b"gitdir: ").map(path_in) {
                Some(dir) if dir.join("HEAD").exists() => Ok(dir),
                Some(_) => broken("the repository no longer knows this worktree"),
                None => broken("its .git file is damaged"),
            }
        }
        _ => broken("its .git was replaced"),
    }
}

/// A path as git writes it into a file, with a line break after it.
pub(crate) fn path_in(bytes: &[u8]) -> PathBuf {
    std::ffi::OsString::from_vec(bytes.strip_suffix(b"\n").unwrap_or(bytes).to_vec()).into()
}

/// Every worktree that `repo` knows: where it keeps what belongs to it, and where it is.
pub(crate) fn registrations(repo: &Path) -> Result<Vec<(PathBuf, PathBuf)>, GitError> {
    let dir = repo.join("worktrees");
    let entries = match fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(GitError::io("read", &dir, error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let admin = entry.doing("read", &dir)?.path();
        let Ok(bytes) = fs::read(admin.join("gitdir")) else { continue };
        // A relative path is relative to the directory it is written in.
        let tree = admin.join(path_in(&bytes)).parent().map(Path::to_owned).unwrap_or_default();
        found.push((admin, tree));
    }
    Ok(found)
}

/// Git with the git directory `dir` of the repository that `repo` is in, wherever that directory was moved to.
pub(crate) fn git(dir: &Path, repo: &Git) -> Git {
    repo.clone().with("GIT_DIR", dir).with("GIT_COMMON_DIR", repo.dir())
}

/// Whether the refs of the git directory `dir` are where only git can read them: HEAD is there for show then.
pub(crate) fn is_closed(dir: &Path) -> bool {
    head(dir).is_some_and(|head| head == "ref: refs/heads/.invalid")
}

fn head(dir: &Path) -> Option<String> {
    fs::read_to_string(dir.join("HEAD")).ok().map(|text| text.trim_end().to_owned())
}

/// The branch that the worktree whose git directory is `dir` has checked out, as a full name; `repo` is git in the
/// repository.
pub(crate) fn head_branch(dir: &Path, repo: &Git) -> Result<Option<String>, GitError> {
    if !is_closed(dir) {
        return Ok(head(dir).and_then(|head| head.strip_prefix("ref: ").map(str::to_owned)));
    }
    let out = git(dir, repo).try_run(["symbolic-ref", "-q", "HEAD"])?;
    match out.status.code() {
        Some(0) => Ok(Some(out.text())),
        Some(1) => Ok(None),
        _ => Err(GitError::Broken {
            path: dir.to_owned(),
            reason: "its HEAD cannot be read; try `git status` in the tree",
        }),
    }
}

/// What is under way in the tree and not finished.
pub(crate) fn operation(dir: &Path) -> Option<&'static str> {
    const MARKS: [(&str, &str); 8] = [
        ("rebase-apply/applying", "am"),
        ("rebase-apply", "rebase"),
        ("rebase-merge", "rebase"),
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("sequencer", "cherry-pick or revert"),
        ("BISECT_LOG", "bisect"),
    ];
    MARKS.iter().find(|(mark, _)| dir.join(mark).exists()).map(|(_, name)| *name)
}

/// Where the HEAD of one tree has been.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    /// Every commit it was at.
    pub commits: BTreeSet<String>,
    /// Branches it was on, by their short names.
    pub branches: BTreeSet<String>,
    /// Commits it was at without a branch, when something else was checked out: nothing but this log names them.
    pub left: BTreeSet<String>,
}

/// Reads the log of HEAD in the git directory `dir`, which `git` is in; without one, HEAD has been nowhere.
pub(crate) fn trail(git: &Git, dir: &Path) -> Result<Trail, GitError> {
    let mut trail = Trail::default();
    let log = match is_closed(dir) {
        true => closed_log(git, dir)?,
        false => fs::read(dir.join("logs/HEAD")).unwrap_or_default(),
    };
    for line in String::from_utf8_lossy(&log).lines() {
        let (ids, message) = line.split_once('\t').unwrap_or((line, ""));
        trail.commits.extend(ids.split(' ').take(2).filter(|id| is_id(id.as_bytes())).map(str::to_owned));
        let Some((from, to)) =
            message.strip_prefix("checkout: moving from ").and_then(|rest| rest.split_once(" to "))
        else {
            continue;
        };
        let set = if is_id(from.as_bytes()) { &mut trail.left } else { &mut trail.branches };
        set.insert(from.to_owned());
        trail.branches.insert(to.to_owned());
    }
    Ok(trail)
}

/// Every commit that the logs of HEAD, and of the refs called `names`, have in the repository `dir`: as long as they do,
/// git keeps it there.
pub(crate) fn logged<'a>(
    dir: &Path,
    deadline: GitDeadline,
    names: impl Iterator<Item = &'a String>,
) -> Result<BTreeSet<String>, GitError> {
    let mut found = trail(&Git::of_repository(dir, deadline), dir)?.commits;
    for name in names {
        found.extend(ids(&fs::read(dir.join("logs").join(name)).unwrap_or_default()));
    }
    Ok(found)
}

/// The log of HEAD as git tells it: each line a commit and the message.
fn closed_log(git: &Git, dir: &Path) -> Result<Vec<u8>, GitError> {
    if git.try_run(["reflog", "exists", "HEAD"])?.status.code() == Some(1) {
        return Ok(Vec::new());
    }
    if !git.try_run(["rev-parse", "--verify", "-q", "HEAD"])?.status.success() {
        let reason =
            "HEAD has no commit, so git cannot say where it was; commit something there, then try again";
        return Err(GitError::Broken { path: dir.to_owned(), reason });
    }
    Ok(git.run(["log", "-g", "--no-show-signature", "--format=%H%x09%gs", "HEAD", "--"])?.stdout)
}

fn is_id(word: &[u8]) -> bool {
    matches!(word.len(), 40 | 64)
        && word.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b))
        && word.iter().any(|b| *b != b'0')
}

/// Every object id in the text.
fn ids(bytes: &[u8]) -> impl Iterator<Item = String> {
    let words = bytes.split(|b| !b.is_ascii_alphanumeric()).filter(|word| is_id(word));
    words.map(|word| String::from_utf8_lossy(word).into_owned())
}

/// Every object id that the small files of a worktree's git directory name: HEAD, its log, the state of a rebase. `git`
/// is in that directory.
///
/// Reading them all instead of a list of known names means that an operation this was not written for is kept whole.
pub(crate) fn ids_in(git: &Git, dir: &Path) -> Result<BTreeSet<String>, GitError> {
    let mut found = BTreeSet::new();
    if is_closed(dir) {
        found = trail(git, dir)?.commits;
        let out = git.run(["for-each-ref", "--include-root-refs", "--format=%(objectname) %(refname)"])?;
        let text = out.text();
        let all = text.lines().filter_map(|line| line.split_once(' '));
        let own = all.filter(|(_, name)| !name.starts_with("refs/") || refs::is_of_one_worktree(name));
        found.extend(own.map(|(id, _)| id.to_owned()));
    }
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let Ok(meta) = entry.path().symlink_metadata() else { continue };
            let name = entry.file_name();
            // Submodules have object stores of their own; the index is read by git.
            if meta.is_dir() && name != "modules" {
                open.push(entry.path());
            } else if meta.is_file() && meta.len() <= SMALL && !name.as_bytes().starts_with(b"index") {
                let bytes = fs::read(entry.path()).unwrap_or_default();
                found.extend(ids(&bytes));
            }
        }
    }
    Ok(found)
}

/// The git directories of the submodules whose superproject has the git directory `dir`, however deep.
pub(crate) fn modules(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.join("modules")];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            // The name of a submodule may hold slashes, so a directory is one of them or on the way to one.
            if path.join("HEAD").is_file() && path.join("objects").is_dir() {
                open.push(path.join("modules"));
                found.push(path);
            } else {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Where the file `.git` in `tree` leads to; none if it is no such file.
pub(crate) fn linked(tree: &Path) -> Option<PathBuf> {
    let bytes = fs::read(tree.join(".git")).ok()?;
    bytes.strip_prefix(b"gitdir: ").map(|path| tree.join(path_in(path)))
}

/// The repository that the worktree at `tree` says it belongs to, if that knows it.
pub(crate) fn repository_of(tree: &Path) -> Option<PathBuf> {
    let admin = linked(tree)?;
    let common = fs::read(admin.join("commondir")).ok()?;
    admin.join(path_in(&common)).canonicalize().ok()
}

/// `path` without steps up, also where nothing is there any more.
pub(crate) fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
        plain
    })
}
