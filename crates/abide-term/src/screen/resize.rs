//! Changing the size: which rows are shown afterwards, and what moves between screen and scrollback.
//!
//! How a line is cut to a new width is the business of `reflow`; here the rows that it gives find their place.

use crate::options::Size;
use crate::screen::cell::Cell;
use crate::screen::grid::{Grid, RowView};
use crate::screen::reflow::{self, ReflowedRow, TrackedPosition};
use crate::vt::{Caret, Margins, Vt, first_char};

impl Vt {
    /// Changes the size. The primary screen and the scrollback are wrapped anew; the alternate screen is cut, because
    /// the program that owns it draws it again.
    pub(crate) fn resize(&mut self, size: Size) {
        let size = size.clamped();
        if size == self.size {
            return;
        }
        self.size = size;
        let (cols, rows) = (usize::from(size.cols), usize::from(size.rows));
        if self.alternate {
            let primary = self.parked.take();
            self.grid = self.grid.cropped(cols, rows);
            if let Some(primary) = primary {
                // Without a saved cursor it is the end of the text that must stay: with the top in its place, the newest
                // lines would be the ones cut.
                let last = primary.rows_in_use().saturating_sub(1);
                let end = Caret { x: primary.cols(), y: last, pending: false };
                let mut caret = self.saved[0].map_or(end, |saved| saved.caret);
                self.parked = Some(self.reflow(&primary, &mut caret, None));
                if let Some(saved) = &mut self.saved[0] {
                    saved.caret = caret;
                }
            }
        } else {
            self.parked = self.parked.take().map(|alternate| alternate.cropped(cols, rows));
            let primary = self.grid.clone();
            let mut caret = self.caret;
            let mut saved = self.saved[0];
            self.grid = self.reflow(&primary, &mut caret, saved.as_mut().map(|saved| &mut saved.caret));
            self.caret = caret;
            self.saved[0] = saved;
        }
        self.margins = Margins::whole(size);
        self.clamp_caret();
        self.caret.pending &= self.caret.x + 1 == cols;
        self.grid.touch_all();
        self.report_size_in_band();
    }

    /// The primary screen at the current size, with lines moved to and from the scrollback as needed.
    fn reflow(&mut self, old: &Grid, caret: &mut Caret, other: Option<&mut Caret>) -> Grid {
        let (cols, rows) = (usize::from(self.size.cols), usize::from(self.size.rows));
        let at = |caret: &Caret| TrackedPosition { x: caret.x + usize::from(caret.pending), y: caret.y };
        let mut places = vec![at(caret)];
        places.extend(other.as_deref().map(at));
        let mut lines = if cols == old.cols() {
            let row = |y| ReflowedRow { cells: old.view(y).cells.to_vec(), wrapped: old.is_wrapped(y) };
            (0..old.rows()).map(row).collect()
        } else {
            let head = self.unwrap_scrollback_tail(old.cols());
            let clusters = &self.clusters;
            self.scrollback.rewrap(cols, |id| first_char(clusters, id));
            // Narrower rows are more rows, and line numbers count these.
            self.scrolled_off = self.scrolled_off.max(self.scrollback.len() as u64);
            reflow::rows(old, head, cols, &mut places)
        };
        let dropped = self.fit(&mut lines, rows, &mut places);
        let mut grid = Grid::new(cols, rows, old.now);
        for (y, row) in lines.iter().skip(dropped).take(rows).enumerate() {
            grid.set_row(y, &row.cells, row.wrapped);
        }
        let back = |place: &TrackedPosition| Caret {
            x: place.x.min(cols - 1),
            y: place.y.min(rows - 1),
            pending: place.x >= cols,
        };
        *caret = back(&places[0]);
        if let Some(other) = other {
            *other = back(&places[1]);
        }
        grid
    }

    /// Makes `lines` as many as there are rows: blank rows below the cursor go first, then the top goes to the
    /// scrollback, and only what cannot be shown with the cursor is cut. Missing lines come back from the scrollback.
    /// Returns how many lines at the start went to the scrollback.
    fn fit(&mut self, lines: &mut Vec<ReflowedRow>, rows: usize, places: &mut [TrackedPosition]) -> usize {
        let cursor = places[0].y;
        let blank = |row: &ReflowedRow| row.cells.iter().all(Cell::is_pristine);
        let below = lines.iter().skip(cursor + 1).rev().take_while(|row| blank(row)).count();
        let content = lines.len() - below;
        let dropped = content.saturating_sub(rows).min(cursor);
        for row in &lines[..dropped] {
            let view = RowView { cells: &row.cells, wrapped: row.wrapped, plain: false };
            let clusters = &self.clusters;
            self.scrollback.append(view, |id| first_char(clusters, id));
            self.scrolled_off += 1;
        }
        for place in places.iter_mut() {
            place.y = place.y.saturating_sub(dropped);
        }
        let missing = rows.saturating_sub(lines.len());
        let mut pulled = Vec::new();
        while pulled.len() < missing
            && let Some((cells, wrapped)) = self.scrollback.pop()
        {
            pulled.push(ReflowedRow { cells, wrapped });
        }
        for place in places.iter_mut() {
            place.y += pulled.len();
        }
        lines.splice(..0, pulled.into_iter().rev());
        dropped
    }

    /// Takes the start of the line that the first row continues out of the scrollback.
    fn unwrap_scrollback_tail(&mut self, cols: usize) -> Vec<Cell> {
        let mut parts = Vec::new();
        while self.scrollback.len().checked_sub(1).is_some_and(|last| self.scrollback.is_wrapped(last))
            && let Some((mut cells, _)) = self.scrollback.pop()
        {
            cells.resize(cols.max(cells.len()), Cell::default());
            parts.push(cells);
        }
        let mut head = Vec::new();
        for part in parts.into_iter().rev() {
            let start = head.len();
            head.extend(part);
            reflow::drop_spacer(&mut head, start);
        }
        head
    }
}
