//! Rebuilding a session's screen from its journal.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use abide_term::{Options, Term, row_text};
use abide_wire::mux_options::MuxOptions;
use abide_wire::session::TerminalSize;

use crate::{Chunk, Journal, Recovered};

/// A journal whose replay killed this many muxes in a row is not replayed again.
const MAX_ATTEMPTS: usize = 8;

/// Ends whatever the last program of an earlier run left behind, but keeps its text: leaves a sequence it did not
/// finish, the alternate screen, and every mode that the next program does not expect.
const NEW_PROGRAM: &[u8] =
    b"\x18\x1b[?2026l\x1b[?1049l\x1b[!p\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1006l\
\x1b[?2004l\x1b[?1l\x1b>\x1b[<99u\x1b[0 q\x1b[?25h\x1b[m\x1b]104\x07\x1b]110\x07\x1b]111\x07\x1b]112\x07";

/// A journal to go on with, and the terminal that it tells of.
pub struct RebuiltJournal {
    pub journal: Journal,
    pub term: Term,
    /// Whether what wrote it is what runs now.
    pub program: ProgramContinuity,
}

/// Whether a session's program is the one that an earlier mux had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramContinuity {
    Same,
    New,
}

/// What becomes of the screen that an earlier run left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldScreen {
    /// The next program goes on below it.
    Stays,
    /// It joins the scrollback.
    ScrollsOff,
}

/// Opens the journal at `ring` and replays it.
pub fn rebuild(
    ring: &Path,
    options: &MuxOptions,
    generation: u64,
    size: TerminalSize,
    old_screen: OldScreen,
) -> RebuiltJournal {
    let empty =
        |journal| RebuiltJournal { journal, term: blank(options, size), program: ProgramContinuity::New };
    if options.journal_bytes == 0 {
        return empty(Journal::memory());
    }
    let attempts = Attempts::of(ring);
    // Before it is opened, which may be what kills.
    if !attempts.begin() {
        tracing::error!("{} cannot be replayed; the session goes on with an empty screen", ring.display());
        if let Err(err) = crate::set_aside(ring) {
            tracing::warn!("{} cannot be set aside: {err}", ring.display());
            return empty(Journal::memory());
        }
    }
    let (mut journal, recovered) = Journal::open(ring, options.journal_bytes, generation);
    let Some(recovered) = recovered else {
        attempts.succeeded();
        return empty(journal);
    };
    let mut term = replay(&recovered, options, size);
    let earlier_run = recovered.generation() != generation;
    if earlier_run {
        begin_anew(&mut term, old_screen);
    }
    term.resize(term_size(size));
    if earlier_run {
        // What the journal holds no longer leads to this state by itself.
        if let Err(err) = journal.checkpoint(&term.dump()) {
            tracing::warn!("{} cannot be written: {err}", ring.display());
        }
    }
    attempts.succeeded();
    let program = if earlier_run { ProgramContinuity::New } else { ProgramContinuity::Same };
    RebuiltJournal { journal, term, program }
}

fn replay(recovered: &Recovered, options: &MuxOptions, size: TerminalSize) -> Term {
    let restored =
        recovered.checkpoint.as_ref().and_then(|point| Term::restore(&point.blob, term_options(options)));
    let mut term = restored.unwrap_or_else(|| blank(options, size));
    let replayed = recovered.replay(|chunk| match chunk {
        Chunk::Resize(size) => term.resize(term_size(size)),
        Chunk::Output(output) => {
            term.feed(output);
            // The earlier mux has answered and reported these.
            drop(term.take_replies());
            drop(term.take_events());
        }
    });
    if let Err(err) = replayed {
        tracing::warn!("a journal could be read in part only: {err}");
    }
    term
}

/// The text on a session's last screen, line by line, from the journal at `ring`; `None` if there is none.
pub fn last_screen(ring: &Path) -> Option<Vec<String>> {
    let recovered = Recovered::read(ring).ok()?;
    let mut term = replay(&recovered, &MuxOptions::default(), recovered.size.unwrap_or_default());
    // What the program drew for itself is gone with it; what it said in the end is not.
    term.feed(NEW_PROGRAM);
    let row = |y| row_text(&term, term.row(y)).0.trim_end().to_owned();
    Some((0..term.size().rows).map(row).collect())
}

fn begin_anew(term: &mut Term, old_screen: OldScreen) {
    term.feed(NEW_PROGRAM);
    if old_screen == OldScreen::ScrollsOff {
        scroll_off(term);
    }
    if term.cursor().x > 0 {
        term.feed(b"\r\n");
    }
    drop(term.take_replies());
    drop(term.take_events());
}

/// Moves what is on the screen into the scrollback, and forgets the title.
fn scroll_off(term: &mut Term) {
    let is_written = |y: &u16| !row_text(term, term.row(*y)).0.trim().is_empty();
    let written = (0..term.size().rows).rev().find(is_written).map_or(0, |y| y + 1);
    term.feed(b"\x1b[r\x1b[9999;1H");
    term.feed("\n".repeat(usize::from(written)).as_bytes());
    term.feed(b"\x1b[H\x1b]2;\x07");
}

fn blank(options: &MuxOptions, size: TerminalSize) -> Term {
    Term::new(term_size(size), term_options(options))
}

fn term_size(size: TerminalSize) -> abide_term::Size {
    abide_term::Size { cols: size.cols, rows: size.rows }
}

fn term_options(options: &MuxOptions) -> Options {
    Options { scrollback: options.scrollback, tells_modified_keys: false, ..Options::default() }
}

/// Counts replays that did not come to their end, in a file whose length is the count: should a journal hold
/// something that kills the mux, every successor would die of it too, and the session could never be seen again.
struct Attempts {
    path: PathBuf,
    count: usize,
}

impl Attempts {
    fn of(ring: &Path) -> Self {
        let path = ring.with_extension("replaying");
        let count =
            fs::metadata(&path).map_or(0, |metadata| usize::try_from(metadata.len()).unwrap_or(usize::MAX));
        Self { path, count }
    }

    fn are_too_many(&self) -> bool {
        self.count >= MAX_ATTEMPTS
    }

    /// Counts one more; says whether it should be made. Not being able to count is no reason not to try.
    fn begin(&self) -> bool {
        if self.are_too_many() {
            return false;
        }
        // Appended, so that a full disk does not set the count back.
        let counted = File::options().append(true).create(true).open(&self.path);
        let _ = counted.and_then(|mut file| file.write_all(b"."));
        true
    }

    fn succeeded(&self) {
        let _ = fs::remove_file(&self.path);
    }
}
