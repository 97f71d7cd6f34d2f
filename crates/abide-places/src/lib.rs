//! Where instances live, and what it takes to keep them there.

pub mod boot;
pub mod tmux;
pub mod unit;
