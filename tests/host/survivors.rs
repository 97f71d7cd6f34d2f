//! What goes on after its keeper was killed.

use std::process::Command;

use abide_testkit::eventually;

use crate::common::{
    Host, alive, host, in_pid_namespace, kill, unwatched_host, wait_for_death, watched_host,
};

/// An agent that does not hear that its terminal is gone, and a daemon beside it.
const STUBBORN: &str = "trap '' HUP
(setsid sh -c 'echo $$ >daemon.pid; exec sleep 1000' </dev/null >/dev/null 2>&1 &)
echo stub pid; exec tail -f /dev/null";

/// An instance whose keeper was killed, and what has outlived that.
struct Survived {
    id: String,
    agent: u32,
    daemon: u32,
}

impl Survived {
    fn on(host: &mut Host) -> Self {
        host.add_program("stub", STUBBORN);
        let id = host.load(&[]);
        let runs = |pid: u32, name: &str| {
            let running = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            running.is_ok_and(|running| running.trim() == name)
        };
        let daemon = eventually("the daemon", || {
            let pid = std::fs::read_to_string(host.work().join("daemon.pid")).ok()?.trim().parse().ok()?;
            runs(pid, "sleep").then_some(pid)
        });
        let pids = host.pids(&id);
        eventually("the program to be in its place", || runs(pids.session, "tail").then_some(()));
        kill("-KILL", pids.keeper);
        wait_for_death(pids.keeper);
        wait_for_death(pids.mux);
        assert!(alive(pids.session), "it does not hear that its terminal is gone");
        Self { id, agent: pids.session, daemon }
    }

    /// The processes as they are named to the operator.
    fn names(&self) -> [String; 2] {
        [format!("tail ({})", self.agent), format!("sleep ({})", self.daemon)]
    }

    #[track_caller]
    fn is_named_in(&self, text: &str) {
        for name in self.names() {
            assert!(text.contains(&name), "{name} is not named: {text}");
        }
    }

    #[track_caller]
    fn has_ended(&self) {
        for pid in [self.agent, self.daemon] {
            assert!(!alive(pid), "{pid} goes on");
        }
    }

    fn end(&self) {
        [self.agent, self.daemon].into_iter().for_each(|pid| kill("-KILL", pid));
    }
}

#[test]
fn what_outlives_a_killed_keeper_is_named_by_every_look_and_by_the_resume_that_ends_it() {
    let mut host = watched_host();
    let left = Survived::on(&mut host);
    let row = host.row(&left.id).unwrap();
    assert_eq!(row["leftovers"].as_array().unwrap().len(), 2, "{row}");
    eventually("the crash to be listed", || {
        host.abide(["ls"]).ok().contains("restorable (crashed; 2 processes left)").then_some(())
    });
    left.is_named_in(&host.abide(["explain", &left.id]).ok());
    left.is_named_in(&host.abide(["resume", &left.id, "--dry-run"]).ok());
    left.is_named_in(&host.abide(["resume", "--all", "--dry-run"]).ok());
    assert!(alive(left.agent) && alive(left.daemon), "nothing was to be ended yet");
    let resumed = host.abide(["resume", &left.id, "--detach"]);
    left.is_named_in(&resumed.stderr);
    left.has_ended();
    assert_eq!(host.row(&left.id).unwrap()["leftovers"], serde_json::json!([]));
}

#[test]
fn a_resume_of_everything_names_what_it_ends() {
    let mut host = host();
    let left = Survived::on(&mut host);
    left.is_named_in(&host.abide(["resume", "--all"]).stderr);
    left.has_ended();
}

#[test]
fn a_stop_ends_and_names_what_has_outlived_its_keeper() {
    let mut host = host();
    let left = Survived::on(&mut host);
    left.is_named_in(&host.abide(["stop", &left.id]).ok());
    left.has_ended();
    assert_eq!(host.state(&left.id), "restorable (crashed)");
}

#[test]
fn an_eject_names_what_has_outlived_its_keeper_before_it_ends_it() {
    let mut host = host();
    let left = Survived::on(&mut host);
    left.is_named_in(&host.abide(["eject", &left.id]).fails(3));
    assert!(alive(left.agent) && alive(left.daemon), "nobody had agreed");
    left.is_named_in(&host.abide(["eject", &left.id, "--clean"]).ok());
    left.has_ended();
}

#[test]
fn a_prune_names_what_has_outlived_its_keeper_before_it_ends_it() {
    let mut host = host();
    let left = Survived::on(&mut host);
    left.is_named_in(&host.abide(["prune", "--discard-restorable", "--dry-run"]).ok());
    assert!(alive(left.agent) && alive(left.daemon));
    left.is_named_in(&host.abide(["prune", "--discard-restorable", "--yes"]).ok());
    left.has_ended();
}

#[test]
fn a_daemon_that_has_outlived_its_keeper_can_be_spared_and_an_agent_cannot() {
    let mut host = host();
    let left = Survived::on(&mut host);
    let [agent, daemon] = left.names();
    let said = host.abide(["stop", &left.id, "--spare-daemons"]).ok();
    assert!(said.contains(&format!("ended as well: {agent}")), "{said}");
    assert!(said.contains(&format!("left running: {daemon}")), "{said}");
    assert!(!alive(left.agent) && alive(left.daemon), "{said}");
    host.abide(["eject", &left.id, "--clean"]).ok();
    assert!(alive(left.daemon), "the removal ended it");
    kill("-KILL", left.daemon);
}

/// What `command` printed, and whether it succeeded.
fn ran(command: &mut Command) -> (String, bool) {
    let out = command.output().unwrap();
    let text = [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (text, out.status.success())
}

#[test]
fn what_may_have_outlived_a_keeper_out_of_sight_is_neither_joined_nor_left_behind() {
    let mut host = host();
    let left = Survived::on(&mut host);
    assert_eq!(host.state(&left.id), "restorable (crashed)");
    let there = |args: &[&str]| ran(&mut in_pid_namespace(&host, args));
    for args in [
        &["resume", &left.id, "--detach"][..],
        &["eject", &left.id, "--clean"],
        &["prune", "--discard-restorable", "--yes"],
        &["stop", &left.id],
    ] {
        let (said, done) = there(args);
        assert!(!done, "{args:?}: {said}");
        assert!(said.contains("another PID namespace") && said.contains("--not-running"), "{args:?}: {said}");
        assert!(alive(left.agent) && alive(left.daemon));
        assert_eq!(host.state(&left.id), "restorable (crashed)", "{args:?}");
    }
    // Where it ran it can be seen, and once it has ended that is known everywhere.
    host.abide(["stop", &left.id]).ok();
    left.has_ended();
    let (said, done) = there(&["eject", &left.id, "--clean"]);
    assert!(done, "{said}");
}

#[test]
fn the_operators_word_stands_for_what_is_out_of_sight() {
    // A list where it ran would find out that it has ended.
    let mut host = unwatched_host();
    let left = Survived::on(&mut host);
    left.end();
    let there = |args: &[&str]| ran(&mut in_pid_namespace(&host, args));
    let (said, done) = there(&["stop", &left.id, "--not-running"]);
    assert!(done, "{said}");
    let (said, done) = there(&["eject", &left.id, "--clean"]);
    assert!(done, "{said}");
}

#[test]
fn what_ended_as_it_should_can_be_removed_from_any_pid_namespace() {
    let host = host();
    let (stopped, kept) = (host.load(&[]), host.load(&["--keep"]));
    host.abide(["stop", &stopped]).ok();
    host.abide(["send", &kept, "exit 0"]).ok();
    host.wait_for_state(&kept, "restorable (kept)");
    for id in [stopped, kept] {
        let (said, done) = ran(&mut in_pid_namespace(&host, &["eject", &id, "--clean"]));
        assert!(done, "{said}");
    }
}
