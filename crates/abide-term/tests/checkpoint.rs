//! Writing the state down and taking it up again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use abide_term::{Options, Size, Term};
use common::{fed, full_text, state, term};

fn restored(term: &Term) -> Term {
    Term::restore(&term.dump(), Options::default()).expect("a dump is restored")
}

/// One stream for each thing that a terminal remembers, and what shows that it does.
const REMEMBERED: &[(&str, &str)] = &[
    ("\x1b[5;6H", "\x1b[6n"),
    ("01234567890123456789012345678901234567890123456789012345678901234567890123456789", "x"),
    ("\x1b[1;4:3;38;2;1;2;3;58;5;9m\x1b]8;;http://x/\x07", "text"),
    ("\x1b(B\x1b)0\x0e", "q#\x0fq"),
    ("\x1b[3;9r\x1b[?6h", "\x1b[99;99Hx\n"),
    ("\x1b[3g\x1b[1;12H\x1bH\r", "\tx"),
    ("\x1b[?7l\x1b[4h\x1b[20h", "\x1b[1;78Habcdef\n"),
    ("\x1b[?1002h\x1b[?1006h\x1b[?2026h\x1b[?67h", "\x1b[?1002$p\x1b[?67$p"),
    ("\x1b[4;4H\x1b[1m\x1b7\x1b[m\x1b[?1049h\x1b[9;9H\x1b7", "\x1b8x\x1b[?1049l\x1b8y"),
    ("\x1b[4 q\x1b[>5u\x1b[?1049h\x1b[>3u\x1b[>4;2m", "\x1b[?u\x1b[?4m\x1bP$q q\x1b\\"),
    ("\x1b]4;7;#123456\x07\x1b]10;#aabbcc\x07\x1b]5;1;#fff\x07", "\x1b]4;7;?\x07\x1b]10;?\x07\x1b]5;1;?\x07"),
    ("\x1b]2;t\x07\x1b]1;i\x07\x1b[22t\x1b]2;u\x07", "\x1b[23t"),
    ("\x1b]7501;state=blocked:kind=q:id=1:progress=5:app=a:msg=aGk=\x07", ""),
    ("e\u{301}漢👩‍👩‍👧\x1b]8;id=a;http://y/\x07l", "\u{301}"),
    ("a", "\x1b[3b"),
    ("\x1b[12;3", "4H\x1b[6n"),
    ("\x1b[4:", "3mx"),
    ("\x1b[?2$", "p"),
    ("\x1b]2;half", " and half\x07"),
    ("\x1bP$q", "m\x1b\\"),
    ("\x1bP$qm\x1b", "\\"),
    ("\x1b_Gxyz", "more\x1b\\x"),
    ("\x1b(", "0q"),
    ("\x1b[1;2;3<4", "5mx"),
];

#[test]
fn everything_that_is_remembered_is_in_a_checkpoint() {
    for (before, after) in REMEMBERED {
        let mut original = fed(&format!("some text\r\n{before}"));
        let mut copy = restored(&original);
        assert_eq!(state(&original), state(&copy), "{before:?}");
        drop((original.take_replies(), original.take_events()));
        original.feed(after.as_bytes());
        copy.feed(after.as_bytes());
        assert_eq!(state(&original), state(&copy), "{before:?}{after:?}");
        assert_eq!(original.take_replies(), copy.take_replies(), "{before:?}");
        assert_eq!(original.modes(), copy.modes(), "{before:?}");
        assert_eq!((original.title(), original.status()), (copy.title(), copy.status()));
    }
}

#[test]
fn the_comparison_notices_each_of_those_things() {
    let plain = fed("some text\r\n");
    for (before, _) in REMEMBERED {
        let other = fed(&format!("some text\r\n{before}"));
        assert_ne!(state(&plain), state(&other), "{before:?}");
    }
}

#[test]
fn a_checkpoint_in_the_middle_of_a_character_is_exact() {
    let text = "漢👍é".as_bytes();
    for cut in 0..=text.len() {
        let mut term = term(20, 2);
        term.feed(&text[..cut]);
        let mut copy = restored(&term);
        copy.feed(&text[cut..]);
        assert_eq!(copy.text(), "漢👍é");
    }
}

#[test]
fn scrollback_survives_and_is_cut_to_the_new_limit() {
    let mut term = term(30, 4);
    (0..3000).for_each(|n| term.feed(format!("\x1b[3{}mline {n} 漢e\u{301}\r\n", n % 8).as_bytes()));
    let copy = restored(&term);
    assert!(state(&term) == state(&copy));
    assert_eq!((copy.scrolled_off(), copy.version()), (term.scrolled_off(), term.version()));
    let short = Term::restore(&term.dump(), Options { scrollback: 10, ..Options::default() }).unwrap();
    assert_eq!(short.scrollback_len(), 10);
    assert!(full_text(&term).ends_with(&full_text(&short)));
    let none = Term::restore(&term.dump(), Options { scrollback: 0, ..Options::default() }).unwrap();
    assert_eq!((none.scrollback_len(), none.text()), (0, term.text()));
}

#[test]
fn versions_go_on_growing_after_a_restore() {
    let mut copy = restored(&fed("abc"));
    let (version, row) = (copy.version(), copy.row_version(0));
    copy.feed(b"x");
    assert!(copy.version() > version && copy.row_version(0) > row);
}

#[test]
fn what_waits_to_be_taken_is_not_in_a_checkpoint() {
    let mut copy = restored(&fed("\x07\x1b[c"));
    assert!(copy.take_replies().is_empty() && copy.take_events().is_empty());
}

#[test]
fn other_bytes_are_refused() {
    let options = Options::default;
    assert!(Term::restore(b"", options()).is_none());
    assert!(Term::restore(b"abterm\0\x05", options()).is_none());
    assert!(Term::restore(&[0; 100], options()).is_none());
    let dump = Term::new(Size { cols: 5, rows: 5 }, options()).dump();
    assert!(Term::restore(&[&dump[..], b"x"].concat(), options()).is_none());
}
