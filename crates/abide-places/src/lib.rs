//! Where instances live, and what it takes to keep them there.

pub mod host;
pub mod tmux;
