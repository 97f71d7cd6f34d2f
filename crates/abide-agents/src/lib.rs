//! The agents: how each is started and resumed, where it keeps its conversations, and how it says that it cannot go on.
//!
//! One file per agent, and nothing outside this crate tells one agent from another. Which conversation a session is
//! started in is decided in `abide_model::conversation`; this crate gathers the facts for it and spells the command line
//! that carries it out. It starts no process and writes no file.

pub mod activity;
mod agent;
mod amp;
pub mod argv;
mod claude;
mod codex;
mod copilot;
mod custom;
mod fatal;
mod files;
mod gemini;
pub mod holders;
pub mod hooks;
mod kimi;
mod mint;
mod open;
mod opencode;
mod pattern;
mod prepare;
mod projects;
mod qwen;
mod registry;
pub mod rules;
mod sqlite;
mod title;

use std::ops::Deref;

use abide_model::session::Described;

pub use abide_model::conversation::{Begin, FirstTurn, Located, TranscriptCandidate, Typed};
pub use agent::{Agent, Profile, Shared};
pub use custom::Custom;
pub use fatal::Fatal;
pub use mint::mint_uuid;
pub use prepare::{Prepared, Situation, is_wrapped, prepare, shown};
pub use title::Said;

/// The agents that abide knows, in the order in which one is looked for.
pub static KNOWN: &[&dyn Agent] = &[
    &claude::Claude,
    &codex::Codex,
    &gemini::Gemini,
    &opencode::OpenCode,
    &kimi::Kimi,
    &qwen::Qwen,
    &copilot::Copilot,
    &amp::Amp,
];

/// The agent that abide knows as `name`.
pub fn agent(name: &str) -> Option<&'static dyn Agent> {
    KNOWN.iter().copied().find(|agent| agent.name() == name)
}

/// The agent of a session: one that abide knows, or one that only the configuration describes.
#[derive(Debug)]
pub enum Chosen {
    /// Known by name, or by what its command runs.
    Known(&'static dyn Agent),
    Custom(Custom),
}

impl Deref for Chosen {
    type Target = dyn Agent;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Known(agent) => *agent,
            Self::Custom(agent) => agent,
        }
    }
}

/// The agent of a session that calls it `name` and runs `argv`; `described` is how the configuration says that it deals
/// with conversations.
///
/// One that is said to be like a known agent is that one. So is a described agent of which that says nothing and that runs a known program, such as
/// `work = { command = ["claude"] }`.
pub fn for_session(name: &str, argv: &[String], described: Option<&Described>) -> Chosen {
    let program = argv.first().and_then(|word| word.rsplit('/').next());
    let by_program = || KNOWN.iter().copied().find(|known| Some(known.program()) == program);
    let described = described.filter(|described| **described != Described::default());
    let like = described.and_then(|described| agent(described.like.as_deref()?));
    let known =
        like.or_else(|| agent(name)).or_else(|| if described.is_none() { by_program() } else { None });
    let custom = || Custom::new(name, described.cloned().unwrap_or_default());
    known.map_or_else(|| Chosen::Custom(custom()), Chosen::Known)
}
