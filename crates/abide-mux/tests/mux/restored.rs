//! The client's own ends and interruptions: the terminal is given back as it was, whatever happens.

use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::support::{Capsule, exe, send_signal, wait_for};
use crate::terminal::Terminal;
use crate::tests;

tests![
    a_client_without_a_terminal_says_so_and_touches_nothing,
    a_client_of_a_capsule_that_does_not_run_says_so_and_touches_nothing,
    a_client_whose_capsule_is_killed_says_so_and_gives_the_terminal_back,
    a_client_that_panics_gives_the_terminal_back,
    a_client_that_is_stopped_gives_the_terminal_back_and_draws_everything_when_it_goes_on,
    while_there_is_no_mux_the_client_says_so_and_can_be_left,
    keys_typed_while_the_terminal_is_being_asked_are_not_lost,
];

const SETUP: &str =
    "\\e[?1h\\e=\\e[?2004h\\e[?1004h\\e[?1003h\\e[?1006h\\e[>5u\\e[5\u{20}q\\e]2;title\\a\\e[?25l\\e[41m";

fn busy(capsule: &Capsule) -> Terminal {
    busy_with(capsule, &[])
}

fn busy_with(capsule: &Capsule, flags: &[&str]) -> Terminal {
    let mut terminal = Terminal::attach(capsule, 80, 24, flags);
    terminal.wait_text("listening");
    terminal.wait_until("its modes", |term| term.modes().bracketed_paste && term.modes().kitty_keyboard == 5);
    terminal
}

fn a_client_without_a_terminal_says_so_and_touches_nothing() {
    let capsule = Capsule::running(&["shell"]);
    let result = capsule.file("result");
    let mut command = Command::new(exe().as_os_str());
    command
        .arg("client")
        .arg(capsule.instance_dir.path())
        .arg(&result)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let output = command.output().unwrap();
    assert_eq!(output.stdout, b"");
    let text = std::fs::read_to_string(result).unwrap();
    assert!(text.starts_with("error: attaching needs a terminal"), "{text}");
}

fn a_client_of_a_capsule_that_does_not_run_says_so_and_touches_nothing() {
    let capsule = Capsule::new();
    std::fs::create_dir(capsule.instance_dir.run_dir()).unwrap();
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    let end = terminal.end();
    assert!(end.starts_with("error: its capsule is not running"), "{end}");
    assert_eq!(terminal.written, b"");
}

fn a_client_whose_capsule_is_killed_says_so_and_gives_the_terminal_back() {
    let capsule = Capsule::running(&["raw", SETUP]);
    let mut terminal = busy(&capsule);
    let status = capsule.status();
    send_signal(status.keeper_pid, Signal::KILL);
    send_signal(status.mux_pid, Signal::KILL);
    let end = terminal.end();
    assert!(end.starts_with("lost:") && end.contains("killed"), "{end}");
    terminal.assert_restored();
}

fn a_client_that_panics_gives_the_terminal_back() {
    let capsule = Capsule::running(&["raw", SETUP]);
    let word = capsule.file("panic");
    let mut terminal = busy_with(&capsule, &[&format!("panic={}", word.display())]);
    std::fs::write(word, "").unwrap();
    assert!(terminal.end().contains("101"));
    terminal.assert_restored();
}

fn a_client_that_is_stopped_gives_the_terminal_back_and_draws_everything_when_it_goes_on() {
    let capsule = Capsule::running(&["raw", SETUP]);
    let mut terminal = busy(&capsule);
    // Apart from what it hears of the focus, which comes and goes with the client.
    let drawn = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('<'));
        lines.map(str::to_owned).collect()
    };
    let before = drawn(&terminal.screen());
    terminal.signal(Signal::TSTP);
    wait_for("the stop", || terminal.is_stopped().then_some(()));
    terminal.pump();
    terminal.assert_restored();
    terminal.signal(Signal::CONT);
    terminal.wait_until("the same screen", |term| drawn(&term.text()) == before);
    terminal.wait_until("its modes", |term| term.modes().kitty_keyboard == 5 && term.modes().bracketed_paste);
    terminal.type_keys("x");
    terminal.wait_text("x>");
    terminal.type_keys("\x02d");
    assert!(terminal.end().starts_with("detached"));
    terminal.assert_restored();
}

fn while_there_is_no_mux_the_client_says_so_and_can_be_left() {
    let capsule = Capsule::running(&["raw", SETUP]);
    let mut terminal = busy(&capsule);
    let status = capsule.status();
    // Without its keeper's help the mux stays away.
    send_signal(status.keeper_pid, Signal::STOP);
    send_signal(status.mux_pid, Signal::KILL);
    terminal.wait_text("the screen is being rebuilt");
    terminal.type_keys("\x02d");
    let end = terminal.end();
    send_signal(status.keeper_pid, Signal::CONT);
    assert!(end.starts_with("detached"), "{end}");
    terminal.assert_restored();
}

fn keys_typed_while_the_terminal_is_being_asked_are_not_lost() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    // Before anything was drawn, and thus around the terminal's own answers.
    terminal.type_keys("early\r");
    terminal.wait_text("you said early");
}
