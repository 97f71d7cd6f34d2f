//! Whether an agent came up. One that failed right after its start never did, and its last output says why.

use std::time::{Duration, Instant};

use abide_agents::{Agent, Fatal};
use abide_journal::rebuild;
use abide_model::activity::Source;
use abide_model::session_end::{Meaning, SOON};
use abide_model::{Instance, InstanceId, Session};
use abide_places::tmux::enter;
use abide_store::Store;
use abide_wire::exit_record::{ExitRecord, RecordedSession};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::GetEvidence;
use abide_wire::session::ProcessExit;

use crate::conversation::agent_environment::agent_of;
use crate::conversation::current;
use crate::end::session_end;
use crate::running::connect;

/// How long an agent is watched after its start before it counts as up.
const WATCHED: Duration = Duration::from_secs(3);

/// How long the last words of an agent may take from its terminal to the journal.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(200);

/// Lines of its last screen that are shown.
const LAST_LINES: usize = 8;

/// An agent that did not come up. Its conversation and its instance's files are as they were.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{session} ended right after its start ({exit}): {}", reason(.fatal, .last))]
pub struct BootFailure {
    pub session: String,
    pub exit: ProcessExit,
    /// What its last output means, if it is known.
    pub fatal: Option<Fatal>,
    /// The end of its last screen.
    pub last: Vec<String>,
}

fn reason(fatal: &Option<Fatal>, last: &[String]) -> String {
    match (fatal, last.last()) {
        (Some(fatal), _) => fatal.to_string(),
        (None, Some(line)) => format!("its last output was `{}`", line.trim()),
        (None, None) => "it printed nothing; run it by hand to see why".to_owned(),
    }
}

/// Writes down why agents did not come up.
pub(crate) fn note(instance_dir: &InstanceDir, instance: &mut Instance, record: &ExitRecord) {
    for session in &mut instance.sessions {
        let Some(failure) = failed(instance_dir, session, record) else { continue };
        if let Some(exit) = session.exit.as_mut().filter(|exit| exit.why.is_none()) {
            tracing::warn!(instance = %instance.id, session = %session.id, "boot: {failure}");
            exit.why = Some(failure.to_string());
        }
    }
}

fn failed(instance_dir: &InstanceDir, session: &Session, record: &ExitRecord) -> Option<BootFailure> {
    let (agent, _) = agent_of(session)?;
    let recorded = record.sessions.iter().find(|recorded| recorded.id == session.id)?;
    let exit = recorded.exit.filter(|_| is_soon(recorded, record))?;
    let is_cut = || {
        session_end::of(instance_dir, session, record).is_some_and(|end| end.decision == Meaning::CutShort)
    };
    if recorded.asked || !(matches!(exit, ProcessExit::Code(code) if code != 0) || is_cut()) {
        return None;
    }
    let mut last = last_words(instance_dir, recorded);
    let fatal = meaning(&*agent, &last);
    last.drain(..last.len().saturating_sub(LAST_LINES));
    Some(BootFailure { session: session.name.clone(), exit, fatal, last })
}

fn is_soon(recorded: &RecordedSession, record: &ExitRecord) -> bool {
    let lasted = recorded.ended_ms.and_then(|ended| ended.checked_sub(record.started_ms));
    !recorded.stopped && lasted.is_some_and(|ms| Duration::from_millis(ms) < SOON)
}

/// What is on the session's last screen.
fn last_words(instance_dir: &InstanceDir, recorded: &RecordedSession) -> Vec<String> {
    let journaled = rebuild::last_screen(&instance_dir.journal(&recorded.id));
    let mut lines = journaled.or_else(|| enter::last_screen(instance_dir, &recorded.id)).unwrap_or_default();
    lines.retain(|line| !line.trim().is_empty());
    lines
}

/// What is known of what it said. The nearer to the end the more it counts: further up is what an earlier run left there.
fn meaning(agent: &dyn Agent, last: &[String]) -> Option<Fatal> {
    (1..=last.len()).find_map(|lines| agent.fatal(&last[last.len() - lines..].join("\n")))
}

/// Watches the agents of the instance come up; returns as soon as that is clear.
pub fn verify(store: &Store, id: InstanceId) -> Result<(), BootFailure> {
    let deadline = Instant::now() + WATCHED;
    loop {
        if let Some(failure) = what_went_wrong(store, id) {
            // What it said last may still be on its way to the journal.
            std::thread::sleep(LAST_WORDS_WITHIN);
            return Err(what_went_wrong(store, id).unwrap_or(failure));
        }
        let Ok(instance) = store.read(id) else { return Ok(()) };
        if Instant::now() > deadline || are_up(&connect::instance_dir(store, id), &instance) {
            // Which conversation it has begun may be seen now, and must not be forgotten if it is killed next.
            current::look_closely(store, &instance);
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Why an agent of the instance did not come up in its last run, if that is so.
pub fn what_went_wrong(store: &Store, id: InstanceId) -> Option<BootFailure> {
    let kept = || Some((connect::instance_dir(store, id), store.read(id).ok()?));
    // A first start that failed has left nothing worth keeping, and may be in the trash by now.
    let (instance_dir, instance) = kept().or_else(|| trashed(store, id))?;
    let record = ExitRecord::read(&instance_dir).ok().flatten()?;
    instance.sessions.iter().find_map(|session| {
        failed(&instance_dir, session, &record).filter(|_| record.generation == instance.generation)
    })
}

fn trashed(store: &Store, id: InstanceId) -> Option<(InstanceDir, Instance)> {
    let entries = store.trashed().ok()?;
    let last = entries.into_iter().rfind(|entry| entry.name.id == id)?;
    Some((InstanceDir::new(store.layout().trashed(&last.name)), last.content.ok()?))
}

/// Whether every agent has spoken for itself already.
fn are_up(instance_dir: &InstanceDir, instance: &Instance) -> bool {
    if instance.sessions.iter().all(|session| session.agent.is_none()) {
        return true;
    }
    let Ok(mut capsule) = connect::connect(instance_dir) else { return false };
    let mut speaks = |session: &Session| {
        let evidence = capsule.call(&GetEvidence { session: session.id }, connect::PATIENCE);
        evidence.is_ok_and(|said| said.statements.iter().any(|one| one.source <= Source::Hook))
    };
    instance.sessions.iter().filter(|session| session.agent.is_some()).all(&mut speaks)
}
