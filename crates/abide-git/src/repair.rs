//! Trees that are gone, or in which git does not work any more: making a worktree work again from its branch, and saying
//! what is wrong with the others.

pub(crate) mod drift;
pub(crate) mod rebuild;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_model::recipe::Mount;
use abide_model::{InstanceId, Isolation};

use crate::command::{Git, GitDeadline};
use crate::error::{GitError, GitStep as _};
use crate::evidence::refs::HEADS;
use crate::make::carry;
use crate::make::materialise::add_worktree;
use crate::make::source::SourceRepository;
use crate::removal::registration;
use crate::removal::restore::{LINK, write_path};
use crate::site::{Site, TreeRecord, first_free};
use crate::{evidence, gitdir};

/// What a repair did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// The repository had forgotten the worktree, and knows it again.
    Registered,
    /// The files were gone, and were made again from the branch.
    Remade,
}

/// Makes the worktree of `mount` work again if its files are gone, or if the repository has forgotten it, and its branch
/// is still there. Gives what was done, if anything could be and had to be, and what the operator should know.
pub fn repair(
    id: InstanceId,
    instance_dir: &Path,
    mount: &Mount,
    limit: Duration,
    progress: &mut dyn FnMut(&str),
) -> Result<Option<Repair>, GitError> {
    let Some(site) = Site::of(instance_dir, mount) else { return Ok(None) };
    let is_ours = |record: &TreeRecord| record.complete && record.isolation == Isolation::Worktree;
    let Some(record) = site.record()?.filter(is_ours) else { return Ok(None) };
    if gitdir::of_tree(&site.tree, Isolation::Worktree).is_ok() || !record.repo.is_dir() {
        return Ok(None);
    }
    let deadline = GitDeadline::within(limit);
    let git = Git::of_repository(&record.repo, deadline);
    let Some(branch) = &record.branch else { return Ok(None) };
    if !has_branch(&git, branch)? {
        return Ok(None);
    }
    let (repo, tree) = (record.repo.display(), site.tree.display());
    if site.tree.join(".git").is_file() {
        register(&site, &record, id, branch, deadline)?;
        progress(&format!(
            "{repo} had lost its record of the worktree {tree}; it is registered again, on {branch}, with nothing staged"
        ));
        return Ok(Some(Repair::Registered));
    }
    if site.tree.symlink_metadata().is_ok() {
        return Ok(None);
    }
    remake(&site, &record, id, mount, deadline, progress)?;
    progress(&format!(
        "{tree} was missing and was recreated from its branch {branch}; uncommitted changes are lost"
    ));
    Ok(Some(Repair::Remade))
}

fn remake(
    site: &Site,
    record: &TreeRecord,
    id: InstanceId,
    mount: &Mount,
    deadline: GitDeadline,
    progress: &mut dyn FnMut(&str),
) -> Result<(), GitError> {
    if let Some(admin) = registration::of_tree(&record.repo, &site.tree)? {
        registration::remove(&record.repo, &admin)?;
    }
    let source = SourceRepository::at(&mount.source, deadline)?;
    let parent = site.tree.parent().unwrap_or(&site.tree);
    fs::create_dir_all(parent).doing("create", parent)?;
    // The branch is there already.
    let on_branch = TreeRecord { scratch: false, ..record.clone() };
    add_worktree(&site.tree, &source, &on_branch, id, deadline)?;
    let mut notices = carry::submodules(&site.tree, &source.git_dir, deadline, progress)?;
    notices.extend(carry::files(&source, &site.tree, &mount.copy, deadline)?.notices);
    notices.iter().for_each(|notice| progress(notice));
    let workdir = site.tree.join(&record.prefix);
    fs::create_dir_all(&workdir).doing("create", &workdir)?;
    evidence::settle_new(site, Isolation::Worktree, deadline)
}

/// Writes what `git worktree add` would, around a tree that is there.
fn register(
    site: &Site,
    record: &TreeRecord,
    id: InstanceId,
    branch: &str,
    deadline: GitDeadline,
) -> Result<(), GitError> {
    let all = record.repo.join("worktrees");
    let name = site.tree.file_name().unwrap_or_default().to_string_lossy();
    let admin = all.join(first_free(&name, |name| !all.join(name).exists()));
    fs::create_dir_all(&admin).doing("create", &admin)?;
    let write = |file: &str, text: &str| {
        let path = admin.join(file);
        fs::write(&path, text).doing("write", &path)
    };
    write("locked", &registration::reason(id))?;
    write("commondir", "../..\n")?;
    write_path(&admin.join("gitdir"), "", &site.tree.join(".git"))?;
    write("HEAD", &format!("ref: {HEADS}{branch}\n"))?;
    write_path(&site.tree.join(".git"), LINK, &admin)?;
    Git::in_tree(&site.tree, deadline).run(["reset", "-q", "--mixed"])?;
    Ok(())
}

fn has_branch(git: &Git, branch: &str) -> Result<bool, GitError> {
    Ok(git.try_run(["rev-parse", "--verify", "-q", &format!("{HEADS}{branch}")])?.status.success())
}

/// Why git does not work in the tree of `mount`, and what to do about it; nothing if it does.
pub fn fault(instance_dir: &Path, mount: &Mount, limit: Duration) -> Option<String> {
    let site = Site::of(instance_dir, mount)?;
    let record = match site.existing_record() {
        Ok(record) => record.filter(|record| record.complete)?,
        Err(error) => return Some(error.to_string()),
    };
    if let Err(moved) = site.require_repository(&record) {
        return Some(moved.to_string());
    }
    let (tree, repo) = (site.tree.display(), record.repo.display());
    if site.tree.symlink_metadata().is_err() {
        let git = Git::of_repository(&record.repo, GitDeadline::within(limit));
        return Some(match record.branch.as_ref().filter(|_| record.isolation == Isolation::Worktree) {
            Some(branch) if has_branch(&git, branch).unwrap_or(false) => {
                format!("{tree} is gone; a resume recreates it from its branch {branch}")
            }
            Some(branch) => {
                format!("{tree} is gone, and {repo} has no branch {branch} to recreate it from")
            }
            None => format!("{tree} is gone with its contents"),
        });
    }
    match gitdir::of_tree(&site.tree, record.isolation) {
        Ok(_) => {
            let git = Git::in_tree(&site.tree, GitDeadline::within(limit));
            let answer = git.run(["rev-parse", "--git-dir"]);
            answer.err().map(|error| format!("git does not work in {tree}: {error}"))
        }
        Err(why) => Some(format!("{why}; its files are intact and can be copied")),
    }
}

/// The worktrees outside of the instance directory that belong to the repository of `mount`, and do not work without it.
pub fn linked_elsewhere(instance_dir: &Path, mount: &Mount) -> Vec<PathBuf> {
    let Some(site) = Site::of(instance_dir, mount).filter(|_| mount.isolation == Isolation::Clone) else {
        return Vec::new();
    };
    let linked = gitdir::registrations(&site.tree.join(".git")).unwrap_or_default();
    let instance_dir = site.tree.ancestors().nth(2).unwrap_or(&site.tree).to_owned();
    linked
        .into_iter()
        .map(|(_, tree)| tree)
        .filter(|tree| tree.is_dir() && !tree.starts_with(&instance_dir))
        .collect()
}
