//! What a session left that identifies its own transcript: when something was first entered in it, and what
//! its screen shows.

use abide_agents::{Agent, FirstTurn, Typed};
use abide_journal::rebuild;
use abide_model::{InstanceId, Session, Timestamp};
use abide_places::connect;
use abide_places::tmux::enter;
use abide_store::Store;
use abide_sys::untrusted;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::Snapshot;
use serde::Deserialize;

use crate::substrate;

/// How much of what scrolled off is looked at.
const LINES: usize = 1000;

/// Something was entered in a session for the first time in a run.
#[derive(Deserialize)]
struct TurnTrace {
    session: String,
    at: i64,
}

/// What is written down of the turns in the sessions of an instance directory; `None` where that is not observed.
fn turns(instance_dir: &InstanceDir) -> Option<Vec<TurnTrace>> {
    let text = String::from_utf8(untrusted::read(&instance_dir.turns()).ok()?).ok()?;
    Some(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Begins to observe turns. Where this was not done, nothing is known of them.
pub(crate) fn observe(instance_dir: &InstanceDir) {
    let opened = untrusted::append(&instance_dir.turns());
    if let Err(error) = opened {
        tracing::warn!("turns are not observed: {error}");
    }
}

/// When something was first entered in `session`, which runs `agent`.
pub(crate) fn first_turn(instance_dir: &InstanceDir, session: &Session, agent: &dyn Agent) -> FirstTurn {
    // A copy of a conversation is written at the start.
    let copies = agent.typed(&session.argv) == Typed::Conversation(None);
    if copies || agent.says_at_start(&session.argv) {
        return FirstTurn::At(session.created);
    }
    let Some(turns) = turns(instance_dir) else { return FirstTurn::Unknown };
    let own = turns.iter().filter(|turn| turn.session == session.id.to_string());
    own.map(|turn| turn.at).min().map_or(FirstTurn::NotYet, |at| FirstTurn::At(Timestamp(at)))
}

/// What `session` shows, or last showed.
pub(crate) fn screen(store: &Store, instance: InstanceId, session: &Session) -> String {
    let instance_dir = &connect::instance_dir(store, instance);
    let ask = Snapshot { scrollback: true, last: Some(LINES), ..Snapshot::default() };
    let running = || substrate::of(store, instance).screen(&session.id, &ask).ok();
    let running = running().map(|screen| screen.lines);
    let last = || {
        rebuild::last_screen(&instance_dir.journal(&session.id))
            .or_else(|| enter::last_screen(instance_dir, &session.id))
    };
    running.or_else(last).unwrap_or_default().join(" ")
}
