//! What the operator means by `ID`, `ID/SESSION`, a name, or nothing at all.

use std::path::Path;

use abide_model::{Instance, InstanceId, Status};
use abide_store::{Entry, ReadError, ResolveError, Store};

/// An instance, and perhaps one of its sessions.
#[derive(Debug, Clone)]
pub struct Target {
    /// The instance.
    pub instance: Instance,
    /// The session, if one was named.
    pub session: Option<abide_model::SessionId>,
}

/// Why a target could not be told.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The instance is not there, or several are meant.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// It can not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store can not be read.
    #[error(transparent)]
    Store(#[from] abide_store::Error),
    /// The instance has no such session.
    #[error("{} has no session `{word}`; it has: {}", .id.display_name(), known(.sessions))]
    NoSession {
        /// The instance.
        id: InstanceId,
        /// What was looked for.
        word: String,
        /// What is there.
        sessions: Vec<String>,
    },
    /// Nothing was named, and nothing belongs to this directory.
    #[error("nothing runs for this directory; `abide load` starts something, `abide ls` lists what there is")]
    NothingHere,
    /// Nothing was named, and several instances belong to this directory.
    #[error("several instances belong to this directory: {}; name the one you mean", .0.join(", "))]
    SeveralHere(Vec<String>),
}

fn known(sessions: &[String]) -> String {
    if sessions.is_empty() { "none".to_owned() } else { sessions.join(", ") }
}

/// What `word` means: `ID`, `NAME`, or either with `/SESSION`.
pub fn find(store: &Store, word: &str) -> Result<Target, TargetError> {
    let (instance, session) = match word.rsplit_once('/') {
        Some((instance, session)) if !instance.is_empty() => (instance, Some(session)),
        _ => (word, None),
    };
    let instance = store.read(store.resolve(instance)?)?;
    let session = match session {
        None => None,
        Some(word) => Some(instance.session(word).map(|s| s.id).ok_or_else(|| TargetError::NoSession {
            id: instance.id,
            word: word.to_owned(),
            sessions: instance.sessions.iter().map(|s| format!("{} ({})", s.id, s.name)).collect(),
        })?),
    };
    Ok(Target { instance, session })
}

/// The one active instance that was launched from `dir`.
pub fn here(store: &Store, dir: &Path) -> Result<Target, TargetError> {
    let mut found: Vec<Instance> = store
        .list()?
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Sound(instance) => Some(instance),
            Entry::Damaged { .. } => None,
        })
        .filter(|i| i.scope.dir == dir && matches!(i.status.status, Status::Active | Status::Starting { .. }))
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(instance), true) => Ok(Target { instance, session: None }),
        (Some(last), false) => {
            let all = found.iter().chain([&last]);
            Err(TargetError::SeveralHere(
                all.map(|i| i.name.clone().unwrap_or_else(|| i.id.to_string())).collect(),
            ))
        }
        (None, _) => Err(TargetError::NothingHere),
    }
}
