//! Wrapping text anew when the width changes.
//!
//! Rows that the terminal wrapped are joined to the line that the program wrote, and the line is cut again at the new
//! width. A wide character that would be cut in half starts the next row instead, leaving a blank behind; joining takes
//! that blank out again. Places such as the cursor stay on their character.

use crate::screen::cell::Cell;
use crate::screen::grid::Grid;

/// A row of the new width.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReflowedRow {
    pub(crate) cells: Vec<Cell>,
    pub(crate) wrapped: bool,
}

/// A place on the screen to keep track of. `x` equal to the width means just past the last column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrackedPosition {
    pub(crate) x: usize,
    pub(crate) y: usize,
}

/// Cuts a line into rows of at most `cols` cells; an empty line is one empty row.
pub(crate) fn split(cells: &[Cell], cols: usize) -> impl Iterator<Item = &[Cell]> {
    let mut rest = Some(cells);
    std::iter::from_fn(move || {
        let cells = rest.take()?;
        if cells.len() <= cols {
            return Some(cells);
        }
        let halved = cells[cols].is_continuation() && cells[cols - 1].is_wide();
        let (row, tail) = cells.split_at(cols - usize::from(halved));
        rest = Some(tail);
        Some(row)
    })
}

/// Takes out the blank that wrapping left before a wide character which now starts at `at`.
pub(crate) fn drop_spacer(cells: &mut Vec<Cell>, at: usize) {
    if at > 0 && cells.get(at).is_some_and(Cell::is_wide) && cells[at - 1].is_pristine() {
        cells.remove(at - 1);
    }
}

/// The rows of `grid` cut anew for `cols`, with `places` moved along.
///
/// `head` is the start of the line that the first row continues; it comes first in the result.
pub(crate) fn rows(
    grid: &Grid,
    head: Vec<Cell>,
    cols: usize,
    places: &mut [TrackedPosition],
) -> Vec<ReflowedRow> {
    let mut out = Vec::with_capacity(grid.rows());
    let mut line = head;
    // Offsets into `line` of the places that are on it.
    let mut offsets: Vec<(usize, usize)> = Vec::new();
    let old: Vec<TrackedPosition> = places.to_vec();
    for y in 0..grid.rows() {
        let row = grid.row(y);
        let wrapped = grid.is_wrapped(y);
        let len = if wrapped { row.len() } else { trimmed_len(row) };
        let start = line.len();
        line.extend_from_slice(&row[..len]);
        let before = line.len();
        drop_spacer(&mut line, start);
        let start = start - (before - line.len());
        for (i, place) in old.iter().enumerate().filter(|(_, place)| place.y == y) {
            offsets.push((i, start + place.x));
        }
        if wrapped && y + 1 < grid.rows() {
            continue;
        }
        cut(&line, wrapped, cols, &offsets, places, &mut out);
        line.clear();
        offsets.clear();
    }
    out
}

fn cut(
    line: &[Cell],
    open: bool,
    cols: usize,
    offsets: &[(usize, usize)],
    places: &mut [TrackedPosition],
    out: &mut Vec<ReflowedRow>,
) {
    let mut start = 0;
    let mut rows = split(line, cols).peekable();
    while let Some(row) = rows.next() {
        let last = rows.peek().is_none();
        for &(i, offset) in offsets {
            // Past the end of the text a place stays in the last row, as near as the width allows.
            let here = offset < start + row.len() || last;
            if let (true, Some(x)) = (here, offset.checked_sub(start)) {
                let past_text = offset > line.len();
                let x = x.min(if past_text { cols - 1 } else { cols });
                places[i] = TrackedPosition { x, y: out.len() };
            }
        }
        start += row.len();
        out.push(ReflowedRow { cells: row.to_vec(), wrapped: !last || open });
    }
}

fn trimmed_len(row: &[Cell]) -> usize {
    row.iter().rposition(|cell| !cell.is_pristine()).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(cols: usize, rows: &[(&str, bool)]) -> Grid {
        let mut grid = Grid::new(cols, rows.len(), 0);
        for (y, (text, wrapped)) in rows.iter().enumerate() {
            let mut cells = Vec::new();
            for c in text.chars() {
                match c {
                    '.' => cells.push(Cell::default()),
                    '漢' => cells.extend([Cell::default().wide(c as u32), Cell::default().tail()]),
                    c => cells.push(Cell::default().narrow(c as u32)),
                }
            }
            grid.set_row(y, &cells, *wrapped);
        }
        grid
    }

    fn text(rows: &[ReflowedRow]) -> Vec<String> {
        let cell = |cell: &Cell| match cell.ch() {
            Some(c) => c.to_string(),
            None if cell.is_continuation() => String::new(),
            None => ".".into(),
        };
        rows.iter()
            .map(|row| row.cells.iter().map(cell).collect::<String>() + if row.wrapped { "+" } else { "" })
            .collect()
    }

    #[test]
    fn a_wide_character_is_never_cut_in_half() {
        let grid = grid(6, &[("ab漢漢", false)]);
        let narrow = rows(&grid, Vec::new(), 3, &mut []);
        assert_eq!(text(&narrow), ["ab+", "漢+", "漢"]);
    }

    #[test]
    fn the_blank_before_a_wide_character_goes_away_when_there_is_room_again() {
        let grid = grid(3, &[("ab.", true), ("漢.", true), ("漢", false)]);
        assert_eq!(text(&rows(&grid, Vec::new(), 6, &mut [])), ["ab漢漢"]);
    }

    #[test]
    fn a_place_stays_on_its_character() {
        let grid = grid(4, &[("abcd", true), ("efgh", true), ("ij", false), ("k", false)]);
        for cols in 2..12 {
            for (y, x) in (0..4).flat_map(|y| (0..4).map(move |x| (y, x))) {
                let before = grid.row(y)[x];
                if before.is_blank() {
                    continue;
                }
                let mut places = [TrackedPosition { x, y }];
                let rows = rows(&grid, Vec::new(), cols, &mut places);
                assert_eq!(rows[places[0].y].cells[places[0].x], before);
            }
        }
    }

    #[test]
    fn a_place_past_the_text_makes_no_new_rows() {
        let grid = grid(10, &[("ab", false), ("", false)]);
        let mut places = [TrackedPosition { x: 8, y: 0 }, TrackedPosition { x: 5, y: 1 }];
        assert_eq!(text(&rows(&grid, Vec::new(), 4, &mut places)), ["ab", ""]);
        assert_eq!(places, [TrackedPosition { x: 3, y: 0 }, TrackedPosition { x: 3, y: 1 }]);
    }
}
