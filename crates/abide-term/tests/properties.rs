//! What holds for every stream of bytes, however it is cut.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use abide_term::{Options, Size, Term};
use common::{full_text, state, wrap_is_due};
use proptest::collection::vec;
use proptest::prelude::*;

fn options() -> Options {
    Options { scrollback: 200, ..Options::default() }
}

/// Pieces of text in several scripts and widths, complete and cut.
fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[ -~]{0,40}".prop_map(String::into_bytes),
        prop::sample::select(vec![
            "漢字", "👩‍👩‍👧", "🇩🇪🇫🇷", "❤️", "e\u{301}", "👍🏽", "\u{200d}", "é", "한", "\u{fe0f}", "ｗ",
            "\u{300}\u{301}\u{302}",
        ])
        .prop_map(|s| s.as_bytes().to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\t".to_vec()),
        Just(b"\x08".to_vec()),
        vec(any::<u8>(), 0..6),
    ]
}

/// A control sequence with plausible and implausible numbers.
fn csi() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![6 => 0u32..12, 2 => 0u32..300, 1 => any::<u32>()];
    let marker = prop::sample::select(vec!["", "", "", "?", ">", "=", "<"]);
    let intermediate = prop::sample::select(vec!["", "", "", "", "$", "*", "'", " ", "\"", "!", "#"]);
    let separator = prop::sample::select(vec![";", ";", ":"]);
    (marker, vec((number, separator), 0..7), intermediate, 0x40u8..0x7f).prop_map(
        |(marker, params, mid, last)| {
            let mut out = format!("\x1b[{marker}");
            for (n, separator) in params {
                out.push_str(&format!("{n}{separator}"));
            }
            out.push_str(mid);
            out.push(char::from(last));
            out.into_bytes()
        },
    )
}

fn sequence() -> impl Strategy<Value = Vec<u8>> {
    let mode = prop::sample::select(vec![
        5u16, 6, 7, 25, 47, 67, 1000, 1003, 1006, 1047, 1048, 1049, 2004, 2026, 2027, 2048,
    ]);
    let fixed: Vec<&[u8]> = vec![
        b"\x1b7", b"\x1b8", b"\x1bM", b"\x1bD", b"\x1bE", b"\x1bH", b"\x1bc", b"\x1b#8", b"\x1b(0",
        b"\x1b(B", b"\x0e", b"\x0f", b"\x1b[?25l", b"\x1b[4h", b"\x1b[4l", b"\x1b]2;title\x07",
        b"\x1b]8;id=a;http://x/\x1b\\", b"\x1b]8;;\x07", b"\x1b]4;1;#123\x07", b"\x1b]10;?\x1b\\",
        b"\x1b]52;c;aGk=\x07", b"\x1bP$qm\x1b\\", b"\x1bP+q544e\x1b\\", b"\x1b_Gq\x1b\\",
        b"\x1b]7501;state=idle:app=x\x07", b"\x1b[2J", b"\x1b[3J", b"\x1b[2;4r", b"\x1b[r", b"\x1b[5b",
        b"\x1b]0;unfinished", b"\x1bP", b"\x1b[>1u",
    ];
    prop_oneof![
        3 => csi(),
        1 => (mode, any::<bool>()).prop_map(|(n, on)| format!("\x1b[?{n}{}", if on { 'h' } else { 'l' }).into_bytes()),
        2 => prop::sample::select(fixed).prop_map(<[u8]>::to_vec),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![text(), sequence()], 0..60).prop_map(|parts| parts.concat())
}

fn size() -> impl Strategy<Value = Size> {
    (2u16..30, 1u16..12).prop_map(|(cols, rows)| Size { cols, rows })
}

fn fed(size: Size, bytes: &[u8]) -> Term {
    let mut term = Term::new(size, options());
    term.feed(bytes);
    term
}

fn assert_sound(term: &Term) {
    let (cursor, size) = (term.cursor(), term.size());
    assert!(cursor.x < size.cols && cursor.y < size.rows, "{cursor:?} in {size:?}");
    // Lines of the program are counted; a change of size may move those of a screen there beside them.
    let mut cells = Vec::new();
    let ends = (0..term.scrollback_len()).filter(|i| !term.scrollback_row(*i, &mut cells)).count();
    assert!(ends <= 200 + 100, "{ends}");
    for y in 0..size.rows {
        let row = term.row(y);
        assert_eq!(row.len(), usize::from(size.cols));
        for (x, cell) in row.iter().enumerate() {
            let tail = row.get(x + 1).is_some_and(|next| next.is_continuation());
            assert_eq!(cell.is_wide(), tail, "half a character at {x},{y}: {:?}", term.text());
            let mut buf = [0; 4];
            assert!(!term.grapheme(cell, &mut buf).chars().any(char::is_control));
        }
        assert!(!row[0].is_continuation());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_stream_leaves_the_terminal_sound(size in size(), bytes in stream()) {
        assert_sound(&fed(size, &bytes));
    }

    #[test]
    fn how_a_stream_is_cut_makes_no_difference(size in size(), bytes in stream(), cuts in vec(1usize..9, 1..40)) {
        let whole = fed(size, &bytes);
        let mut cut = Term::new(size, options());
        let (mut rest, mut cuts) = (&bytes[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            cut.feed(head);
            rest = tail;
        }
        prop_assert_eq!(state(&whole), state(&cut));
        prop_assert_eq!(whole.clone().take_replies(), cut.take_replies());
        prop_assert_eq!(whole.clone().take_events(), cut.take_events());
    }

    #[test]
    fn a_checkpoint_at_any_byte_changes_nothing_that_follows(size in size(), bytes in stream(), at in any::<prop::sample::Index>()) {
        let (before, after) = bytes.split_at(at.index(bytes.len() + 1));
        let original = fed(size, before);
        let mut restored = Term::restore(&original.dump(), options()).expect("a dump is restored");
        prop_assert_eq!(state(&original), state(&restored));
        restored.feed(after);
        prop_assert_eq!(state(&fed(size, &bytes)), state(&restored));
    }

    #[test]
    fn a_damaged_checkpoint_is_refused(size in size(), bytes in stream(), at in any::<prop::sample::Index>(), flip in 1u8..) {
        let mut dump = fed(size, &bytes).dump();
        let at = at.index(dump.len());
        dump[at] ^= flip;
        prop_assert!(Term::restore(&dump, options()).is_none());
        dump.truncate(at);
        prop_assert!(Term::restore(&dump, options()).is_none());
    }

    #[test]
    fn resizing_any_stream_leaves_the_terminal_sound(start in size(), parts in vec((stream(), size()), 1..5)) {
        let mut term = Term::new(start, options());
        for (bytes, size) in parts {
            term.feed(&bytes);
            term.resize(size);
            assert_sound(&term);
            prop_assert_eq!(term.size(), size);
        }
    }

    #[test]
    fn resizing_keeps_the_text_and_the_cursor_on_its_character(
        start in size(),
        lines in vec("([a-z]{0,12}|漢|é|❤️| ){0,6}", 1..12),
        sizes in vec(size(), 1..5),
    ) {
        let mut term = Term::new(start, Options { scrollback: 10_000, ..options() });
        term.feed(lines.join("\r\n").as_bytes());
        term.feed(b"@");
        let column = term.cursor().x + u16::from(wrap_is_due(&term));
        term.feed(format!("\x1b[{column}G").as_bytes());
        let text = full_text(&term);
        for size in sizes {
            term.resize(size);
            prop_assert_eq!(full_text(&term), text.clone());
            let cursor = term.cursor();
            prop_assert_eq!(term.row(cursor.y)[usize::from(cursor.x)].ch(), Some('@'));
        }
    }

    #[test]
    fn versions_grow_with_every_visible_change(size in size(), first in stream(), second in stream()) {
        let mut term = fed(size, &first);
        let before = term.clone();
        term.feed(&second);
        for y in 0..size.rows {
            let changed = (0..usize::from(size.cols)).any(|x| {
                let (mut a, mut b) = ([0; 4], [0; 4]);
                let (old, new) = (&before.row(y)[x], &term.row(y)[x]);
                old.style() != new.style() || before.grapheme(old, &mut a) != term.grapheme(new, &mut b)
            });
            if changed {
                prop_assert!(term.row_version(y) > before.row_version(y), "row {}", y);
                prop_assert!(term.version() > before.version());
            }
        }
        if before.cursor() != term.cursor() || before.modes() != term.modes() || before.title() != term.title() {
            prop_assert!(term.version() > before.version());
        }
    }
}
