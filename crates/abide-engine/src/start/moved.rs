//! Directories that are no longer where they were: noticing it, finding where they are now, and going on there.

use std::collections::VecDeque;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use abide_agents::Located;
use abide_model::instance::DirIdentity;
use abide_model::{Instance, InstanceId, Session, Status, words};
use abide_store::Store;
use abide_sys::clock;

use crate::conversation::agent_environment;
use crate::error::EngineError;

/// How many directory entries are looked at in search of a directory that was moved.
const ENTRIES: usize = 4000;
/// How far below the nearest directory that is still there it is searched for.
const DEPTH: usize = 3;

/// The directory at `path` as the file system knows it, if there is one.
pub(crate) fn identity(path: &Path) -> Option<DirIdentity> {
    let meta = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
    Some(DirIdentity { dev: meta.dev(), ino: meta.ino() })
}

/// A directory that a resume of an instance needs and that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingDirectory {
    pub id: InstanceId,
    pub dir: PathBuf,
    /// Where it is now.
    pub whereabouts: Whereabouts,
}

/// Where a directory is that is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whereabouts {
    /// Here: it is the same directory under another name.
    At(PathBuf),
    /// Here, but an agent of the instance resumes only where the directory was.
    BoundToOldPath(PathBuf),
    /// Not found; the operator may know.
    Unknown,
    /// In a directory of the instance that is still there, so that only this part of it is gone.
    PartOfOther,
    /// abide's own directory was moved, and with it the trees of the instance.
    WithHome { from: PathBuf, to: PathBuf },
}

impl fmt::Display for MissingDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, dir) = (self.id.display_name(), self.dir.display());
        write!(f, "{name} cannot be resumed, because {dir} does not exist: ")?;
        match &self.whereabouts {
            Whereabouts::At(now) | Whereabouts::BoundToOldPath(now) => {
                write!(f, "it was moved to {}", now.display())
            }
            Whereabouts::Unknown => write!(f, "it was moved or removed, or its file system is not mounted"),
            Whereabouts::PartOfOther => write!(f, "it was moved or removed"),
            Whereabouts::WithHome { from, to } => {
                write!(f, "abide's own directory was moved from {} to {}", from.display(), to.display())
            }
        }
    }
}

impl MissingDirectory {
    /// What to do about it.
    pub fn advice(&self) -> Vec<String> {
        let id = self.id;
        let quoted = |path: &Path| words::join(&[path.display().to_string()]);
        let first = match &self.whereabouts {
            Whereabouts::At(now) => format!("`abide resume {id} --dir {}` resumes it there", quoted(now)),
            Whereabouts::BoundToOldPath(now) => format!(
                "`mv {} {}` moves it back; its agent can only continue the conversation there",
                quoted(now),
                quoted(&self.dir)
            ),
            Whereabouts::Unknown => {
                format!("`abide resume {id} --dir DIR` resumes it in its new place")
            }
            Whereabouts::PartOfOther => {
                format!("`mkdir -p {}` creates it again; then resume", quoted(&self.dir))
            }
            Whereabouts::WithHome { from, to } => format!(
                "move it back, or `ln -s {} {}`; git and the agents use the old path",
                quoted(to),
                quoted(from)
            ),
        };
        let rest = format!("`abide explain {id}` shows its details, `abide eject {id}` removes it");
        vec![first, rest]
    }
}

/// The directory that is in the way of a resume of `instance` because it is not there. A tree of its own that is gone is
/// made again, and is not meant.
pub fn missing(store: &Store, instance: &Instance) -> Option<MissingDirectory> {
    let sessions = instance.sessions_to_resume();
    let gone = sessions.iter().map(|session| &session.cwd).find(|cwd| is_gone(cwd))?;
    let (layout, scope) = (store.layout(), &instance.scope.dir);
    let (dir, whereabouts) = if gone.starts_with(layout.instance_dir(instance.id)) {
        return None;
    } else if let Some(from) = home_of_unit(gone, instance.id) {
        (gone, Whereabouts::WithHome { from, to: layout.home().to_owned() })
    } else if !gone.starts_with(scope) || !is_gone(scope) {
        (gone, Whereabouts::PartOfOther)
    } else {
        let found = instance.dir_identity.and_then(|identity| nearby(scope, identity));
        let at = |now: PathBuf| match refuse_relocation(instance, &now) {
            Ok(()) => Whereabouts::At(now),
            Err(_) => Whereabouts::BoundToOldPath(now),
        };
        (scope, found.map_or(Whereabouts::Unknown, at))
    };
    Some(MissingDirectory { id: instance.id, dir: dir.clone(), whereabouts })
}

/// Whether there is certainly nothing at `path`.
fn is_gone(path: &Path) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    fs::metadata(path).is_err_and(|error| matches!(error.kind(), NotFound | NotADirectory))
}

/// abide's directory at the time when `path` was a place in the instance directory of `id`, if it was one.
fn home_of_unit(path: &Path, id: InstanceId) -> Option<PathBuf> {
    let is_unit = |path: &&Path| {
        path.ends_with(id.as_str()) && path.parent().is_some_and(|dir| dir.ends_with("instances"))
    };
    path.ancestors().find(is_unit)?.parent()?.parent().map(Path::to_owned)
}

/// The directory with this identity, if it is the one we are in, or not far from where it was.
fn nearby(was: &Path, sought: DirIdentity) -> Option<PathBuf> {
    let here = std::env::current_dir().ok();
    let above = here.iter().flat_map(|here| here.ancestors()).find(|dir| identity(dir) == Some(sought));
    if let Some(found) = above {
        return Some(found.to_owned());
    }
    let (mut left, mut entries) = (VecDeque::new(), 0);
    left.push_back((was.ancestors().find(|dir| dir.is_dir())?.to_owned(), 1));
    while let Some((dir, depth)) = left.pop_front() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            entries += 1;
            if entries > ENTRIES {
                return None;
            }
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir && entry.ino() == sought.ino && identity(&entry.path()) == Some(sought) {
                return Some(entry.path());
            }
            if is_dir && depth < DEPTH {
                left.push_back((entry.path(), depth + 1));
            }
        }
    }
    None
}

/// Binds a kept instance, whose directory was moved, to where that is now.
pub fn relocate(
    store: &Store,
    id: InstanceId,
    to: &Path,
    progress: &dyn Fn(&str),
) -> Result<Instance, EngineError> {
    let to =
        fs::canonicalize(to).map_err(|error| EngineError::Other(format!("{}: {error}", to.display())))?;
    let Some(now) = identity(&to) else {
        return Err(EngineError::Other(format!("{} is not a directory", to.display())));
    };
    if to.to_str().is_none() {
        return Err(EngineError::Other(format!(
            "{} is not valid UTF-8 and cannot be recorded",
            to.display()
        )));
    }
    let (instance, was) = store.update(id, |instance| -> Result<_, EngineError> {
        refuse_relocation(instance, &to)?;
        let was = instance.dir_identity;
        instance.relocate(&to, Some(now), was_said, clock::now());
        Ok((instance.clone(), was))
    })?;
    if was.is_some_and(|was| was != now) {
        progress(&format!("{} is a different directory, or a copy of the one that was moved", to.display()));
    }
    Ok(instance)
}

/// Binds the instance to the directory again that it had as `was`, unless it runs in the other one.
pub fn take_back(store: &Store, was: &Instance) -> Result<(), EngineError> {
    store.update(was.id, |instance| -> Result<(), EngineError> {
        if matches!(instance.status.status, Status::Restorable(_)) {
            instance.relocate(&was.scope.dir, was.dir_identity, |_| false, clock::now());
        }
        Ok(())
    })
}

/// Refuses what would not go on in `to`.
fn refuse_relocation(instance: &Instance, to: &Path) -> Result<(), EngineError> {
    let (name, was) = (instance.id.display_name(), instance.scope.dir.display());
    let refused = |why: String| Err(EngineError::Other(why));
    if !matches!(instance.status.status, Status::Restorable(_)) {
        return refused(format!("{name} is {}; only kept instances can be resumed", instance.status.status));
    }
    if instance.recipe.mounts.iter().any(|mount| mount.tree.is_some()) {
        return refused(format!(
            "{name} works in its own tree; --dir is for instances in a shared directory"
        ));
    }
    if !is_gone(&instance.scope.dir) {
        return refused(format!("{was} is still there; --dir is for a directory that was moved"));
    }
    let bound_to_place = |session: &&&Session| {
        let agent = agent_environment::agent_of(session);
        was_said(session) && agent.is_some_and(|(agent, _)| !agent.profile().resumes_anywhere)
    };
    match instance.sessions_to_resume().iter().find(bound_to_place) {
        Some(session) => refused(format!(
            "{} can only continue a conversation in its original directory; move the directory back to {was} and \
             resume {name}, or start a new conversation with `abide load` in {}",
            session.name,
            to.display()
        )),
        None => Ok(()),
    }
}

/// Whether something was said in the conversation of `session`, as far as that is known.
pub(crate) fn was_said(session: &Session) -> bool {
    let Some(((agent, setup), bound)) =
        agent_environment::agent_of(session).zip(session.conversation.as_ref())
    else {
        return false;
    };
    let located = || agent.transcript(&setup.config_dir, &session.cwd, &bound.id);
    bound.transcript.is_some() || located() != Located::Missing
}
