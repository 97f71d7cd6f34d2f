//! Every answer to `abide leave`, end to end: what is closed comes back in its own conversation, what is left is the same
//! process afterwards.

use abide_testkit::{Terminal, eventually};

use crate::common::{Pids, kill};
use crate::conversations::{Agents, machine};

/// Two instances of claude in one directory: one between two turns, one in the middle of a turn.
struct Desk {
    machine: Agents,
    idle: Instance,
    working: Instance,
}

struct Instance {
    id: String,
    pids: Pids,
    conversation: String,
}

fn desk() -> Desk {
    let machine = machine();
    let idle = instance(&machine, "idle", &[]);
    let working = instance(&machine, "working", &["/work"]);
    Desk { machine, idle, working }
}

/// A claude that was told something, and then each of `more`, and does what its instance is called.
fn instance(machine: &Agents, doing: &str, more: &[&str]) -> Instance {
    let id = machine.load_agent("claude", &["--name", doing, "--new"]);
    for line in ["remember the milk"].iter().chain(more) {
        machine.abide(["send", &id, line]).ok();
        machine.wait_for_screen(&id, &format!("heard: {line}"));
    }
    let conversation = eventually(&format!("claude to be {doing}"), || {
        let session = machine.row(&id)?["sessions"][0].clone();
        let conversation = session["conversation"].as_str()?.to_owned();
        (session["activity"] == doing).then_some(conversation)
    });
    let pids = machine.pids(&id);
    Instance { id, pids, conversation }
}

impl Desk {
    /// The dialog, when it asks.
    fn dialog(&self) -> Terminal<'_> {
        let terminal =
            Terminal::open(&self.machine, (80, 24), &[self.machine.program().to_str().unwrap(), "leave"]);
        terminal.wait_for("Leave all");
        terminal
    }

    #[track_caller]
    fn assert_runs_on(&self, instance: &Instance) {
        assert_eq!(self.machine.state(&instance.id), "active");
        assert_eq!(self.machine.pids(&instance.id), instance.pids, "not the same processes any more");
    }

    /// Asserts that the instance was closed, and that the agent itself brings its conversation back.
    #[track_caller]
    fn assert_closed_and_resumes(&self, instance: &Instance) {
        assert_eq!(self.machine.state(&instance.id), "restorable (stopped)");
        self.machine.abide(["resume", &instance.id, "--detach"]).ok();
        self.machine.wait_for_screen(&instance.id, "resumed: remember the milk");
        let argv = self.machine.argvs("claude").pop().unwrap();
        assert_eq!(argv, format!("--resume {}", instance.conversation));
    }
}

#[test]
fn what_is_idle_is_closed_and_what_works_runs_on() {
    let desk = desk();
    let terminal = desk.dialog();
    let shown = terminal.screen();
    for (name, fate) in [("idle/s1", "→ close, resumes next time"), ("working/s1", "→ detach, keeps running")]
    {
        assert!(shown.lines().any(|line| line.contains(name) && line.contains(fate)), "{shown}");
    }
    terminal.keys(&["a"]);
    terminal.wait_for("1 instance keeps running.");
    desk.assert_runs_on(&desk.working);
    desk.assert_closed_and_resumes(&desk.idle);
}

#[test]
fn a_plan_that_has_changed_meanwhile_is_shown_again_and_not_carried_out() {
    let desk = desk();
    let terminal = desk.dialog();
    desk.machine.abide(["send", &desk.idle.id, "/work"]).ok();
    eventually("another one to work", || {
        (desk.machine.row(&desk.idle.id)?["sessions"][0]["activity"] == "working").then_some(())
    });
    terminal.keys(&["a"]);
    eventually("the new plan", || {
        let shown = terminal.screen();
        shown.lines().any(|line| line.contains("idle/s1") && line.contains("→ detach")).then_some(())
    });
    desk.assert_runs_on(&desk.idle);
    terminal.keys(&["a"]);
    terminal.wait_for("2 instances keep running.");
    desk.assert_runs_on(&desk.idle);
    desk.assert_runs_on(&desk.working);
}

#[test]
fn leaving_all_lets_all_run_on() {
    let desk = desk();
    let terminal = desk.dialog();
    terminal.keys(&["l"]);
    terminal.wait_for("2 instances keep running.");
    desk.assert_runs_on(&desk.idle);
    desk.assert_runs_on(&desk.working);
}

#[test]
fn closing_all_is_confirmed_where_a_turn_would_be_cut() {
    let desk = desk();
    let terminal = desk.dialog();
    terminal.keys(&["c"]);
    terminal.wait_for("Close every session?");
    terminal.keys(&["n"]);
    terminal.wait_for("Leave all");
    desk.assert_runs_on(&desk.idle);
    desk.assert_runs_on(&desk.working);
    terminal.keys(&["c"]);
    terminal.wait_for("Close every session?");
    terminal.keys(&["y"]);
    assert_eq!(terminal.wait_for_end(), 0);
    desk.assert_closed_and_resumes(&desk.working);
    desk.assert_closed_and_resumes(&desk.idle);
}

#[test]
fn to_stay_changes_nothing() {
    let desk = desk();
    let terminal = desk.dialog();
    terminal.keys(&["Escape"]);
    assert_eq!(terminal.wait_for_end(), 0);
    desk.assert_runs_on(&desk.idle);
    desk.assert_runs_on(&desk.working);
}

#[test]
fn a_dialog_that_is_killed_ends_nothing_and_can_be_asked_for_again() {
    let desk = desk();
    let terminal = desk.dialog();
    kill("-KILL", terminal.pid());
    terminal.wait_for_end();
    desk.assert_runs_on(&desk.idle);
    desk.assert_runs_on(&desk.working);
    desk.machine.abide(["leave", "--apply"]).ok();
    desk.assert_closed_and_resumes(&desk.idle);
    desk.assert_runs_on(&desk.working);
}

#[test]
fn the_answer_can_be_given_with_the_command() {
    let desk = desk();
    let refused = desk.machine.abide(["leave"]).fails(3);
    assert!(refused.contains("--close-all"), "{refused}");
    assert_eq!(desk.machine.abide(["leave", "--leave-all"]).ok(), "2 instances keep running.\n");
    desk.assert_runs_on(&desk.idle);
    desk.assert_runs_on(&desk.working);
    desk.machine.abide(["leave", "--close-all"]).ok();
    desk.assert_closed_and_resumes(&desk.working);
    desk.assert_closed_and_resumes(&desk.idle);
}

#[test]
fn where_nothing_runs_nothing_is_asked() {
    let machine = machine();
    assert_eq!(machine.abide(["leave"]).ok(), "Nothing is running.\n");
    let id = machine.load_agent("claude", &[]);
    machine.abide(["stop", &id]).ok();
    let terminal = Terminal::open(&machine, (80, 24), &[machine.program().to_str().unwrap(), "leave"]);
    assert!(terminal.wait_for("Nothing is running.").trim() == "Nothing is running.");
}
