//! How abide prints: safely, plainly where nobody looks, and without fuss when nobody reads.

use std::io::Read;
use std::process::Stdio;

use abide_testkit::Terminal;

use crate::common::{add_instance, sandbox};

#[test]
fn control_bytes_in_names_do_nothing_to_the_terminal() {
    let sandbox = sandbox();
    add_instance(&sandbox, |instance| {
        instance.name = Some("evil\x1b]0;pwned\x07\x1b[2J".into());
        instance.scope.dir = "/tmp/\x1b[31mred\u{202e}".into();
        instance.status.because = "line\nbreak\x1b[5m".into();
    });
    for args in [&["ls"][..], &["explain", "evil\x1b]0;pwned\x07\x1b[2J"], &["explain", "no\x1b[5msuch"]] {
        let run = sandbox.abide(args);
        let printed = run.stdout + &run.stderr;
        assert!(!printed.contains('\x1b') && !printed.contains('\u{202e}'), "{args:?} printed {printed:?}");
    }
}

#[test]
fn a_line_break_in_a_name_does_not_break_the_message_about_it() {
    let sandbox = sandbox();
    for args in
        [&["explain", "no\nhint: such"][..], &["load", "true", "--detach", "--name", "no\nhint: such"]]
    {
        let complaint = sandbox.abide(args).stderr;
        assert!(complaint.contains("no·hint: such"), "{complaint}");
    }
}

#[test]
fn there_is_no_colour_without_a_terminal_and_none_where_it_is_not_wanted() {
    let mut sandbox = sandbox();
    add_instance(&sandbox, |_| {});
    assert!(!sandbox.abide(["ls"]).ok().contains('\x1b'));
    let shows_colour = |sandbox: &abide_testkit::Sandbox| {
        let abide = sandbox.program().to_str().unwrap().to_owned();
        let log = sandbox.path("typescript").to_str().unwrap().to_owned();
        let terminal = Terminal::open(sandbox, (100, 30), &["script", "-qec", &format!("{abide} ls"), &log]);
        terminal.wait_for_end();
        std::fs::read_to_string(&log).unwrap().contains("\x1b[1m")
    };
    assert!(shows_colour(&sandbox), "a terminal gets colour");
    sandbox.set("NO_COLOR", "1");
    assert!(!shows_colour(&sandbox), "NO_COLOR is honoured");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let sandbox = sandbox();
    for _ in 0..50 {
        add_instance(&sandbox, |instance| instance.name = Some("n".repeat(60)));
    }
    for args in [&["ls"][..], &["ls", "--json"], &["completions", "bash"], &["man"]] {
        let mut child = sandbox
            .command(sandbox.program())
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut complaint = String::new();
        child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        assert!(child.wait().unwrap().success(), "{args:?}: {complaint}");
        assert_eq!(complaint, "", "{args:?}");
    }
}

#[test]
fn the_table_fits_the_terminal() {
    let sandbox = sandbox();
    add_instance(&sandbox, |instance| instance.scope.dir = format!("/{}", "deep/".repeat(40)).into());
    let terminal = Terminal::open(&sandbox, (70, 12), &[sandbox.program().to_str().unwrap(), "ls"]);
    terminal.wait_for_end();
    let screen = terminal.screen();
    let row = screen.lines().find(|line| line.contains("restorable")).unwrap();
    assert!(row.trim_end().ends_with('…'), "{screen}");
    assert!(
        !screen.lines().any(|line| line.starts_with("deep") || line.starts_with("ep/")),
        "a row broke:\n{screen}"
    );
}

#[test]
fn without_a_verb_a_person_sees_the_instances_and_what_to_do_with_them() {
    let sandbox = sandbox();
    let shown = || {
        let terminal = Terminal::open(&sandbox, (100, 50), &[sandbox.program().to_str().unwrap()]);
        assert_eq!(terminal.wait_for_end(), 0);
        terminal.screen()
    };
    assert!(shown().contains("Usage: abide"), "{}", shown());
    let id = add_instance(&sandbox, |_| {});
    let screen = shown();
    assert!(screen.contains(id.as_str()) && screen.contains("abide --help"), "{screen}");
}

#[test]
fn every_failure_is_logged_in_one_structured_line() {
    let sandbox = sandbox();
    add_instance(&sandbox, |_| {});
    sandbox.abide(["explain", "zzzzzzzz"]).fails(1);
    let log = std::fs::read_to_string(sandbox.home().join("log/abide.log")).unwrap();
    let line = log.lines().find(|line| line.contains("zzzzzzzz")).unwrap();
    assert!(line.contains(" ERROR abide") && line.contains("explain[") && line.contains("code=1"), "{line}");
}

#[test]
fn the_program_needs_no_library_so_that_it_runs_in_any_container() {
    let sandbox = sandbox();
    let ldd = std::process::Command::new("ldd").arg(sandbox.program()).output().unwrap();
    let said = String::from_utf8_lossy(&[ldd.stdout, ldd.stderr].concat()).into_owned();
    assert!(said.contains("statically linked"), "ldd says {said}");
}
