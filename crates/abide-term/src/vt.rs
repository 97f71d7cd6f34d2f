//! The state that sequences act on, and the few moves that everything else is made of: scrolling, line feeds, switching
//! screens and resetting.

use crate::colors::Palette;
use crate::keyboard::Keyboard;
use crate::modes::{ModeSet, MouseEncoding, MouseMode, TermMode};
use crate::options::{Options, Size};
use crate::outbox::Outbox;
use crate::parse::charset::Charsets;
use crate::screen::cell::{Cell, MAX_LINK};
use crate::screen::grid::Grid;
use crate::screen::interner::Interner;
use crate::screen::print::JoinMemo;
use crate::screen::scrollback::Scrollback;
use crate::screen::tabs::Tabs;
use crate::status::ProgramStatus;
use crate::titles::Titles;

/// Distinct grapheme clusters on the screen and in the scrollback, and their bytes.
const MAX_CLUSTERS: usize = 16 << 10;
const MAX_CLUSTER_BYTES: usize = 1 << 20;
/// Bytes of all hyperlinks; their number is bounded by what a cell can hold.
const MAX_LINK_BYTES: usize = 2 << 20;

/// Where the next character goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Caret {
    pub(crate) x: usize,
    pub(crate) y: usize,
    /// The last column was just written: the next character wraps first.
    pub(crate) pending: bool,
}

/// The first and last row that scrolling and editing affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Margins {
    pub(crate) top: usize,
    pub(crate) bottom: usize,
}

impl Margins {
    pub(crate) fn whole(size: Size) -> Self {
        Self { top: 0, bottom: usize::from(size.rows) - 1 }
    }
}

/// What DECSC keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct SavedCursor {
    pub(crate) caret: Caret,
    pub(crate) pen: Cell,
    pub(crate) charsets: Charsets,
    pub(crate) origin: bool,
}

/// The state of a terminal.
#[derive(Clone, Debug)]
pub(crate) struct Vt {
    pub(crate) options: Options,
    pub(crate) size: Size,
    /// The screen that is shown.
    pub(crate) grid: Grid,
    /// The other screen; the alternate one exists from its first use on.
    pub(crate) parked: Option<Grid>,
    /// Whether `grid` is the alternate screen.
    pub(crate) alternate: bool,
    pub(crate) scrollback: Scrollback,
    pub(crate) scrolled_off: u64,
    pub(crate) caret: Caret,
    /// The look that text is written with.
    pub(crate) pen: Cell,
    pub(crate) charsets: Charsets,
    pub(crate) margins: Margins,
    pub(crate) modes: ModeSet,
    pub(crate) mouse: MouseMode,
    pub(crate) mouse_encoding: MouseEncoding,
    /// Cursors saved on the primary and on the alternate screen.
    pub(crate) saved: [Option<SavedCursor>; 2],
    pub(crate) tabs: Tabs,
    /// The last character printed, for REP.
    pub(crate) last_char: Option<char>,
    /// The parameter of DECSCUSR.
    pub(crate) cursor_style: u8,
    pub(crate) keyboard: Keyboard,
    pub(crate) palette: Palette,
    pub(crate) titles: Titles,
    pub(crate) status: Option<ProgramStatus>,
    pub(crate) clusters: Interner,
    pub(crate) links: Interner,
    pub(crate) joins: JoinMemo,
    pub(crate) outbox: Outbox,
    /// Grows whenever something visible other than cells, cursor and modes changed.
    pub(crate) changes: u64,
}

impl Vt {
    pub(crate) fn new(size: Size, options: Options) -> Self {
        let size = size.clamped();
        let (cols, rows) = (usize::from(size.cols), usize::from(size.rows));
        Self {
            size,
            grid: Grid::new(cols, rows, 1),
            parked: None,
            alternate: false,
            scrollback: Scrollback::new(options.scrollback, cols),
            options,
            scrolled_off: 0,
            caret: Caret::default(),
            pen: Cell::default(),
            charsets: Charsets::default(),
            margins: Margins::whole(size),
            modes: ModeSet::default(),
            mouse: MouseMode::None,
            mouse_encoding: MouseEncoding::X10,
            saved: [None; 2],
            tabs: Tabs::default(),
            last_char: None,
            cursor_style: 0,
            keyboard: Keyboard::default(),
            palette: Palette::default(),
            titles: Titles::default(),
            status: None,
            clusters: Interner::new(MAX_CLUSTERS, MAX_CLUSTER_BYTES),
            links: Interner::new(usize::from(MAX_LINK), MAX_LINK_BYTES),
            joins: JoinMemo::default(),
            outbox: Outbox::default(),
            changes: 0,
        }
    }

    pub(crate) fn cols(&self) -> usize {
        self.grid.cols()
    }

    pub(crate) fn rows(&self) -> usize {
        self.grid.rows()
    }

    /// The cell that erasing leaves behind now.
    pub(crate) fn blank(&self) -> Cell {
        self.pen.erased()
    }

    pub(crate) fn within_margins(&self) -> bool {
        (self.margins.top..=self.margins.bottom).contains(&self.caret.y)
    }

    /// Moves down a row, scrolling at the bottom margin.
    #[inline]
    pub(crate) fn index(&mut self) {
        if self.caret.y == self.margins.bottom {
            self.scroll_up(1);
        } else if self.caret.y + 1 < self.rows() {
            self.caret.y += 1;
        }
    }

    /// Moves up a row, scrolling at the top margin.
    pub(crate) fn reverse_index(&mut self) {
        if self.caret.y == self.margins.top {
            self.insert_rows(self.margins.top, 1);
        } else {
            self.caret.y = self.caret.y.saturating_sub(1);
        }
    }

    /// Scrolls the margins up. What leaves the top of the primary screen is kept.
    #[inline]
    pub(crate) fn scroll_up(&mut self, n: usize) {
        let n = n.min(self.margins.bottom + 1 - self.margins.top);
        if self.margins.top == 0 && !self.alternate {
            for y in 0..n {
                self.push_scrollback(y);
            }
        }
        self.remove_rows(self.margins.top, n);
    }

    /// Moves the rows below up onto `top`, as far as the bottom margin.
    pub(crate) fn remove_rows(&mut self, top: usize, n: usize) {
        if top > 0 {
            self.break_before(top);
        }
        self.grid.scroll_up(top, self.margins.bottom, n, self.pen.erased());
    }

    /// Moves the rows from `top` down, as far as the bottom margin.
    pub(crate) fn insert_rows(&mut self, top: usize, n: usize) {
        let bottom = self.margins.bottom;
        self.break_before(top);
        self.grid.set_wrapped(bottom, false);
        self.grid.scroll_down(top, bottom, n, self.pen.erased());
    }

    /// Ends the line that goes on in row `y`: what it goes on with is about to be replaced.
    pub(crate) fn break_before(&mut self, y: usize) {
        match y.checked_sub(1) {
            Some(above) => self.grid.set_wrapped(above, false),
            None if !self.alternate => self.scrollback.break_last(),
            None => {}
        }
    }

    fn push_scrollback(&mut self, y: usize) {
        let clusters = &self.clusters;
        self.scrollback.push(self.grid.view(y), |id| first_char(clusters, id));
        self.scrolled_off += 1;
    }

    /// Clears the screen; on the primary one, what was there is kept in the scrollback.
    pub(crate) fn clear_screen(&mut self) {
        if !self.alternate {
            let rows = self.grid.rows_in_use();
            self.break_before(rows);
            for y in 0..rows {
                self.push_scrollback(y);
            }
        }
        for y in 0..self.rows() {
            self.grid.clear_row(y, self.pen.erased());
        }
    }

    pub(crate) fn show_alternate(&mut self, alternate: bool) {
        if self.alternate == alternate {
            return;
        }
        let (cols, rows, now) = (self.cols(), self.rows(), self.grid.now);
        let mut next = self.parked.take().unwrap_or_else(|| Grid::new(cols, rows, now));
        next.now = now;
        next.touch_all();
        self.parked = Some(std::mem::replace(&mut self.grid, next));
        self.alternate = alternate;
        self.keyboard.switch(alternate);
    }

    pub(crate) fn save_cursor(&mut self) {
        self.saved[usize::from(self.alternate)] = Some(SavedCursor {
            caret: self.caret,
            pen: self.pen,
            charsets: self.charsets,
            origin: self.modes.has(TermMode::Origin),
        });
    }

    pub(crate) fn restore_cursor(&mut self) {
        let saved = self.saved[usize::from(self.alternate)].unwrap_or_default();
        self.caret = saved.caret;
        self.pen = saved.pen;
        self.charsets = saved.charsets;
        self.modes.set(TermMode::Origin, saved.origin);
        self.clamp_caret();
    }

    pub(crate) fn clamp_caret(&mut self) {
        self.caret.x = self.caret.x.min(self.cols() - 1);
        self.caret.y = self.caret.y.min(self.rows() - 1);
    }

    /// DECSTR: modes and margins as at the start; the screen and the cursor stay.
    pub(crate) fn soft_reset(&mut self) {
        for (mode, on) in [
            (TermMode::CursorVisible, true),
            (TermMode::Insert, false),
            (TermMode::Origin, false),
            (TermMode::Autowrap, true),
            (TermMode::AppKeypad, false),
            (TermMode::AppCursorKeys, false),
        ] {
            self.modes.set(mode, on);
        }
        self.margins = Margins::whole(self.size);
        self.caret.pending = false;
        self.pen = Cell::default();
        self.charsets = Charsets::default();
        self.saved[usize::from(self.alternate)] = None;
        self.cursor_style = 0;
        self.keyboard.reset();
    }

    /// RIS: everything as at the start, except what the operator would miss: the scrollback and the status.
    pub(crate) fn hard_reset(&mut self) {
        self.show_alternate(false);
        self.pen = Cell::default();
        self.clear_screen();
        self.parked = None;
        self.soft_reset();
        self.keyboard = Keyboard::default();
        self.saved = [None; 2];
        self.modes = ModeSet::default();
        self.mouse = MouseMode::None;
        self.mouse_encoding = MouseEncoding::X10;
        self.caret = Caret::default();
        self.tabs = Tabs::default();
        self.last_char = None;
        self.palette = Palette::default();
        self.changes += 1;
    }
}

/// The character that stands for a cluster when its text is gone.
pub(crate) fn first_char(clusters: &Interner, id: u32) -> char {
    clusters.get(id).and_then(|text| text.chars().next()).unwrap_or(char::REPLACEMENT_CHARACTER)
}
