//! What the mux and an agent's own file share: what was seen of a session, and what that says.

use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::activity::ActivityEvidence;
use crate::{Pid, SessionId};

/// Knows the agent of one session, and interprets what it does.
pub trait Watcher: std::fmt::Debug {
    /// What is to be said about the session now, apart from what its program says through the terminal. Called in the
    /// mux's loop: it may read a small file, and must not wait.
    fn look(&mut self, look: &WatcherInput<'_>) -> WatcherFindings;

    /// The file in which the agent publishes what it does, once there is one.
    fn file(&self) -> Option<PathBuf> {
        None
    }

    /// A hook of the session's own agent was called.
    fn hear(&mut self, report: &HookReport, now: Instant);
}

/// What a watcher is shown of a session.
#[derive(Debug)]
pub struct WatcherInput<'a> {
    pub now: Instant,
    /// The title of its terminal.
    pub title: &'a str,
    /// The lines of its screen; `None` if nothing was written since the last look.
    pub screen: Option<&'a [String]>,
}

/// What a watcher has seen.
#[derive(Debug, Default)]
pub struct WatcherFindings {
    /// What each source says.
    pub evidence: Vec<ActivityEvidence>,
    /// The conversation that the agent has changed to, as it says itself.
    pub conversation: Option<String>,
    /// The conversation that it seems to have changed to, by what it writes.
    pub inferred: Option<String>,
}

/// The session that a watcher is wanted for.
#[derive(Debug, Clone, Copy)]
pub struct Watched<'a> {
    /// The first process of the session.
    pub pid: Pid,
    /// What the launcher passed on about it.
    pub meta: &'a serde_json::Value,
}

/// Finds the watcher of a session; `None` if its program is unknown.
pub type Watch = fn(Watched<'_>) -> Option<Box<dyn Watcher>>;

/// The event of a conversation that was inferred from what an agent writes.
pub const INFERRED: &str = "inferred";

/// Tells what a hook of a session's agent was called for. Only that agent's own hooks are believed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookReport {
    pub session: SessionId,
    /// The run of the instance that the hook belongs to.
    pub generation: u64,
    /// The agent's name for what happened.
    pub event: String,
    /// The agent's word for what kind of it.
    pub kind: Option<String>,
    /// The notice or question for the operator.
    pub text: Option<String>,
    /// The conversation that the agent is in.
    pub conversation: Option<String>,
    /// Where the agent writes it.
    pub transcript: Option<String>,
}

impl HookReport {
    /// A conversation that was seen without a hook, by `event`.
    pub fn of_conversation(session: SessionId, generation: u64, conversation: String, event: &str) -> Self {
        let event = event.to_owned();
        let conversation = Some(conversation);
        Self { session, generation, event, kind: None, text: None, conversation, transcript: None }
    }
}
