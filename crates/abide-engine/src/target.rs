//! What the operator means by `ID`, `ID/SESSION` or a name.

use abide_model::{Instance, SessionId, Status};
use abide_store::Store;
use abide_wire::exit_record::ExitRecord;

use crate::error::EngineError;
use crate::running::connect;
use crate::substrate;

/// An instance, and perhaps one of its sessions.
#[derive(Debug, Clone)]
pub struct Target {
    pub instance: Instance,
    /// The session, if one was named.
    pub session: Option<SessionId>,
}

/// What `word` means: `ID`, `NAME`, or either with `/SESSION`.
pub fn find(store: &Store, word: &str) -> Result<Target, EngineError> {
    let (instance, session) = split(word);
    let instance = store.read(store.resolve(instance)?)?;
    let session = session.map(|word| session_called(store, &instance, word)).transpose()?;
    Ok(Target { instance, session })
}

/// The two parts of `ID/SESSION`.
pub fn split(word: &str) -> (&str, Option<&str>) {
    match word.rsplit_once('/') {
        Some((instance, session)) if !instance.is_empty() => (instance, Some(session)),
        _ => (word, None),
    }
}

/// A session and what it is called.
type Called = (SessionId, String);

/// The session called `word`: by its id, or by its name if only one has it.
fn session_called(store: &Store, instance: &Instance, word: &str) -> Result<SessionId, EngineError> {
    let id: Option<SessionId> = word.parse().ok();
    let mut written: Vec<Called> = instance.sessions.iter().map(|s| (s.id, s.name.clone())).collect();
    let among = |sessions: &[Called]| id.filter(|id| sessions.iter().any(|(known, _)| known == id));
    if let Some(id) = among(&written) {
        return Ok(id);
    }
    // Sessions that were started from inside, and new names, come to be written down only at the end of the run.
    let running = running(store, instance);
    add(&mut written, recorded(store, instance));
    if let Some(id) = among(&running).or(among(&written)) {
        return Ok(id);
    }
    for sessions in [&running, &written] {
        let named: Vec<Called> = sessions.iter().filter(|(_, name)| name == word).cloned().collect();
        match named.as_slice() {
            [] => {}
            [(only, _)] => return Ok(*only),
            several => {
                let (name, several) = (instance.id.display_name(), listed(several));
                return Err(EngineError::Other(format!(
                    "{name} has several sessions called `{word}`: {several}; name one by its id"
                )));
            }
        }
    }
    let mut known = running;
    add(&mut known, written);
    let (name, known) = (instance.id.display_name(), listed(&known));
    Err(EngineError::Other(format!("{name} has no session `{word}`; it has: {known}")))
}

/// What the sessions of `instance` are called that run; none if the mux does not answer.
fn running(store: &Store, instance: &Instance) -> Vec<Called> {
    let active = instance.status.status == Status::Active;
    let status = active.then(|| substrate::of(store, instance.id).status().ok()).flatten();
    let sessions = status.into_iter().flat_map(|status| status.sessions);
    sessions.map(|session| (session.id, session.name)).collect()
}

/// What the sessions of the last run of `instance` were called when they were started.
fn recorded(store: &Store, instance: &Instance) -> Vec<Called> {
    let record = ExitRecord::read(&connect::instance_dir(store, instance.id)).ok().flatten();
    let record = record.filter(|record| record.generation == instance.generation);
    let sessions = record.into_iter().flat_map(|record| record.sessions);
    sessions.map(|session| (session.id, session.name)).collect()
}

fn add(known: &mut Vec<Called>, more: Vec<Called>) {
    for (id, name) in more {
        if known.iter().all(|(other, _)| *other != id) {
            known.push((id, name));
        }
    }
}

fn listed(sessions: &[Called]) -> String {
    let all: Vec<_> = sessions.iter().map(|(id, name)| format!("{id} ({name})")).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}
