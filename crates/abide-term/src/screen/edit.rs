//! Erasing, inserting and deleting.

use crate::screen::cell::{Attrs, Cell};
use crate::screen::grid::sever;
use crate::vt::{CharacterProtection, Vt};

impl Vt {
    /// Erases columns `x..end` of a row; `selective` is for the functions that respect DECSCA.
    pub(crate) fn erase_span(&mut self, y: usize, x: usize, end: usize, selective: bool) {
        let blank = self.blank();
        if x == 0 && end == self.cols() {
            self.break_before(y);
        }
        let respected = if selective { CharacterProtection::Dec } else { CharacterProtection::Iso };
        if self.protection != respected {
            self.grid.erase(y, x, end, blank);
            return;
        }
        for at in x..end {
            if !self.grid.row(y)[at].attrs().contains(Attrs::PROTECTED) {
                self.grid.erase(y, at, at + 1, blank);
            }
        }
    }

    /// EL and DECSEL.
    pub(crate) fn erase_line(&mut self, how: u16, selective: bool) {
        let (x, y, cols) = (self.caret.x, self.caret.y, self.cols());
        match how {
            0 => self.erase_span(y, x, cols, selective),
            1 => self.erase_span(y, 0, x + 1, selective),
            2 => self.erase_span(y, 0, cols, selective),
            _ => return,
        }
        self.caret.pending = false;
    }

    /// ED and DECSED.
    pub(crate) fn erase_display(&mut self, how: u16, selective: bool) {
        let (y, cols, rows) = (self.caret.y, self.cols(), self.rows());
        let below = match how {
            0 => y + 1..rows,
            1 => 0..y,
            2 if !selective && self.protection != CharacterProtection::Iso => {
                self.clear_screen();
                self.caret.pending = false;
                return;
            }
            2 => 0..rows,
            3 if !selective => {
                self.scrollback.clear();
                self.changes += 1;
                return;
            }
            _ => return,
        };
        if how < 2 {
            self.erase_line(how, selective);
        }
        for y in below {
            self.erase_span(y, 0, cols, selective);
        }
        self.caret.pending = false;
    }

    /// ECH.
    pub(crate) fn erase_cells(&mut self, n: usize) {
        let end = (self.caret.x + n).min(self.cols());
        self.erase_span(self.caret.y, self.caret.x, end, false);
        self.caret.pending = false;
    }

    /// ICH, and what insert mode does before each character.
    pub(crate) fn insert_cells(&mut self, n: usize) {
        if self.within_sides() {
            self.shift_right(self.caret.y, self.caret.x, n);
        }
    }

    /// DCH.
    pub(crate) fn delete_cells(&mut self, n: usize) {
        if self.within_sides() {
            self.shift_left(self.caret.y, self.caret.x, n);
            self.caret.pending = false;
        }
    }

    /// Moves the cells from `x` to the right margin right, dropping what passes the margin.
    fn shift_right(&mut self, y: usize, x: usize, n: usize) {
        let (end, blank) = (self.margins.right + 1, self.blank());
        let n = n.min(end - x);
        let row = self.grid.row_mut(y);
        [x, end - n, end].into_iter().for_each(|at| sever(row, at));
        row.copy_within(x..end - n, x + n);
        row[x..x + n].fill(blank);
        self.grid.set_wrapped(y, false);
    }

    /// Moves the cells up to the right margin left onto `x`, filling in blanks at the margin.
    fn shift_left(&mut self, y: usize, x: usize, n: usize) {
        let (end, blank) = (self.margins.right + 1, self.blank());
        let n = n.min(end - x);
        let row = self.grid.row_mut(y);
        [x, x + n, end].into_iter().for_each(|at| sever(row, at));
        row.copy_within(x + n..end, x);
        row[end - n..end].fill(blank);
        self.grid.set_wrapped(y, false);
    }

    /// IL.
    pub(crate) fn insert_lines(&mut self, n: usize) {
        if self.within_margins() {
            self.insert_rows(self.caret.y, n);
            self.caret.x = self.margins.left;
            self.caret.pending = false;
        }
    }

    /// DL.
    pub(crate) fn delete_lines(&mut self, n: usize) {
        if self.within_margins() {
            self.remove_rows(self.caret.y, n);
            self.caret.x = self.margins.left;
            self.caret.pending = false;
        }
    }

    /// DECIC.
    pub(crate) fn insert_columns(&mut self, n: usize) {
        if self.within_margins() {
            for y in self.margins.top..=self.margins.bottom {
                self.shift_right(y, self.caret.x, n);
            }
        }
    }

    /// DECDC.
    pub(crate) fn delete_columns(&mut self, n: usize) {
        if self.within_margins() {
            for y in self.margins.top..=self.margins.bottom {
                self.shift_left(y, self.caret.x, n);
            }
        }
    }

    /// DECBI: left, or the contents of the margins right.
    pub(crate) fn back_index(&mut self) {
        self.caret.pending = false;
        if self.caret.x == self.margins.left && self.within_margins() {
            self.insert_columns(1);
        } else {
            self.caret.x = self.caret.x.saturating_sub(1);
        }
    }

    /// DECFI: right, or the contents of the margins left.
    pub(crate) fn forward_index(&mut self) {
        self.caret.pending = false;
        if self.caret.x == self.margins.right && self.within_margins() {
            for y in self.margins.top..=self.margins.bottom {
                self.shift_left(y, self.margins.left, 1);
            }
        } else {
            self.caret.x = (self.caret.x + 1).min(self.cols() - 1);
        }
    }

    /// DECALN: a screen full of E.
    pub(crate) fn alignment_pattern(&mut self) {
        self.margins = crate::vt::Margins::whole(self.size);
        self.move_to(0, 0);
        for y in 0..self.rows() {
            self.grid.row_mut(y).fill(Cell::default().narrow(u32::from(b'E')));
            self.grid.set_wrapped(y, false);
        }
    }
}
