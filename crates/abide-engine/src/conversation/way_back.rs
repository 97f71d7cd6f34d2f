//! The way back to the conversation of an instance that has ended and was cleaned up.

use std::fmt;
use std::path::PathBuf;

use abide_model::{InstanceId, Session, words};
use abide_store::Store;

use crate::conversation::agent_environment;
use crate::end::trash;
use crate::start::moved;

/// How the operator comes back to what was said in an instance that is in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WayBack {
    /// By taking its one conversation up in the directory that it was launched from.
    Adopt { id: String, dir: PathBuf },
    /// By restoring the instance: it had several conversations, or one that is resumed only where it was held.
    Restore(InstanceId),
}

impl fmt::Display for WayBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Adopt { id, dir } if std::env::current_dir().is_ok_and(|here| here == *dir) => {
                write!(f, "`abide load --adopt {id}` continues its conversation")
            }
            Self::Adopt { id, dir } => {
                let dir = words::join(&[dir.display().to_string()]);
                write!(f, "`cd {dir} && abide load --adopt {id}` continues its conversation")
            }
            Self::Restore(id) => write!(f, "`abide trash restore {id}` brings its conversation back"),
        }
    }
}

/// The way back to what was said in the instance `id`, which is in the trash; `None` if nothing was.
pub fn way_back(store: &Store, id: InstanceId) -> Option<WayBack> {
    let instance = trash::instance(store, id)?;
    let said: Vec<&Session> = instance.sessions.iter().filter(|session| moved::was_said(session)).collect();
    let dir = &instance.scope.dir;
    let adopted_there = |session: &Session| {
        let anywhere =
            agent_environment::agent_of(session).is_some_and(|(agent, _)| agent.profile().resumes_anywhere);
        session.cwd == *dir || anywhere
    };
    match said.as_slice() {
        [] => None,
        [only] if adopted_there(only) => {
            let id = only.conversation.as_ref()?.id.clone();
            Some(WayBack::Adopt { id, dir: dir.clone() })
        }
        _ => Some(WayBack::Restore(id)),
    }
}
