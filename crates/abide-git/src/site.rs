//! Where a mount's tree is in its instance directory, and what was written down about it when it was made.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use abide_model::recipe::Mount;
use abide_model::{Isolation, Timestamp};
use abide_sys::{atomic, clock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{GitError, GitStep as _};
use crate::gitdir;

const RECORD: &str = "record.json";
const DAMAGED_RECORD: &str = "record.damaged";

/// The places of one mount in its instance directory.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// The worktree or clone.
    pub tree: PathBuf,
    /// What we know about it: beside the tree, so that it moves with it and no agent mistakes it for work.
    pub notes: PathBuf,
    /// What the tree is made of, on the host.
    pub source: PathBuf,
}

impl Site {
    /// Where `mount` is in the instance directory at `instance_dir`; `None` if no tree was ever meant to be there.
    pub(crate) fn of(instance_dir: &Path, mount: &Mount) -> Option<Self> {
        let name = mount.tree.as_deref().filter(|_| mount.isolation != Isolation::Shared)?;
        // Git writes down where a worktree is with all links resolved, and is compared with.
        let instance_dir = instance_dir.canonicalize().unwrap_or_else(|_| instance_dir.to_owned());
        let (tree, notes) = (instance_dir.join("tree").join(name), instance_dir.join("git").join(name));
        Some(Self { tree, notes, source: mount.source.clone() })
    }

    /// The record of the tree; `None` if making it never began. A repository that was moved is where the tree says, once
    /// `git worktree repair` was run there.
    pub(crate) fn record(&self) -> Result<Option<TreeRecord>, GitError> {
        let Some(mut record) = self.read::<TreeRecord>(RECORD)? else { return Ok(None) };
        if record.isolation == Isolation::Worktree && !record.repo.is_dir() {
            record.repo = gitdir::repository_of(&self.tree).unwrap_or(record.repo);
        }
        Ok(Some(record))
    }

    /// Refuses if the repository of a worktree is not where it was.
    pub(crate) fn require_repository(&self, record: &TreeRecord) -> Result<(), GitError> {
        match record.isolation == Isolation::Clone || record.repo.is_dir() {
            true => Ok(()),
            false => Err(GitError::RepositoryMoved { repo: record.repo.clone(), tree: self.tree.clone() }),
        }
    }

    pub(crate) fn record_path(&self) -> PathBuf {
        self.notes.join(RECORD)
    }

    /// Where a damaged record is, once another was made in its place.
    pub(crate) fn damaged_record(&self) -> PathBuf {
        self.notes.join(DAMAGED_RECORD)
    }

    pub(crate) fn write_record(&self, record: &TreeRecord) -> Result<(), GitError> {
        fs::create_dir_all(&self.notes).doing("create", &self.notes)?;
        self.write(RECORD, record)
    }

    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, GitError> {
        let path = self.notes.join(name);
        match fs::read(&path) {
            Ok(bytes) => match serde_json::from_slice(&bytes) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(GitError::Record { path, reason: error.to_string() }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(GitError::io("read", &path, error)),
        }
    }

    pub(crate) fn write(&self, name: &str, value: &impl Serialize) -> Result<(), GitError> {
        let bytes = serde_json::to_vec(value)
            .map_err(|error| GitError::Record { path: self.notes.join(name), reason: error.to_string() })?;
        let dir = File::open(&self.notes).doing("open", &self.notes)?;
        atomic::write(&dir, name, &bytes, 0o600).doing("write", &self.notes.join(name))
    }
}

/// What is remembered of how a tree was made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TreeRecord {
    /// The directory of the host's repository that all its worktrees share.
    pub repo: PathBuf,
    /// Where in the repository the mount's source is.
    pub prefix: PathBuf,
    /// How the tree was made.
    pub isolation: Isolation,
    /// The branch that was checked out; none for a detached HEAD.
    pub branch: Option<String>,
    /// Whether that branch was made for this tree alone, and goes with it.
    pub scratch: bool,
    /// The commit the tree began at; none in a repository without one.
    pub base: Option<String>,
    /// The host's branch that commit was the tip of.
    pub base_branch: Option<String>,
    /// The host's stashes at that time.
    #[serde(default)]
    pub stashes: Vec<String>,
    /// All refs of the host's repository at that time.
    #[serde(default)]
    pub refs: BTreeMap<String, String>,
    pub at: Timestamp,
    /// Whether the tree was finished: no session ever worked in one that was not.
    #[serde(default)]
    pub complete: bool,
}

impl TreeRecord {
    /// Of a worktree of `repo` of which no more is known: its branch is not ours.
    pub(crate) fn of_worktree(repo: &Path) -> Self {
        Self {
            repo: repo.to_owned(),
            prefix: PathBuf::new(),
            isolation: Isolation::Worktree,
            branch: None,
            scratch: false,
            base: None,
            base_branch: None,
            stashes: Vec::new(),
            refs: BTreeMap::new(),
            at: clock::now(),
            complete: true,
        }
    }
}

/// What the tree of a mount of `source` is called, given the names that other mounts of the instance have.
///
/// Agents and people see this name as the project's, so it is the directory's own wherever that is harmless.
pub fn tree_name(source: &Path, taken: &[&str]) -> String {
    let base = source.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let mut name: String = base.chars().take(40).map(safe).collect();
    name = name.trim_matches(['.', '-']).to_owned();
    if name.is_empty() {
        name = "tree".to_owned();
    }
    first_free(&name, |name| !taken.contains(&name))
}

/// `name`, or with the first number after it that makes it free.
pub(crate) fn first_free(name: &str, free: impl Fn(&str) -> bool) -> String {
    let numbered = |n: u32| if n == 1 { name.to_owned() } else { format!("{name}-{n}") };
    (1..).map(numbered).find(|name| free(name)).unwrap_or_default()
}

/// Where the tree of `mount` is in the instance directory at `instance_dir`; `None` for a shared mount.
pub fn tree(instance_dir: &Path, mount: &Mount) -> Option<PathBuf> {
    Site::of(instance_dir, mount).map(|site| site.tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_called_like_its_source_unless_that_is_taken_or_harmful() {
        for (source, taken, expected) in [
            ("/work/shop", vec![], "shop"),
            ("/work/shop", vec!["shop"], "shop-2"),
            ("/work/shop", vec!["shop", "shop-2"], "shop-3"),
            ("/work/a b\nc", vec![], "a-b-c"),
            ("/work/.hidden", vec![], "hidden"),
            ("/", vec![], "tree"),
        ] {
            assert_eq!(tree_name(Path::new(source), &taken), expected);
        }
    }
}
