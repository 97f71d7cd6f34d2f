//! The thin loop that owns the terminal: keys in, rows out. It decides nothing.

use std::io;
use std::time::{Duration, Instant};

use abide_sys::poll::{self, PollFd, PollFlags};
use abide_sys::signals::TerminalSignals;
use abide_sys::terminal::{self, OperatorTerminal};
use abide_term::input::key_stream::KeyStream;
use abide_term::input::keys::Key;

use crate::draw::draw;
use crate::page::Page;
use crate::press::press;
use crate::surface::SMALLEST;

/// How long after Escape the rest of what another key sends may take to arrive.
const ESCAPE: Duration = Duration::from_millis(50);

const NO_CURSOR: &[u8] = b"\x1b[?25l";

/// The terminal, while questions are asked on it. Dropping it gives it back.
pub(crate) struct DialogTerminal {
    terminal: OperatorTerminal,
    signals: TerminalSignals,
    keys: KeyStream,
    colour: bool,
    size: (usize, usize),
    /// What is on the screen, row by row.
    shown: Vec<Vec<u8>>,
}

enum DialogEvent {
    Keys(Vec<Key>),
    /// The screen has to be drawn anew.
    Redraw,
    /// The terminal is gone, or has to be given up.
    Lost,
}

impl DialogTerminal {
    pub fn open(colour: bool) -> io::Result<Self> {
        let signals = TerminalSignals::take()?;
        let terminal = OperatorTerminal::open()?;
        let mut stage =
            Self { terminal, signals, keys: KeyStream::default(), colour, size: (0, 0), shown: Vec::new() };
        stage.enter()?;
        stage.terminal.discard_typed();
        Ok(stage)
    }

    fn enter(&mut self) -> io::Result<()> {
        self.terminal.enter()?;
        self.terminal.write(NO_CURSOR);
        self.resize();
        Ok(())
    }

    fn resize(&mut self) {
        let (cols, rows) = self.terminal.size().unwrap_or(SMALLEST);
        self.size = (cols.into(), rows.into());
        self.shown.clear();
    }

    /// Shows `page` until it is answered.
    pub fn ask<A: Clone>(&mut self, page: &Page<A>) -> io::Result<A> {
        let mut view = page.view();
        loop {
            self.show(draw(page, &view, self.size).encode(self.colour));
            match self.next()? {
                DialogEvent::Lost => return Ok(page.without_answer()),
                DialogEvent::Redraw => {}
                DialogEvent::Keys(keys) => {
                    for key in keys {
                        if let Some(answer) = press(page, &mut view, key, self.size) {
                            return Ok(answer);
                        }
                    }
                }
            }
        }
    }

    /// Sends the rows that differ from what is on the screen, as one update.
    fn show(&mut self, rows: Vec<Vec<u8>>) {
        self.terminal.write(b"\x1b[?2026h");
        if self.shown.is_empty() {
            self.terminal.write(b"\x1b[m\x1b[2J");
        }
        for (y, row) in rows.iter().enumerate() {
            if self.shown.get(y) != Some(row) {
                self.terminal.write(row);
            }
        }
        self.terminal.write(b"\x1b[?2026l");
        self.shown = rows;
    }

    fn next(&mut self) -> io::Result<DialogEvent> {
        loop {
            let more = if self.terminal.pending() > 0 { PollFlags::OUT } else { PollFlags::empty() };
            let mut fds = [
                PollFd::new(&self.signals.fd, PollFlags::IN),
                PollFd::from_borrowed_fd(self.terminal.input(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.terminal.output(), more),
            ];
            let until = self.keys.is_holding().then(|| Instant::now() + ESCAPE);
            let ready = poll::wait(&mut fds, until)?;
            let [signals, input, output] = fds.map(|fd| !fd.revents().is_empty());
            if signals && let Some(event) = self.on_signal()? {
                return Ok(event);
            }
            if output && self.terminal.flush().is_err() {
                return Ok(DialogEvent::Lost);
            }
            if input {
                let mut typed = [0; 256];
                let Ok(n) = self.terminal.read(&mut typed) else { return Ok(DialogEvent::Lost) };
                return Ok(DialogEvent::Keys(self.keys.feed(&typed[..n])));
            }
            if ready == 0 {
                return Ok(DialogEvent::Keys(self.keys.flush()));
            }
        }
    }

    fn on_signal(&mut self) -> io::Result<Option<DialogEvent>> {
        let mut event = None;
        while let Some(signal) = self.signals.fd.next()? {
            match signal {
                libc::SIGWINCH => self.resize(),
                libc::SIGTSTP => {
                    self.terminal.leave();
                    terminal::stop();
                }
                libc::SIGCONT => {
                    self.terminal.leave();
                    self.enter()?;
                }
                _ => return Ok(Some(DialogEvent::Lost)),
            }
            event = Some(DialogEvent::Redraw);
        }
        Ok(event)
    }
}
