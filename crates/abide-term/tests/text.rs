//! Characters: UTF-8, widths, graphemes, styles.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use abide_term::{Attrs, Color, Style, Underline};
use common::{fed, position, row_text, shows, term, wrap_is_due};

/// The graphemes at the start of the first row with their widths, and the column after them.
fn graphemes(input: &str) -> (Vec<(String, usize)>, u16) {
    let term = fed(input);
    let mut out: Vec<(String, usize)> = Vec::new();
    let mut buf = [0; 4];
    for cell in term.row(0).iter().take_while(|cell| !cell.is_blank()) {
        if cell.is_continuation() {
            out.last_mut().unwrap().1 = 2;
        } else {
            out.push((term.grapheme(cell, &mut buf).to_owned(), 1));
        }
    }
    (out, term.cursor().x)
}

fn style(input: &str) -> Style {
    fed(&format!("{input}x")).row(0)[0].style()
}

#[test]
fn a_grapheme_takes_one_cell_or_two() {
    for (text, width) in [
        ("a", 1),
        ("é", 1),
        ("e\u{301}", 1),
        ("e\u{301}\u{327}", 1),
        ("漢", 2),
        ("한", 2),
        ("ｗ", 2),
        ("👍", 2),
        ("👍🏽", 2),
        ("👩‍👩‍👧‍👦", 2),
        ("🏳️‍🌈", 2),
        ("🇩🇪", 2),
        ("❤️", 2),
        ("1️⃣", 2),
        ("❤", 1),
        ("─", 1),
    ] {
        assert_eq!(graphemes(text), (vec![(text.to_owned(), width)], width as u16), "{text}");
    }
    assert_eq!(graphemes("🇩🇪🇫🇷").0.len(), 2);
    assert_eq!(graphemes("👩a").0.len(), 2);
    assert_eq!(graphemes("क्ष").0.len(), 2);
}

#[test]
fn without_grapheme_mode_each_character_has_its_own_width() {
    assert_eq!(graphemes("\x1b[?2027l👩‍👩").1, 4);
    assert_eq!(graphemes("\x1b[?2027l❤️").1, 1);
    assert_eq!(graphemes("\x1b[?2027le\u{301}").0, [("e\u{301}".to_owned(), 1)]);
}

#[test]
fn marks_with_nothing_before_them_are_dropped() {
    shows("\u{301}a", &["a."]);
    shows("\x1b[5;5H\u{200d}", &["."]);
    assert_eq!(position("\u{301}"), (1, 1));
}

#[test]
fn a_grapheme_does_not_grow_without_bound() {
    let term = fed(&format!("a{}b", "\u{301}".repeat(1000)));
    let mut buf = [0; 4];
    assert!(term.grapheme(&term.row(0)[0], &mut buf).len() <= 64);
    assert_eq!(term.row(0)[1].ch(), Some('b'));
}

#[test]
fn half_a_wide_character_never_remains() {
    shows("漢字\x1b[1;2Hx", &[".x字"]);
    shows("漢字\x1b[1;1Hx", &["x.字"]);
    shows("漢字\x1b[1;2H漢", &[".漢."]);
    shows("漢字\x1b[1;2H\x1b[X", &["..字"]);
    shows("漢字\x1b[1;2H\x1b[P", &[".字."]);
    shows("漢字\x1b[1;2H\x1b[@", &["...字"]);
    shows("a漢\x1b[1;3H\x1b[1K", &["..."]);
}

#[test]
fn a_wide_character_that_does_not_fit_goes_to_the_next_row() {
    let term = fed(&format!("{}漢", "x".repeat(79)));
    assert!(term.row(0)[79].is_blank() && term.row_wrapped(0));
    assert_eq!(row_text(&term, 1, 2), "漢");
    let term = fed(&format!("\x1b[?7l{}漢", "x".repeat(79)));
    assert!(term.row(0)[78].is_wide());
    // At the edge a mark still joins the character that waits there.
    let term = fed(&format!("{}e\u{301}", "x".repeat(79)));
    assert_eq!(row_text(&term, 0, 80).chars().last(), Some('\u{301}'));
    assert!(wrap_is_due(&term));
}

#[test]
fn invalid_utf8_is_shown_as_replacement_characters() {
    let mut term = term(20, 2);
    term.feed(b"a\xffb\xc3(\xe2\x82\xed\xa0\x80z");
    assert_eq!(row_text(&term, 0, 12), "a\u{fffd}b\u{fffd}(\u{fffd}\u{fffd}\u{fffd}\u{fffd}z..");
}

#[test]
fn a_character_cut_by_a_sequence_does_not_swallow_it() {
    let mut term = term(20, 2);
    term.feed(b"\xe6\xbc");
    term.feed(b"\x1b[1mx");
    assert_eq!(row_text(&term, 0, 3), "\u{fffd}x.");
    assert!(term.row(0)[1].attrs().contains(Attrs::BOLD));
}

#[test]
fn c1_controls_written_as_text_do_nothing() {
    shows("a\u{9b}2Jb\u{85}c", &["a2Jbc"]);
}

#[test]
fn attributes_are_set_and_reset_one_by_one() {
    for (on, off, attr) in [
        (1, 22, Attrs::BOLD),
        (2, 22, Attrs::DIM),
        (3, 23, Attrs::ITALIC),
        (5, 25, Attrs::BLINK),
        (7, 27, Attrs::INVERSE),
        (8, 28, Attrs::HIDDEN),
        (9, 29, Attrs::STRIKE),
        (53, 55, Attrs::OVERLINE),
    ] {
        assert_eq!(style(&format!("\x1b[{on}m")).attrs, attr);
        assert_eq!(style(&format!("\x1b[{on};{off}m")).attrs, Attrs::NONE);
        assert_eq!(style(&format!("\x1b[{on}m\x1b[m")).attrs, Attrs::NONE);
    }
}

#[test]
fn underlines_have_shapes_and_colours() {
    for (sgr, shape) in [
        ("4", Underline::Single),
        ("4:0", Underline::None),
        ("4:1", Underline::Single),
        ("4:2", Underline::Double),
        ("21", Underline::Double),
        ("4:3", Underline::Curly),
        ("4:4", Underline::Dotted),
        ("4:5", Underline::Dashed),
        ("4:3;24", Underline::None),
    ] {
        assert_eq!(style(&format!("\x1b[{sgr}m")).underline, shape, "{sgr}");
    }
    assert_eq!(style("\x1b[58:2::1:2:3m").underline_color, Color::Rgb(1, 2, 3));
    assert_eq!(style("\x1b[58;5;9m").underline_color, Color::Indexed(9));
    assert_eq!(style("\x1b[58;5;9;59m").underline_color, Color::Default);
}

#[test]
fn colours_come_in_every_notation() {
    for (sgr, fg) in [
        ("31", Color::Indexed(1)),
        ("97", Color::Indexed(15)),
        ("38;5;200", Color::Indexed(200)),
        ("38:5:200", Color::Indexed(200)),
        ("38;2;1;2;3", Color::Rgb(1, 2, 3)),
        ("38:2:1:2:3", Color::Rgb(1, 2, 3)),
        ("38:2::1:2:3", Color::Rgb(1, 2, 3)),
        ("38:2:0:1:2:3:0:0", Color::Rgb(1, 2, 3)),
        ("31;39", Color::Default),
        ("38;5;300", Color::Default),
        ("38:9:1", Color::Default),
        ("4:3;38;5;7", Color::Indexed(7)),
        ("4:3;38;2;1;2;3", Color::Rgb(1, 2, 3)),
    ] {
        assert_eq!(style(&format!("\x1b[{sgr}m")).fg, fg, "{sgr}");
    }
    let all = style("\x1b[1;38;2;1;2;3;48;5;4;3m");
    assert_eq!((all.fg, all.bg), (Color::Rgb(1, 2, 3), Color::Indexed(4)));
    assert_eq!(all.attrs, Attrs::BOLD | Attrs::ITALIC);
    assert_eq!(style("\x1b[107m").bg, Color::Indexed(15));
}

#[test]
fn sequences_that_make_no_sense_are_swallowed_whole() {
    shows("a\x1b[1;2;3;<mb\x1b[?$$pc\x1b[12\x18d", &["abcd"]);
    shows("a\x1b[3\x08Cb", &["a..b"]);
    shows("\x1b%Ga\x1b $Bb", &["ab"]);
    shows(&format!("a\x1b[{}mb", "1;".repeat(500)), &["ab"]);
    shows("a\x1b[99999999999999999999999Cb", &["a.."]);
}
