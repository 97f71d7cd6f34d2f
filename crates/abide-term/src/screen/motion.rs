//! Moving the cursor.

use crate::modes::TermMode;
use crate::vt::{Margins, Vt};

impl Vt {
    /// The first row that positions count from, and the last that they reach.
    pub(crate) fn addressable(&self) -> Margins {
        if self.modes.has(TermMode::Origin) { self.margins } else { Margins::whole(self.size) }
    }

    /// Moves to a row and column counted from 0 at the origin.
    pub(crate) fn move_to(&mut self, x: usize, y: usize) {
        self.move_to_column(x);
        self.move_to_row(y);
    }

    pub(crate) fn move_to_column(&mut self, x: usize) {
        self.caret.x = x.min(self.cols() - 1);
        self.caret.pending = false;
    }

    pub(crate) fn move_to_row(&mut self, y: usize) {
        let area = self.addressable();
        self.caret.y = (area.top + y).min(area.bottom);
        self.caret.pending = false;
    }

    /// Moves down without regard to the bottom margin.
    pub(crate) fn skip_rows(&mut self, n: usize) {
        let area = self.addressable();
        self.caret.y = (self.caret.y + n).min(area.bottom.max(self.caret.y));
        self.caret.pending = false;
    }

    pub(crate) fn up(&mut self, n: usize) {
        let top = if self.caret.y >= self.margins.top { self.margins.top } else { 0 };
        self.caret.y = self.caret.y.saturating_sub(n).max(top);
        self.caret.pending = false;
    }

    pub(crate) fn down(&mut self, n: usize) {
        let bottom = if self.caret.y <= self.margins.bottom { self.margins.bottom } else { self.rows() - 1 };
        self.caret.y = (self.caret.y + n).min(bottom);
        self.caret.pending = false;
    }

    pub(crate) fn right(&mut self, n: usize) {
        self.caret.x = (self.caret.x + n).min(self.cols() - 1);
        self.caret.pending = false;
    }

    pub(crate) fn left(&mut self, n: usize) {
        self.caret.x = self.caret.x.saturating_sub(n);
        self.caret.pending = false;
    }

    pub(crate) fn carriage_return(&mut self) {
        self.caret.x = 0;
        self.caret.pending = false;
    }

    pub(crate) fn line_feed(&mut self) {
        self.index();
        self.caret.pending = false;
        if self.modes.has(TermMode::NewLine) {
            self.carriage_return();
        }
    }

    pub(crate) fn tab(&mut self, n: usize) {
        let last = self.cols() - 1;
        for _ in 0..n.min(self.cols()) {
            let x = self.tabs.next(self.caret.x, last);
            if x == self.caret.x {
                // Not moved: a wrap that was due stays due.
                return;
            }
            self.caret.x = x;
            self.caret.pending = false;
        }
    }

    pub(crate) fn back_tab(&mut self, n: usize) {
        for _ in 0..n.min(self.cols()) {
            self.caret.x = self.tabs.previous(self.caret.x);
        }
        self.caret.pending = false;
    }

    /// DECSTBM: rows counted from 1, 0 for the edge.
    pub(crate) fn set_rows_margins(&mut self, top: u16, bottom: u16) {
        let rows = self.rows();
        let top = usize::from(top.max(1)) - 1;
        let bottom = if bottom == 0 { rows } else { usize::from(bottom).min(rows) } - 1;
        if top < bottom {
            self.margins.top = top;
            self.margins.bottom = bottom;
            self.move_to(0, 0);
        }
    }
}
