//! The mux: turns what the sessions write into screens, and shows them to clients.
//!
//! It keeps a terminal model of each session, arranges them in tabs and splits, draws what each client's terminal
//! lacks, passes on what is typed, and answers control requests. It holds nothing that can not be rebuilt: the keeper
//! has the terminals and the listening socket, the journals have the screens, and a small file has the layout. So it
//! may die at any time, and the next one goes on.
//!
//! One thread, one poll loop. It wakes when something happens and never to look whether something has; a timer runs
//! only while something is pending. What an operator's keys do is in `typing` and `actions`, what requests do is in
//! `verbs`, what a client sees is composed in `compose` and drawn by `paint`.

mod actions;
mod attention;
mod bar;
mod client;
mod command;
mod compose;
mod connections;
#[cfg(test)]
mod echo;
mod glyph;
mod keys;
mod layout;
mod mirror;
mod mouse;
mod options;
mod paint;
mod persist;
mod place;
mod recover;
mod scroll;
mod server;
mod session;
mod sgr;
mod show;
mod snapshot;
mod spawn;
mod tokens;
mod typing;
mod upstream;
mod verbs;
mod view;
mod wait;
mod world;

use std::os::fd::AsFd;

pub use options::{BadPrefix, MuxOptions, Prefix, StatusBar};

/// Runs a mux to its end over the link that the keeper left it, which is its standard input; gives the exit code.
/// Call it with one thread: signals are blocked for it alone.
pub fn run(link: impl AsFd) -> i32 {
    match server::Server::start(link.as_fd()).and_then(server::Server::serve) {
        Ok(()) => 0,
        Err(err) => {
            tracing::error!("the mux can not go on: {err}");
            1
        }
    }
}
