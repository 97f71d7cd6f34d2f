//! Making the record of a tree again where it is lost or damaged. What the tree and its mount say is enough to give the
//! tree up and to put it back; what it began with stays unknown, and so does what of it is work.

use std::fs;
use std::path::Path;
use std::time::Duration;

use abide_model::recipe::Mount;
use abide_model::{InstanceId, Isolation};

use crate::command::GitDeadline;
use crate::error::{GitError, GitStep as _};
use crate::gitdir;
use crate::make::source::SourceRepository;
use crate::site::{Site, TreeRecord};

/// Makes the record of the tree of `mount` again if it is missing or damaged, and gives what the operator should know. The
/// damaged one stays beside it.
pub fn rebuild_record(
    id: InstanceId,
    instance_dir: &Path,
    mount: &Mount,
    limit: Duration,
) -> Result<Option<String>, GitError> {
    let Some(site) = Site::of(instance_dir, mount) else { return Ok(None) };
    match site.existing_record() {
        Err(GitError::LostRecord { .. }) => {}
        sound => return sound.map(|_| None),
    }
    let record = from_tree(id, &site, mount, GitDeadline::within(limit));
    site.set_record_aside()?;
    site.write_record(&record)?;
    let record = site.record_path();
    Ok(Some(format!("{} was lost or damaged, and is recreated from its tree", record.display())))
}

fn from_tree(id: InstanceId, site: &Site, mount: &Mount, deadline: GitDeadline) -> TreeRecord {
    let of_source = || SourceRepository::at(&mount.source, deadline).ok().map(|source| source.repo);
    let repo = match mount.isolation {
        Isolation::Worktree => gitdir::repository_of(&site.tree).or_else(of_source),
        _ => of_source(),
    };
    // Where nothing is: what may be left of the tree elsewhere is then named to the operator.
    let repo = repo.unwrap_or_else(|| mount.source.join(".git"));
    let is_ours = |branch: &String| {
        mount.isolation == Isolation::Worktree
            && ["abide/", "abide-"].iter().any(|prefix| branch.starts_with(&format!("{prefix}{id}")))
    };
    TreeRecord {
        isolation: mount.isolation,
        scratch: mount.branch.as_ref().is_some_and(is_ours),
        branch: mount.branch.clone(),
        ..TreeRecord::of_worktree(&repo)
    }
}

impl Site {
    /// The record of the tree; `None` if there is neither.
    pub(crate) fn existing_record(&self) -> Result<Option<TreeRecord>, GitError> {
        let lost = |reason| Err(GitError::LostRecord { path: self.record_path(), reason });
        match self.record() {
            Err(GitError::Record { reason, .. }) => lost(reason),
            Ok(None) if self.tree.symlink_metadata().is_ok() => lost("it is missing".to_owned()),
            record => record,
        }
    }

    /// Keeps a damaged record, which also says that the one that takes its place was made again.
    fn set_record_aside(&self) -> Result<(), GitError> {
        fs::create_dir_all(&self.notes).doing("create", &self.notes)?;
        let (record, aside) = (self.record_path(), self.damaged_record());
        match record.symlink_metadata() {
            Ok(_) => fs::rename(&record, &aside).doing("rename", &record),
            Err(_) => fs::write(&aside, "").doing("write", &aside),
        }
    }
}
