//! Terminals of other kinds than most: fewer colours, another character set, fewer sequences.

use abide_wire::protocol::Spawn;

use crate::support::{Capsule, part};
use crate::terminal::Terminal;
use crate::tests;

tests![
    without_colours_the_bar_and_the_lines_have_none_and_programs_keep_theirs,
    a_terminal_without_utf_8_gets_lines_and_text_in_ascii,
    an_old_terminal_is_sent_nothing_that_it_does_not_know,
];

/// A program's red word with a wavy line and a link, beside another pane.
fn attached(env: &[(&str, &str)]) -> (Capsule, Terminal) {
    let capsule = Capsule::running(&["shell"]);
    capsule.wait_text("main", "ready");
    let red = "\\e[38;5;196mred\\e[m\\e[4:3mwavy\\e[m\\e]8;;https://a.b\\alink\\e]8;;\\a-ü漢";
    capsule.call(&Spawn { spec: Box::new(part("other", &["raw", red])), focus: true });
    let mut terminal = Terminal::attach_as(&capsule, 80, 24, &[], env);
    terminal.wait_text("listening");
    terminal.type_keys("\x02%");
    terminal.wait_text("ready$");
    (capsule, terminal)
}

fn contains(terminal: &Terminal, bytes: &str) -> bool {
    terminal.written.windows(bytes.len()).any(|window| window == bytes.as_bytes())
}

#[track_caller]
fn assert_leaves(mut terminal: Terminal) -> Vec<u8> {
    terminal.type_keys("\x02d");
    assert!(terminal.end().starts_with("detached"));
    terminal.assert_restored();
    std::mem::take(&mut terminal.written)
}

fn without_colours_the_bar_and_the_lines_have_none_and_programs_keep_theirs() {
    let (_capsule, mut terminal) = attached(&[("TERM", "xterm-256color"), ("NO_COLOR", "1")]);
    terminal.wait_text("│");
    assert!(contains(&terminal, "\x1b[38;5;196mred"));
    let ours = ["38;5;240", "38;5;39", "48;5;39", "48;5;236", "48;5;242"];
    let sent: Vec<&str> = ours.into_iter().filter(|color| contains(&terminal, color)).collect();
    assert!(sent.is_empty(), "{sent:?}");
    assert_leaves(terminal);
}

fn a_terminal_without_utf_8_gets_lines_and_text_in_ascii() {
    let (_capsule, mut terminal) = attached(&[("TERM", "xterm-256color"), ("LANG", "de_DE.ISO-8859-1")]);
    terminal.wait_text("link-???");
    terminal.wait_text(" |");
    assert!(assert_leaves(terminal).is_ascii());
}

fn an_old_terminal_is_sent_nothing_that_it_does_not_know() {
    let (_capsule, mut terminal) =
        attached(&[("TERM", "linux"), ("LANG", "C.UTF-8"), ("COLORTERM", "truecolor")]);
    terminal.wait_text("link-ü漢");
    terminal.wait_text(" |");
    let text = String::from_utf8(assert_leaves(terminal)).unwrap();
    for sequence in ["\x1b]", "4:3", "?2026", "38;5", "48;5", "38;2", "\x1b[?u", " q"] {
        assert!(!text.contains(sequence), "{sequence:?} in {text:?}");
    }
    assert!(text.contains("\x1b[31mred"), "{text:?}");
}
