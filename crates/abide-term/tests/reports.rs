//! Answers to queries.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use common::{fed, reply, term};

#[test]
fn the_terminal_says_what_it_is() {
    let da1 = "^[?62;22c";
    assert_eq!(reply("\x1b[c"), da1);
    assert_eq!(reply("\x1b[0c"), da1);
    assert_eq!(reply("\x1bZ"), da1);
    assert_eq!(reply("\x1b[1c"), "");
    assert_eq!(reply("\x1b[>c"), "^[>64;380;0c");
    assert_eq!(reply("\x1b[=c"), "^P!|00000000^\\");
    assert_eq!(reply("\x1b[>q"), concat!("^P>|abide ", env!("CARGO_PKG_VERSION"), "^\\"));
}

#[test]
fn status_and_position_are_reported() {
    assert_eq!(reply("\x1b[5n"), "^[0n");
    assert_eq!(reply("\x1b[6;5H\x1b[6n"), "^[6;5R");
    assert_eq!(reply("\x1b[6;5H\x1b[?6n"), "^[?6;5;1R");
    assert_eq!(reply("\x1b[6;11r\x1b[?6h\x1b[2;3H\x1b[6n"), "^[2;3R");
    assert_eq!(reply("\x1b[?996n"), "^[?997;1n");
    assert_eq!(reply("\x1b]11;#ffffff\x07\x1b[?996n"), "^[?997;2n");
}

#[test]
fn modes_are_reported_as_they_are_set() {
    for mode in [1, 5, 6, 7, 12, 25, 66, 67, 1000, 1003, 1004, 1006, 1007, 2004, 2026, 2027, 2031] {
        for (on, state) in [('h', 1), ('l', 2)] {
            assert_eq!(reply(&format!("\x1b[?{mode}{on}\x1b[?{mode}$p")), format!("^[?{mode};{state}$y"));
        }
    }
    for mode in [4, 20] {
        for (on, state) in [('h', 1), ('l', 2)] {
            assert_eq!(reply(&format!("\x1b[{mode}{on}\x1b[{mode}$p")), format!("^[{mode};{state}$y"));
        }
    }
    // What has no effect is not claimed to be known.
    assert_eq!(reply("\x1b[?34h\x1b[?34$p\x1b[?12345$p"), "^[?34;0$y^[?12345;0$y");
    assert_eq!(reply("\x1b[99$p"), "^[99;0$y");
    assert_eq!(reply("\x1b[?1049h\x1b[?1049$p"), "^[?1049;1$y");
    assert_eq!(reply("\x1b[?2027$p"), "^[?2027;1$y");
}

#[test]
fn settings_are_reported() {
    for (set, setting, value) in [
        ("\x1b[1m", "m", "0;1"),
        ("\x1b[3;4:3;38:2::1:2:3;48;5;99;58;5;7;91m", "m", "0;3;4:3;91;48:5:99;58:5:7"),
        ("\x1b[m", "m", "0"),
        ("\x1b[5;6r", "r", "5;6"),
        ("\x1b[4 q", " q", "4"),
    ] {
        assert_eq!(reply(&format!("{set}\x1bP$q{setting}\x1b\\")), format!("^P1$r{value}{setting}^\\"));
    }
    assert_eq!(reply("\x1bP$qnonsense\x1b\\"), "^P0$r^\\");
}

#[test]
fn capabilities_are_reported_by_name() {
    assert_eq!(reply("\x1bP+q436F\x1b\\"), "^P1+r436F=323536^\\");
    assert_eq!(reply("\x1bP+q544e;5463\x1b\\"), "^P1+r544E=787465726D2D323536636F6C6F72^\\^P1+r5463^\\");
    assert_eq!(reply("\x1bP+q6b31\x1b\\"), "^P0+r6b31^\\");
    // What comes back is never more than digits.
    assert_eq!(reply("\x1bP+q6b\nrm -rf\x1b\\"), "^P0+r6b^\\");
}

#[test]
fn window_reports_give_sizes_and_never_a_title() {
    assert_eq!(reply("\x1b[11t"), "^[1t");
    assert_eq!(reply("\x1b[13t"), "^[3;0;0t");
    assert_eq!(reply("\x1b[14t"), "^[4;400;640t");
    assert_eq!(reply("\x1b[16t"), "^[6;16;8t");
    assert_eq!(reply("\x1b[18t"), "^[8;25;80t");
    assert_eq!(reply("\x1b[19t"), "^[9;25;80t");
    assert_eq!(reply("\x1b]2;secret\x07\x1b[21t"), "^]l^\\");
    assert_eq!(reply("\x1b]1;secret\x07\x1b[20t"), "^]L^\\");
    let term = fed("\x1b[8;10;20t");
    assert_eq!((term.size().cols, term.size().rows), (80, 25));
}

#[test]
fn the_keyboard_protocol_is_reported() {
    assert_eq!(reply("\x1b[?u"), "^[?0u");
    assert_eq!(reply("\x1b[>5u\x1b[?u"), "^[?5u");
    assert_eq!(reply("\x1b[>4;1m\x1b[?4m"), "^[>4;1m");
    assert_eq!(reply("\x1b[>4;2m\x1b[>4m\x1b[?4m\x1b[>4;2m\x1b[>4n\x1b[?4m"), "^[>4;0m^[>4;0m");
}

#[test]
fn checksums_are_those_of_xterm() {
    let sum = |input: &str, rect: &str| reply(&format!("{input}\x1b[7;1;{rect}*y"));
    let answer = |sum: u16| format!("^P7!~{:04X}^\\", sum.wrapping_neg());
    assert_eq!(sum("a", "1;1;1;1"), answer(0x61));
    assert_eq!(sum("", "1;1;1;1"), answer(0x20));
    assert_eq!(sum("a", "1;1;1;9"), answer(0x61));
    assert_eq!(sum("a b", "1;1;1;9"), answer(0x61 + 0x20 + 0x62));
    assert_eq!(sum("\x1b[1ma", "1;1;1;1"), answer(0x61 + 0x80));
    assert_eq!(sum("\x1b[1;4;7;5ma", "1;1;1;1"), answer(0x61 + 0x80 + 0x10 + 0x20 + 0x40));
    // What is not an attribute of video does not count.
    assert_eq!(sum("\x1b[8ma", "1;1;1;1"), answer(0x61));
    // In origin mode the rectangle counts from the margins.
    assert_eq!(sum("\x1b[5;1HX\x1b[5;7r\x1b[?6h", "1;1;1;1"), answer(0x58));
}

#[test]
fn colours_are_set_queried_and_reset() {
    assert_eq!(reply("\x1b]4;1;?\x1b\\"), "^]4;1;rgb:cdcd/0000/0000^\\");
    assert_eq!(
        reply("\x1b]4;0;#f0f0f0;1;rgb:80/00/00\x07\x1b]4;0;?;1;?\x07"),
        "^]4;0;rgb:f0f0/f0f0/f0f0\x07^]4;1;rgb:8080/0000/0000\x07"
    );
    assert_eq!(reply("\x1b]4;5;#123\x07\x1b]104;5\x07\x1b]4;5;?\x07"), reply("\x1b]4;5;?\x07"));
    assert_eq!(reply("\x1b]4;5;#123\x07\x1b]104\x07\x1b]4;5;?\x07"), reply("\x1b]4;5;?\x07"));
    assert_eq!(reply("\x1b]5;0;#aaaabbbbcccc\x07\x1b]5;0;?\x07"), "^]5;0;rgb:aaaa/bbbb/cccc\x07");
    assert_eq!(reply("\x1b]4;256;#aaaabbbbcccc\x07\x1b]4;256;?\x07"), "^]4;256;rgb:aaaa/bbbb/cccc\x07");
    assert_eq!(reply("\x1b]5;0;#aaa\x07\x1b]105;0\x07\x1b]5;0;?\x07"), reply("\x1b]5;0;?\x07"));
    assert_eq!(
        reply("\x1b]10;#f0f0f0;#800000\x07\x1b]10;?;?\x1b\\"),
        "^]10;rgb:f0f0/f0f0/f0f0^\\^]11;rgb:8080/0000/0000^\\"
    );
    assert_eq!(reply("\x1b]11;#800000\x07\x1b]111\x07\x1b]11;?\x1b\\"), "^]11;rgb:0000/0000/0000^\\");
    assert_eq!(reply("\x1b]12;?\x1b\\"), "^]12;rgb:d0d0/d0d0/d0d0^\\");
    assert_eq!(reply("\x1b]4;999;?\x07\x1b]4;x;?\x07\x1b]4;\x07"), "");
}

#[test]
fn the_status_protocol_is_answered_before_the_device_attributes() {
    for end in ["\x07", "\x1b\\"] {
        let answer = reply(&format!("\x1b]7501;?{end}\x1b[c"));
        assert!(answer.starts_with("^]7501;?^\\^[?62;"), "{answer}");
    }
}

#[test]
fn a_subscribed_program_is_notified_that_the_screen_became_light() {
    let mut term = fed("\x1b[?2031h");
    let (dark, light) = (abide_term::Rgb::new(10, 10, 10), abide_term::Rgb::new(250, 250, 250));
    term.set_default_colors(light, dark, light);
    assert_eq!(term.take_replies(), b"");
    term.set_default_colors(dark, light, dark);
    assert_eq!(term.take_replies(), b"\x1b[?997;2n");
    term.feed(b"\x1b]11;?\x1b\\");
    assert_eq!(term.take_replies(), b"\x1b]11;rgb:fafa/fafa/fafa\x1b\\");
}

#[test]
fn a_subscribed_program_is_notified_of_the_size_in_band() {
    assert_eq!(reply("\x1b[?2048h"), "^[48;25;80;400;640t");
    let mut term = term(80, 25);
    term.feed(b"\x1b[?2048h");
    drop(term.take_replies());
    term.resize(abide_term::Size { cols: 100, rows: 30 });
    assert_eq!(term.take_replies(), b"\x1b[48;30;100;480;800t");
}

#[test]
fn unread_answers_are_bounded() {
    let mut term = term(80, 25);
    for _ in 0..100_000 {
        term.feed(b"\x1b[c\x1b]10;?\x07\x07\x1b]2;a\x07\x1b]2;b\x07");
    }
    assert!(term.take_replies().len() <= 64 << 10);
    assert!(term.take_events().len() <= 256);
    assert!(term.take_replies().is_empty() && term.take_events().is_empty());
}
