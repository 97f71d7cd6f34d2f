//! A tree that was never finished. No session worked in it yet, but people do look into directories, and put files
//! there: only what making it put there may be deleted.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{Git, GitDeadline};
use crate::error::{GitError, GitStep as _};
use crate::evidence::status::{self, GitStatus};
use crate::files;
use crate::site::{Site, TreeRecord, first_free};

/// Why the unfinished tree at `site` must not be deleted; none if it holds only what making it put there.
pub(crate) fn foreign(site: &Site, record: &TreeRecord, deadline: GitDeadline) -> Option<String> {
    let Ok(mut entries) = fs::read_dir(&site.tree) else {
        let is_gone = site.tree.symlink_metadata().is_err();
        return (!is_gone).then(|| format!("{} cannot be read", site.tree.display()));
    };
    if entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == ".git")) {
        return None;
    }
    let prefix = "this tree was never completed";
    match first_foreign(site, record, deadline) {
        Ok(None) => None,
        Ok(Some(path)) => Some(format!("{prefix}, and {} is not from the repository", path.display())),
        Err(error) => Some(format!("{prefix}, and its contents cannot be checked: {error}")),
    }
}

/// Moves a tree with such files out of the way, and gives where it is then.
pub(crate) fn set_aside(site: &Site) -> Result<PathBuf, GitError> {
    let name = site.tree.file_name().unwrap_or_default().to_string_lossy();
    let free = |name: &str| site.tree.with_file_name(name).symlink_metadata().is_err();
    let aside = site.tree.with_file_name(first_free(&format!("{name}-unfinished"), free));
    fs::rename(&site.tree, &aside).doing("move", &site.tree)?;
    Ok(aside)
}

fn first_foreign(
    site: &Site,
    record: &TreeRecord,
    deadline: GitDeadline,
) -> Result<Option<PathBuf>, GitError> {
    // The index of the tree is written last, so that without one of our own every file would look new.
    let index = site.notes.join("unfinished.index");
    files::remove(&index)?;
    let git = Git::in_tree(&site.tree, deadline).with("GIT_INDEX_FILE", &index);
    let asked = compared(&git, record);
    files::remove(&index)?;
    let status = asked?;
    for change in &status.changes {
        let path = Path::new(&change.path);
        let original = match (&record.base, change.code.as_str()) {
            (_, " D") => continue,
            (Some(base), " M") => git.run(["cat-file", "blob", &format!("{base}:{}", change.path)])?.stdout,
            _ => return Ok(Some(path.to_owned())),
        };
        if !is_part(&site.tree.join(path), &original) {
            return Ok(Some(path.to_owned()));
        }
    }
    let top = site.source.ancestors().nth(record.prefix.components().count()).unwrap_or(&site.source);
    let mut open: Vec<PathBuf> = status.ignored;
    while let Some(path) = open.pop() {
        let here = site.tree.join(&path);
        if here.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            for entry in fs::read_dir(&here).doing("read", &here)? {
                open.push(path.join(entry.doing("read", &here)?.file_name()));
            }
        } else if !is_copy(&here, &top.join(&path)) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn compared(git: &Git, record: &TreeRecord) -> Result<GitStatus, GitError> {
    if let Some(base) = &record.base {
        git.run(["read-tree", base])?;
    }
    let mut status = status::of(git)?;
    match status.complaints.is_empty() {
        true => Ok(status),
        false => Err(GitError::Unreadable(status.complaints.remove(0))),
    }
}

/// Whether the file is what was written of `original` until it was cut short.
fn is_part(file: &Path, original: &[u8]) -> bool {
    let is_file = file.symlink_metadata().is_ok_and(|meta| meta.is_file());
    is_file && fs::read(file).is_ok_and(|bytes| original.starts_with(&bytes))
}

/// Whether `file` is a copy, perhaps cut short, of what the host has.
fn is_copy(file: &Path, original: &Path) -> bool {
    match fs::read_link(file) {
        Ok(target) => fs::read_link(original).is_ok_and(|other| other == target),
        Err(_) => fs::read(original).is_ok_and(|bytes| is_part(file, &bytes)),
    }
}
