//! Submodules: each is a repository of its own, whose only copy may be in our tree.

use std::path::{Path, PathBuf};

use abide_model::Isolation;
use abide_model::evidence::{Ahead, FileChange, MountEvidence};

use crate::ahead::View;
use crate::command::{Deadline, Git};
use crate::error::GitError;
use crate::evidence::Baseline;
use crate::ignored::{self, Ignored};
use crate::status::{self, Status};
use crate::{gitdir, refs};

/// A submodule as it is now.
pub(crate) struct Module {
    /// Where its files are; none after `git submodule deinit`.
    files: Option<PathBuf>,
    /// Where it is in the tree.
    shown: String,
    pub status: Status,
    /// What the status says nothing of, by paths in the tree.
    pub ignored: Ignored,
}

/// Looks at the submodule with the git directory `module` in `tree`.
pub(crate) fn open(module: &Path, tree: &Path, deadline: Deadline) -> Result<Module, GitError> {
    let git = Git::in_tree(module, deadline);
    // Its own settings say where its files are.
    let files = git.try_run(["config", "core.worktree"])?;
    let files = module.join(files.text());
    let files = files.canonicalize().ok().filter(|files| files.join(".git").exists());
    let shown = files.as_deref().unwrap_or(module);
    let tree = tree.canonicalize().unwrap_or_else(|_| tree.to_owned());
    let shown = shown.strip_prefix(&tree).unwrap_or(shown).to_string_lossy().into_owned();
    let Some(files) = files else {
        let head = git.try_run(["rev-parse", "--verify", "-q", "HEAD"])?.text();
        let head = Some(head).filter(|head| !head.is_empty());
        let status = Status { head, ..Status::default() };
        return Ok(Module { files: None, shown, status, ignored: Ignored::new() });
    };
    let git = Git::in_tree(&files, deadline).without_own_filters()?;
    let status = status::of(&git)?;
    let ignored = ignored::of(&git, module, &status)?.into_iter();
    let ignored = ignored.map(|(path, stamp)| (format!("{shown}/{path}"), stamp)).collect();
    Ok(Module { files: Some(files), shown, status, ignored })
}

/// Adds what the submodule with the git directory `module` holds to `found`; `before` is what was there when the tree was
/// made.
pub(crate) fn look(
    module: &Path,
    tree: &Path,
    before: &Baseline,
    deadline: Deadline,
    found: &mut MountEvidence,
) -> Result<(), GitError> {
    let Module { files, shown, status, ignored } = open(module, tree, deadline)?;
    let git = Git::in_tree(module, deadline);
    let inside = |change: &FileChange| FileChange {
        code: change.code.clone(),
        path: format!("{shown}/{}", change.path),
    };
    if let Some(files) = &files
        && gitdir::linked(files).and_then(|to| to.canonicalize().ok()) != module.canonicalize().ok()
    {
        found.unknown.push(format!("{shown}: its .git leads to another repository; look there for its work"));
    }
    found.files.extend(status.changes.iter().map(inside));
    found.files.extend(ignored::appeared(ignored, &before.ignored));
    if let Some(operation) = gitdir::operation(module) {
        found.operation.get_or_insert(format!("{operation} in {shown}"));
    }
    let refs = refs::all(&git)?;
    let recorded = before.modules.iter().map(|oid| (oid.clone(), oid.clone())).collect();
    let trail = gitdir::trail(&git, module)?;
    let view = View {
        git: &git,
        isolation: Isolation::Clone,
        status: &status,
        refs: &refs,
        trail: &trail,
        recorded: &recorded,
        scratch: None,
        base: None,
    };
    let ahead = view.ahead(None, &module.join("abide-spare"))?;
    found.ahead.extend(ahead.into_iter().map(|a| Ahead { branch: format!("{shown}: {}", a.branch), ..a }));
    found.stashes.extend(refs::stashes(&git, &refs)?.into_iter().map(|(_, text)| format!("{shown}: {text}")));
    Ok(())
}
