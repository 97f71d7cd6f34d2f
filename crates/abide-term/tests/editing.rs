//! Erasing, inserting, deleting, scrolling.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use common::{LETTERS, MARGINS, corner, fed, full_text, position, shows, term};

/// Asserts what the letters look like after an edit, seen without margins.
#[track_caller]
fn edits(edit: &str, rows: &[&str]) {
    shows(&format!("{LETTERS}{edit}"), rows);
}

#[test]
fn erasing_in_a_line_takes_its_side_of_the_cursor() {
    let line = "abcdefghij\x1b[1;5H";
    shows(&format!("{line}\x1b[K"), &["abcd......"]);
    shows(&format!("{line}\x1b[1K"), &[".....fghij"]);
    shows(&format!("{line}\x1b[2K"), &[".........."]);
    shows(&format!("{line}\x1b[7K"), &["abcdefghij"]);
    // Nothing is protected here, so the selective function does the same.
    shows(&format!("{line}\x1b[?K"), &["abcd......"]);
    shows(&format!("abcdefghij{MARGINS}\x1b[1;5H\x1b[2K"), &[".........."]);
}

#[test]
fn erasing_in_the_display_takes_its_side_of_the_cursor_whatever_the_margins() {
    for margins in ["", MARGINS] {
        let at = format!("{margins}\x1b[3;2H");
        edits(&format!("{at}\x1b[J"), &["abcde", "fGHIj", "k....", ".....", "....."]);
        edits(&format!("{at}\x1b[1J"), &[".....", ".....", "..MNo", "pQRSt", "uvwxy"]);
        edits(&format!("{at}\x1b[2J"), &[".....", ".....", ".....", ".....", "....."]);
        edits(&format!("{at}\x1b[3J"), &["abcde", "fGHIj", "kLMNo", "pQRSt", "uvwxy"]);
    }
}

#[test]
fn erasing_leaves_the_background_colour_behind() {
    let term = fed("abc\x1b[41m\x1b[1;2H\x1b[K");
    assert_eq!(term.row(0)[40].style().bg, abide_term::Color::Indexed(1));
    assert!(term.row(0)[40].is_blank());
    assert_eq!(term.row(0)[0].style().bg, abide_term::Color::Default);
}

#[test]
fn erasing_characters_does_not_move() {
    shows("abc\x1b[H\x1b[X", &[".bc"]);
    shows("abcdefg\x1b[H\x1b[99X", &["......."]);
    assert_eq!(position("abc\x1b[H\x1b[2X"), (1, 1));
}

#[test]
fn inserting_and_deleting_characters_moves_the_rest_of_the_row() {
    shows("abcdefg\x1b[1;2H\x1b[2@", &["a..bcdefg"]);
    shows("abcdefg\x1b[1;2H\x1b[2P", &["adefg.."]);
    shows("abcde\x1b[2;3r\x1b[1;1H\x1b[99P", &["....."]);
}

#[test]
fn insert_mode_pushes_text_to_the_right() {
    shows("abc\x1b[H\x1b[4hX", &["Xabc"]);
    shows("abc\x1b[H\x1b[4hX\x1b[4l\x1b[HY", &["Yabc"]);
    shows("abc\x1b[H\x1b[4h漢", &["漢abc"]);
}

#[test]
fn inserting_and_deleting_lines_stays_inside_the_margins() {
    edits("\x1b[2;3H\x1b[L", &["abcde", ".....", "fGHIj", "kLMNo", "pQRSt"]);
    edits("\x1b[2;3H\x1b[2M", &["abcde", "pQRSt", "uvwxy", ".....", "....."]);
    edits(&format!("{MARGINS}\x1b[2;3H\x1b[L"), &["abcde", ".....", "fGHIj", "kLMNo", "uvwxy"]);
    edits(&format!("{MARGINS}\x1b[2;3H\x1b[99L"), &["abcde", ".....", ".....", ".....", "uvwxy"]);
    edits(&format!("{MARGINS}\x1b[2;3H\x1b[M"), &["abcde", "kLMNo", "pQRSt", ".....", "uvwxy"]);
    edits(&format!("{MARGINS}\x1b[1;3H\x1b[L"), &["abcde", "fGHIj", "kLMNo", "pQRSt", "uvwxy"]);
}

#[test]
fn scrolling_moves_what_is_inside_the_margins() {
    edits("\x1b[2S", &["kLMNo", "pQRSt", "uvwxy", ".....", "....."]);
    edits("\x1b[2T", &[".....", ".....", "abcde", "fGHIj", "kLMNo"]);
    edits(&format!("{MARGINS}\x1b[99S"), &["abcde", ".....", ".....", ".....", "uvwxy"]);
    edits("\x1b[2;4r\x1b[2S", &["abcde", "pQRSt", ".....", ".....", "uvwxy"]);
    edits("\x1b[2;4r\x1b[2^", &["abcde", ".....", ".....", "fGHIj", "uvwxy"]);
    edits("\x1b[99S", &[".....", ".....", ".....", ".....", "....."]);
}

#[test]
fn the_alignment_pattern_fills_the_screen_and_clears_the_margins() {
    let term = fed("\x1b[4;5r\x1b#8");
    for (x, y) in [(0, 0), (79, 0), (0, 24), (79, 24), (40, 12)] {
        assert_eq!(term.row(y)[x].ch(), Some('E'));
    }
    assert_eq!(position("\x1b[4;5r\x1b#8\x1b[4;2H\x1b[A\x1b[D"), (3, 1));
}

#[test]
fn what_scrolls_off_the_top_is_kept_unless_the_screen_is_the_alternate_one() {
    let mut term = term(10, 3);
    term.feed(b"1\r\n2\r\n3\r\n4");
    assert_eq!((term.scrollback_len(), term.scrolled_off()), (1, 1));
    assert_eq!(full_text(&term), "1\n2\n3\n4");
    // A region from the top counts, one that begins lower does not.
    term.feed(b"\x1b[1;2r\x1b[2;1H\n");
    assert_eq!(full_text(&term), "1\n2\n3\n\n4");
    term.feed(b"\x1b[2;3r\x1b[3;1H\n\n");
    assert_eq!(term.scrollback_len(), 2);
    term.feed(b"\x1b[r\x1b[?1049h\x1b[3;1H\n\n\n");
    assert_eq!(term.scrollback_len(), 2);
    term.feed(b"\x1b[?1049l\x1b[3J");
    assert_eq!(term.scrollback_len(), 0);
}

#[test]
fn clearing_the_primary_screen_keeps_its_text() {
    let mut term = term(10, 4);
    term.feed(b"one\r\ntwo\x1b[2J\x1b[Hthree");
    assert_eq!(full_text(&term), "one\ntwo\nthree");
    assert_eq!(corner(&term, 5, 1), ["three"]);
}

#[test]
fn scrollback_is_bounded_by_lines() {
    let mut term = abide_term::Term::new(
        abide_term::Size { cols: 10, rows: 2 },
        abide_term::Options { scrollback: 5, ..abide_term::Options::default() },
    );
    (0..100).for_each(|n| term.feed(format!("{n}\r\n").as_bytes()));
    assert_eq!(term.scrollback_len(), 5);
    assert_eq!(full_text(&term), "94\n95\n96\n97\n98\n99");
    assert_eq!(term.scrolled_off(), 99);
}
