//! Ends that neither the session nor its operator wanted: the instance is kept, and what was left open is told.

use crate::activity::{CLAUDE, registered};
use crate::common::{alive, host, kill, wait_for_death};
use crate::conversations::machine;

#[test]
fn an_agent_that_a_stray_signal_ended_is_kept() {
    let host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "in the middle of it");
    kill("-TERM", host.pids(&id).session);
    host.wait_for_state(&id, "restorable (crashed)");
    assert!(host.abide(["explain", &id]).ok().contains("signal 15"));
}

#[test]
fn a_command_that_was_killed_from_outside_is_kept_and_one_that_the_operator_ended_is_not() {
    let host = host();
    let killed = host.load(&[]);
    kill("-KILL", host.pids(&killed).session);
    host.wait_for_state(&killed, "restorable (crashed)");
    let ended = host.load(&["--new"]);
    host.abide(["stop", &format!("{ended}/s1")]).ok();
    host.wait_for_state(&ended, "gone");
    let interrupted = host.load(&["--new"]);
    host.wait_for_screen(&interrupted, "stub pid");
    host.abide(["send", &interrupted, "--key", "C-c"]).ok();
    host.wait_for_state(&interrupted, "gone");
}

#[test]
fn a_resumed_agent_that_ends_at_once_did_not_come_back() {
    let mut host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "worth coming back to");
    host.stop(&id);
    host.add_program("claude", "echo nothing to see; exit 0");
    let run = host.abide(["resume", &id, "--detach"]);
    assert!(run.code != Some(0) && run.stderr.contains("nothing to see"), "{run:?}");
    host.wait_for_state(&id, "restorable (crashed)");
}

#[test]
fn a_turn_that_was_cut_and_a_question_that_was_pending_are_told() {
    for (status, interruption) in [("busy", "turn_cut"), ("waiting", "question_pending")] {
        let host = registered();
        let id = host.load_agent("claude", &[]);
        host.tell(&id, &format!("{status}|{CLAUDE}"));
        let state = if status == "busy" { "working" } else { "needs_input" };
        host.wait_for_activity(&id, state);
        let pids = host.pids(&id);
        kill("-KILL", pids.keeper);
        host.wait_for_state(&id, "restorable (crashed)");
        if alive(pids.session) {
            kill("-KILL", pids.session);
        }
        wait_for_death(pids.session);
        let row = host.row(&id).unwrap();
        assert_eq!(row["sessions"][0]["interruption"], interruption, "{row}");
        assert!(host.abide(["explain", &id]).ok().contains("when it last ended, it"), "{status}");
        let resumed = host.abide(["resume", &id, "--detach"]);
        assert!(resumed.stderr.contains("when claude last ended"), "{resumed:?}");
    }
}
