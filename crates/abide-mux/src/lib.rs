//! The mux: turns what the sessions write into screens, and shows them to clients.
//!
//! It keeps a terminal model of each session, arranges them in tabs and splits, draws what each client's terminal
//! lacks, passes on what is typed, and answers control requests. It holds nothing that cannot be rebuilt: the keeper
//! has the terminals and the listening socket, the journals have the screens, and a small file has the layout. So it
//! may die at any time, and the next one goes on.
//!
//! One thread, one poll loop. It wakes when something happens and never to look whether something has; a timer runs
//! only while something is pending. What an operator's keys do is in `typing` and `actions`, what requests do is in
//! `verbs`, what a client sees is composed in `compose` and drawn by `paint`.

mod input;
mod screen;
mod server;
mod session;
#[cfg(test)]
mod tests;

use std::os::fd::AsFd;

/// Runs a mux to its end over the link that the keeper left it, which is its standard input; gives the exit code.
/// Sessions are watched by whomever `watch` finds. Call it with one thread: signals are blocked for it alone.
pub fn run(link: impl AsFd, watch: abide_model::watching::Watch) -> i32 {
    abide_sys::daemon::give_back_large_blocks();
    if let Err(err) = abide_sys::daemon::take_short_turns() {
        tracing::debug!("keys may have to wait for busy programs: {err}");
    }
    match server::Server::start(link.as_fd(), watch).and_then(server::Server::serve) {
        Ok(()) => 0,
        Err(err) => {
            tracing::error!("the mux cannot go on: {err}");
            1
        }
    }
}
