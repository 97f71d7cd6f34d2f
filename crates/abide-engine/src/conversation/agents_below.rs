//! Known agents that run below plain commands: what they are in is noted, so that a resume can say that it does not come
//! back by itself.

use abide_agents::KNOWN;
use abide_model::session::AgentBelow;
use abide_model::{Extra, Instance, Pid, Session, vars};
use abide_store::Store;
use abide_sys::process;
use abide_wire::protocol::StatusReply;

/// Notes the agents that run below the plain commands of `instance`. Gives the instance as it is now.
pub(crate) fn note(store: &Store, instance: Instance, live: &StatusReply) -> Instance {
    let is_plain = |session: &&Session| session.agent.is_none();
    let seen: Vec<_> = instance
        .sessions
        .iter()
        .filter(is_plain)
        .filter_map(|session| {
            let running = live.sessions.iter().find(|s| s.id == session.id && s.exit.is_none())?;
            Some((session.id, agent_below(running.pid))).filter(|(_, below)| *below != session.below)
        })
        .collect();
    if seen.is_empty() {
        return instance;
    }
    let noted = store.update(instance.id, |now| -> Result<Instance, abide_store::StoreError> {
        for session in now.sessions.iter_mut().filter(|_| now.generation == instance.generation) {
            if let Some((_, below)) = seen.iter().find(|(id, _)| *id == session.id) {
                session.below = below.clone();
            }
        }
        Ok(now.clone())
    });
    noted.unwrap_or_else(|error| {
        tracing::warn!(instance = %instance.id, "agents below its commands: {error}");
        instance
    })
}

/// The nearest agent that runs in or below process `pid`, if it is in one conversation.
fn agent_below(pid: Pid) -> Option<AgentBelow> {
    process::tree(pid).iter().find_map(|stat| {
        let environment = process::environment(stat.pid)?;
        let home = process::variable(&environment, vars::HOME)?;
        KNOWN.iter().find_map(|agent| {
            let moved = agent.moved_to(&|name| process::variable(&environment, name).map(Into::into));
            let dir = moved.unwrap_or_else(|| agent.default_dir(home.as_ref()));
            // Where it keeps no conversations, nothing of it has one open.
            let mut ids = if dir.is_dir() { agent.open_in(&dir, stat.pid) } else { Vec::new() };
            ids.dedup();
            let id = ids.pop().filter(|_| ids.is_empty())?;
            Some(AgentBelow { agent: agent.name().to_owned(), id, extra: Extra::new() })
        })
    })
}
