//! Modes, resets, screens, and what the outside sees of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use abide_term::{CursorShape, MouseEncoding, MouseMode};
use common::{corner, fed, full_text, position, shows};

#[test]
fn the_alternate_screen_comes_and_goes_in_its_three_ways() {
    let draw = "abc\r\nabc";
    for (code, cleared_on_leaving) in [(47, false), (1047, true), (1049, true)] {
        let on = format!("\x1b[?{code}h");
        let off = format!("\x1b[?{code}l");
        let there = format!("{draw}{on}\x1b[2J\x1b[2;1Hdef\r\ndef");
        shows(&there, &["...", "def", "def"]);
        shows(&format!("{there}{off}"), &["abc", "abc", "..."]);
        let again = format!("{there}{off}{on}");
        shows(&again, if cleared_on_leaving { &["...", "...", "..."] } else { &["...", "def", "def"] });
    }
    // Only 1049 brings the cursor back.
    assert_eq!(position("\x1b[3;4H\x1b[?1049h\x1b[9;9H\x1b[?1049l"), (3, 4));
    assert_eq!(position("\x1b[3;4H\x1b[?1047h\x1b[9;9H\x1b[?1047l"), (9, 9));
    assert!(fed("\x1b[?1049h").modes().alternate_screen);
    // Leaving twice does not jump.
    assert_eq!(position("\x1b[3;4H\x1b[?1049h\x1b[?1049l\x1b[5;5H\x1b[?1049l"), (5, 5));
}

#[test]
fn what_the_outside_must_mirror_is_reported() {
    let term = fed("\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h\x1b[?1002h\x1b[?1006h\x1b[?2026h\x1b[?5h\x1b[?67h");
    let modes = term.modes();
    assert!(modes.app_cursor_keys && modes.app_keypad && modes.bracketed_paste && modes.focus_events);
    assert!(modes.synchronized && modes.reverse_video && modes.backspace_sends_bs && modes.alternate_scroll);
    assert_eq!((modes.mouse, modes.mouse_encoding), (MouseMode::Button, MouseEncoding::Sgr));
    let modes = fed("\x1b[?1h\x1b[?2026h\x1b[?1003h\x1b[?1016h\x1bc").modes();
    assert_eq!(modes, fed("").modes());
}

#[test]
fn mouse_modes_replace_each_other() {
    let mouse = |input: &str| fed(input).modes().mouse;
    assert_eq!(mouse("\x1b[?9h"), MouseMode::X10);
    assert_eq!(mouse("\x1b[?1000h\x1b[?1003h"), MouseMode::Any);
    assert_eq!(mouse("\x1b[?1000;1002h\x1b[?1002l"), MouseMode::None);
    let encoding = |input: &str| fed(input).modes().mouse_encoding;
    assert_eq!(encoding("\x1b[?1005h\x1b[?1015h"), MouseEncoding::Urxvt);
    assert_eq!(encoding("\x1b[?1006h\x1b[?1005l"), MouseEncoding::Sgr);
    assert_eq!(encoding("\x1b[?1006h\x1b[?1006l"), MouseEncoding::X10);
}

#[test]
fn the_kitty_keyboard_stack_belongs_to_the_screen() {
    let flags = |input: &str| fed(input).modes().kitty_keyboard;
    assert_eq!(flags("\x1b[>1u"), 1);
    assert_eq!(flags("\x1b[>1u\x1b[>5u\x1b[<u"), 1);
    assert_eq!(flags("\x1b[>1u\x1b[<9u"), 0);
    assert_eq!(flags("\x1b[=3u\x1b[=4;2u"), 7);
    assert_eq!(flags("\x1b[=7u\x1b[=2;3u"), 5);
    assert_eq!(flags("\x1b[>1u\x1b[?1049h"), 0);
    assert_eq!(flags("\x1b[>1u\x1b[?1049h\x1b[>8u\x1b[?1049l"), 1);
    assert_eq!(flags("\x1b[?1049h\x1b[>8u\x1bc\x1b[?1049h"), 0);
    assert_eq!(flags("\x1b[=255u"), 31);
    assert_eq!(flags(&"\x1b[>3u".repeat(1000)), 3);
}

#[test]
fn the_cursor_has_a_shape() {
    let cursor = |input: &str| fed(input).cursor();
    assert_eq!(
        (cursor("").shape, cursor("").blinking, cursor("").visible),
        (CursorShape::Block, false, true)
    );
    assert_eq!((cursor("\x1b[3 q").shape, cursor("\x1b[3 q").blinking), (CursorShape::Underline, true));
    assert_eq!((cursor("\x1b[6 q").shape, cursor("\x1b[6 q").blinking), (CursorShape::Bar, false));
    assert!(cursor("\x1b[?12h").blinking);
    assert!(!cursor("\x1b[?25l").visible);
}

#[test]
fn a_soft_reset_restores_modes_and_keeps_the_screen() {
    shows("text\x1b[!p", &["text"]);
    assert_eq!(position("\x1b[6;5H\x1b[!p"), (6, 5));
    assert_eq!(position("\x1b[6;5H\x1b7\x1b[!p\x1b8"), (1, 1));
    shows("\x1b[4h\x1b[!pa\x1b[Hb", &["b."]);
    assert_eq!(position("\x1b[3;4r\x1b[?6h\x1b[!p\x1b[H"), (1, 1));
    assert_eq!(position("\x1b[3;4r\x1b[!p\x1b[4H\r\n"), (5, 1));
    assert_eq!(position("\x1b[?7l\x1b[!p\x1b[1;79Hxxx"), (2, 2));
}

#[test]
fn a_hard_reset_restores_everything_but_keeps_the_scrollback() {
    let term = fed("one\x1b[?1049h\x1b[4;6r\x1b[?6h\x1b[1;31m\x1b(0\x1bc");
    assert_eq!(corner(&term, 3, 1), ["..."]);
    assert!(!term.modes().alternate_screen);
    assert_eq!(full_text(&term).trim(), "one");
    assert_eq!(position("\x1b[3;5H\x1bc"), (1, 1));
    assert_eq!(position("\x1bH\x1b[C\x1bH\x1bc\t"), (1, 9));
    shows("\x1b(0\x1bcq", &["q"]);
    shows("x\x1b[?47hy\x1bc\x1b[?47h", &["."]);
}

#[test]
fn character_sets_are_designated_and_shifted_to() {
    shows("\x1b(0lqk\x1b(B", &["┌─┐"]);
    shows("\x1b)0a\x0eq\x0fq", &["a─q"]);
    shows("\x1b(0é", &["é"]);
}

#[test]
fn new_line_mode_returns_the_carriage() {
    for feed in ["\n", "\x0b", "\x0c"] {
        assert_eq!(position(&format!("\x1b[1;5H{feed}")), (2, 5));
        assert_eq!(position(&format!("\x1b[20h\x1b[1;5H{feed}")), (2, 1));
    }
}

#[test]
fn a_version_grows_only_when_something_visible_changed() {
    let mut term = fed("abc");
    let version = term.version();
    term.feed(b"\x1b[c\x1b[6n\x1b[0m");
    assert_eq!(term.version(), version);
    for input in ["x", "\x1b[5;5H", "\x1b[?25l", "\x1b[?2026h", "\x1b]2;t\x07", "\x1b]11;#123456\x07"] {
        let version = term.version();
        term.feed(input.as_bytes());
        assert!(term.version() > version, "{input:?}");
    }
    let (first, second) = (term.row_version(4), term.row_version(10));
    term.feed(b"y");
    assert!(term.row_version(4) > first);
    assert_eq!(term.row_version(10), second);
}
