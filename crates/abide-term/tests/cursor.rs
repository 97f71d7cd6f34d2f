//! Moving the cursor, margins, tabs, saving and restoring.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use common::{fed, position, shows, wrap_is_due};

/// Origin mode inside rows 6 to 11.
const ORIGIN: &str = "\x1b[6;11r\x1b[?6h";

#[test]
fn relative_moves_default_to_one_and_stop_at_the_edges() {
    for (input, expected) in [
        ("\x1b[3;5H\x1b[A", (2, 5)),
        ("\x1b[3;5H\x1b[99A", (1, 5)),
        ("\x1b[3;5H\x1b[2B", (5, 5)),
        ("\x1b[3;5H\x1b[99B", (25, 5)),
        ("\x1b[3;5H\x1b[0C", (3, 6)),
        ("\x1b[3;5H\x1b[99C", (3, 80)),
        ("\x1b[3;5H\x1b[2D", (3, 3)),
        ("\x1b[3;5H\x1b[99D", (3, 1)),
        ("\x1b[3;5H\x1b[2E", (5, 1)),
        ("\x1b[3;5H\x1b[2F", (1, 1)),
        ("\x1b[3;5H\x1b[a", (3, 6)),
        ("\x1b[3;5H\x1b[99a", (3, 80)),
        ("\x1b[3;5H\x1b[e", (4, 5)),
        ("\x1b[3;5H\x1b[99e", (25, 5)),
    ] {
        assert_eq!(position(input), expected, "{input:?}");
    }
}

#[test]
fn relative_moves_stop_at_the_margins_only_from_inside() {
    let margins = "\x1b[4;8r";
    for (input, expected) in [
        ("\x1b[3;1H\x1b[99A", (1, 1)),
        ("\x1b[6;1H\x1b[99A", (4, 1)),
        ("\x1b[6;1H\x1b[99B", (8, 1)),
        ("\x1b[9;1H\x1b[99B", (25, 1)),
        ("\x1b[9;7H\x1b[99E", (25, 1)),
        ("\x1b[5;7H\x1b[99F", (4, 1)),
    ] {
        assert_eq!(position(&format!("{margins}{input}")), expected, "{input:?}");
    }
}

#[test]
fn absolute_moves_count_from_one_and_are_cut_to_the_screen() {
    for (input, expected) in [
        ("\x1b[3;6H", (3, 6)),
        ("\x1b[3;6f", (3, 6)),
        ("\x1b[3;6H\x1b[H", (1, 1)),
        ("\x1b[3;6H\x1b[2H", (2, 1)),
        ("\x1b[3;6H\x1b[;2H", (1, 2)),
        ("\x1b[3;6H\x1b[0;0H", (1, 1)),
        ("\x1b[99;999H", (25, 80)),
        ("\x1b[3;5H\x1b[10G", (3, 10)),
        ("\x1b[3;5H\x1b[9999G", (3, 80)),
        ("\x1b[3;5H\x1b[2`", (3, 2)),
        ("\x1b[3;5H\x1b[9d", (9, 5)),
        ("\x1b[3;5H\x1b[999d", (25, 5)),
    ] {
        assert_eq!(position(input), expected, "{input:?}");
    }
}

#[test]
fn in_origin_mode_positions_count_from_the_margins_and_stay_inside() {
    for (input, expected) in [
        ("", (6, 1)),
        ("\x1b[2;2H", (7, 2)),
        ("\x1b[99;99H", (11, 80)),
        ("\x1b[2d", (7, 1)),
        ("\x1b[2;2H\x1b[2e", (9, 2)),
        ("\x1b[2;2H\r", (7, 1)),
    ] {
        assert_eq!(position(&format!("{ORIGIN}{input}")), expected, "{input:?}");
    }
}

#[test]
fn margins_that_make_no_sense_are_ignored_and_others_send_the_cursor_home() {
    assert_eq!(position("\x1b[3;2H\x1b[2;3r"), (1, 1));
    assert_eq!(position("\x1b[3;2H\x1b[3;3r"), (3, 2));
    assert_eq!(position("\x1b[3;2H\x1b[5;4r"), (3, 2));
    shows("\x1b[0;3r\x1b[2H1\r\n2\r\n3\r\n4", &["2", "3", "4"]);
    shows("\x1b[3Hx\x1b[2;0r\x1b[25H\r\n", &[".", "x", "."]);
    shows("\x1b[2Hx\x1b[1;99r\x1b[25H\r\n", &["x", "."]);
}

#[test]
fn line_feeds_scroll_at_the_bottom_margin_only() {
    shows("\x1b[2;3r\x1b[2H1\r\n2\r\n", &[".", "2", "."]);
    shows("\x1b[2;3r\x1b[2H1\r\n2\x1b[4H\r\n", &[".", "1", "2", "."]);
    assert_eq!(position("\x1b[2;3r\x1b[25H\n\n"), (25, 1));
}

#[test]
fn index_and_reverse_index_scroll_at_the_margins() {
    shows("a\r\nb\x1b[H\x1bM", &[".", "a", "b"]);
    shows("\x1b[2;3r\x1b[2Ha\r\nb\x1b[2H\x1bM", &[".", ".", "a", "."]);
    assert_eq!(position("\x1b[2;3r\x1b[1;5H\x1bM"), (1, 5));
    assert_eq!(position("\x1b[5;3H\x1bD"), (6, 3));
    assert_eq!(position("\x1b[5;3H\x1bE"), (6, 1));
}

#[test]
fn backspace_stops_at_the_edge_and_leaves_the_pending_wrap() {
    assert_eq!(position("\x1b[3;3H\x08"), (3, 2));
    assert_eq!(position("\x1b[3;1H\x08"), (3, 1));
    let term = fed("\x1b[1;79Hab\x08X");
    assert_eq!(common::row_text(&term, 0, 80)[78..], *"Xb");
}

#[test]
fn tabs_stop_every_eight_columns_until_changed() {
    assert_eq!(position("\t\t"), (1, 17));
    assert_eq!(position("\x1b[2I"), (1, 17));
    assert_eq!(position("\x1b[1;25H\x1b[2Z"), (1, 9));
    assert_eq!(position("\x1b[2;25H\x1b[5Z"), (2, 1));
    assert_eq!(position("\t\x1b[g\r\t"), (1, 17));
    assert_eq!(position("\x1b[3g\x1b[1;30H\x1bH\r\t"), (1, 30));
    assert_eq!(position("\x1b[3g\t"), (1, 80));
    assert_eq!(position("\x1b[1;10H\x1b[g\r\t\t"), (1, 17));
    assert_eq!(position("\x1b[3g\x1b[?5W\t"), (1, 9));
}

#[test]
fn tabs_stop_at_the_right_edge_and_do_not_wrap() {
    assert_eq!(position(&"\t".repeat(20)), (1, 80));
    // A tab in the last column leaves the wrap that is due.
    let line = "x".repeat(80);
    assert_eq!(position(&format!("{line}\tz")), (2, 2));
}

#[test]
fn the_saved_cursor_brings_back_position_look_charset_and_origin() {
    for (save, restore) in [("\x1b7", "\x1b8"), ("\x1b[s", "\x1b[u"), ("\x1b[?1048h", "\x1b[?1048l")] {
        assert_eq!(position(&format!("\x1b[6;5H{save}\x1b[H{restore}")), (6, 5));
        assert_eq!(position(&format!("\x1b[!p\x1b[6;5H{restore}")), (1, 1));
        let term = fed(&format!("\x1b[1m\x1b(0{save}\x1b[m\x1b(B{restore}q"));
        assert_eq!(term.row(0)[0].ch(), Some('─'));
        assert!(term.row(0)[0].attrs().contains(abide_term::Attrs::BOLD));
        assert_eq!(position(&format!("{save}{ORIGIN}{restore}\x1b[H")), (1, 1));
        // Wrapping is not part of it.
        assert_eq!(position(&format!("\x1b[?7h{save}\x1b[?7l{restore}\x1b[1;79Habcd")), (1, 80));
    }
}

#[test]
fn each_screen_has_its_own_saved_cursor() {
    assert_eq!(position("\x1b[3;2H\x1b7\x1b[?47h\x1b[7;6H\x1b7\x1b[?47l\x1b8"), (3, 2));
    assert_eq!(position("\x1b[3;2H\x1b7\x1b[?47h\x1b[7;6H\x1b7\x1b[?47l\x1b8\x1b[?47h\x1b8"), (7, 6));
}

#[test]
fn text_wraps_at_the_edge_and_the_cursor_waits_in_the_last_column() {
    assert_eq!(position(&"x".repeat(79)), (1, 80));
    assert_eq!(position(&"x".repeat(80)), (1, 80));
    assert_eq!(position(&"x".repeat(81)), (2, 2));
    assert!(wrap_is_due(&fed(&"x".repeat(80))));
    // Without wrapping, the last column is written over and over.
    let term = fed("\x1b[?7l\x1b[1;79HABC");
    assert_eq!(common::row_text(&term, 0, 80)[78..], *"AC");
    assert_eq!((term.cursor().x, term.cursor().y), (79, 0));
}

#[test]
fn repeat_prints_the_last_character_again() {
    shows("a\x1b[b", &["aa."]);
    shows("a\x1b[2b", &["aaa."]);
    shows("\x1b[2b", &["..."]);
    shows("漢\x1b[1b", &["漢漢"]);
}
