//! The small parts of the state, which a checkpoint holds as JSON.
//!
//! Screens, scrollback and the tables of clusters and links are not here: `dump` writes those in bulk.

use serde::{Deserialize, Serialize};

use crate::colors::Palette;
use crate::keyboard::{self, Keyboard};
use crate::modes::{ModeSet, MouseEncoding, MouseMode};
use crate::parse::charset::Charsets;
use crate::parse::parser::Parser;
use crate::screen::cell::Cell;
use crate::screen::tabs::Tabs;
use crate::status::ProgramStatus;
use crate::term::Term;
use crate::titles::{self, Titles};
use crate::vt::{Caret, Margins, SavedCursor};

/// Everything but what is written in bulk.
#[derive(Serialize, Deserialize)]
pub(crate) struct SmallState {
    parser: Parser,
    alternate: bool,
    caret: Caret,
    pen: Cell,
    charsets: Charsets,
    margins: Margins,
    modes: ModeSet,
    mouse: MouseMode,
    mouse_encoding: MouseEncoding,
    saved: [Option<SavedCursor>; 2],
    tabs: Tabs,
    last_char: Option<char>,
    cursor_style: u8,
    keyboard: Keyboard,
    palette: Palette,
    titles: Titles,
    status: Option<ProgramStatus>,
}

impl SmallState {
    pub(crate) fn of(Term { parser, vt, .. }: &Term) -> Self {
        let mut parser = parser.clone();
        parser.sequence.params.tidy();
        parser.partial[usize::from(parser.partial_len)..].fill(0);
        Self {
            parser,
            alternate: vt.alternate,
            caret: vt.caret,
            pen: vt.pen,
            charsets: vt.charsets,
            margins: vt.margins,
            modes: vt.modes,
            mouse: vt.mouse,
            mouse_encoding: vt.mouse_encoding,
            saved: vt.saved,
            tabs: vt.tabs.clone(),
            last_char: vt.last_char,
            cursor_style: vt.cursor_style,
            keyboard: vt.keyboard.clone(),
            palette: vt.palette.clone(),
            titles: vt.titles.clone(),
            status: vt.status.clone(),
        }
    }

    /// Gives `term`, which has the size that this is of, this state; `None` if no terminal can have come to it.
    pub(crate) fn put_into(self, term: &mut Term) -> Option<()> {
        if !self.is_sound(term) {
            return None;
        }
        let vt = &mut term.vt;
        term.parser = self.parser;
        vt.alternate = self.alternate;
        vt.caret = self.caret;
        vt.pen = self.pen.narrow(0);
        vt.charsets = self.charsets;
        vt.margins = self.margins;
        vt.modes = self.modes;
        vt.mouse = self.mouse;
        vt.mouse_encoding = self.mouse_encoding;
        vt.saved =
            self.saved.map(|saved| saved.map(|saved| SavedCursor { pen: saved.pen.narrow(0), ..saved }));
        vt.tabs = self.tabs;
        vt.last_char = self.last_char;
        vt.cursor_style = self.cursor_style;
        vt.keyboard = self.keyboard;
        vt.palette = self.palette;
        vt.titles = self.titles;
        vt.status = self.status;
        Some(())
    }

    fn is_sound(&self, term: &Term) -> bool {
        let (cols, rows) = (term.vt.cols(), term.vt.rows());
        let is_in_use = |charsets: &Charsets| usize::from(charsets.active) < charsets.sets.len();
        self.parser.partial_len < 4
            && self.parser.sequence.params.is_sound()
            && self.caret.x < cols
            && self.caret.y < rows
            && self.margins.top <= self.margins.bottom
            && self.margins.bottom < rows
            && is_in_use(&self.charsets)
            && self.saved.iter().flatten().all(|saved| is_in_use(&saved.charsets))
            && self.last_char.is_none_or(|c| !c.is_control())
            && self.cursor_style <= 6
            && self.keyboard.stacks.iter().all(|stack| stack.len() <= keyboard::MAX_STACK)
            && self.keyboard.alternate == self.alternate
            && self.palette.changed.keys().all(|n| Palette::is_valid_key(*n))
            && self.titles.stack.len() <= titles::MAX_STACK
            && self.texts().all(|text| !text.contains(char::is_control))
    }

    fn texts(&self) -> impl Iterator<Item = &String> {
        let Titles { window, stack } = &self.titles;
        let status = self.status.iter().flat_map(ProgramStatus::texts);
        stack.iter().flatten().chain([window]).chain(status)
    }
}
