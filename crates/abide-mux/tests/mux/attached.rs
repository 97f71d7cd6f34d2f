//! Looking at sessions: attaching, leaving, sizes, several clients.

use abide_journal::Recovered;
use abide_model::StatusBar;
use abide_term::{Options, Rgb, Term};
use abide_wire::mux_options::LiveSettings;
use abide_wire::protocol::{Configure, Focus, Spawn, Until};
use abide_wire::session::ProcessExit;
use rustix::process::Signal;

use crate::support::{Capsule, id, part, send_signal, shell, wait_for};
use crate::terminal::Terminal;
use crate::tests;

tests![
    a_session_is_shown_with_a_status_bar_and_what_is_typed_reaches_it,
    leaving_leaves_everything_running_and_coming_back_shows_the_same,
    a_client_that_asks_for_a_session_shows_that_one,
    the_session_has_the_size_of_the_terminal_without_the_bar_and_follows_it,
    without_a_status_bar_the_session_has_the_whole_terminal,
    the_size_follows_the_client_that_was_used_last_and_the_other_sees_a_part_or_a_pattern,
    a_client_that_only_watches_types_nothing_and_decides_nothing,
    a_client_that_only_watches_leaves_the_focus_where_it_is,
    programs_get_the_colours_of_the_terminal_that_was_attached_last,
    the_terminal_gets_the_modes_the_title_and_the_bell_of_the_session,
    a_steady_block_is_requested_only_if_the_program_requested_it,
    the_clipboard_is_written_only_where_that_is_allowed,
    an_update_that_is_announced_is_shown_whole,
    the_end_of_the_session_ends_the_client_with_its_exit_status,
    the_last_words_of_a_session_are_not_lost_though_a_grandchild_keeps_its_terminal,
    one_of_several_sessions_that_ends_leaves_the_others_on_the_screen,
    leaving_by_signal_or_by_closing_the_terminal_is_leaving,
    notifications_and_progress_reach_the_terminal_where_that_is_allowed_and_a_flood_of_them_does_not,
    settings_change_while_it_runs_and_stay_changed_for_the_next_mux,
];

fn a_session_is_shown_with_a_status_bar_and_what_is_typed_reaches_it() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("ready$");
    terminal.wait_text("ab-test");
    terminal.wait_text("0:main");
    terminal.type_keys("hello there\r");
    terminal.wait_text("you said hello there");
    assert_eq!(capsule.status().attached, 1);
}

fn leaving_leaves_everything_running_and_coming_back_shows_the_same() {
    let capsule = Capsule::running(&["shell"]);
    let mut first = Terminal::attach(&capsule, 80, 24, &[]);
    first.wait_text("ready$");
    first.type_keys("one\r");
    first.wait_text("you said one");
    first.wait_until("the prompt", |term| term.text().matches("ready$").count() == 2);
    let before = first.screen();
    first.type_keys("\x02d");
    assert!(first.end().starts_with("detached"), "{}", first.end());
    first.assert_restored();
    let pid = capsule.status().sessions[0].pid;

    let mut second = Terminal::attach(&capsule, 80, 24, &[]);
    second.wait_until("the same screen", |term| term.text() == before);
    assert_eq!(capsule.status().sessions[0].pid, pid);
}

fn a_client_that_asks_for_a_session_shows_that_one() {
    let capsule = Capsule::running(&["shell"]);
    let spec = shell("other", "echo the other one; sleep 1000");
    capsule.call(&Spawn { spec: Box::new(spec), focus: false });
    let mut terminal = Terminal::attach(&capsule, 80, 24, &["session=other"]);
    terminal.wait_text("the other one");
    capsule.call(&Focus { session: id("main") });
    terminal.wait_text("ready$");
}

fn the_session_has_the_size_of_the_terminal_without_the_bar_and_follows_it() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = Terminal::attach(&capsule, 90, 30, &[]);
    terminal.wait_text("ready$");
    terminal.type_keys("size\r");
    terminal.wait_text("size=90x29");
    terminal.resize(60, 20);
    wait_for("the new size", || (capsule.status().sessions[0].size.cols == 60).then_some(()));
    terminal.type_keys("size\r");
    terminal.wait_text("size=60x19");
    terminal.wait_text("ab-test");
}

fn without_a_status_bar_the_session_has_the_whole_terminal() {
    let mut capsule =
        Capsule::with_live(LiveSettings { status_bar: StatusBar::Off, ..LiveSettings::default() });
    capsule.launch(part("main", &["shell"]));
    let mut terminal = Terminal::attach(&capsule, 90, 30, &[]);
    terminal.wait_text("ready$");
    terminal.type_keys("size\r");
    terminal.wait_text("size=90x30");
    terminal.type_keys("\x02Q");
    terminal.wait_text("is not a command");
    terminal.type_keys("x\r");
    terminal.wait_text("you said x");
    terminal.wait_gone("is not a command");
}

fn the_size_follows_the_client_that_was_used_last_and_the_other_sees_a_part_or_a_pattern() {
    let capsule = Capsule::running(&["shell"]);
    let mut large = Terminal::attach(&capsule, 100, 40, &[]);
    large.wait_text("ready$");
    let mut small = Terminal::attach(&capsule, 50, 10, &[]);
    small.wait_text("ready$");
    small.type_keys("size\r");
    small.wait_text("size=50x9");
    large.wait_text("····");
    large.type_keys("size\r");
    large.wait_text("size=100x39");
    large.wait_gone("····");
    // The small one follows the cursor to where it is now.
    large.type_keys("lines 30\r");
    small.wait_text("line 30");
    assert!(!small.screen().contains("line 5\n"));
    small.wait_text("ab-test");
    // When the large one leaves, the small one is the last that was used.
    large.type_keys("\x02d");
    large.end();
    wait_for("the smaller size", || (capsule.status().sessions[0].size.cols == 50).then_some(()));
}

fn a_client_that_only_watches_types_nothing_and_decides_nothing() {
    let capsule = Capsule::running(&["shell"]);
    let mut user = Terminal::attach(&capsule, 80, 24, &[]);
    user.wait_text("ready$");
    let mut watcher = Terminal::attach(&capsule, 40, 10, &["read-only"]);
    watcher.wait_text("ready$");
    watcher.type_keys("intruder\r");
    watcher.wait_text("client is read-only");
    watcher.type_keys("\x02c");
    user.type_keys("size\r");
    user.wait_text("size=80x23");
    watcher.wait_text("size=80x23");
    assert!(!user.screen().contains("intruder"), "{}", user.screen());
    assert_eq!(capsule.status().sessions.len(), 1);
    watcher.type_keys("\x02d");
    assert!(watcher.end().starts_with("detached"));
}

fn a_client_that_only_watches_leaves_the_focus_where_it_is() {
    let capsule = Capsule::running(&["shell"]);
    let mut user = Terminal::attach(&capsule, 80, 24, &[]);
    user.wait_text("ready$");
    user.type_keys("\x02%");
    let two_prompts = |term: &Term| term.text().matches("ready$").count() == 2;
    user.wait_until("two prompts", two_prompts);
    let mut watcher = Terminal::attach(&capsule, 80, 24, &["read-only", "session=main"]);
    watcher.wait_until("two prompts", two_prompts);
    assert_eq!(capsule.status().focused, Some(id("s1")), "being shown one is not choosing it");
    watcher.type_keys("\x1b[<0;3;3M\x1b[<0;3;3mx");
    watcher.wait_text("client is read-only");
    assert_eq!(capsule.status().focused, Some(id("s1")));
}

fn programs_get_the_colours_of_the_terminal_that_was_attached_last() {
    let capsule = Capsule::running(&["raw", "\\e[?2031h"]);
    let mut dark = Terminal::attach(&capsule, 80, 24, &[]);
    dark.wait_text("listening");
    let mut light = Terminal::attach(&capsule, 80, 24, &[]);
    light.term.set_default_colors(Rgb::new(0x11, 0x22, 0x33), Rgb::new(255, 255, 255), Rgb::default());
    light.wait_text("<\\x1b[?997;2n>");
    // So is one that begins later, and one that asks when nobody is attached to a mux that has just begun.
    capsule.call(&Spawn { spec: Box::new(part("later", &["shell"])), focus: true });
    capsule.send_line("later", "say \\e]11;?\\a");
    capsule.wait_text("later", "]11;rgb:ffff/ffff/ffff");
    // Ends the line that the answer is in.
    capsule.send_line("later", "");
    for terminal in [&mut dark, &mut light] {
        terminal.type_keys("\x02d");
        terminal.end();
    }
    let mux = capsule.status().mux_pid;
    send_signal(mux, Signal::KILL);
    wait_for("another mux", || (capsule.status().mux_pid != mux).then_some(()));
    capsule.send_line("later", "say \\e]10;?\\a");
    capsule.wait_text("later", "]10;rgb:1111/2222/3333");
}

fn the_terminal_gets_the_modes_the_title_and_the_bell_of_the_session() {
    let setup = "\\e[?1h\\e=\\e[?2004h\\e[?1004h\\e[?1003h\\e[?1006h\\e[5\u{20}q\\e]2;my title\\a\\a";
    let capsule = Capsule::running(&["raw", setup]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("listening");
    terminal.wait_until("its modes", |term| {
        let modes = term.modes();
        modes.app_cursor_keys && modes.app_keypad && modes.bracketed_paste && modes.focus_events
    });
    terminal.wait_until("its title", |term| term.title() == "my title");
    assert_eq!(terminal.term.modes().mouse, abide_term::MouseMode::Any);
    assert_eq!(terminal.term.cursor().shape, abide_term::CursorShape::Bar);
    terminal.type_keys("\x02d");
    terminal.end();
    terminal.assert_restored();
}

fn a_steady_block_is_requested_only_if_the_program_requested_it() {
    for (setup, chosen) in [("\\e[2\u{20}q", true), ("", false)] {
        let capsule = Capsule::running(&["raw", setup]);
        let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
        terminal.wait_text("listening");
        terminal.wait_until("its cursor", |term| term.cursor().chosen == chosen);
    }
}

fn the_clipboard_is_written_only_where_that_is_allowed() {
    for allowed in [false, true] {
        let mut capsule = Capsule::with_live(LiveSettings { clipboard: allowed, ..LiveSettings::default() });
        capsule.launch(part("main", &["shell"]));
        let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
        terminal.wait_text("ready$");
        terminal.type_keys("say \\e]52;c;c2VjcmV0\\adone\r");
        terminal.wait_text("done");
        terminal.type_keys("after\r");
        terminal.wait_text("you said after");
        let written = String::from_utf8_lossy(&terminal.written).contains("\x1b]52;c;c2VjcmV0");
        assert_eq!(written, allowed);
    }
}

fn an_update_that_is_announced_is_shown_whole() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("ready$");
    // An update that never ends is shown all the same, after a moment.
    terminal.type_keys("say \\e[?2026hhalf\r");
    terminal.wait_text("half");
    terminal.type_keys("say \\e[?2026lwhole\r");
    terminal.wait_text("whole");
}

fn the_end_of_the_session_ends_the_client_with_its_exit_status() {
    for (script, says) in [("exit 3", "exit code 3"), ("kill -9 $$", "signal 9")] {
        let mut capsule = Capsule::new();
        capsule.launch(shell("main", &format!("echo hi; read x; {script}")));
        let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
        terminal.wait_text("hi");
        terminal.type_keys("\r");
        let end = terminal.end();
        assert!(end.starts_with("ended Some(") && end.contains(says), "{end}");
        terminal.assert_restored();
        capsule.ended();
    }
}

fn the_last_words_of_a_session_are_not_lost_though_a_grandchild_keeps_its_terminal() {
    let capsule = Capsule::running(&["shell"]);
    let script = "(trap '' HUP; exec sleep 1000) & echo last words; exit 7";
    capsule.call(&Spawn { spec: Box::new(shell("brief", script)), focus: false });
    let reply = capsule.wait("brief", Until::Exit);
    assert_eq!(reply.exit, Some(ProcessExit::Code(7)));
    // No waiting client waits for the disk too.
    let journal = capsule.instance_dir.journal(&id("brief"));
    let blob = wait_for("the last checkpoint", || {
        Some(Recovered::read(&journal).ok()?.checkpoint.as_ref()?.blob.clone())
    });
    let term = Term::restore(&blob, Options::default()).unwrap();
    assert!(term.text().contains("last words"));
}

fn one_of_several_sessions_that_ends_leaves_the_others_on_the_screen() {
    let capsule = Capsule::running(&["shell"]);
    capsule.call(&Spawn { spec: Box::new(shell("brief", "echo brief; read x; exit 4")), focus: true });
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("brief");
    terminal.type_keys("\r");
    terminal.wait_text("ended (exit code 4)");
    terminal.wait_text("ready$");
    terminal.type_keys("on\r");
    terminal.wait_text("you said on");
    assert_eq!(capsule.status().sessions.len(), 1);
}

fn leaving_by_signal_or_by_closing_the_terminal_is_leaving() {
    let capsule = Capsule::running(&["shell"]);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
        terminal.wait_text("ready$");
        terminal.signal(signal);
        assert!(terminal.end().starts_with("detached"));
        terminal.assert_restored();
    }
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("ready$");
    drop(terminal);
    wait_for("nobody being attached", || (capsule.status().attached == 0).then_some(()));
    assert_eq!(capsule.status().sessions.len(), 1);
}

fn notifications_and_progress_reach_the_terminal_where_that_is_allowed_and_a_flood_of_them_does_not() {
    for allowed in [true, false] {
        let mut capsule =
            Capsule::with_live(LiveSettings { notifications: allowed, ..LiveSettings::default() });
        capsule.launch(part("main", &["shell"]));
        let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
        terminal.wait_text("ready$");
        let flood = "\\e]9;again\\a".repeat(200);
        terminal.type_keys(&format!("say \\e]9;finished\\a\\e]9;4;1;40\\a{flood}over\r"));
        terminal.wait_until("the end", |term| term.text().lines().any(|line| line.starts_with("over")));
        let written = String::from_utf8_lossy(&terminal.written).into_owned();
        assert_eq!(written.contains("\x1b]9;finished\x1b\\"), allowed);
        assert_eq!(written.contains("\x1b]9;4;1;40\x1b\\"), allowed);
        assert!(written.matches("\x1b]9;again").count() <= 40);
    }
}

fn settings_change_while_it_runs_and_stay_changed_for_the_next_mux() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("C-b ? for help");
    terminal.type_keys("say \\e]52;c;aGk=\\a\r");
    terminal.wait_text("may not write to the clipboard");
    let settings =
        LiveSettings { prefix: "C-a".parse().unwrap(), clipboard: true, ..LiveSettings::default() };
    capsule.call(&Configure { settings });
    terminal.wait_text("C-a ? for help");
    send_signal(capsule.status().mux_pid, Signal::KILL);
    wait_for("the next mux", || {
        terminal.pump();
        terminal.type_keys("\x01?");
        terminal.pump();
        terminal.screen().contains("keys after C-a").then_some(())
    });
}
