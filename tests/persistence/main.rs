//! What survives a logout, on a real systemd with a real logind and a real SSH server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, missing_docs)]

mod fallback;
mod linger;
mod logout;
mod machine;
mod person;
mod reboot;
mod script;
mod table;
mod tmux;
mod users;
