//! The picture: a grid of cells, and how its rows are written to a terminal.

use std::io::Write;

use unicode_segmentation::UnicodeSegmentation;

use crate::line::{Line, Tone, cell_width};

/// One cell. A blank has no text; the right half of a wide character has no width.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CanvasCell {
    text: String,
    width: u8,
    tone: Tone,
}

const BLANK: CanvasCell = CanvasCell { text: String::new(), width: 1, tone: Tone::Plain };

/// A grid of cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canvas {
    cols: usize,
    cells: Vec<CanvasCell>,
}

impl Canvas {
    pub fn new(cols: usize, rows: usize) -> Self {
        Self { cols, cells: vec![BLANK; cols * rows] }
    }

    /// Writes `line` at column `x` of row `y`, up to column `end`. What does not fit is left out.
    pub fn put(&mut self, x: usize, y: usize, end: usize, line: &Line) {
        let cols = self.cols;
        let Some(row) = self.cells.get_mut(y * cols..(y + 1) * cols) else { return };
        let (mut x, end) = (x, end.min(cols));
        for span in line.spans() {
            for grapheme in span.text.graphemes(true) {
                let width = cell_width(grapheme);
                if width == 0 {
                    continue;
                }
                if x + width > end {
                    return;
                }
                row[x] = CanvasCell { text: grapheme.to_owned(), width: width as u8, tone: span.tone };
                if width == 2 {
                    row[x + 1] = CanvasCell { width: 0, tone: span.tone, ..BLANK };
                }
                x += width;
            }
        }
    }

    fn rows(&self) -> impl Iterator<Item = &[CanvasCell]> {
        self.cells.chunks(self.cols.max(1))
    }

    /// What can be read on it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for row in self.rows() {
            let line: String = row.iter().map(CanvasCell::shown).collect();
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// Each row as what draws it on a terminal, whatever was there before.
    pub(crate) fn encode(&self, colour: bool) -> Vec<Vec<u8>> {
        self.rows().enumerate().map(|(y, row)| encode(y, row, colour)).collect()
    }
}

impl CanvasCell {
    fn shown(&self) -> &str {
        if self.text.is_empty() && self.width == 1 { " " } else { &self.text }
    }
}

fn encode(y: usize, row: &[CanvasCell], colour: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let mut pen = Tone::Plain;
    let used = row.iter().rposition(|cell| *cell != BLANK).map_or(0, |last| last + 1);
    // Writing to memory does not fail.
    let _ = write!(out, "\x1b[{};1H\x1b[m", y + 1);
    for (x, cell) in row[..used].iter().enumerate() {
        if cell.tone != pen {
            pen = cell.tone;
            let _ = write!(out, "\x1b[{}m", sgr(pen, colour));
        }
        out.extend_from_slice(cell.shown().as_bytes());
        // Terminals do not agree on how wide such characters are; the cells after them stay where they belong.
        if cell.width == 2 || cell.text.chars().nth(1).is_some() {
            let _ = write!(out, "\x1b[{}G", x + 1 + usize::from(cell.width));
        }
    }
    out.extend_from_slice(b"\x1b[m\x1b[K");
    out
}

/// The look of a tone. Colours are those that the operator's theme gives their names to.
fn sgr(tone: Tone, colour: bool) -> &'static str {
    match (tone, colour) {
        (Tone::Plain, _) | (Tone::Good, false) => "0",
        (Tone::Dim, _) => "0;2",
        (Tone::Strong, _) | (Tone::Accent | Tone::Warn | Tone::Bad, false) => "0;1",
        (Tone::Accent, true) => "0;1;36",
        (Tone::Good, true) => "0;32",
        (Tone::Warn, true) => "0;33",
        (Tone::Bad, true) => "0;1;31",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &Line, colour: bool) -> String {
        let mut canvas = Canvas::new(10, 1);
        canvas.put(1, 0, 10, line);
        String::from_utf8(canvas.encode(colour).remove(0)).unwrap()
    }

    #[test]
    fn tones_are_colours_only_where_colours_are_wanted() {
        let line = Line::toned(Tone::Bad, "x");
        assert_eq!(row(&line, true), "\x1b[1;1H\x1b[m \x1b[0;1;31mx\x1b[m\x1b[K");
        assert_eq!(row(&line, false), "\x1b[1;1H\x1b[m \x1b[0;1mx\x1b[m\x1b[K");
    }

    #[test]
    fn what_follows_a_wide_character_is_put_where_it_belongs() {
        assert_eq!(row(&Line::from("日x"), false), "\x1b[1;1H\x1b[m 日\x1b[4Gx\x1b[m\x1b[K");
    }

    #[test]
    fn half_a_wide_character_is_never_drawn() {
        let mut canvas = Canvas::new(4, 1);
        canvas.put(0, 0, 4, &Line::from("abc日"));
        assert_eq!(canvas.text(), "abc\n");
        canvas.put(0, 7, 4, &Line::from("beyond"));
        assert_eq!(canvas.text(), "abc\n");
    }
}
