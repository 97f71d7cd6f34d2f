//! Feeding a terminal and looking at it, as the tests of this crate do.
#![allow(dead_code)]

use abide_term::{Options, Size, Term};

pub const CSI: &str = "\x1b[";

pub fn term(cols: u16, rows: u16) -> Term {
    Term::new(Size { cols, rows }, Options { allow_clipboard: true, ..Options::default() })
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

/// Asserts what the top left corner of 80x25 shows after this input.
#[track_caller]
pub fn shows(input: &str, rows: &[&str]) {
    let width = |c: char| if c >= '\u{2e80}' { 2 } else { 1 };
    let cols = rows.first().map_or(0, |row| row.chars().map(width).sum());
    assert_eq!(corner(&fed(input), cols, rows.len() as u16), rows, "{input:?}");
}

/// Lines of letters to edit, and margins around the capital ones: rows 2 to 4, columns 2 to 4.
pub const LETTERS: &str = "abcde\r\nfGHIj\r\nkLMNo\r\npQRSt\r\nuvwxy";
pub const MARGINS: &str = "\x1b[?69h\x1b[2;4s\x1b[2;4r";
