//! What the operator means by `ID`, `ID/SESSION`, a name, or nothing at all.

use std::path::Path;

use abide_model::{Instance, Status};
use abide_store::{Entry, Store};

use crate::error::Error;

/// An instance, and perhaps one of its sessions.
#[derive(Debug, Clone)]
pub struct Target {
    /// The instance.
    pub instance: Instance,
    /// The session, if one was named.
    pub session: Option<abide_model::SessionId>,
}

/// What `word` means: `ID`, `NAME`, or either with `/SESSION`.
pub fn find(store: &Store, word: &str) -> Result<Target, Error> {
    let (instance, session) = match word.rsplit_once('/') {
        Some((instance, session)) if !instance.is_empty() => (instance, Some(session)),
        _ => (word, None),
    };
    let instance = store.read(store.resolve(instance)?)?;
    let session = match session {
        None => None,
        Some(word) => Some(instance.session(word).ok_or_else(|| no_session(&instance, word))?.id),
    };
    Ok(Target { instance, session })
}

fn no_session(instance: &Instance, word: &str) -> Error {
    let known: Vec<_> = instance.sessions.iter().map(|s| format!("{} ({})", s.id, s.name)).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let name = instance.id.display_name();
    Error::Other(format!("{name} has no session `{word}`; it has: {known}"))
}

/// The one active instance that was launched from `dir`.
pub fn here(store: &Store, dir: &Path) -> Result<Target, Error> {
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
            let all: Vec<_> = all.map(|i| i.name.clone().unwrap_or_else(|| i.id.to_string())).collect();
            let all = all.join(", ");
            Err(Error::Other(format!(
                "several instances belong to this directory: {all}; name the one you mean"
            )))
        }
        (None, _) => Err(Error::Other(
            "nothing runs for this directory; `abide load` starts something, `abide ls` lists what there is"
                .to_owned(),
        )),
    }
}
