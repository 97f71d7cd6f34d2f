//! Erasing, inserting and deleting.

use crate::screen::cell::Cell;
use crate::screen::grid::sever;
use crate::vt::Vt;

impl Vt {
    /// Erases columns `x..end` of a row.
    fn erase_span(&mut self, y: usize, x: usize, end: usize) {
        if x == 0 && end == self.cols() {
            self.break_before(y);
        }
        self.grid.erase(y, x, end, self.blank());
    }

    /// EL.
    pub(crate) fn erase_line(&mut self, how: u16) {
        let (x, y, cols) = (self.caret.x, self.caret.y, self.cols());
        match how {
            0 => self.erase_span(y, x, cols),
            1 => self.erase_span(y, 0, x + 1),
            2 => self.erase_span(y, 0, cols),
            _ => return,
        }
        self.caret.pending = false;
    }

    /// ED.
    pub(crate) fn erase_display(&mut self, how: u16) {
        let (y, cols, rows) = (self.caret.y, self.cols(), self.rows());
        let others = match how {
            0 => y + 1..rows,
            1 => 0..y,
            2 => {
                self.clear_screen();
                self.caret.pending = false;
                return;
            }
            3 => {
                self.scrollback.clear();
                self.changes += 1;
                return;
            }
            _ => return,
        };
        self.erase_line(how);
        for y in others {
            self.erase_span(y, 0, cols);
        }
    }

    /// ECH.
    pub(crate) fn erase_cells(&mut self, n: usize) {
        let end = (self.caret.x + n).min(self.cols());
        self.erase_span(self.caret.y, self.caret.x, end);
        self.caret.pending = false;
    }

    /// ICH, and what insert mode does before each character.
    pub(crate) fn insert_cells(&mut self, n: usize) {
        let (x, y, end, blank) = (self.caret.x, self.caret.y, self.cols(), self.blank());
        let n = n.min(end - x);
        let row = self.grid.row_mut(y);
        [x, end - n].into_iter().for_each(|at| sever(row, at));
        row.copy_within(x..end - n, x + n);
        row[x..x + n].fill(blank);
        self.grid.set_wrapped(y, false);
    }

    /// DCH.
    pub(crate) fn delete_cells(&mut self, n: usize) {
        let (x, y, end, blank) = (self.caret.x, self.caret.y, self.cols(), self.blank());
        let n = n.min(end - x);
        let row = self.grid.row_mut(y);
        [x, x + n].into_iter().for_each(|at| sever(row, at));
        row.copy_within(x + n..end, x);
        row[end - n..end].fill(blank);
        self.grid.set_wrapped(y, false);
        self.caret.pending = false;
    }

    /// IL.
    pub(crate) fn insert_lines(&mut self, n: usize) {
        if self.within_margins() {
            self.insert_rows(self.caret.y, n);
            self.caret.x = 0;
            self.caret.pending = false;
        }
    }

    /// DL.
    pub(crate) fn delete_lines(&mut self, n: usize) {
        if self.within_margins() {
            self.remove_rows(self.caret.y, n);
            self.caret.x = 0;
            self.caret.pending = false;
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
