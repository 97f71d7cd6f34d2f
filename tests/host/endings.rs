//! Ends that neither the session nor its operator wanted: the instance is kept, and what was left open is told.

use crate::activity::{CLAUDE, registered};
use crate::common::{alive, compare, host, kill, wait_for_death};
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
fn a_turn_that_was_cut_below_a_wrapper_is_kept_though_the_wrapper_succeeds() {
    let mut host = machine();
    let claude = std::fs::read_to_string(host.path("bin/claude")).unwrap();
    let wrapper = claude.lines().last().unwrap().replace("exec ", "");
    host.add_program("claude", &format!("{wrapper}\necho bye; exit 0"));
    let id = host.load_agent("claude", &[]);
    host.say(&id, "remember the milk");
    // The stand-in's transcript knows nothing of the turn that follows, so the one before must be seen to be over.
    host.wait_for_activity(&id, "idle");
    host.say(&id, "/work");
    host.wait_for_activity(&id, "working");
    let shell = host.pids(&id).session;
    let below = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    kill("-KILL", below.trim().parse().unwrap());
    host.wait_for_state(&id, "restorable (crashed)");
}

#[test]
fn what_an_earlier_run_said_does_not_explain_why_this_one_ended() {
    let mut host = machine();
    let id = host.load_agent("claude", &[]);
    host.say(&id, "Please run /login");
    host.stop(&id);
    host.add_program("claude", "kill -SEGV $$");
    let complaint = host.abide(["resume", &id, "--detach"]).fails(1);
    assert!(complaint.contains("signal 11") && !complaint.contains("log in"), "{complaint}");
}

#[test]
fn a_missing_program_is_reported_as_not_on_path() {
    let host = host();
    let id = host.load(&[]);
    host.abide(["stop", &id]).ok();
    std::fs::remove_file(host.path("bin/stub")).unwrap();
    let complaint = host.abide(["resume", &id, "--detach"]).fails(1);
    compare(&host, "resume-without-program", &complaint);
    host.wait_for_state(&id, "restorable (stopped)");
}

#[test]
fn a_stop_says_which_turn_it_cuts_and_a_resume_which_instance_it_refuses() {
    let host = registered();
    let id = host.load_agent("claude", &["--name", "shop"]);
    host.tell(&id, &format!("busy|{CLAUDE}"));
    host.wait_for_activity(&id, "working");
    let complaint = host.abide(["resume", &id, "--detach"]).fails(1);
    compare(&host, "resume-of-running", &complaint);
    let stopped = host.abide(["stop", &id]);
    compare(&host, "stop-cuts-a-turn", &stopped.stderr);
    stopped.ok();
}

#[test]
fn an_interrupted_turn_and_a_pending_question_are_reported() {
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
        compare(&host, &format!("resume-after-{interruption}"), &resumed.stderr);
    }
}
