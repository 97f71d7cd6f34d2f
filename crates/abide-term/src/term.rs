//! The terminal as its owner sees it.

use crate::modes::{Modes, TermMode};
use crate::options::{Options, Rgb, Size};
use crate::outbox::TermEvent;
use crate::parse::parser::Parser;
use crate::screen::cell::{Cell, Style};
use crate::screen::print::cell_text;
use crate::status::ProgramStatus;
use crate::vt::Vt;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CursorShape {
    #[default]
    Block,
    /// A line under the cell.
    Underline,
    /// A line before the cell.
    Bar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Column, from 0.
    pub x: u16,
    /// Row, from 0.
    pub y: u16,
    /// Whether it is shown.
    pub visible: bool,
    pub shape: CursorShape,
    pub blinking: bool,
    /// Whether a program asked for it to look like this.
    pub chosen: bool,
}

/// A terminal without a display: feed it the output of a program, and look at what would be seen.
///
/// ```
/// use abide_term::{Options, Size, Term};
///
/// let mut term = Term::new(Size { cols: 80, rows: 24 }, Options::default());
/// term.feed(b"hello\x1b[6n");
/// assert_eq!(term.text(), "hello");
/// assert_eq!(term.take_replies(), b"\x1b[1;6R");
/// ```
#[derive(Clone, Debug)]
pub struct Term {
    pub(crate) parser: Parser,
    pub(crate) vt: Vt,
    pub(crate) version: u64,
    /// What was visible when `version` last grew, apart from the cells.
    pub(crate) seen: (Cursor, Modes, u64),
}

impl Term {
    /// A blank terminal. The size is brought within bounds.
    pub fn new(size: Size, options: Options) -> Self {
        Self::from_parts(Parser::default(), Vt::new(size, options))
    }

    pub(crate) fn from_parts(parser: Parser, vt: Vt) -> Self {
        let version = vt.grid.now;
        let mut term = Self { parser, vt, version, seen: (Cursor::default(), Modes::default(), 0) };
        term.seen = term.visible_state();
        term
    }

    /// Takes in output of the program, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.vt.grid.now += 1;
            self.parser.advance(bytes, &mut self.vt);
            self.note_changes();
        }
    }

    /// What must be written back to the program, and forgets it. Bounded: a program that does not wait for its answers
    /// loses some.
    pub fn take_replies(&mut self) -> Vec<u8> {
        self.vt.outbox.take_replies()
    }

    /// What happened since the last call. Bounded: the oldest events give way.
    pub fn take_events(&mut self) -> Vec<TermEvent> {
        self.vt.outbox.take_events()
    }

    /// Changes the size. Text on the primary screen and in the scrollback is wrapped anew.
    pub fn resize(&mut self, size: Size) {
        self.vt.grid.now += 1;
        self.vt.resize(size);
        self.note_changes();
    }

    /// Changes what colour queries answer, for instance when the terminal of another client is the one to please.
    pub fn set_default_colors(&mut self, fg: Rgb, bg: Rgb, cursor: Rgb) {
        self.vt.set_default_colors(fg, bg, cursor);
    }

    /// Says whether the terminal around this one can tell modified keys apart as modifyOtherKeys does: a program that asks
    /// is told that it is off where it cannot be on.
    pub fn set_tells_modified_keys(&mut self, tells: bool) {
        self.vt.options.tells_modified_keys = tells;
    }

    fn visible_state(&self) -> (Cursor, Modes, u64) {
        (self.cursor(), self.modes(), self.vt.changes)
    }

    fn note_changes(&mut self) {
        let state = self.visible_state();
        if self.vt.grid.changed > self.version || state != self.seen {
            self.version = self.vt.grid.now;
            self.seen = state;
        }
    }

    pub fn size(&self) -> Size {
        self.vt.size
    }

    /// A row of the visible screen, 0 being the top; empty past the last.
    pub fn row(&self, y: u16) -> &[Cell] {
        if y < self.vt.size.rows { self.vt.grid.row(usize::from(y)) } else { &[] }
    }

    /// Whether the text of a row goes on in the next one.
    pub fn row_wrapped(&self, y: u16) -> bool {
        y < self.vt.size.rows && self.vt.grid.is_wrapped(usize::from(y))
    }

    /// The style of a cell with the colours that the program gave to the palette and to text and background as such.
    pub fn shown_style(&self, cell: &Cell) -> Style {
        self.vt.palette.shown(cell.style())
    }

    /// Grows whenever the row may have changed.
    pub fn row_version(&self, y: u16) -> u64 {
        if y < self.vt.size.rows { self.vt.grid.version(usize::from(y)) } else { 0 }
    }

    /// The [`version`](Self::version) at which something was last written into the row or erased from it, wherever it has
    /// moved since. A resize writes all.
    pub fn row_written(&self, y: u16) -> u64 {
        if y < self.vt.size.rows { self.vt.grid.written(usize::from(y)) } else { 0 }
    }

    /// Grows whenever anything visible changed: cells, cursor, modes, titles, colours.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn cursor(&self) -> Cursor {
        let vt = &self.vt;
        Cursor {
            x: vt.caret.x as u16,
            y: vt.caret.y as u16,
            visible: vt.modes.has(TermMode::CursorVisible),
            shape: match vt.cursor_style {
                3 | 4 => CursorShape::Underline,
                5 | 6 => CursorShape::Bar,
                _ => CursorShape::Block,
            },
            blinking: matches!(vt.cursor_style, 1 | 3 | 5) || vt.modes.has(TermMode::CursorBlink),
            chosen: vt.cursor_style != 0,
        }
    }

    /// The modes that concern the outside.
    pub fn modes(&self) -> Modes {
        let vt = &self.vt;
        Modes {
            app_cursor_keys: vt.modes.has(TermMode::AppCursorKeys),
            app_keypad: vt.modes.has(TermMode::AppKeypad),
            bracketed_paste: vt.modes.has(TermMode::BracketedPaste),
            focus_events: vt.modes.has(TermMode::FocusEvents),
            mouse: vt.mouse,
            mouse_encoding: vt.mouse_encoding,
            alternate_scroll: vt.modes.has(TermMode::AlternateScroll),
            kitty_keyboard: vt.keyboard.flags(),
            modify_other_keys: vt.keyboard.modify_other_keys,
            alternate_screen: vt.alternate,
            synchronized: vt.modes.has(TermMode::Synchronized),
            reverse_video: vt.modes.has(TermMode::ReverseVideo),
            backspace_sends_bs: vt.modes.has(TermMode::BackspaceSendsBs),
        }
    }

    pub fn title(&self) -> &str {
        &self.vt.titles.window
    }

    /// What the program last said it is doing (OSC 7501).
    pub fn status(&self) -> Option<&ProgramStatus> {
        self.vt.status.as_ref()
    }

    /// How many lines the scrollback holds.
    pub fn scrollback_len(&self) -> usize {
        self.vt.scrollback.len()
    }

    /// Puts the cells of a line of the scrollback into `out`, 0 being the oldest line; blanks at its end are left out.
    /// Returns whether its text goes on in the next line.
    pub fn scrollback_row(&self, i: usize, out: &mut Vec<Cell>) -> bool {
        out.clear();
        self.vt.scrollback.read(i, out)
    }

    /// How many lines were ever pushed into the scrollback, by the program or by a resize.
    pub fn scrolled_off(&self) -> u64 {
        self.vt.scrolled_off
    }

    /// The text of a cell; empty for a blank and for the right half of a wide character.
    pub fn grapheme<'a>(&'a self, cell: &Cell, buf: &'a mut [u8; 4]) -> &'a str {
        cell_text(&self.vt.clusters, cell, buf)
    }

    /// The address that a cell links to.
    pub fn hyperlink(&self, cell: &Cell) -> Option<&str> {
        self.vt.link_uri(cell.link_id())
    }

    /// The visible text: one line for each row, without blanks at the ends of lines and of the screen.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for y in 0..self.vt.rows() {
            self.push_text(self.vt.grid.row(y), &mut out);
            trim_line(&mut out);
            out.push('\n');
        }
        out.truncate(out.trim_end_matches('\n').len());
        out
    }

    fn push_text(&self, cells: &[Cell], out: &mut String) {
        let mut buf = [0; 4];
        for cell in cells.iter().filter(|cell| !cell.is_continuation()) {
            let text = cell_text(&self.vt.clusters, cell, &mut buf);
            out.push_str(if text.is_empty() { " " } else { text });
        }
    }
}

/// Removes the spaces at the end of the last line.
fn trim_line(text: &mut String) {
    text.truncate(text.trim_end_matches(' ').len());
}
