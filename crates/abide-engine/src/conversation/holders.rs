//! Which processes are in a conversation now, whether abide started them or not.

use std::fmt;
use std::path::Path;

use abide_agents::Agent;
use abide_agents::holders::{self, Holder, KnownBy};
use abide_model::{InstanceId, Pid, SessionId, vars};
use abide_sys::process;

use crate::conversation::claims::{Claims, Who};

/// What is in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldBy {
    /// A session of abide that is bound to it, by its name.
    Session(String),
    Process {
        agent: String,
        pid: Pid,
        /// The session that it runs in, if it runs in one.
        within: Option<String>,
    },
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(name) => f.write_str(name),
            Self::Process { agent, pid, within: Some(session) } => {
                write!(f, "{agent} (process {pid}, in {session})")
            }
            Self::Process { agent, pid, within: None } => write!(f, "{agent} (process {pid}, outside abide)"),
        }
    }
}

impl HeldBy {
    /// What the operator can do to have the conversation.
    pub(crate) fn way_out(&self) -> &'static str {
        match self {
            Self::Session(_) => "attach to it",
            Self::Process { .. } => "end that process first",
        }
    }
}

/// The processes that are in conversations of one agent.
pub(crate) struct LiveHolders {
    agent: String,
    holders: Vec<(Holder, Option<Who>)>,
}

impl LiveHolders {
    /// Looks at what runs now.
    pub fn of(agent: &dyn Agent, config_dir: &Path) -> Self {
        let holders = holders::of(agent, config_dir);
        let within = |holder: Holder| {
            let session = session_of(holder.pid);
            (holder, session)
        };
        Self { agent: agent.name().to_owned(), holders: holders.into_iter().map(within).collect() }
    }

    /// The process outside instance `own` that is in conversation `id`.
    pub fn holder(&self, id: &str, own: Option<InstanceId>, claims: &Claims) -> Option<HeldBy> {
        let counts = |(holder, within): &&(Holder, Option<Who>)| {
            let elsewhere = within.is_none_or(|(instance, _)| Some(instance) != own);
            holder.id == id && elsewhere && !has_left(holder, *within, claims)
        };
        let (holder, within) = self.holders.iter().find(counts)?;
        let within = within.map(|(instance, session)| format!("{}/{session}", instance.display_name()));
        Some(HeldBy::Process { agent: self.agent.clone(), pid: holder.pid, within })
    }
}

/// Whether a session is known to have begun another conversation than the one that its process was started with.
fn has_left(holder: &Holder, within: Option<Who>, claims: &Claims) -> bool {
    let bound = within.and_then(|session| claims.bound(session));
    holder.known_by == KnownBy::CommandLine && bound.is_some_and(|bound| bound != holder.id)
}

/// The session that process `pid` was started in.
fn session_of(pid: Pid) -> Option<(InstanceId, SessionId)> {
    let instance = process::in_environment(pid, vars::ABIDE_INSTANCE)?.parse().ok()?;
    let session = process::in_environment(pid, vars::ABIDE_SESSION)?.parse().ok()?;
    Some((instance, session))
}
