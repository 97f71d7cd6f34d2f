//! Repositories inside a tree: submodules, and others that were made or cloned there. Each may be the only copy of what
//! it holds, and the repository around it knows no more of it than one commit.

use std::path::{Path, PathBuf};

use abide_model::Isolation;
use abide_model::evidence::{FileChange, MountEvidence};

use crate::command::{Git, GitDeadline};
use crate::error::GitError;
use crate::evidence::ahead::AheadQuery;
use crate::evidence::ignored::{self, Ignored, Uncompared, named};
use crate::evidence::linked::LinkedWorktrees;
use crate::evidence::nested::NestedRepositories;
use crate::evidence::status::{self, GitStatus};
use crate::evidence::{Baseline, refs};
use crate::gitdir;
use crate::site::TreeRecord;

/// One of them as it is now.
pub(crate) struct InnerRepository {
    git_dir: PathBuf,
    /// Where its files are; none after `git submodule deinit`.
    files: Option<PathBuf>,
    /// Where it is in the tree.
    place: PathBuf,
    /// Whether the git directory is kept for it by the repository around it.
    is_submodule: bool,
    pub status: GitStatus,
    /// What the status says nothing of, by paths in the tree.
    pub uncompared: Uncompared,
}

/// All of them, and why others may have been missed.
#[derive(Default)]
pub(crate) struct InnerRepositories {
    pub found: Vec<InnerRepository>,
    pub unknown: Vec<String>,
}

/// The tree in which they are looked for.
pub(crate) struct Around<'a> {
    pub tree: &'a Path,
    pub git_dir: &'a Path,
    pub status: &'a GitStatus,
    pub nested: &'a NestedRepositories,
    pub deadline: GitDeadline,
}

impl InnerRepositories {
    /// Opens every repository in the tree, but for those that its status, or that of one around them, names as a whole:
    /// untracked ones and ignored ones.
    pub(crate) fn of(around: &Around<'_>) -> Self {
        let mut all = Self { found: Vec::new(), unknown: around.nested.unknown.clone() };
        all.open_submodules(around, around.git_dir);
        for place in &around.nested.places {
            let files = around.tree.join(place);
            let own = files.join(".git");
            let git_dir = gitdir::linked(&files).unwrap_or_else(|| own.clone());
            let is_open = |inner: &InnerRepository| {
                inner.place == *place || same(&inner.git_dir, &git_dir) && inner.is_submodule
            };
            if all.found.iter().any(is_open) || all.is_named_around(place, around.status) {
                continue;
            }
            match InnerRepository::open(git_dir, Some(files), place.clone(), around) {
                Ok(inner) => all.found.push(inner),
                Err(error) => all.unknown.push(format!("{}: {error}", place.display())),
            }
            if own.is_dir() {
                all.open_submodules(around, &own);
            }
        }
        all
    }

    fn open_submodules(&mut self, around: &Around<'_>, git_dir: &Path) {
        for module in gitdir::modules(git_dir) {
            match submodule(&module, around) {
                Ok(inner) => self.found.push(inner),
                Err(error) => self.unknown.push(format!("{}: {error}", module.display())),
            }
        }
    }

    /// Whether the status of the repository around `place` names it, or a directory that it is in, as one entry.
    fn is_named_around(&self, place: &Path, tree: &GitStatus) -> bool {
        let inner = self.found.iter().filter(|inner| place.starts_with(&inner.place));
        let nearest = inner.max_by_key(|inner| inner.place.components().count());
        let (status, place) = match nearest {
            Some(inner) => (&inner.status, place.strip_prefix(&inner.place).unwrap_or(place)),
            None => (tree, place),
        };
        let untracked =
            status.changes.iter().filter(|change| change.code == "??" && change.path.ends_with('/'));
        status.ignored.iter().any(|entry| place.starts_with(entry))
            || untracked.into_iter().any(|change| place.starts_with(&change.path))
    }
}

fn same(one: &Path, other: &Path) -> bool {
    one.canonicalize().ok().is_some_and(|one| other.canonicalize().ok() == Some(one))
}

/// The submodule with the git directory `module`.
fn submodule(module: &Path, around: &Around<'_>) -> Result<InnerRepository, GitError> {
    // Its own settings say where its files are.
    let files = Git::of_repository(module, around.deadline).try_run(["config", "core.worktree"])?;
    let files = module.join(files.text());
    let files = files.canonicalize().ok().filter(|files| files.join(".git").exists());
    let shown = files.as_deref().unwrap_or(module);
    let tree = around.tree.canonicalize().unwrap_or_else(|_| around.tree.to_owned());
    let place = shown.strip_prefix(&tree).unwrap_or(shown).to_owned();
    let inner = InnerRepository::open(module.to_owned(), files, place, around)?;
    Ok(InnerRepository { is_submodule: true, ..inner })
}

impl InnerRepository {
    fn open(
        git_dir: PathBuf,
        files: Option<PathBuf>,
        place: PathBuf,
        around: &Around<'_>,
    ) -> Result<Self, GitError> {
        let (status, uncompared) = match &files {
            Some(files) => {
                let git = Git::in_tree(files, around.deadline).without_own_filters()?;
                let status = status::of(&git)?;
                let found = ignored::of(&git, &git_dir, &status, &around.nested.below(&place))?;
                (status, in_tree(found, &place))
            }
            None => {
                let git = Git::of_repository(&git_dir, around.deadline);
                let head = git.try_run(["rev-parse", "--verify", "-q", "HEAD"])?.text();
                let head = Some(head).filter(|head| !head.is_empty());
                (GitStatus { head, ..GitStatus::default() }, Uncompared::default())
            }
        };
        Ok(Self { git_dir, files, place, is_submodule: false, status, uncompared })
    }

    /// Adds what it holds to `found`; `before` is what was there when the tree was made, as `record` says.
    pub(crate) fn look(
        self,
        before: &Baseline,
        record: &TreeRecord,
        deadline: GitDeadline,
        found: &mut MountEvidence,
    ) -> Result<(), GitError> {
        let shown = named(&self.place);
        if let (true, Some(files)) = (self.is_submodule, &self.files)
            && !gitdir::linked(files).is_some_and(|to| same(&to, &self.git_dir))
        {
            found
                .unknown
                .push(format!("{shown}: its .git points to another repository; check there for its work"));
        }
        found.unknown.extend(self.status.complaints.iter().map(|said| format!("{shown}: {said}")));
        found.files.extend(self.status.changes.iter().map(|change| FileChange {
            code: change.code.clone(),
            path: format!("{shown}/{}", change.path),
        }));
        found.files.extend(ignored::appeared(self.uncompared.files, &before.ignored));
        found.guesses.extend(self.uncompared.guesses);
        if let Some(operation) = gitdir::operation(&self.git_dir) {
            found.operation.get_or_insert(format!("{operation} in {shown}"));
        }
        let git = Git::of_repository(&self.git_dir, deadline).without_own_filters()?;
        let refs = refs::all(&git)?;
        let recorded = before.modules.iter().map(|oid| (oid.clone(), oid.clone())).collect();
        let trail = gitdir::trail(&git, &self.git_dir)?;
        let linked = LinkedWorktrees::of(&self.git_dir, deadline)?;
        linked.add_to(found);
        let view = AheadQuery {
            git: &git,
            isolation: Isolation::Clone,
            status: &self.status,
            refs: &refs,
            trail: &trail,
            host: None,
            host_prefix: None,
            recorded: &recorded,
            scratch: None,
            base: None,
            made: record.at,
            linked: &linked,
        };
        view.look(&self.git_dir.join("abide-spare"), &format!("{shown}: "), found)?;
        found
            .stashes
            .extend(refs::stashes(&git, &refs)?.into_iter().map(|(_, text)| format!("{shown}: {text}")));
        Ok(())
    }
}

/// What was found in the repository at `place`, by paths in the tree.
fn in_tree(found: Uncompared, place: &Path) -> Uncompared {
    let shown = named(place);
    let files: Ignored =
        found.files.into_iter().map(|(path, stamp)| (format!("{shown}/{path}"), stamp)).collect();
    Uncompared { files, guesses: found.guesses.into_iter().map(|guess| format!("{shown}/{guess}")).collect() }
}
