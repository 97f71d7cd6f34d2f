//! String sequences: titles, links, clipboard, notifications, and what must be swallowed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;

use abide_term::{Options, ProgramState, Size, Term, TermEvent};
use common::{fed, full_text, reply, shows, state, term};

fn events(input: &str) -> Vec<TermEvent> {
    fed(input).take_events()
}

#[test]
fn titles_are_set_and_stripped_of_controls() {
    assert_eq!(fed("\x1b]0;both\x07").title(), "both");
    assert_eq!(fed("\x1b]2;a\x01b\u{85}c\r\n\x1b\\").title(), "abc");
    assert_eq!(events("\x1b]1;icon\x07\x1b]2;t\x07"), [TermEvent::Title("t".into())]);
    assert_eq!(fed(&format!("\x1b]2;{}\x07", "x".repeat(10_000))).title().len(), 4096);
    assert_eq!(fed(&format!("\x1b]2;{}\x07", "x".repeat(100_000))).title(), "");
}

#[test]
fn titles_can_be_stacked() {
    assert_eq!(fed("\x1b]2;a\x07\x1b[22t\x1b]2;b\x07\x1b[23t").title(), "a");
    assert_eq!(fed("\x1b]0;a\x07\x1b[22;2t\x1b]0;b\x07\x1b[23;0t").title(), "a");
    // The icon's title is not kept, but takes up its place on the stack.
    assert_eq!(fed("\x1b]2;a\x07\x1b[22;2t\x1b]2;b\x07\x1b[22;1t\x1b[23;1t\x1b[23;2t").title(), "a");
    assert_eq!(fed("\x1b]2;a\x07\x1b[22t\x1b]2;b\x07\x1b[23;1t").title(), "b");
    assert_eq!(fed("\x1b]2;a\x07\x1b[23t").title(), "a");
    assert_eq!(fed(&"\x1b]2;a\x07\x1b[22t".repeat(1000)).title(), "a");
}

#[test]
fn notifications_are_events_and_progress_is_not() {
    let notify =
        |text: &str, sequence: &str| TermEvent::Notify { text: text.into(), sequence: sequence.into() };
    assert_eq!(events("\x1b]9;done\x07"), [notify("done", "9;done")]);
    assert_eq!(events("\x1b]777;notify;build;ok\x07"), [notify("build: ok", "777;notify;build;ok")]);
    assert_eq!(events("\x1b]9;4;1;50\x07"), [TermEvent::Progress("9;4;1;50".into())]);
    assert_eq!(events("\x1b]9;4;0\x07"), [TermEvent::Progress("9;4;0;0".into())]);
    assert_eq!(events("\x1b]133;D;1\x07"), [TermEvent::Progress("133;D;1".into())]);
    assert_eq!(events("\x1b]99;i=1:a=report:c=1;hi\x07"), [notify("hi", "99;i=1;hi")]);
    assert_eq!(events("\x1b]99;e=1;aGk=\x07"), [notify("hi", "99;e=1;aGk=")]);
    for harmful in ["9;7;calc", "9;4;9;50", "9;4;1;x", "99;p=?;", "99;i=1:p=close;", "133;A"] {
        assert_eq!(events(&format!("\x1b]{harmful}\x07")), [], "{harmful}");
    }
    // What becomes a command of another terminal once the controls are gone stays text.
    assert_eq!(events("\x1b]9;\u{1}7;calc\x07"), [notify("7;calc", "9; 7;calc")]);
    assert_eq!(events("\x07\x07"), [TermEvent::Bell]);
}

#[test]
fn writing_to_the_clipboard_is_an_event_and_asking_for_it_is_not_answered() {
    assert_eq!(
        events("\x1b]52;c;aGVsbG8=\x07"),
        [TermEvent::Clipboard { selection: "c".into(), data: b"hello".to_vec() }]
    );
    assert_eq!(events("\x1b]52;p;?\x07\x1b]52;c;!!!\x07"), []);
    assert_eq!(reply("\x1b]52;p;?\x07"), "");
}

#[test]
fn a_large_clipboard_passes_and_a_huge_one_does_not() {
    let copy = |len: usize| events(&format!("\x1b]52;c;{}\x07", "QUFB".repeat(len / 4))).len();
    assert_eq!((copy(1 << 20), copy(2 << 20)), (1, 0));
    let mut term = term(80, 24);
    for _ in 0..10 {
        term.feed(format!("\x1b]52;c;{}\x07", "QUFB".repeat(1 << 18)).as_bytes());
    }
    assert!(term.take_events().len() <= 2);
}

#[test]
fn a_status_report_replaces_the_last() {
    let mut term = fed("\x1b]7501;state=working:app=codex\x1b\\");
    assert_eq!(term.status().unwrap().state, ProgramState::Working);
    term.feed(b"\x1b]7501;state=blocked:app=claude-code:kind=permission:msg=YXBwcm92ZSBXcml0ZTogL3g=\x07");
    let status = term.status().unwrap().clone();
    assert_eq!(status.state.as_str(), "blocked");
    assert_eq!(status.message.as_deref(), Some("approve Write: /x"));
    assert_eq!(term.take_events().last(), Some(&TermEvent::Status(status)));
}

#[test]
fn links_belong_to_the_cells_written_while_they_are_open() {
    let term = fed("\x1b]8;id=1;https://a.example/;x\x1b\\ab\x1b]8;;\x07c\x1b]8;;file:///b\x07d");
    let links: Vec<_> = term.row(0)[..4].iter().map(|cell| term.hyperlink(cell)).collect();
    assert_eq!(links, [Some("https://a.example/;x"), Some("https://a.example/;x"), None, Some("file:///b")]);
    assert_eq!(term.row(0)[0].link_id(), term.row(0)[1].link_id());
    // SGR 0 does not end a link, and an address that is too long is none.
    let term = fed("\x1b]8;;u\x07\x1b[ma");
    assert_eq!(term.hyperlink(&term.row(0)[0]), Some("u"));
    let term = fed(&format!("\x1b]8;;{}\x07a", "u".repeat(5000)));
    assert_eq!(term.hyperlink(&term.row(0)[0]), None);
}

#[test]
fn strings_that_mean_nothing_here_are_swallowed_whole() {
    shows("a\x1bPq#0;2;0;0;0#0~~@@vv\x1b\\b", &["ab"]);
    shows("a\x1b_Gf=24,s=10;AAAA\x1b\\b", &["ab"]);
    shows("a\x1b^private\x1b\\b\x1bXstart\x07of\x1b\\c", &["abc"]);
    shows("a\x1b]1337;File=x:AAAA\x07b", &["ab"]);
    shows("a\x1bPz0\x1b\\b", &["ab"]);
}

#[test]
fn a_string_is_cancelled_by_can_sub_or_another_sequence() {
    for start in ["\x1b]2;evil", "\x1bPq", "\x1b_G", "\x1bP$q"] {
        shows(&format!("{start}\x18a"), &["a"]);
        shows(&format!("{start}\x1aa"), &["a"]);
        shows(&format!("{start}\x1b[1;3Ha"), &["..a"]);
    }
    assert_eq!(fed("\x1b]2;evil\x1b[H").title(), "");
}

#[test]
fn ever_new_graphemes_do_not_grow_memory_and_the_newest_are_right() {
    let options = || Options { scrollback: 1000, ..Options::default() };
    let mut term = Term::new(Size { cols: 80, rows: 24 }, options());
    let marks = ['\u{300}', '\u{301}', '\u{302}', '\u{303}', '\u{304}', '\u{306}', '\u{307}', '\u{308}'];
    for block in 0..60u32 {
        let mut text = String::new();
        for n in block * 1000..(block + 1) * 1000 {
            text.push(char::from(b'a' + (n % 26) as u8));
            (0..7).for_each(|i| text.push(marks[(n >> (3 * i) & 7) as usize]));
            // An old one in between: what was known about it before the table was tidied must not be trusted after.
            text.push_str("e\u{301}\u{302}");
        }
        term.feed(text.as_bytes());
        assert!(full_text(&term).ends_with(&text), "wrong text in block {block}");
    }
    let dump = term.dump();
    assert!(dump.len() < 4 << 20, "{}", dump.len());
    assert!(state(&term) == state(&Term::restore(&dump, options()).unwrap()));
}

#[test]
fn ever_new_links_do_not_grow_memory_and_old_text_never_gets_a_wrong_one() {
    let mut term = term(20, 5);
    for n in 0..70_000 {
        term.feed(format!("\x1b]8;;http://host/{n}\x07{n}\x1b]8;;\x07\r\n").as_bytes());
    }
    assert!(term.dump().len() < 4 << 20);
    let mut cells = Vec::new();
    let mut linked = 0;
    for i in 0..term.scrollback_len() {
        term.scrollback_row(i, &mut cells);
        let text: String = cells.iter().filter_map(abide_term::Cell::ch).collect();
        if let Some(uri) = term.hyperlink(&cells[0]) {
            assert_eq!(uri, format!("http://host/{text}"));
            linked += 1;
        }
    }
    assert_eq!(linked, 10_000, "a line lost its link though there was room");
    assert_eq!(term.hyperlink(&term.row(3)[0]), Some("http://host/69999"));
}
