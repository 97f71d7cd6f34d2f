//! What was made in an instance directory beside our trees. Other worktrees of the host's repository are given up and put back
//! with ours: it would go on naming a place that is gone, and hold the only index and HEAD of what is in the trash.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use abide_model::Isolation;
use abide_model::recipe::Mount;

use crate::command::GitDeadline;
use crate::error::{GitError, GitStep as _};
use crate::removal::release::release_site;
use crate::removal::restore::restore_site;
use crate::site::{Site, TreeRecord, first_free, tree};
use crate::{files, gitdir};

/// Where the notes about such worktrees are. No mount's are there: the name of a tree never begins with a dot.
const NOTES: &str = "git/.beside";
/// Where such a worktree is in the instance directory.
const PLACE: &str = "place.json";

/// The names of what is next to the trees of `mounts` in the instance directory at `instance_dir`.
pub fn beside(instance_dir: &Path, mounts: &[&Mount]) -> Result<Vec<String>, GitError> {
    let dir = instance_dir.join("tree");
    let mut found: Vec<String> = entries(&dir)?
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .filter(|name| mounts.iter().all(|mount| mount.tree.as_ref() != Some(name)))
        .collect();
    found.sort();
    Ok(found)
}

/// Makes the repositories of `mounts` forget every other worktree in the instance directory, as [`release`](crate::release()) does for
/// a mount's own.
pub fn release_beside(instance_dir: &Path, mounts: &[&Mount], limit: Duration) -> Result<(), GitError> {
    let deadline = GitDeadline::within(limit);
    let instance_dir = canonical(instance_dir);
    for site in noted(&instance_dir)? {
        release_site(&site, deadline)?;
    }
    let ours: Vec<PathBuf> = mounts.iter().filter_map(|mount| tree(&instance_dir, mount)).collect();
    for mount in mounts {
        let Some(site) = Site::of(&instance_dir, mount) else { continue };
        let Some(TreeRecord { repo, isolation: Isolation::Worktree, .. }) = site.record()? else { continue };
        if !repo.is_dir() {
            continue;
        }
        for (_, tree) in gitdir::registrations(&repo)? {
            // One whose files are gone holds nothing, and git itself will prune it.
            let Ok(place) = tree.strip_prefix(&instance_dir) else { continue };
            if ours.contains(&tree) || !tree.is_dir() {
                continue;
            }
            let all = instance_dir.join(NOTES);
            let notes = all.join(first_free("worktree", |name| !all.join(name).exists()));
            let site = Site { tree: tree.clone(), notes, source: repo.clone() };
            site.write_record(&TreeRecord::of_worktree(&repo))?;
            site.write(PLACE, &place)?;
            release_site(&site, deadline)?;
        }
    }
    Ok(())
}

/// Undoes [`release_beside`], and gives what the operator should know.
pub fn restore_beside(instance_dir: &Path, limit: Duration) -> Result<Vec<String>, GitError> {
    let mut notices = Vec::new();
    for site in noted(&canonical(instance_dir))? {
        notices.extend(restore_site(&site, GitDeadline::within(limit))?.notices);
        files::remove(&site.notes)?;
    }
    Ok(notices)
}

/// The worktrees that a release has begun to give up.
fn noted(instance_dir: &Path) -> Result<Vec<Site>, GitError> {
    let mut found = Vec::new();
    for notes in entries(&instance_dir.join(NOTES))? {
        let mut site = Site { tree: PathBuf::new(), notes, source: PathBuf::new() };
        if let Some(place) = site.read::<PathBuf>(PLACE)? {
            site.tree = instance_dir.join(place);
            found.extend(site.tree.is_dir().then_some(site));
        }
    }
    Ok(found)
}

fn canonical(instance_dir: &Path) -> PathBuf {
    instance_dir.canonicalize().unwrap_or_else(|_| instance_dir.to_owned())
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, GitError> {
    let read = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.doing("read", dir)?,
    };
    read.map(|entry| Ok(entry.doing("read", dir)?.path())).collect()
}
