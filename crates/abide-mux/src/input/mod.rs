//! What an operator types: keys of ours are commands, everything else goes to the session.

pub(crate) mod actions;
pub(crate) mod command;
pub(crate) mod mouse;
pub(crate) mod typing;
