//! Driving sessions from scripts: send, peek, wait.

use std::process::Stdio;

use abide_testkit::eventually;

use crate::common::{Host, compare, host};

#[test]
fn send_wait_and_peek_drive_a_session() {
    let host = host();
    let id = host.load(&[]);
    host.abide(["wait", &id, "--text", "stub pid", "--timeout", "30"]).ok();
    host.abide(["send", &id, "run the tests"]).ok();
    let line = host.abide(["wait", &id, "--text", "heard: run", "--timeout", "30"]).ok();
    assert_eq!(line, "heard: run the tests\n");
    assert!(host.abide(["peek", &id]).ok().contains("heard: run the tests"));
    host.abide(["wait", &id, "--idle", "--quiet", "0.2", "--timeout", "30"]).ok();
    host.abide(["send", &id, "--no-enter", "half "]).ok();
    let waiting =
        host.command(host.program()).args(["wait", &id, "--exit"]).stdout(Stdio::piped()).spawn().unwrap();
    let fds = format!("/proc/{}/fd", waiting.id());
    eventually("the wait to be connected", || {
        let targets = std::fs::read_dir(&fds).ok()?.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        targets.into_iter().any(|target| target.to_string_lossy().starts_with("socket:")).then_some(())
    });
    host.abide(["send", &id, "--key", "C-u", "--key", "e", "--key", "x"]).ok();
    host.abide(["send", &id, "it 4"]).ok();
    let said = waiting.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "exit code 4\n");
}

#[test]
fn waiting_for_an_end_that_came_before_tells_it_all_the_same() {
    let host = host();
    for (code, keep) in [(3, &[][..]), (4, &[]), (5, &["--keep"])] {
        let id = host.load(&[&["--name", "job"], keep].concat());
        host.abide(["send", "job", &format!("exit {code}")]).ok();
        // The first may come before or after the end, the others surely come after.
        for word in ["job", "job", &id, &format!("{id}/s1"), "job/stub"] {
            let said = host.abide(["wait", word, "--exit", "--timeout", "30"]).ok();
            assert_eq!(said, format!("exit code {code}\n"), "{word}");
        }
    }
    host.abide(["wait", "nothing", "--exit"]).fails(1);
}

#[test]
fn a_name_is_free_once_the_end_of_its_last_session_was_waited_for() {
    let host = host();
    for code in ["1", "2", "3"] {
        host.load(&["--name", "job"]);
        let waiting =
            host.command(host.program()).args(["wait", "job", "--exit"]).stdout(Stdio::piped()).spawn();
        host.abide(["send", "job", &format!("exit {code}")]).ok();
        let said = waiting.unwrap().wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), format!("exit code {code}\n"));
    }
}

#[test]
fn commands_on_a_stopped_instance_say_how_to_bring_it_back() {
    let host = host();
    let id = host.load(&[]);
    host.abide(["stop", &id]).ok();
    let (session, mut said) = (format!("{id}/s1"), String::new());
    for args in [
        &["hardline", &id][..],
        &["peek", &id],
        &["peek", &session],
        &["send", &id, "hello"],
        &["wait", &id, "--idle"],
        &["stop", &session],
        &["upgrade", &id],
    ] {
        said += &format!("$ abide {}\n{}", args.join(" "), host.abide(args).fails(1));
    }
    compare(&host, "verbs-of-stopped", &said);
    assert!(host.abide(["explain", &session]).ok().contains("restorable (stopped)"));
}

#[test]
fn what_a_command_showed_before_it_was_resumed_is_not_what_is_waited_for() {
    only_what_is_new_is_waited_for(&host());
}

pub fn only_what_is_new_is_waited_for(host: &Host) {
    let id = host.load(&[]);
    host.abide(["send", &id, "tests passed"]).ok();
    host.abide(["wait", &id, "--text", "heard: tests passed", "--timeout", "30"]).ok();
    host.abide(["stop", &id]).ok();
    host.abide(["resume", &id, "--detach"]).ok();
    // Its first line is new, though the same line was there before.
    host.abide(["wait", &id, "--text", "stub pid", "--timeout", "30"]).ok();
    assert!(host.peek(&id).contains("heard: tests passed"), "what was there is still shown");
    host.abide(["wait", &id, "--text", "heard: tests", "--timeout", "0.3"]).fails(1);
    host.abide(["send", &id, "tests failed"]).ok();
    let line = host.abide(["wait", &id, "--text", "heard: tests", "--timeout", "30"]).ok();
    assert_eq!(line, "heard: tests failed\n");
}

#[test]
fn a_wait_that_is_in_vain_says_so() {
    let host = host();
    let id = host.load(&[]);
    let complaint = host.abide(["wait", &id, "--text", "never", "--timeout", "0.2"]).fails(1);
    assert!(complaint.contains("timed out"), "{complaint}");
    host.abide(["wait", &id]).fails(2);
}

#[test]
fn a_snapshot_tells_every_cell() {
    let host = host();
    let id = host
        .abide(["load", "sh", "--detach", "--", "-c", "printf '\\033[1;31mred\\033[0m 日本\\n'; read x"])
        .ok();
    let id = id.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    host.wait_for_screen(&id, "日本");
    let cells = host.abide(["peek", &id, "--json"]).json();
    let row = &cells["cells"][0];
    assert_eq!((row[0]["text"].as_str(), row[0]["fg"].as_str()), (Some("r"), Some("1")));
    assert_eq!(row[0]["attrs"][0], "bold");
    assert_eq!((row[4]["text"].as_str(), row[4]["width"].as_u64()), (Some("日"), Some(2)));
    let coloured = host.abide(["peek", &id, "--colour"]).ok();
    assert!(coloured.contains("\u{1b}[") && coloured.contains("red"), "{coloured:?}");
}

#[test]
fn control_bytes_of_a_program_do_not_reach_the_terminal_through_our_lists() {
    let host = host();
    let id = host
        .abide(["load", "sh", "--detach", "--", "-c", "printf '\\033]2;evil\\033[31m\\007title\\n'; read x"])
        .ok();
    let id = id.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    host.wait_for_screen(&id, "title");
    for args in [&["ls"][..], &["peek", &id], &["explain", &id]] {
        let printed = host.abide(args).ok();
        assert!(!printed.contains('\u{1b}'), "{printed:?}");
    }
}

#[test]
fn an_unknown_verb_or_a_malformed_request_gets_an_error_and_not_a_hang() {
    let host = host();
    let id = host.load(&[]);
    for request in [
        r#"{"verb": "levitate"}"#, r#"{"verb": "kill"}"#, r#"{}"#,
        r#"{"verb": "snapshot", "session": "s77"}"#,
    ] {
        let complaint = host.abide(["capsule", "call", &id, request]).fails(1);
        assert!(complaint.contains("abide: "), "{complaint}");
    }
    assert_eq!(host.state(&id), "active");
}

#[test]
fn a_history_of_a_million_lines_is_printed_whole_and_in_order() {
    const LINES: usize = 1_000_000;
    let mut host = host();
    host.abide(["config", "set", "scrollback", &LINES.to_string()]).ok();
    host.add_program("counts", &format!("seq {LINES}; echo counted; exec cat"));
    let id = host.load_program("counts", &[]);
    host.abide(["wait", &id, "--text", "counted", "--timeout", "60"]).ok();
    let printed = host.abide(["peek", &id, "--scrollback"]).ok();
    let mut lines = printed.lines();
    let odd = (1..=LINES).zip(&mut lines).find(|(number, line)| *line != number.to_string());
    assert_eq!(odd, None);
    assert_eq!(lines.next(), Some("counted"));
    let end = host.abide(["peek", &id, "--lines", "30"]).ok();
    assert_eq!(end.lines().count(), 30);
    assert!(end.contains(&format!("{LINES}\ncounted")), "{end}");
}
