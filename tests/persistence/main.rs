//! What survives a logout, on a real systemd with a real logind and a real SSH server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod engine;
mod fallback;
mod linger;
mod logout;
mod machine;
mod person;
mod protection;
mod reboot;
mod script;
mod table;
mod tmux;
mod users;
