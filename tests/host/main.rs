//! Instances on the host, end to end: the real command, a real terminal, real processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod activity;
mod astray;
mod attach;
mod awake;
mod coming_back;
mod common;
mod conversations;
mod conversations_kept;
mod crash;
mod daemons;
mod endings;
mod environment;
mod forecast;
mod held;
mod leave;
mod leave_answers;
mod lifecycle;
mod liveness;
mod liveness_places;
mod moved;
mod records;
mod script;
mod survive;
mod survivors;
mod tmux;
mod way_back;
mod wrappers;
