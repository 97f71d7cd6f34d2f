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
mod activity;
mod attention;
mod awake;
mod bar;
mod chrome;
mod client;
mod command;
mod compose;
mod connections;
mod display;
mod due;
mod earlier_run;
mod endings;
mod glyph;
mod keys;
mod layout;
mod lent;
mod mirror;
mod mouse;
mod options;
mod paint;
mod persist;
mod place;
mod recover;
mod scroll;
mod searching;
mod server;
mod session;
mod settling;
mod sgr;
mod show;
mod snapshot;
mod spawn;
#[cfg(test)]
mod tests;
mod tokens;
mod typing;
mod upstream;
mod verbs;
mod view;
mod wait;
mod world;

use std::os::fd::AsFd;

use abide_term::{Modes, Options, Term};

pub use activity::{INFERRED, Look, Seen, Watch, Watched, Watcher};
pub(crate) use activity::{record, reporter};
pub use options::{LiveSettings, MuxOptions};
pub use persist::given_names;
pub use recover::last_screen;

use crate::protocol::{Refusal, Snapshot, SnapshotReply};
use crate::session::{SessionId, Size};

/// What a terminal sends for the key called `name`; `None` for a name that is none.
pub fn key_bytes(name: &str, app_cursor_keys: bool) -> Option<Vec<u8>> {
    keys::named(name, &Modes { app_cursor_keys, ..Modes::default() })
}

/// The snapshot of a screen that somebody else keeps: `output` draws it, and what scrolled off before it.
pub fn drawn_by(
    session: &SessionId,
    size: Size,
    output: &[u8],
    ask: &Snapshot,
) -> Result<SnapshotReply, Refusal> {
    let size = abide_term::Size { cols: size.cols, rows: size.rows };
    let lines = output.iter().filter(|byte| **byte == b'\n').count();
    let mut term = Term::new(size, Options { scrollback: lines, ..Options::default() });
    term.feed(output);
    snapshot::take(session, &term, ask)
}

/// Runs a mux to its end over the link that the keeper left it, which is its standard input; gives the exit code.
/// Sessions are watched by whomever `watch` finds. Call it with one thread: signals are blocked for it alone.
pub fn run(link: impl AsFd, watch: Watch) -> i32 {
    if let Err(err) = abide_sys::resident::take_short_turns() {
        tracing::debug!("keys may have to wait for busy programs: {err}");
    }
    match server::Server::start(link.as_fd(), watch).and_then(server::Server::serve) {
        Ok(()) => 0,
        Err(err) => {
            tracing::error!("the mux can not go on: {err}");
            1
        }
    }
}
