//! Making a tree: a worktree of the host's repository or a clone of it.
//!
//! What is about to be made is written down first. If it fails it is undone; if we are killed, the next process finds
//! the record and undoes or repeats it. The host's repository is left as it was either way.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_model::recipe::Mount;
use abide_model::{InstanceId, Isolation};
use abide_sys::run::RunError;
use abide_sys::{clock, crash};

use crate::command::{Git, GitDeadline};
use crate::error::{GitError, GitStep as _};
use crate::evidence::refs::{self, HEADS, SCRATCH};
use crate::make::source::SourceRepository;
use crate::make::{carry, clone, halfmade};
use crate::removal::registration;
use crate::site::{Site, TreeRecord, first_free};
use crate::{evidence, files};

#[derive(Debug, Clone)]
pub struct WantedTree<'a> {
    pub id: InstanceId,
    pub instance_dir: &'a Path,
    /// Which of its mounts; [`Mount::tree`] names the tree.
    pub mount: &'a Mount,
    /// Where the tree's own branch begins; unset, at the source's HEAD.
    pub base: Option<&'a str>,
    /// An existing branch to work on, instead of one of the tree's own.
    pub branch: Option<&'a str>,
    /// How long all of it may take.
    pub limit: Duration,
    /// Where the objects of a clone come from.
    pub objects: CloneObjects,
}

/// How a clone gets the objects of its source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CloneObjects {
    /// As hard links where possible: as fast as sharing, and as small.
    #[default]
    Linked,
    /// As copies: a process that can write to the clone must not be able to change the files of its source.
    Copied,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Materialised {
    pub tree: PathBuf,
    /// The directory in it that stands for the mount's source.
    pub workdir: PathBuf,
    /// The branch that is checked out; none for a detached HEAD.
    pub branch: Option<String>,
    /// The commit it is at; none in a repository without one.
    pub base: Option<String>,
    /// What the operator should know.
    pub notices: Vec<String>,
}

/// Makes the tree of a mount, saying what it does to `progress`. Asked again, it returns what was made before; a shared
/// mount is its own tree.
pub fn materialise(
    wanted: &WantedTree<'_>,
    progress: &mut dyn FnMut(&str),
) -> Result<Materialised, GitError> {
    let Some(site) = Site::of(wanted.instance_dir, wanted.mount) else {
        let dir = wanted.mount.source.clone();
        return Ok(Materialised { tree: dir.clone(), workdir: dir, ..Materialised::default() });
    };
    let deadline = GitDeadline::within(wanted.limit);
    let mut notices = Vec::new();
    match site.record()? {
        Some(record) if record.complete => return Ok(made(&site, &record, Vec::new())),
        Some(record) => notices.extend(undo(&site, &record, deadline)?.map(|aside| {
            format!("files were found in an unfinished tree; they are now in {}", aside.display())
        })),
        None if site.tree.symlink_metadata().is_ok() => return Err(GitError::InTheWay(site.tree)),
        None => {}
    }
    let source = SourceRepository::at(&wanted.mount.source, deadline)?;
    let mut record = plan(wanted, &source)?;
    for path in [&record.repo, &record.prefix] {
        path.to_str().ok_or_else(|| GitError::NotText(path.clone()))?;
    }
    site.write_record(&record)?;
    crash::point("git.materialise.recorded");
    let built = build(wanted, &site, &source, &record, deadline, progress).and_then(|notices| {
        record.complete = true;
        site.write_record(&record)?;
        Ok(notices)
    });
    match built {
        Ok(more) => {
            notices.extend(more);
            Ok(made(&site, &record, notices))
        }
        Err(error) => {
            // The time may be up, and that must not leave a half-made tree behind.
            if let Err(second) = undo(&site, &record, GitDeadline::within(wanted.limit)) {
                tracing::warn!("a tree that failed could not be undone: {second}");
            }
            Err(error)
        }
    }
}

fn made(site: &Site, record: &TreeRecord, notices: Vec<String>) -> Materialised {
    Materialised {
        tree: site.tree.clone(),
        workdir: site.tree.join(&record.prefix),
        branch: record.branch.clone(),
        base: record.base.clone(),
        notices,
    }
}

/// Decides which branch and commit the tree gets.
fn plan(wanted: &WantedTree<'_>, source: &SourceRepository) -> Result<TreeRecord, GitError> {
    let isolation = wanted.mount.isolation;
    let own_branch = isolation == Isolation::Worktree || wanted.base.is_some();
    let (base, base_branch) = match (wanted.branch, wanted.base) {
        (Some(name), _) => {
            let full = format!("{HEADS}{name}");
            let missing = || GitError::NoSuchBranch { name: name.to_owned(), repo: source.top.clone() };
            (Some(source.tip(&full).ok_or_else(missing)?.to_owned()), Some(full))
        }
        (None, Some(name)) => source.resolve(name).map(|(oid, full)| (Some(oid), full))?,
        (None, None) => (source.head.clone(), source.head_branch.clone()),
    };
    let branch = match wanted.branch {
        Some(name) => Some(name.to_owned()),
        None if own_branch => Some(free_branch(wanted.id, source)),
        None => base_branch.as_deref().and_then(|full| full.strip_prefix(HEADS)).map(str::to_owned),
    };
    let mut refs = refs::recorded(&source.refs);
    refs.extend(source.head.clone().map(|oid| ("HEAD".to_owned(), oid)));
    Ok(TreeRecord {
        repo: source.repo.clone(),
        prefix: source.prefix.clone(),
        isolation,
        branch,
        scratch: isolation == Isolation::Worktree && wanted.branch.is_none(),
        base,
        base_branch,
        stashes: refs::stashes(&source.git, &source.refs)?.into_iter().map(|(oid, _)| oid).collect(),
        refs,
        at: clock::now(),
        complete: false,
    })
}

/// `abide/<id>`, or with a number after it: one instance may have several trees of one repository.
fn free_branch(id: InstanceId, source: &SourceRepository) -> String {
    // A branch called `abide` leaves no room for branches below that name.
    let prefix = if source.tip(SCRATCH.trim_end_matches('/')).is_some() { "abide-" } else { "abide/" };
    first_free(&format!("{prefix}{id}"), |name| source.tip(&format!("{HEADS}{name}")).is_none())
}

fn build(
    wanted: &WantedTree<'_>,
    site: &Site,
    source: &SourceRepository,
    record: &TreeRecord,
    deadline: GitDeadline,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<String>, GitError> {
    let on = record.branch.as_deref().unwrap_or("a detached HEAD");
    progress(&format!("making a {} of {} on {on}", record.isolation, source.top.display()));
    let parent = site.tree.parent().unwrap_or(&site.tree);
    fs::create_dir_all(parent).doing("create", parent)?;
    let mut notices = Vec::new();
    match record.isolation {
        Isolation::Clone => clone::make(&site.tree, source, record, wanted.objects, deadline)?,
        _ => add_worktree(&site.tree, source, record, wanted.id, deadline)?,
    }
    crash::point("git.materialise.made");
    notices.extend(carry::submodules(&site.tree, &source.git_dir, deadline, progress)?);
    let carried = carry::files(source, &site.tree, &wanted.mount.copy, deadline)?;
    if carried.copied > 0 {
        progress(&format!("copied {} files that git ignores", carried.copied));
    }
    notices.extend(carried.notices);
    let workdir = site.tree.join(&record.prefix);
    fs::create_dir_all(&workdir).doing("create", &workdir)?;
    evidence::settle_new(site, record.isolation, deadline)?;
    crash::point("git.materialise.settled");
    let uncommitted = source.uncommitted();
    if uncommitted > 0 {
        let files = if uncommitted == 1 { "1 file".to_owned() } else { format!("{uncommitted} files") };
        notices.push(format!(
            "{files} with uncommitted changes stay in {}: the {} starts at a commit",
            source.top.display(),
            record.isolation
        ));
    }
    Ok(notices)
}

pub(crate) fn add_worktree(
    tree: &Path,
    source: &SourceRepository,
    record: &TreeRecord,
    id: InstanceId,
    deadline: GitDeadline,
) -> Result<(), GitError> {
    let reason = registration::reason(id);
    let (path, branch) = (tree.as_os_str(), record.branch.as_deref().unwrap_or_default());
    // Locked from the first moment: `git worktree prune` in a container that does not see the tree would remove it.
    let args = ["worktree", "add", "--lock", "--reason", &reason];
    let mut args: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
    match (&record.base, record.scratch) {
        (None, _) => args.extend(["--orphan".as_ref(), "-b".as_ref(), branch.as_ref(), path]),
        (Some(base), true) => {
            args.extend(["--no-checkout".as_ref(), "-b".as_ref(), branch.as_ref(), path, base.as_ref()]);
        }
        (Some(_), false) => args.extend(["--no-checkout".as_ref(), path, branch.as_ref()]),
    }
    let turn = registration::turn(&record.repo, deadline)?;
    source.git.run(args).map_err(|error| match error {
        RunError::Failed { stderr, .. } if record.base.is_none() && stderr.contains("usage:") => {
            GitError::NoCommit(source.top.clone())
        }
        RunError::Failed { stderr, .. } if !record.scratch && stderr.contains(" already ") => {
            GitError::BranchInUse { name: branch.to_owned() }
        }
        error => error.into(),
    })?;
    drop(turn);
    if record.base.is_some() {
        // What `git worktree add` would do itself, with others waiting for their turn.
        let git = Git::in_tree(tree, deadline).fetching();
        git.run(["reset", "--hard", "--no-recurse-submodules", "-q"])?;
    }
    Ok(())
}

/// Removes a tree that was not finished, and everything the host's repository knows of it. Files that making it did not
/// put there are moved aside instead, and where to is returned.
pub(crate) fn undo(
    site: &Site,
    record: &TreeRecord,
    deadline: GitDeadline,
) -> Result<Option<PathBuf>, GitError> {
    // While the repository still knows the tree: afterwards git cannot compare it with anything.
    let foreign = halfmade::foreign(site, record, deadline);
    if record.isolation == Isolation::Worktree && record.repo.is_dir() {
        if let Some(admin) = registration::of_tree(&record.repo, &site.tree)? {
            registration::remove(&record.repo, &admin)?;
        }
        if let (true, Some(branch), Some(base)) = (record.scratch, &record.branch, &record.base) {
            let name = format!("{HEADS}{branch}");
            // Only where it was made: anything else under that name is not ours.
            Git::of_repository(&record.repo, deadline).try_run(["update-ref", "-d", &name, base])?;
        }
    }
    let aside = match foreign {
        Some(why) => {
            tracing::warn!("{}: {why}", site.tree.display());
            Some(halfmade::set_aside(site)?)
        }
        None => None,
    };
    files::remove(&site.tree)?;
    files::remove(&site.notes)?;
    Ok(aside)
}
