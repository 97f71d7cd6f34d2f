//! The end of an instance: `stop` asks for it, `finish` is the one finaliser, `trash` and `prune` remove what is over.

pub mod failed_start;
pub mod finish;
pub mod prune;
pub(crate) mod session_end;
pub mod stop;
pub mod trash;
