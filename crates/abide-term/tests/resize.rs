//! Changing the size: reflow, what goes to the scrollback and comes back, and where the cursor ends up.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use abide_term::{Options, Size, Term};
use common::{corner, full_text, term, wrap_is_due};

fn resized(cols: u16, rows: u16, input: &str, new_cols: u16, new_rows: u16) -> Term {
    let mut term = term(cols, rows);
    term.feed(input.as_bytes());
    term.resize(Size { cols: new_cols, rows: new_rows });
    term
}

fn at(term: &Term) -> (u16, u16) {
    (term.cursor().y, term.cursor().x)
}

#[test]
fn long_lines_wrap_and_come_together_again() {
    let mut term = resized(10, 4, "abcdefgh\r\nxy", 4, 4);
    assert_eq!(corner(&term, 4, 3), ["abcd", "efgh", "xy.."]);
    assert!(term.row_wrapped(0) && !term.row_wrapped(1));
    assert_eq!(at(&term), (2, 2));
    term.resize(Size { cols: 10, rows: 4 });
    assert_eq!(corner(&term, 8, 2), ["abcdefgh", "xy......"]);
    assert_eq!(at(&term), (1, 2));
}

#[test]
fn a_line_that_straddles_scrollback_and_screen_is_one_line() {
    let mut term = resized(5, 2, "abcdefghijklmno\r\nz", 15, 2);
    assert_eq!(corner(&term, 15, 2), ["abcdefghijklmno", "z.............."]);
    assert_eq!(term.scrollback_len(), 0);
    term.resize(Size { cols: 3, rows: 2 });
    assert_eq!(corner(&term, 3, 2), ["mno", "z.."]);
    assert_eq!(term.scrollback_len(), 4);
    assert_eq!(full_text(&term), "abcdefghijklmno\nz");
}

#[test]
fn fewer_rows_take_blank_ones_first_and_then_the_top() {
    let term = resized(10, 6, "a\r\nb\r\nc", 10, 3);
    assert_eq!((corner(&term, 1, 3), term.scrollback_len()), (vec!["a".into(), "b".into(), "c".into()], 0));
    let term = resized(10, 6, "a\r\nb\r\nc\r\nd", 10, 2);
    assert_eq!((corner(&term, 1, 2), term.scrollback_len()), (vec!["c".into(), "d".into()], 2));
    assert_eq!(at(&term), (1, 1));
}

#[test]
fn the_cursor_stays_on_its_line_even_if_what_is_below_must_go() {
    let term = resized(10, 5, "a\r\nb\r\nc\r\nd\r\ne\x1b[2;1H", 10, 2);
    assert_eq!((corner(&term, 1, 2), at(&term)), (vec!["b".into(), "c".into()], (0, 0)));
}

#[test]
fn more_rows_bring_lines_back_from_the_scrollback() {
    let term = resized(10, 2, "a\r\nb\r\nc\r\nd", 10, 3);
    assert_eq!((corner(&term, 1, 3), term.scrollback_len()), (vec!["b".into(), "c".into(), "d".into()], 1));
    assert_eq!(at(&term), (2, 1));
    let term = resized(10, 2, "a\r\nb", 10, 4);
    assert_eq!(corner(&term, 1, 4), ["a", "b", ".", "."]);
}

#[test]
fn the_prompt_of_a_cleared_screen_stays_where_it_is_when_only_the_width_changes() {
    let term = resized(20, 4, "old\r\nold\r\n\x1b[2J\x1b[H$ ls", 30, 4);
    assert_eq!(corner(&term, 4, 2), ["$ ls", "...."]);
    assert_eq!(at(&term), (0, 4));
}

#[test]
fn a_pending_wrap_is_kept_where_it_still_applies() {
    let term = resized(5, 3, "abcde", 10, 3);
    assert_eq!((at(&term), wrap_is_due(&term)), ((0, 5), false));
    let mut term = resized(10, 3, "abcde", 5, 3);
    assert_eq!((at(&term), wrap_is_due(&term)), ((0, 4), true));
    term.feed(b"f");
    assert_eq!(corner(&term, 5, 2), ["abcde", "f...."]);
    assert!(term.row_wrapped(0));
}

#[test]
fn rows_that_the_program_ended_stay_apart() {
    let term = resized(5, 4, "abcde\r\nfgh", 10, 4);
    assert_eq!(corner(&term, 5, 2), ["abcde", "fgh.."]);
    // Erased to its end, a row is no longer wrapped.
    let term = resized(5, 4, "abcdefg\x1b[1;3H\x1b[K", 10, 4);
    assert_eq!(corner(&term, 5, 2), ["ab...", "fg..."]);
    // Written over to its end without wrapping, neither.
    let term = resized(5, 4, "abcdefg\x1b[HABCDE\x1b[2H", 10, 4);
    assert_eq!(corner(&term, 5, 2), ["ABCDE", "fg..."]);
}

#[test]
fn text_that_replaces_the_rest_of_a_line_is_not_joined_to_it() {
    for replace in
        ["\x1b[2;1H\x1b[2Knew", "\x1b[2;1H\x1b[Jnew", "\x1b[2;1H\x1b[M\x1b[Lnew", "\x1b[2;1H\x1b[Lnew"]
    {
        let term = resized(5, 4, &format!("abcdefg{replace}"), 20, 4);
        assert_eq!(corner(&term, 6, 2), ["abcde.", "new..."], "{replace:?}");
    }
    let term = resized(5, 4, "abcdef\x1b[2;1H\x1b[X\x1b[2J\x1b[Hnew", 20, 4);
    assert_eq!(full_text(&term), "abcde\nnew");
    // The same where the line begins in the scrollback.
    for replace in ["\x1b[H\x1b[Jnew", "\x1b[2J\x1b[Hnew"] {
        let term = resized(5, 2, &format!("abcdefghijklm{replace}"), 20, 2);
        assert!(full_text(&term).ends_with("\nnew"), "{:?}", full_text(&term));
    }
}

#[test]
fn blanks_inside_a_wrapped_line_survive() {
    let term = resized(6, 4, "ab\x1b[1;6Hcd", 3, 4);
    assert_eq!(corner(&term, 3, 3), ["ab.", "..c", "d.."]);
    assert_eq!(full_text(&term), "ab   cd");
}

#[test]
fn the_alternate_screen_is_cut_and_the_primary_one_under_it_reflows() {
    let mut term = term(10, 4);
    term.feed("abcdefgh\r\nxy\x1b[?1049h\x1b[H0123456789\r\n漢漢漢漢漢".as_bytes());
    term.resize(Size { cols: 5, rows: 3 });
    assert_eq!(corner(&term, 5, 2), ["01234", "漢漢."]);
    term.feed(b"\x1b[?1049l");
    assert_eq!(corner(&term, 5, 3), ["abcde", "fgh..", "xy..."]);
    assert_eq!(at(&term), (2, 2));
}

#[test]
fn the_newest_lines_of_the_primary_screen_survive_under_an_alternate_screen_that_saved_no_cursor() {
    for mode in [47, 1047] {
        for (cols, rows) in [(10, 2), (4, 2), (3, 1), (20, 3)] {
            let mut term = term(10, 5);
            term.feed(format!("one\r\ntwo\r\nthree\r\nand four\x1b[?{mode}h").as_bytes());
            term.resize(Size { cols, rows });
            term.feed(format!("\x1b[?{mode}l").as_bytes());
            assert_eq!(full_text(&term), "one\ntwo\nthree\nand four", "{mode}, {cols}x{rows}");
        }
    }
}

#[test]
fn styles_links_and_graphemes_survive_reflow_through_the_scrollback() {
    let mut term = term(12, 2);
    term.feed(
        "\x1b[1;31m\x1b]8;;http://x/\x07👩‍👩‍👧e\u{301}漢\x1b]8;;\x07\x1b[mplain\r\n\r\n\r\n\r\n".as_bytes(),
    );
    for cols in [5, 3, 40] {
        term.resize(Size { cols, rows: 2 });
    }
    assert_eq!(full_text(&term), "👩‍👩‍👧e\u{301}漢plain");
    let mut cells = Vec::new();
    term.scrollback_row(0, &mut cells);
    assert_eq!(term.hyperlink(&cells[2]), Some("http://x/"));
    assert_eq!(cells[0].style().fg, abide_term::Color::Indexed(1));
    assert_eq!(cells[5].style(), abide_term::Style::default());
}

#[test]
fn margins_end_with_the_size_they_were_made_for() {
    let mut term = resized(10, 5, "\x1b[2;3r\x1b[5;1H", 10, 6);
    term.feed(b"\x1b[6;1Hx\n");
    assert_eq!(corner(&term, 1, 6)[4], "x");
}

#[test]
fn impossible_sizes_are_brought_within_bounds() {
    let mut term = term(0, 0);
    assert_eq!(term.size(), Size { cols: 2, rows: 1 });
    term.feed("漢字abc\r\n".as_bytes());
    term.resize(Size { cols: u16::MAX, rows: 3 });
    assert_eq!(term.size(), Size { cols: 2048, rows: 3 });
}

#[test]
fn a_saved_cursor_moves_with_its_text() {
    let mut term = term(10, 4);
    term.feed(b"abcdefgh\x1b7\x1b[H");
    term.resize(Size { cols: 4, rows: 4 });
    term.feed(b"\x1b8");
    assert_eq!((at(&term), wrap_is_due(&term)), ((1, 3), true));
}

#[test]
fn lines_are_counted_from_the_beginning_also_when_they_have_become_more() {
    let mut term = Term::new(Size { cols: 40, rows: 5 }, Options { scrollback: 100, ..Options::default() });
    for n in 0..50 {
        term.feed(format!("{n:035}\r\n").as_bytes());
    }
    term.resize(Size { cols: 10, rows: 5 });
    let before = term.scrolled_off();
    assert!(before >= term.scrollback_len() as u64);
    assert!(before >= 100, "{before}");
    term.feed(b"more\r\n");
    assert_eq!(term.scrolled_off(), before + 1);
}

/// Numbered lines of 8 to 157 columns.
fn numbered_lines(lines: std::ops::Range<usize>) -> String {
    lines.map(|n| format!("{n:06} {}\r\n", "x".repeat(n * 7 % 150 + 1))).collect()
}

fn kept(term: &Term) -> Vec<String> {
    full_text(term).lines().map(|line| line[..6].to_owned()).collect()
}

#[test]
fn a_narrow_view_loses_no_line_within_the_limit_and_neither_does_output_meanwhile() {
    let options = Options { scrollback: 1000, ..Options::default() };
    let mut term = Term::new(Size { cols: 160, rows: 40 }, options.clone());
    term.feed(numbered_lines(0..1500).as_bytes());
    let before = kept(&term);
    assert!(before.len() >= 1000);
    for cols in [80, 20, 2, 40, 160] {
        term.resize(Size { cols, rows: 40 });
        assert!(Term::restore(&term.dump(), options.clone()).unwrap().scrollback_len() >= 1000);
    }
    assert!(kept(&term) == before);
    term.resize(Size { cols: 20, rows: 40 });
    term.feed(numbered_lines(1500..1600).as_bytes());
    term.resize(Size { cols: 160, rows: 40 });
    let after = kept(&term);
    assert!(after.len() >= 1000, "{}", after.len());
    assert_eq!(after.last().map(String::as_str), Some("001599"));
    let expected: Vec<String> = (1600 - after.len()..1600).map(|n| format!("{n:06}")).collect();
    assert!(after == expected);
}
