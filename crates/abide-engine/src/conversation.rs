//! The conversations of agents: which one a session is started in, which one it is in now, which ones are there, and the
//! copies that bring one back.

pub mod adopt;
pub(crate) mod agent_environment;
mod agent_help;
pub(crate) mod agents_below;
pub mod begin;
pub(crate) mod claims;
pub mod current;
pub mod holders;
pub mod list;
pub(crate) mod session_traces;
mod transcript_vault;
pub mod way_back;
