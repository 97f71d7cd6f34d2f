//! Feeding a terminal and looking at it, as the tests of this crate do.
#![allow(dead_code)]

use abide_term::{Cell, Options, Size, Term};

pub const CSI: &str = "\x1b[";

pub fn term(cols: u16, rows: u16) -> Term {
    Term::new(Size { cols, rows }, Options::default())
}

/// A terminal of 80x25 after this input.
pub fn fed(input: &str) -> Term {
    let mut term = term(80, 25);
    term.feed(input.as_bytes());
    term
}

/// Row and column of the cursor, counted from 1 as in the sequences, after this input.
pub fn position(input: &str) -> (u16, u16) {
    let cursor = fed(input).cursor();
    (cursor.y + 1, cursor.x + 1)
}

/// The answer to this input.
pub fn reply(input: &str) -> String {
    String::from_utf8_lossy(&fed(input).take_replies()).replace('\x1b', "^")
}

/// The cells from the top left corner, with a dot for each that was never written or was erased.
pub fn corner(term: &Term, cols: usize, rows: u16) -> Vec<String> {
    (0..rows).map(|y| row_text(term, y, cols)).collect()
}

pub fn row_text(term: &Term, y: u16, cols: usize) -> String {
    let mut buf = [0; 4];
    term.row(y)[..cols]
        .iter()
        .filter(|cell| !cell.is_continuation())
        .map(|cell| if cell.is_blank() { ".".into() } else { term.grapheme(cell, &mut buf).to_owned() })
        .collect()
}

/// The cells of the scrollback and of the screen, and for each line whether it goes on in the next.
pub fn lines(term: &Term) -> Vec<(Vec<Cell>, bool)> {
    let scrolled = (0..term.scrollback_len()).map(|i| {
        let mut cells = Vec::new();
        let wrapped = term.scrollback_row(i, &mut cells);
        (cells, wrapped)
    });
    let shown = (0..term.size().rows).map(|y| (term.row(y).to_vec(), term.row_wrapped(y)));
    scrolled.chain(shown).collect()
}

/// The text of the scrollback and of the screen, with wrapped lines joined.
pub fn full_text(term: &Term) -> String {
    let mut out = String::new();
    let mut lines = lines(term).into_iter().peekable();
    while let Some((mut cells, wrapped)) = lines.next() {
        if wrapped && let Some((next, _)) = lines.peek() {
            cells.resize(cells.len().max(term.size().cols.into()), Cell::default());
            // Wrapping leaves a blank before a wide character that did not fit.
            cells.pop_if(|last| *last == Cell::default() && next.first().is_some_and(Cell::is_wide));
        }
        let mut buf = [0; 4];
        for cell in cells.iter().filter(|cell| !cell.is_continuation()) {
            out.push_str(if cell.is_blank() { " " } else { term.grapheme(cell, &mut buf) });
        }
        if !wrapped || lines.peek().is_none() {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
        }
    }
    out.truncate(out.trim_end_matches('\n').len());
    out
}

/// Whether the last column was just written, so that the next character goes to the next row.
pub fn wrap_is_due(term: &Term) -> bool {
    let (cursor, mut term) = (term.cursor(), term.clone());
    term.feed("\u{e000}".as_bytes());
    cursor.x > 0 && term.row(cursor.y)[usize::from(cursor.x)].ch() != Some('\u{e000}')
}

/// Everything that says what later bytes do and what is seen, in a form that two terminals can be compared by.
///
/// The scrollback is compared by its cells: how its pages were cut and packed tells how it was reached. So do the counts
/// after the size in a checkpoint, and the sum at its end is one over those too.
pub fn state(term: &Term) -> (Vec<u8>, Vec<(Vec<Cell>, bool)>) {
    let bare = Term::restore(&term.dump(), Options { scrollback: 0, ..Options::default() });
    let mut rest = bare.expect("a dump is restored").dump();
    rest.truncate(rest.len() - 8);
    rest.drain(12..28);
    (rest, lines(term))
}

/// Asserts what the top left corner of 80x25 shows after this input.
#[track_caller]
pub fn shows(input: &str, rows: &[&str]) {
    let width = |c: char| if c >= '\u{2e80}' { 2 } else { 1 };
    let cols = rows.first().map_or(0, |row| row.chars().map(width).sum());
    assert_eq!(corner(&fed(input), cols, rows.len() as u16), rows, "{input:?}");
}

/// Lines of letters to edit, and margins around rows 2 to 4.
pub const LETTERS: &str = "abcde\r\nfGHIj\r\nkLMNo\r\npQRSt\r\nuvwxy";
pub const MARGINS: &str = "\x1b[2;4r";
