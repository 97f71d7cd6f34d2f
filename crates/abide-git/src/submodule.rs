//! Submodules: each is a repository of its own, whose only copy may be in our tree.

use std::collections::BTreeMap;
use std::path::Path;

use abide_model::Isolation;
use abide_model::evidence::{Ahead, FileChange, MountEvidence};

use crate::ahead::View;
use crate::command::{Deadline, Git};
use crate::error::GitError;
use crate::{gitdir, refs, status};

/// Where the submodule with the git directory `module` is now.
pub(crate) fn head(module: &Path, deadline: Deadline) -> Result<String, GitError> {
    let out = Git::in_tree(module, deadline).try_run(["rev-parse", "--verify", "-q", "HEAD"])?;
    Ok(out.text())
}

/// Adds what the submodule with the git directory `module` holds to `found`; `given` are the commits that submodules
/// were at when the tree was made.
pub(crate) fn look(
    module: &Path,
    tree: &Path,
    given: &[String],
    deadline: Deadline,
    found: &mut MountEvidence,
) -> Result<(), GitError> {
    let git = Git::in_tree(module, deadline);
    // Its own settings say where its files are; after `git submodule deinit` there are none.
    let files = git.try_run(["config", "core.worktree"])?;
    let files = module.join(files.text());
    let files = files.canonicalize().ok().filter(|files| files.join(".git").exists());
    let status = match &files {
        Some(files) => status::of(&Git::in_tree(files, deadline).without_own_filters()?)?,
        None => status::Status { head: Some(head(module, deadline)?), ..Default::default() },
    };
    let shown = files.as_deref().unwrap_or(module);
    let tree = tree.canonicalize().unwrap_or_else(|_| tree.to_owned());
    let shown = shown.strip_prefix(&tree).unwrap_or(shown).to_string_lossy().into_owned();
    let inside = |change: &FileChange| FileChange {
        code: change.code.clone(),
        path: format!("{shown}/{}", change.path),
    };
    found.files.extend(status.changes.iter().map(inside));
    if let Some(operation) = gitdir::operation(module) {
        found.operation.get_or_insert(format!("{operation} in {shown}"));
    }
    let refs = refs::all(&git)?;
    let recorded: BTreeMap<_, _> = given.iter().map(|oid| (oid.clone(), oid.clone())).collect();
    let trail = gitdir::trail(module);
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
