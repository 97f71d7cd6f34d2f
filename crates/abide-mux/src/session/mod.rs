//! One session as the mux has it: its terminal, the model of what it shows, and the journal of what it wrote.
//!
//! Output is read in bounded slices, input waits in a bounded queue, and neither ever blocks. Who looks at the session
//! and what becomes of it when it ends is decided elsewhere.

pub(crate) mod activity;
pub(crate) mod earlier_run;
pub(crate) mod settling;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use abide_journal::rebuild::{self, OldScreen, RebuiltJournal};
use abide_journal::{Journal, SyncJob};
use abide_model::Pid;
use abide_model::watching::Watched;
use abide_term::input::tokens::{FOCUS_IN, FOCUS_OUT};
use abide_term::{Rgb, Term, TermEvent};
use abide_wire::link::SessionInfo;
use abide_wire::protocol::Colors;
use abide_wire::session::{ProcessExit, SessionId, TerminalSize};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::screen::bar::Mark;
use crate::server::Server;
use crate::session::activity::Watching;
use crate::session::earlier_run::EarlierRun;
use crate::session::settling::Settlement;

/// Input that a program has not read. Beyond this no more input is accepted until it reads again.
pub(crate) const MAX_INPUT: usize = 4 << 20;
/// Answers to a program's questions are dropped while this much waits: a program that asks must read, too.
const MAX_REPLIES: usize = 64 << 10;
/// After its process ended, a session's output is over when nothing came for this long: another process may still hold
/// the terminal open and never close it.
const QUIET: Duration = Duration::from_millis(200);
/// And at the latest after this long, if that process keeps writing.
const LONGEST_DRAIN: Duration = Duration::from_secs(2);
/// How long an update that a program announced and did not finish is waited for.
const LONGEST_HOLD: Duration = Duration::from_millis(150);
/// How soon after being written output is to be safe from a power failure.
const SYNC_AFTER: Duration = Duration::from_secs(3);
/// When it is brought there already, because no more came.
const SETTLED: Duration = Duration::from_secs(1);

/// So many notifications and reports of progress are passed on in so long.
const MAX_NOTIFIED: u32 = 20;
const NOTIFY_PERIOD: Duration = Duration::from_secs(2);

pub(crate) struct MuxSession {
    pub id: SessionId,
    pub name: String,
    pub program: String,
    pub pid: Pid,
    pub meta: serde_json::Value,
    pub term: Term,
    pub earlier_run: EarlierRun,
    pub exit: Option<ProcessExit>,
    /// Output that no client has shown yet.
    pub mark: Mark,
    pub(crate) master: OwnedFd,
    /// Held while the process lives: without it the terminal would report its end as soon as no process has it open,
    /// though a living one may open it again.
    _slave: Option<OwnedFd>,
    journal: Journal,
    input: Vec<u8>,
    input_sent: usize,
    last_output: Instant,
    pub watching: Watching,
    hold_since: Option<Instant>,
    hold_over: bool,
    unsynced_since: Option<Instant>,
    exited_at: Option<Instant>,
    at_end: bool,
    /// Its last read found all that the kernel has room for.
    floods: bool,
    /// It was interrupted by a key, and has not been quiet since.
    pub interrupted: bool,
    paused_until: Option<Instant>,
    /// That it may not write to the clipboard was said.
    pub clipboard_refused: bool,
    /// Since when notifications are counted, and how many were passed on.
    notified: (Instant, u32),
    /// What the program knows about having the focus; `None` while it does not want to.
    told_focus: Option<bool>,
}

/// A read of fewer bytes has most likely emptied the terminal.
const SHORT: usize = 1024;
/// A read of as much has found all that the kernel keeps ready for one: its program is writing faster than we read.
const FULL: usize = 3900;
/// How long the kernel is given to have as much ready again. It takes it some microseconds, while a read that finds
/// nothing sleeps and is woken again, which takes longer than the read.
const REFILL: Duration = Duration::from_micros(100);
/// If `sched_yield` takes longer than this, another thread ran: stop spinning.
const YIELD_WAS_USED: Duration = Duration::from_micros(5);
/// How long a session that floods in the background is left alone while a client shows another: the machine has
/// time for that one, and this one is still read faster than most programs write.
const PAUSE: Duration = Duration::from_micros(250);

impl MuxSession {
    /// Takes over a session, and rebuilds its screen from what earlier muxes journaled.
    pub fn take_over(info: SessionInfo, master: OwnedFd, ring: &Path, server: &Server) -> Self {
        if let Err(err) = rustix::io::ioctl_fionbio(&master, true) {
            tracing::warn!(session = %info.id, "its terminal cannot be read without waiting: {err}");
        }
        let watcher = (server.watch)(Watched { pid: info.pid, meta: &info.meta });
        // An agent draws what was said by itself. What an earlier run left on the screen must not be taken for that.
        let old_screen = if watcher.is_some() { OldScreen::ScrollsOff } else { OldScreen::Stays };
        let RebuiltJournal { journal, mut term, program } =
            rebuild::rebuild(ring, &server.options, server.generation, info.size, old_screen);
        if let Some(colors) = server.colors {
            set_colors(&mut term, colors);
            // An earlier mux has answered the program, or it has not asked yet.
            drop(term.take_replies());
        }
        let now = Instant::now();
        let mut session = Self {
            id: info.id,
            name: info.name,
            program: info.program,
            pid: info.pid,
            meta: info.meta,
            exit: None,
            mark: Mark::Quiet,
            _slave: open_slave(&master),
            master,
            journal,
            input: Vec::new(),
            input_sent: 0,
            last_output: now,
            watching: Watching::new(watcher, program, term.status(), now),
            earlier_run: EarlierRun::on(&term, program),
            term,
            hold_since: None,
            hold_over: false,
            unsynced_since: None,
            exited_at: None,
            at_end: false,
            floods: false,
            interrupted: false,
            paused_until: None,
            clipboard_refused: false,
            notified: (now, 0),
            told_focus: None,
        };
        session.journal.resized(info.size);
        if let Some(exit) = info.exited {
            session.exited(exit, now);
        }
        session
    }

    /// What the operator calls it.
    pub fn label(&self) -> &str {
        if !self.name.is_empty() {
            return &self.name;
        }
        self.program.rsplit('/').next().unwrap_or_default()
    }

    pub fn size(&self) -> TerminalSize {
        let size = self.term.size();
        TerminalSize { cols: size.cols, rows: size.rows }
    }

    /// Gives the terminal another size; says whether it had a different one.
    pub fn resize(&mut self, size: TerminalSize) -> bool {
        let wanted = abide_term::Size { cols: size.cols, rows: size.rows }.clamped();
        if wanted == self.term.size() {
            return false;
        }
        let size = TerminalSize { cols: wanted.cols, rows: wanted.rows };
        self.earlier_run.resize(&mut self.term, wanted);
        self.journal.resized(size);
        let winsize = Winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
        if let Err(err) = rustix::termios::tcsetwinsize(&self.master, winsize) {
            tracing::warn!(session = %self.id, "its terminal cannot be resized: {err}");
        }
        // Size reports that a program asked for. It may have no other notification, and nothing else to write.
        let news = self.term.take_replies();
        self.send(&news);
        true
    }

    /// Answers questions for colours with those of a client's terminal, and notifies a program that asked to hear of changes.
    pub fn use_colors(&mut self, colors: Colors) {
        set_colors(&mut self.term, colors);
        let news = self.term.take_replies();
        self.send(&news);
    }

    /// Whether one more notification or report of progress may reach the clients' terminals: a program in a loop must not
    /// fill the desktop.
    pub fn may_notify(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.notified.0) >= NOTIFY_PERIOD {
            self.notified = (now, 0);
        }
        self.notified.1 += 1;
        self.notified.1 <= MAX_NOTIFIED
    }

    /// Tells a program that wants to know it whether it has the focus, where that is news.
    pub fn tell_focus(&mut self, focused: bool) {
        let news = self.term.modes().focus_events.then_some(focused);
        if std::mem::replace(&mut self.told_focus, news) != news && news.is_some() {
            self.send(if focused { FOCUS_IN } else { FOCUS_OUT });
        }
    }

    /// Whether there may be output to read.
    pub fn wants_to_read(&self) -> bool {
        !self.at_end
    }

    /// Whether input waits for the program.
    pub fn wants_to_write(&self) -> bool {
        self.input_sent < self.input.len() && !self.at_end
    }

    /// How much input waits for the program.
    pub fn input_waiting(&self) -> usize {
        self.input.len() - self.input_sent
    }

    /// Reads output until there is no more for now, or about `budget` bytes; gives how much it was.
    pub fn read(&mut self, budget: usize, now: Instant) -> usize {
        let mut total = 0;
        while total < budget {
            if self.floods {
                await_refill(&self.master);
            }
            match rustix::io::read(&self.master, self.journal.space()) {
                Ok(0) => self.at_end = true,
                Ok(n) => {
                    let output = self.journal.commit(n);
                    self.term.feed(output);
                    total += n;
                    self.floods = n >= FULL;
                    // Less than a terminal gives at once: there is no more, and the client should not wait for
                    // another read to say so.
                    if n < SHORT {
                        break;
                    }
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => self.floods = false,
                // How a PTY reports that no process has it open any more.
                Err(_) => self.at_end = true,
            }
            break;
        }
        if total > 0 {
            self.after_output(now);
        }
        total
    }

    /// Whether what a key interrupted has just fallen quiet: what is shown now is the answer to that key.
    pub fn fell_quiet(&mut self) -> bool {
        !self.floods && std::mem::take(&mut self.interrupted)
    }

    /// Reads no more for a moment.
    pub fn pause(&mut self, now: Instant) {
        self.paused_until = Some(now + PAUSE);
    }

    /// Until when it is not read, if it is not.
    pub fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    fn after_output(&mut self, now: Instant) {
        self.last_output = now;
        self.watching.wrote(now);
        self.unsynced_since.get_or_insert(now);
        let synchronized = self.term.modes().synchronized;
        self.hold_since = synchronized.then(|| self.hold_since.unwrap_or(now));
        self.hold_over &= synchronized;
        let replies = self.term.take_replies();
        if !replies.is_empty() && self.input_waiting() < MAX_REPLIES {
            self.send(&replies);
        }
        if self.journal.due() {
            self.checkpoint();
        }
    }

    /// Types into the session: at once, or as soon as the program has read what was typed before. Says whether there
    /// was room; where there is none, nothing is typed.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        let fits = self.input_waiting() + bytes.len() <= 2 * MAX_INPUT;
        if fits && self.exit.is_none() {
            self.input.extend_from_slice(bytes);
            self.flush();
        }
        fits
    }

    /// Writes as much of the waiting input as the program has room for.
    pub fn flush(&mut self) {
        while self.wants_to_write() {
            match rustix::io::write(&self.master, &self.input[self.input_sent..]) {
                Ok(n) => self.input_sent += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // No process will read it any more.
                Err(_) => self.input_sent = self.input.len(),
            }
        }
        if self.input_sent == self.input.len() {
            // A large paste must not cost its size for the rest of a long session.
            self.input = Vec::new();
            self.input_sent = 0;
        } else if self.input_sent > MAX_INPUT / 4 {
            self.input.drain(..self.input_sent);
            self.input_sent = 0;
        }
    }

    /// What the model reports, apart from the picture.
    pub fn take_events(&mut self) -> Vec<TermEvent> {
        self.term.take_events()
    }

    /// Whether what is on the clients' screens shall stay there, because the program is in the middle of an update.
    pub fn is_held(&self) -> bool {
        self.hold_since.is_some() && !self.hold_over
    }

    /// Until when an update is waited for.
    pub fn held_until(&self) -> Option<Instant> {
        self.hold_since.filter(|_| !self.hold_over).map(|since| since + LONGEST_HOLD)
    }

    /// Gives up waiting for an update whose time is over; says whether that was now.
    pub fn hold_ran_out(&mut self, now: Instant) -> bool {
        let over = self.held_until().is_some_and(|until| until <= now);
        self.hold_over |= over;
        over
    }

    /// The process ended; its last output is still to be read.
    pub fn exited(&mut self, exit: ProcessExit, now: Instant) {
        self.exit = Some(exit);
        self.exited_at = Some(now);
        self._slave = None;
    }

    /// When the output of an ended process is over at the latest, as far as is known now.
    pub fn drained_at(&self) -> Option<Instant> {
        let exited_at = self.exited_at?;
        if self.at_end {
            return Some(exited_at);
        }
        Some((self.last_output.max(exited_at) + QUIET).min(exited_at + LONGEST_DRAIN))
    }

    /// When the journal should be brought to disk.
    pub fn sync_at(&self) -> Option<Instant> {
        self.unsynced_since.map(|since| (since + SYNC_AFTER).min(self.last_output + SETTLED))
    }

    /// The work of bringing the journal to disk.
    pub fn sync_job(&mut self) -> Option<SyncJob> {
        self.unsynced_since = None;
        self.journal.sync_job().unwrap_or_else(|err| self.without_journal("cannot be synced", &err))
    }

    /// Writes down the model's state, so that a successor need not replay everything.
    pub fn checkpoint(&mut self) {
        if self.journal.is_on_disk()
            && let Err(err) = self.journal.checkpoint(&self.term.dump())
        {
            self.without_journal("cannot be written", &err);
        }
    }

    /// A journal that fails is given up: a session without one goes on, a mux that stumbles over it does not.
    fn without_journal(&mut self, what: &str, err: &io::Error) -> Option<SyncJob> {
        tracing::warn!(session = %self.id, "its journal {what} and is given up: {err}");
        self.journal = Journal::memory();
        None
    }

    /// Takes out the work of bringing everything to disk; the session shows nothing afterwards.
    pub fn take_settlement(&mut self) -> Settlement {
        let journal = std::mem::replace(&mut self.journal, Journal::memory());
        let nothing = Term::new(abide_term::Size { cols: 0, rows: 0 }, abide_term::Options::default());
        Settlement { id: self.id, journal, term: std::mem::replace(&mut self.term, nothing) }
    }

    pub fn is_journaled(&self) -> bool {
        self.journal.is_on_disk()
    }

    /// How long it has not written anything.
    pub fn quiet_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.last_output)
    }

    pub fn last_output(&self) -> Instant {
        self.last_output
    }

    pub fn exited_at(&self) -> Option<Instant> {
        self.exited_at
    }
}

impl AsFd for MuxSession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }
}

fn set_colors(term: &mut Term, Colors { fg, bg }: Colors) {
    let [fg, bg] = [fg, bg].map(|[r, g, b]| Rgb::new(r, g, b));
    term.set_default_colors(fg, bg, fg);
}

/// Polls for more to read for a moment, as long as no other thread needs the processor.
fn await_refill(master: &OwnedFd) {
    let until = Instant::now() + REFILL;
    while rustix::io::ioctl_fionread(master).is_ok_and(|ready| ready < FULL as u64) {
        let before = Instant::now();
        if before >= until {
            return;
        }
        rustix::thread::sched_yield();
        if before.elapsed() > YIELD_WAS_USED {
            return;
        }
    }
}

fn open_slave(master: &OwnedFd) -> Option<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    rustix::pty::ioctl_tiocgptpeer(master, flags).ok()
}
