//! The cells of one screen, as a ring of rows.
//!
//! This owns where a row is stored, when it last changed, and how rows move; it knows nothing of cursors, margins or
//! modes. Rows are reached through a table of slots, so scrolling moves numbers and not cells, and scrolling the whole
//! screen moves nothing but the start of the ring.

use crate::screen::cell::Cell;

/// What is known about a row beside its cells.
#[derive(Clone, Copy, Debug)]
struct RowState {
    version: u64,
    /// Cells from here on are pristine.
    used: u16,
    /// The text goes on in the next row.
    wrapped: bool,
    /// Nothing but ASCII and blanks in the default style.
    plain: bool,
}

impl RowState {
    const NEW: Self = Self { version: 0, used: 0, wrapped: false, plain: true };
}

/// A row with what the scrollback needs to store it well.
#[derive(Clone, Copy)]
pub(crate) struct RowView<'a> {
    /// The cells up to the last that is not pristine, or a little more.
    pub(crate) cells: &'a [Cell],
    pub(crate) wrapped: bool,
    /// Nothing but ASCII and blanks in the default style.
    pub(crate) plain: bool,
}

/// The cells of one screen.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    cols: usize,
    rows: usize,
    cells: Vec<Cell>,
    lines: Vec<RowState>,
    /// Slot of each row, as a ring that starts at `top`.
    slots: Vec<u16>,
    top: usize,
    /// The time that changes are stamped with; the terminal sets it.
    pub(crate) now: u64,
    /// When all rows last moved together.
    moved: u64,
    /// When anything last changed.
    pub(crate) changed: u64,
}

impl Grid {
    pub(crate) fn new(cols: usize, rows: usize, now: u64) -> Self {
        Self {
            cols,
            rows,
            cells: vec![Cell::default(); cols * rows],
            lines: vec![RowState::NEW; rows],
            slots: (0..rows as u16).collect(),
            top: 0,
            now,
            moved: now,
            changed: now,
        }
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    #[inline]
    fn slot(&self, y: usize) -> usize {
        let mut at = self.top + y;
        if at >= self.rows {
            at -= self.rows;
        }
        usize::from(self.slots[at])
    }

    #[inline]
    pub(crate) fn row(&self, y: usize) -> &[Cell] {
        let start = self.slot(y) * self.cols;
        &self.cells[start..start + self.cols]
    }

    pub(crate) fn view(&self, y: usize) -> RowView<'_> {
        let line = self.lines[self.slot(y)];
        RowView { cells: &self.row(y)[..usize::from(line.used)], wrapped: line.wrapped, plain: line.plain }
    }

    pub(crate) fn version(&self, y: usize) -> u64 {
        self.lines[self.slot(y)].version.max(self.moved)
    }

    pub(crate) fn written(&self, y: usize) -> u64 {
        self.lines[self.slot(y)].version
    }

    pub(crate) fn is_wrapped(&self, y: usize) -> bool {
        self.lines[self.slot(y)].wrapped
    }

    pub(crate) fn set_wrapped(&mut self, y: usize, wrapped: bool) {
        let slot = self.slot(y);
        self.lines[slot].wrapped = wrapped;
    }

    /// The cells of a row, to be changed in any way.
    pub(crate) fn row_mut(&mut self, y: usize) -> &mut [Cell] {
        self.row_mut_to(y, self.cols)
    }

    /// The cells of a row, to be changed before column `end` only.
    #[inline]
    pub(crate) fn row_mut_to(&mut self, y: usize, end: usize) -> &mut [Cell] {
        let slot = self.touch(y);
        let line = &mut self.lines[slot];
        line.plain = false;
        line.used = line.used.max(end as u16);
        &mut self.cells[slot * self.cols..][..self.cols]
    }

    #[inline]
    fn touch(&mut self, y: usize) -> usize {
        let slot = self.slot(y);
        self.lines[slot].version = self.now;
        self.changed = self.now;
        slot
    }

    /// Marks every row as changed.
    pub(crate) fn touch_all(&mut self) {
        self.moved = self.now;
        self.changed = self.now;
    }

    /// Writes ASCII in one look over whatever is there. `x + text.len()` must not pass the last column.
    #[inline]
    pub(crate) fn write_ascii(&mut self, x: usize, y: usize, text: &[u8], pen: Cell) {
        let slot = self.touch(y);
        let end = x + text.len();
        let cols = self.cols;
        let row = &mut self.cells[slot * cols..][..cols];
        let line = &mut self.lines[slot];
        if !line.plain {
            split_wide(row, x, end);
        } else if !pen.is_plain_pen() {
            line.plain = false;
        }
        for (cell, &byte) in row[x..end].iter_mut().zip(text) {
            *cell = pen.narrow(u32::from(byte));
        }
        line.used = line.used.max(end as u16);
        if end == cols {
            line.wrapped = false;
        }
    }

    /// Replaces the cells from `x` to `end` of a row by `blank`.
    pub(crate) fn erase(&mut self, y: usize, x: usize, end: usize, blank: Cell) {
        if x >= end {
            return;
        }
        let slot = self.touch(y);
        let cols = self.cols;
        let row = &mut self.cells[slot * cols..][..cols];
        let line = &mut self.lines[slot];
        let used = usize::from(line.used);
        if !line.plain {
            split_wide(row, x, end);
        }
        if end == cols {
            line.wrapped = false;
        }
        if !blank.is_pristine() {
            row[x..end].fill(blank);
            line.plain = false;
            line.used = line.used.max(end as u16);
            return;
        }
        if x < used {
            row[x..end.min(used)].fill(blank);
        }
        if end >= used {
            line.used = line.used.min(x as u16);
        }
        line.plain |= line.used == 0;
    }

    /// Makes a whole row blank.
    pub(crate) fn clear_row(&mut self, y: usize, blank: Cell) {
        let slot = self.touch(y);
        self.clear_slot(slot, blank);
    }

    fn clear_slot(&mut self, slot: usize, blank: Cell) {
        let row = &mut self.cells[slot * self.cols..][..self.cols];
        let line = &mut self.lines[slot];
        line.wrapped = false;
        if blank.is_pristine() {
            row[..usize::from(line.used)].fill(blank);
            line.plain = true;
            line.used = 0;
        } else {
            row.fill(blank);
            line.plain = false;
            line.used = self.cols as u16;
        }
    }

    /// Moves the rows from `top` to `bottom` (both included) up by `n`, and fills in blank rows below.
    pub(crate) fn scroll_up(&mut self, top: usize, bottom: usize, n: usize, blank: Cell) {
        let height = bottom + 1 - top;
        let n = n.min(height);
        if height == self.rows {
            self.top = (self.top + n) % self.rows;
            self.touch_all();
        } else {
            self.rotate(top, bottom, n);
        }
        for y in bottom + 1 - n..=bottom {
            self.clear_row(y, blank);
        }
    }

    /// Moves the rows from `top` to `bottom` (both included) down by `n`, and fills in blank rows above.
    pub(crate) fn scroll_down(&mut self, top: usize, bottom: usize, n: usize, blank: Cell) {
        let height = bottom + 1 - top;
        let n = n.min(height);
        if height == self.rows {
            self.top = (self.top + self.rows - n) % self.rows;
            self.touch_all();
        } else {
            self.rotate(top, bottom, height - n);
        }
        for y in top..top + n {
            self.clear_row(y, blank);
        }
    }

    fn rotate(&mut self, top: usize, bottom: usize, n: usize) {
        if self.top != 0 {
            self.slots.rotate_left(self.top);
            self.top = 0;
        }
        self.slots[top..=bottom].rotate_left(n);
        for y in top..=bottom {
            self.touch(y);
        }
    }

    /// The number of rows from the top that hold anything.
    pub(crate) fn rows_in_use(&self) -> usize {
        let blank = |y: &usize| self.view(*y).cells.iter().all(Cell::is_pristine);
        self.rows - (0..self.rows).rev().take_while(blank).count()
    }

    /// Puts cells and their wrap mark into a row of a grid; the row must be blank and long enough.
    pub(crate) fn set_row(&mut self, y: usize, cells: &[Cell], wrapped: bool) {
        let len = cells.len().min(self.cols);
        self.row_mut_to(y, len)[..len].copy_from_slice(&cells[..len]);
        let slot = self.slot(y);
        self.lines[slot].plain = cells[..len].iter().all(Cell::is_plain);
        self.lines[slot].wrapped = wrapped;
    }

    /// Shrinks or grows without reflow: what no longer fits is cut.
    pub(crate) fn cropped(&self, cols: usize, rows: usize) -> Self {
        let mut grid = Self::new(cols, rows, self.now);
        for y in 0..rows.min(self.rows) {
            let row = &self.row(y)[..cols.min(self.cols)];
            grid.set_row(y, row, false);
            if cols < self.cols && self.row(y)[cols].is_continuation() {
                grid.row_mut(y)[cols - 1] = Cell::default();
            }
        }
        grid
    }

    /// Every cell, in no particular order.
    pub(crate) fn all_cells(&self) -> &[Cell] {
        &self.cells
    }
}

/// Blanks the halves that overwriting `x..end` would leave of wide characters across its edges.
#[inline]
pub(crate) fn split_wide(row: &mut [Cell], x: usize, end: usize) {
    if x > 0 && x < row.len() && row[x].is_continuation() {
        row[x - 1] = row[x - 1].erased();
    }
    if end < row.len() && row[end].is_continuation() {
        row[end] = row[end].erased();
    }
}

/// Blanks both halves of a wide character that the edge before column `at` goes through.
pub(crate) fn sever(row: &mut [Cell], at: usize) {
    if at > 0 && at < row.len() && row[at].is_continuation() {
        row[at - 1] = row[at - 1].erased();
        row[at] = row[at].erased();
    }
}
