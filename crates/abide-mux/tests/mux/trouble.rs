//! Floods, stalls, deaths.

use std::io::Write;
use std::time::Duration;

use abide_model::{Pid, activity::Background};
use abide_testkit::SmallDisk;
use abide_wire::exit_record::{ExitRecord, StopReason};
use abide_wire::mux_options::MuxOptions;
use abide_wire::protocol::{
    Attach, Connection, FrameKind, Rename, Shutdown, Spawn, Until, Upgrade, encode_json,
};
use rustix::process::Signal;

use crate::support::{CALL, Capsule, exe, id, part, send_signal, shell, wait_for};
use crate::terminal::Terminal;
use crate::tests;

tests![
    ctrl_c_reaches_a_program_that_floods,
    a_flood_in_one_session_does_not_keep_another_from_answering,
    a_client_that_stops_reading_costs_little_and_slows_no_other_client,
    a_paste_of_a_megabyte_arrives_whole,
    a_client_can_leave_a_program_that_does_not_read,
    only_the_client_that_sends_too_much_has_to_wait,
    an_upgrade_waits_until_what_was_typed_is_read,
    shells_that_are_asked_for_at_once_all_come,
    each_client_comes_back_to_what_it_looked_at,
    a_mux_that_is_killed_comes_back_with_the_same_screen_scrollback_and_tabs,
    a_mux_that_is_killed_under_output_loses_nothing,
    a_mux_that_gets_sigterm_is_replaced_unnoticed,
    an_idle_mux_with_a_client_does_not_wake_up,
    without_a_journal_everything_works_but_the_past,
    the_scrollback_of_an_earlier_run_is_there_and_its_modes_are_not,
    names_come_back_with_each_session_of_a_later_run,
    a_client_that_breaks_off_leaves_no_trace,
    a_full_disk_under_the_journal_stops_neither_the_session_nor_the_mux,
];

fn ctrl_c_reaches_a_program_that_floods() {
    let mut capsule = Capsule::new();
    capsule.launch(part("main", &["flood"]));
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("flood");
    terminal.type_keys("\x03");
    let end = terminal.end();
    assert!(end.contains("signal 2"), "{end}");
    terminal.assert_restored();
}

fn a_flood_in_one_session_does_not_keep_another_from_answering() {
    let capsule = Capsule::running(&["shell"]);
    for name in ["f1", "f2", "f3"] {
        capsule.call(&Spawn { spec: Box::new(part(name, &["flood"])), focus: false });
    }
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("ready$");
    for n in 0..20 {
        terminal.type_keys(&format!("key {n}\r"));
        terminal.wait_text(&format!("you said key {n}"));
    }
}

/// A client that attaches and then reads no more.
fn stalled(capsule: &Capsule) -> std::os::unix::net::UnixStream {
    let (mut stream, _) = Connection::connect(&capsule.instance_dir, CALL).unwrap().into_parts();
    let mut frame = Vec::new();
    let attach = Attach { cols: 200, rows: 50, ..Attach::default() };
    encode_json(FrameKind::Attach, &attach, &mut frame).unwrap();
    stream.write_all(&frame).unwrap();
    stream
}

pub fn resident_kib(pid: Pid) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn a_client_that_stops_reading_costs_little_and_slows_no_other_client() {
    let mut capsule = Capsule::new();
    let script = "head -c 4000000 /dev/zero | tr '\\0' 'x' | fold -w 79; echo; echo done; sleep 1000";
    capsule.launch(shell("main", script));
    let streams: Vec<_> = (0..10).map(|_| stalled(&capsule)).collect();
    wait_for("ten clients", || (capsule.status().attached == 10).then_some(()));
    capsule.wait_text("main", "done");
    let used = resident_kib(capsule.status().mux_pid);
    assert!(used < 40 << 10, "{used} KiB");
    drop(streams);
    wait_for("nobody", || (capsule.status().attached == 0).then_some(()));
}

fn a_paste_of_a_megabyte_arrives_whole() {
    let mut capsule = Capsule::new();
    let file = capsule.file("swallowed");
    let paste: Vec<u8> = (0..1_000_000u32)
        .map(|n| b'a' + u8::try_from(n.wrapping_mul(2_654_435_761) >> 28).unwrap())
        .collect();
    capsule.launch(part("main", &["swallow", file.to_str().unwrap(), &paste.len().to_string()]));
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("hungry");
    terminal.type_bytes(&paste);
    terminal.wait_text("full");
    assert!(std::fs::read(&file).unwrap() == paste, "not what was pasted");
}

fn a_client_can_leave_a_program_that_does_not_read() {
    let capsule = deaf();
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("deaf");
    terminal.type_bytes(&vec![b'x'; 500_000]);
    terminal.type_keys("\x02d");
    assert!(terminal.end().starts_with("detached"));
}

fn deaf() -> Capsule {
    let mut capsule = Capsule::new();
    capsule.launch(shell("main", "stty raw -echo; echo deaf; exec sleep 1000"));
    capsule
}

fn only_the_client_that_sends_too_much_has_to_wait() {
    let capsule = deaf();
    let mut first = Terminal::attach(&capsule, 80, 24, &[]);
    first.wait_text("deaf");
    let (chunk, mut sent) = (vec![b'x'; 64 << 10], 0);
    let mut taken = || {
        let n = first.try_type(&chunk);
        first.pump();
        n
    };
    while sent < 4 << 20 {
        sent += taken();
    }
    while (0..20).any(|_| taken() > 0) {}
    let mut second = Terminal::attach(&capsule, 80, 24, &[]);
    second.wait_text("deaf");
    second.type_keys("\x02d");
    assert!(second.end().starts_with("detached"));
}

fn an_upgrade_waits_until_what_was_typed_is_read() {
    let capsule = deaf();
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("deaf");
    terminal.type_bytes(&vec![b'x'; 500_000]);
    let refused = capsule.connect().call(&Upgrade { exe: exe() }, CALL).unwrap_err();
    assert!(refused.to_string().contains("has not read"), "{refused}");
}

fn shells_that_are_asked_for_at_once_all_come() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("ready$");
    terminal.type_keys("\x02c\x02%");
    wait_for("three sessions", || (capsule.status().sessions.len() == 3).then_some(()));
}

fn each_client_comes_back_to_what_it_looked_at() {
    let capsule = Capsule::running(&["shell"]);
    let mut first = Terminal::attach(&capsule, 80, 24, &[]);
    let mut second = Terminal::attach(&capsule, 80, 24, &[]);
    first.wait_text("ready$");
    second.wait_text("ready$");
    second.type_keys("\x02c");
    second.wait_text("1:");
    second.type_keys("second here\r");
    second.wait_text("you said second here");
    let mux = capsule.status().mux_pid;
    send_signal(mux, Signal::KILL);
    wait_for("another mux", || (capsule.status().mux_pid != mux).then_some(()));
    wait_for("both clients", || (capsule.status().attached == 2).then_some(()));
    first.type_keys("first here\r");
    capsule.wait_text("main", "you said first here");
    second.type_keys("second again\r");
    second.wait_text("you said second again");
}

fn a_mux_that_is_killed_comes_back_with_the_same_screen_scrollback_and_tabs() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("ready$");
    terminal.type_keys("lines 300\r");
    terminal.wait_text("line 300");
    terminal.type_keys("\x02%");
    terminal.wait_text("│");
    terminal.type_keys("\x02c");
    wait_for("three sessions", || (capsule.status().sessions.len() == 3).then_some(()));
    terminal.type_keys("\x02,\x15third\r");
    terminal.wait_text("1:third");
    terminal.type_keys("\x020");
    terminal.wait_until("the first tab", |term| term.text().contains("line 300"));
    terminal.wait_until("both prompts", |term| term.text().matches("ready$").count() == 2);
    let (screen, past) = (terminal.screen(), capsule.snapshot("main", true).lines);

    let mux = capsule.status().mux_pid;
    send_signal(mux, Signal::KILL);
    wait_for("another mux", || (capsule.status().mux_pid != mux).then_some(()));
    wait_for("the client", || (capsule.status().attached == 1).then_some(()));
    terminal.wait_until("the same screen", |term| term.text() == screen);
    assert_eq!(capsule.snapshot("main", true).lines, past);
    terminal.type_keys("still here\r");
    terminal.wait_text("you said still here");
    terminal.type_keys("\x021");
    terminal.wait_until("the third", |term| term.text().starts_with("ready$\n\n"));
}

fn a_mux_that_is_killed_under_output_loses_nothing() {
    let mut capsule = Capsule::new();
    let script = "i=1; while [ $i -le 20000 ]; do echo number $i; i=$((i+1)); done; echo done; sleep 1000";
    capsule.launch(shell("main", script));
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("number");
    for _ in 0..5 {
        let mux = capsule.status().mux_pid;
        send_signal(mux, Signal::KILL);
        wait_for("another mux", || (capsule.status().mux_pid != mux).then_some(()));
    }
    capsule.wait_text("main", "done");
    terminal.wait_text("done");
    let lines = capsule.snapshot("main", true).lines;
    let numbers: Vec<u32> =
        lines.iter().filter_map(|line| line.strip_prefix("number ")?.parse().ok()).collect();
    let first = numbers[0];
    assert_eq!(numbers, (first..=20_000).collect::<Vec<_>>());
    assert!(numbers.len() >= 10_000);
}

fn a_mux_that_gets_sigterm_is_replaced_unnoticed() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("ready$");
    let mux = capsule.status().mux_pid;
    send_signal(mux, Signal::TERM);
    wait_for("another mux", || (capsule.status().mux_pid != mux).then_some(()));
    terminal.type_keys("on we go\r");
    terminal.wait_text("you said on we go");
    assert!(!capsule.log().contains("WARN"), "{}", capsule.log());
}

pub fn wake_ups(pid: Pid) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let lines = status.lines().filter_map(|line| line.split_once("voluntary_ctxt_switches:"));
    lines.map(|(_, count)| count.trim().parse::<u64>().unwrap()).sum()
}

fn an_idle_mux_with_a_client_does_not_wake_up() {
    let capsule = Capsule::running(&["shell"]);
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("ready$");
    let mux = capsule.status().mux_pid;
    // Whatever was pending (frames, messages, the journal, the question to the terminal) is done after a few seconds.
    wait_for("quiet", || {
        let before = (wake_ups(mux), wake_ups(terminal.client_pid()));
        std::thread::sleep(Duration::from_millis(1500));
        (before == (wake_ups(mux), wake_ups(terminal.client_pid()))).then_some(())
    });
}

fn without_a_journal_everything_works_but_the_past() {
    let mut capsule = Capsule::with(MuxOptions { journal_bytes: 0, ..MuxOptions::default() });
    capsule.launch(part("main", &["shell"]));
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("ready$");
    assert!(!capsule.status().sessions[0].journaled);
    assert_eq!(std::fs::read_dir(capsule.instance_dir.journal_dir()).unwrap().count(), 0);
    let mux = capsule.status().mux_pid;
    send_signal(mux, Signal::KILL);
    wait_for("another mux", || (capsule.status().mux_pid != mux).then_some(()));
    terminal.wait_gone("ready$");
    terminal.type_keys("hello\r");
    terminal.wait_text("you said hello");
}

fn the_scrollback_of_an_earlier_run_is_there_and_its_modes_are_not() {
    let mut capsule = Capsule::new();
    capsule
        .launch(shell("main", "echo of the first run; printf '\\033[?1049h\\033[?1003h\\033[?1h'; read x"));
    capsule.wait("main", Until::Idle { quiet_ms: 50, background: Background::Counts });
    capsule.send_line("main", "");
    capsule.ended();
    assert_eq!(
        ExitRecord::read(&capsule.instance_dir).unwrap().unwrap().reason,
        Some(StopReason::LastSessionEnded)
    );

    capsule.config.generation = 2;
    capsule.launch(part("main", &["shell"]));
    let mut terminal = Terminal::attach(&capsule, 80, 24, &[]);
    terminal.wait_text("ready$");
    let screen = terminal.screen();
    assert!(screen.contains("of the first run"), "{screen}");
    let modes = terminal.term.modes();
    assert_eq!((modes.mouse, modes.app_cursor_keys), (abide_term::MouseMode::None, false));
    // And a mux that comes back tells the same.
    let mux = capsule.status().mux_pid;
    send_signal(mux, Signal::KILL);
    wait_for("another mux", || (capsule.status().mux_pid != mux).then_some(()));
    wait_for("the client", || (capsule.status().attached == 1).then_some(()));
    terminal.wait_until("the same screen", |term| term.text() == screen);
    assert!(!capsule.snapshot("main", false).alternate);
}

fn names_come_back_with_each_session_of_a_later_run() {
    let names = ["main", "second", "third"];
    let mut capsule = Capsule::new();
    for generation in [1, 2] {
        capsule.config.generation = generation;
        capsule.launch(part("main", &["shell"]));
        for name in &names[1..] {
            capsule.call(&Spawn { spec: Box::new(part(name, &["shell"])), focus: false });
        }
        for name in names.iter().filter(|_| generation == 1) {
            capsule.call(&Rename { session: id(name), name: format!("my {name}") });
        }
        let shown: Vec<String> = capsule.status().sessions.into_iter().map(|session| session.name).collect();
        assert_eq!(shown, names.map(|name| format!("my {name}")));
        capsule.call(&Shutdown { reason: String::new() });
        capsule.ended();
    }
}

fn a_client_that_breaks_off_leaves_no_trace() {
    let capsule = Capsule::running(&["shell"]);
    for _ in 0..50 {
        let (mut stream, _) = Connection::connect(&capsule.instance_dir, CALL).unwrap().into_parts();
        stream.write_all(&[200, 0, 0, 0, 6, b'x']).unwrap();
    }
    wait_for("nobody", || (capsule.status().attached == 0).then_some(()));
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", capsule.status().mux_pid)).unwrap().count();
    wait_for("few descriptors", || (descriptors() < 20).then_some(()));
    capsule.send_line("main", "fine");
    capsule.wait_text("main", "you said fine");
    assert_eq!(capsule.status().sessions[0].exit, None);
}

fn a_full_disk_under_the_journal_stops_neither_the_session_nor_the_mux() {
    let mut capsule = Capsule::new();
    let disk = SmallDisk::mount(&capsule.instance_dir.journal_dir(), 16);
    capsule.launch(part("s1", &["shell"]));
    capsule.wait_text("s1", "ready$");
    let mux = capsule.status().mux_pid;
    disk.unreserve("s1.ring");
    disk.fill();
    capsule.send_line("s1", "lines 30000");
    capsule.wait_text("s1", "line 30000");
    let status = capsule.status();
    assert_eq!((status.mux_pid, status.sessions[0].journaled), (mux, false));
    send_signal(mux, Signal::KILL);
    capsule.send_line("s1", "still here");
    capsule.wait_text("s1", "you said still here");
    capsule.call(&Shutdown { reason: "full".into() });
    capsule.ended();
}
