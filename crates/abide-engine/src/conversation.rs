//! Which conversation each session is started in: gathers what the decision needs, and binds what was decided.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use abide_agents::{Begin, Prepared, Situation};
use abide_model::{Conversation, Extra, Instance, Session};
use abide_store::Entry;
use abide_sys::clock;

use crate::start::{StartError, Surroundings};

/// How `session` is started; `None` if it runs no agent. `env` is told where the agent keeps its files, if that was chosen.
pub(crate) fn prepare(
    around: &Surroundings<'_>,
    instance: &Instance,
    session: &Session,
    env: &mut BTreeMap<OsString, OsString>,
) -> Result<Option<Prepared>, StartError> {
    let Some(name) = &session.agent else { return Ok(None) };
    let described = around.settings.agents.get(name.as_str());
    let resume = described.and_then(|agent| agent.resume.as_deref());
    let agent = abide_agents::for_session(name, &session.argv, resume);
    let configured = described.and_then(|agent| agent.config_dir.as_deref());
    // An agent that looked elsewhere than we do would not find its conversation.
    if let Some((variable, dir)) = configured.and_then(|dir| agent.config_env(dir)) {
        env.insert(variable.into(), dir);
    }
    let var = |name: &str| env.get(OsStr::new(name)).cloned();
    let entries = around.store.list()?;
    let others = entries.iter().filter_map(|entry| match entry {
        Entry::Sound(other) => Some(other),
        Entry::Damaged { .. } => None,
    });
    let others = others.flat_map(|other| other.sessions.iter().map(move |session| (other.id, session)));
    let own = (instance.id, session.id);
    let claimed: Vec<&str> =
        others.filter(|(id, other)| (*id, other.id) != own).flat_map(|(_, other)| other.claimed()).collect();
    let prepared = abide_agents::prepare(
        &*agent,
        &Situation {
            argv: &session.argv,
            cwd: &session.cwd,
            config_dir: &agent.config_dir(&var, &around.home, configured),
            created: session.created,
            started_before: session.generation > 1,
            conversation: session.conversation.as_ref(),
            claimed: &claimed,
        },
    )?;
    bind(around, instance, session, &prepared)?;
    Ok(Some(prepared))
}

/// Written down before the agent starts: a crash right after must not lose the id.
fn bind(
    around: &Surroundings<'_>,
    instance: &Instance,
    session: &Session,
    prepared: &Prepared,
) -> Result<(), StartError> {
    let resumed = match &prepared.begin.decision {
        Begin::Resume { id } => format!("id={id}"),
        _ => "none".to_owned(),
    };
    let (reason, why) = (&prepared.begin.reason, prepared.unverified.as_deref().unwrap_or_default());
    tracing::info!(instance = %instance.id, session = %session.id, why, "resume: {resumed} reason={reason}");
    let Some((id, origin)) = prepared.begin.decision.binding() else { return Ok(()) };
    let transcript = prepared.transcript.clone();
    let bound =
        Conversation { id: id.to_owned(), origin, bound: clock::now(), transcript, extra: Extra::new() };
    around.store.update(instance.id, |instance| -> Result<(), StartError> {
        if let Some(session) = instance.sessions.iter_mut().find(|own| own.id == session.id) {
            session.bind(bound);
        }
        Ok(())
    })
}
