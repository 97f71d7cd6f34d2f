//! Putting a released worktree back into the host's repository, once its instance directory is out of the trash again.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use abide_model::Isolation;
use abide_model::recipe::Mount;
use abide_sys::crash;
use abide_sys::run::RunError;

use crate::command::{Git, GitDeadline, quoted};
use crate::error::{GitError, GitStep as _};
use crate::evidence::refs::{self, HEADS};
use crate::removal::registration;
use crate::removal::release::{SAVED, SavedWorktree};
use crate::site::{Site, TreeRecord, first_free};
use crate::{files, gitdir};

/// How the file begins by which a tree is tied to its repository.
pub(crate) const LINK: &str = "gitdir: ";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoredTree {
    /// The branch of the tree now, for [`Mount::branch`]; it has another name if the old one was taken meanwhile.
    pub branch: Option<String>,
    /// What the operator should know.
    pub notices: Vec<String>,
}

/// Undoes a [`release`](crate::release()) of the tree of `mount`. Called again after a crash, it finishes; called without
/// need, it does nothing.
pub fn restore(instance_dir: &Path, mount: &Mount, limit: Duration) -> Result<RestoredTree, GitError> {
    match Site::of(instance_dir, mount) {
        Some(site) => restore_site(&site, GitDeadline::within(limit)),
        None => Ok(RestoredTree::default()),
    }
}

/// Refuses if a [`restore`] of the tree of `mount` would: its repository is gone, or another one is in its place. Nothing
/// is changed; the instance directory may still be in the trash.
pub fn check_restore(instance_dir: &Path, mount: &Mount, limit: Duration) -> Result<(), GitError> {
    let Some(site) = Site::of(instance_dir, mount) else { return Ok(()) };
    match released(&site)? {
        Some((record, saved)) => check(&site, &record, &saved, GitDeadline::within(limit)),
        None => Ok(()),
    }
}

/// What is noted of a worktree that was released.
fn released(site: &Site) -> Result<Option<(TreeRecord, SavedWorktree)>, GitError> {
    let is_worktree = |record: &TreeRecord| record.complete && record.isolation == Isolation::Worktree;
    let Some(record) = site.record()?.filter(is_worktree) else { return Ok(None) };
    Ok(site.read::<SavedWorktree>(SAVED)?.map(|saved| (record, saved)))
}

/// Refuses a repository that is not the one the tree came from. What was saved is complete only together with that one:
/// in another, the branch would lead to commits that are not there, and git would fail in all of it.
fn check(
    site: &Site,
    record: &TreeRecord,
    saved: &SavedWorktree,
    deadline: GitDeadline,
) -> Result<(), GitError> {
    if !record.repo.is_dir() {
        return Err(GitError::RepositoryGone(record.repo.clone()));
    }
    let lacks = |missing: String| GitError::AnotherRepository {
        repo: record.repo.clone(),
        missing,
        tree: site.tree.clone(),
    };
    let git = Git::of_repository(&record.repo, deadline);
    if !git.try_run(["rev-parse", "--git-dir"])?.status.success() {
        return Err(lacks("all that makes a repository".to_owned()));
    }
    let git = git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&site.saved_objects()));
    let has = |oid: &String| git.try_run(["cat-file", "-e", oid]).map(|out| out.status.success());
    // A branch of the host's may have been rewritten since, and the tree comes back without its commit.
    let head = saved.head.as_ref().filter(|head| has(head).unwrap_or(false));
    let Some(oid) = saved.tip.as_ref().or(head).or(record.base.as_ref()) else { return Ok(()) };
    if !has(oid)? {
        return Err(lacks(format!("the commit {oid:.12}")));
    }
    if !git.try_run(["rev-list", "--objects", "--quiet", oid, "--not", "--all"])?.status.success() {
        return Err(lacks(format!("what the commit {oid:.12} is based on")));
    }
    Ok(())
}

pub(crate) fn restore_site(site: &Site, deadline: GitDeadline) -> Result<RestoredTree, GitError> {
    let record = site.record()?.filter(|record| record.complete);
    let mut restored = RestoredTree { branch: record.and_then(|record| record.branch), notices: Vec::new() };
    let Some((mut record, saved)) = released(site)? else { return Ok(restored) };
    check(site, &record, &saved, deadline)?;
    let git = Git::of_repository(&record.repo, deadline);
    for pack in site.packs() {
        let file = File::open(&pack).doing("open", &pack)?;
        git.fed_file(["index-pack", "--stdin"], file)?;
    }
    crash::point("git.restore.objects");
    let admin = site.saved_admin();
    if let (Some(old), Some(tip)) = (record.branch.clone(), &saved.tip) {
        let new = put_branch(&git, &old, tip, &saved)?;
        if new != old {
            restored.notices.push(format!("the branch {old} is in use by now; the tree is on {new}"));
            rename_in(&git, &admin, &old, &new)?;
        }
        record.branch = Some(new.clone());
        restored.branch = Some(new);
    }
    crash::point("git.restore.branch");
    if registration::of_tree(&record.repo, &site.tree)?.is_none() && admin.exists() {
        restored.notices.extend(hold_head(&git, &admin, &saved)?);
        register(site, &record, &saved, &admin, &git)?;
    }
    crash::point("git.restore.registered");
    site.write_record(&record)?;
    site.forget_saved()?;
    Ok(restored)
}

/// Makes the branch `name` at `tip`, or one with a number after it if the name is taken.
fn put_branch(git: &Git, name: &str, tip: &str, saved: &SavedWorktree) -> Result<String, GitError> {
    let refs = refs::all(git)?;
    let at =
        |name: &str| refs.iter().find(|r| r.name.strip_prefix(HEADS) == Some(name)).map(|r| r.oid.as_str());
    let new = first_free(name, |name| at(name).is_none_or(|oid| oid == tip));
    if at(&new).is_none() {
        // The empty old value: a branch that another process makes at this moment stays.
        git.run(["update-ref", &format!("{HEADS}{new}"), tip, ""])?;
    }
    for (key, value) in &saved.settings {
        git.run(["config", "--local", &format!("branch.{new}.{key}"), value])?;
    }
    Ok(new)
}

/// Puts the new name of a branch where the worktree's own files have the old one.
fn rename_in(git: &Git, admin: &Path, old: &str, new: &str) -> Result<(), GitError> {
    if gitdir::is_closed(admin) && gitdir::head_branch(admin, git)? == Some(format!("{HEADS}{old}")) {
        gitdir::git(admin, git).run(["symbolic-ref", "HEAD", &format!("{HEADS}{new}")])?;
    }
    for name in ["HEAD", "rebase-merge/head-name", "rebase-apply/head-name"] {
        let path = admin.join(name);
        let Ok(text) = fs::read_to_string(&path) else { continue };
        if text.trim_end().ends_with(&format!("{HEADS}{old}")) {
            fs::write(&path, text.replace(old, new)).doing("write", &path)?;
        }
    }
    Ok(())
}

/// Keeps HEAD at its commit if it was on a branch of the host's that has moved or gone since: on that branch, all that
/// happened to it would look like changes in the tree.
fn hold_head(git: &Git, admin: &Path, saved: &SavedWorktree) -> Result<Option<String>, GitError> {
    let (Some(branch), Some(head)) = (gitdir::head_branch(admin, git)?, &saved.head) else { return Ok(None) };
    let now = git.try_run(["rev-parse", "--verify", "-q", &branch])?;
    if now.text() == *head {
        return Ok(None);
    }
    let there = git.try_run(["cat-file", "-e", head])?.status.success();
    let branch = refs::short(&branch);
    if !there {
        return Ok(Some(format!("the branch {branch} moved, and the commit of the tree no longer exists")));
    }
    if gitdir::is_closed(admin) {
        gitdir::git(admin, git).run(["update-ref", "--no-deref", "HEAD", head])?;
    } else {
        let path = admin.join("HEAD");
        fs::write(&path, format!("{head}\n")).doing("write", &path)?;
    }
    Ok(Some(format!("the branch {branch} has moved; the tree is at its old commit, without a branch")))
}

/// Moves what was saved back to where the repository looks for it.
fn register(
    site: &Site,
    record: &TreeRecord,
    saved: &SavedWorktree,
    admin: &Path,
    git: &Git,
) -> Result<(), GitError> {
    let all = record.repo.join("worktrees");
    fs::create_dir_all(&all).doing("create", &all)?;
    // Git made the name from the tree's, which is plain text.
    let name = saved.admin.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let place = all.join(first_free(&name, |name| !all.join(name).exists()));
    // Before the old place of the tree is overwritten, by which they are found.
    tie_modules(site, saved, admin, &place, git)?;
    let link = site.tree.join(".git");
    write_path(&admin.join("gitdir"), "", &link)?;
    write_path(&link, LINK, &place)?;
    // Not among the worktrees, where git would find it: nothing but whole ones may be there.
    files::move_dir(admin, &place, &record.repo.join(format!("abide-{name}.half"))).map(drop)
}

/// Ties the submodules in the tree to their repositories below `place`, where `admin` is about to be. Their old place may
/// be another tree's by now, and the tree itself may have moved.
fn tie_modules(
    site: &Site,
    saved: &SavedWorktree,
    admin: &Path,
    place: &Path,
    git: &Git,
) -> Result<(), GitError> {
    let Some(old) = &saved.admin else { return Ok(()) };
    let link = admin.join("gitdir");
    let link = gitdir::path_in(&fs::read(&link).doing("read", &link)?);
    let old_tree = gitdir::plain(&old.join(link)).parent().map(Path::to_owned).unwrap_or_default();
    for module in gitdir::modules(admin) {
        let name = module.strip_prefix(admin).unwrap_or(&module);
        let file = module.join("config");
        let setting = ["config", "--file"].map(OsStr::new).into_iter();
        let setting = setting.chain([file.as_os_str(), OsStr::new("core.worktree")]);
        let at = match git.path(setting.clone()) {
            // It was taken out of the tree.
            Err(RunError::Failed { .. }) => continue,
            at => gitdir::plain(&old.join(name).join(at?)),
        };
        // The second if this was cut short before.
        let Some(inside) = [&old_tree, &site.tree].into_iter().find_map(|tree| at.strip_prefix(tree).ok())
        else {
            continue;
        };
        let files = site.tree.join(inside);
        if gitdir::linked(&files).is_some() {
            if files != at {
                git.run(setting.chain([files.as_os_str()]))?;
            }
            write_path(&files.join(".git"), LINK, &place.join(name))?;
        }
    }
    Ok(())
}

/// Writes a path as git does.
pub(crate) fn write_path(file: &Path, before: &str, path: &Path) -> Result<(), GitError> {
    let line = [before.as_bytes(), path.as_os_str().as_bytes(), b"\n"].concat();
    fs::write(file, line).doing("write", file)
}
