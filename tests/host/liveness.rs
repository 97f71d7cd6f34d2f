//! Whether an instance is alive, asked by those who can and cannot know.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use abide_testkit::eventually;

use crate::common::{
    Host, alive, exists, in_pid_namespace, kill, unwatched_host, wait_for_death, watched_host,
};

/// Runs `command`; what it printed, standard error included.
#[track_caller]
fn said(command: &mut Command) -> String {
    let out = command.output().unwrap();
    [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}

#[test]
fn a_look_from_another_pid_namespace_changes_nothing() {
    let host = unwatched_host();
    let id = host.load(&[]);
    let pids = host.pids(&id);
    let seen = said(&mut in_pid_namespace(&host, &["ls"]));
    assert!(seen.contains(&id) && seen.contains("active"), "{seen}");
    let explained = said(&mut in_pid_namespace(&host, &["explain", &id]));
    assert!(explained.contains("its PID namespace"), "{explained}");
    assert!(!host.abide(["explain", &id]).ok().contains("PID namespace"), "here they mean what they say");
    let refused = said(&mut in_pid_namespace(&host, &["resume", &id, "--detach"]));
    assert!(refused.contains("hardline"), "{refused}");
    assert_eq!(host.state(&id), "active");
    assert_eq!(host.pids(&id), pids);
    host.wait_for_screen(&id, "stub pid");
    // A stop from there goes through the mux, which answers everywhere.
    let stopped = said(&mut in_pid_namespace(&host, &["stop", &id]));
    assert!(stopped.contains("is stopped and kept"), "{stopped}");
    assert!(!alive(pids.session));
    // From there the keeper is not seen to be gone after it has let go of its lock.
    wait_for_death(pids.keeper);
}

/// A load called `slow` whose keeper has started its session and says so only once the returned file exists.
fn slow_start(host: &Host) -> (Child, PathBuf) {
    let go = host.path("go");
    let mut load = host.command(host.program());
    load.args(["load", "stub", "--detach", "--name", "slow"]).stdout(Stdio::null());
    let pause = format!("keeper.start.spawned={}", go.display());
    let load = load.env("ABIDE_PAUSE_AT", pause).spawn().unwrap();
    eventually("the start to be under way", || (host.state("slow") == "starting").then_some(()));
    (load, go)
}

#[test]
fn a_start_is_not_taken_for_dead_by_a_look_from_another_pid_namespace() {
    let host = unwatched_host();
    let (mut load, go) = slow_start(&host);
    for _ in 0..3 {
        let seen = said(&mut in_pid_namespace(&host, &["ls"]));
        assert!(seen.contains("starting"), "{seen}");
    }
    std::fs::write(go, "").unwrap();
    assert!(load.wait().unwrap().success());
    assert_eq!(host.state("slow"), "active");
}

#[test]
fn a_slow_keeper_is_not_taken_for_a_dead_one() {
    let host = watched_host();
    let (mut load, go) = slow_start(&host);
    for _ in 0..10 {
        assert_eq!(host.state("slow"), "starting");
    }
    std::fs::write(go, "").unwrap();
    assert!(load.wait().unwrap().success());
    assert_eq!(host.state("slow"), "active");
    host.wait_for_screen("slow", "stub pid");
}

#[test]
fn loads_and_looks_side_by_side_leave_every_instance_alive() {
    let host = watched_host();
    let ids: Vec<String> = (0..12).map(|_| host.load(&[])).collect();
    for id in &ids {
        assert_eq!(host.state(id), "active");
        assert!(alive(host.pids(id).session));
    }
}

#[test]
fn another_machine_that_shares_the_home_changes_nothing_and_says_what_to_do() {
    let host = unwatched_host();
    let id = host.load(&[]);
    let pids = host.pids(&id);
    kill("-KILL", pids.keeper);
    wait_for_death(pids.keeper);
    let elsewhere = |args: &[&str]| {
        let mut command = host.command(host.program());
        command.args(args).env("ABIDE_TEST_MACHINE", "another").env("ABIDE_TEST_BOOT", "another");
        said(&mut command)
    };
    let instance_dir = host.home().join("instances").join(&id);
    let before = std::fs::read(instance_dir.join("instance.json")).unwrap();
    let seen = elsewhere(&["ls"]);
    assert!(seen.contains("unknown") && seen.contains("--not-running"), "{seen}");
    for verb in
        [&["stop", &id][..], &["eject", &id, "--clean"], &["resume", &id, "--detach"], &["explain", &id]]
    {
        let told = elsewhere(verb);
        assert!(told.contains("another machine"), "{verb:?}: {told}");
        assert!(!told.contains("hardline") && !told.contains("it would be"), "{verb:?}: {told}");
    }
    let told = elsewhere(&["leave", "--close-all"]);
    assert!(told.contains(&id) && told.contains("--not-running") && told.contains("may still run"), "{told}");
    elsewhere(&["prune", "--yes"]);
    assert_eq!(std::fs::read(instance_dir.join("instance.json")).unwrap(), before);
    assert!(
        exists(instance_dir.join("run/sock")),
        "without its socket a run that goes on could not be reached"
    );
    // Where it was started it is known.
    assert_eq!(host.state(&id), "restorable (crashed)");
    assert!(!exists(instance_dir.join("run/sock")));
    let taken_up = elsewhere(&["resume", &id, "--detach"]);
    assert!(
        taken_up.contains("is back") || taken_up.contains("ab-"),
        "what is known to be over can be resumed anywhere: {taken_up}"
    );
}

#[test]
fn the_operators_word_ends_what_is_not_known() {
    let host = unwatched_host();
    let id = host.load(&[]);
    let refused = host.abide(["stop", &id, "--not-running"]).fails(1);
    assert!(refused.contains("is alive"), "{refused}");
    let pids = host.pids(&id);
    kill("-KILL", pids.keeper);
    wait_for_death(pids.keeper);
    let mut command = host.command(host.program());
    command.args(["stop", &id, "--not-running"]).env("ABIDE_TEST_MACHINE", "m").env("ABIDE_TEST_BOOT", "b");
    let told = said(&mut command);
    assert!(told.contains("marked as stopped"), "{told}");
    assert_eq!(host.state(&id), "restorable (host-lost)");
}

#[test]
fn a_reboot_is_distinguished_from_a_crash() {
    let host = unwatched_host();
    let id = host.load(&[]);
    let pids = host.pids(&id);
    kill("-KILL", pids.keeper);
    wait_for_death(pids.keeper);
    let mut command = host.command(host.program());
    let seen = said(command.args(["ls"]).env("ABIDE_TEST_BOOT", "another"));
    assert!(seen.contains("restorable (host-lost)"), "{seen}");
}

#[test]
fn a_stop_works_while_the_mux_does_not_answer_and_is_recorded_as_the_operators() {
    for verb in [&["stop"][..], &["eject", "--clean"]] {
        let host = unwatched_host();
        let id = host.load(&[]);
        let pids = host.pids(&id);
        kill("-STOP", pids.mux);
        host.abide([verb, &[&id]].concat()).ok();
        assert!(!alive(pids.keeper) && !alive(pids.session) && !alive(pids.mux));
        match verb {
            ["stop"] => {
                assert_eq!(host.state(&id), "restorable (stopped)");
                assert_eq!(host.row(&id).unwrap()["because"], "the operator stopped it");
            }
            _ => assert_eq!(host.state(&id), "gone"),
        }
    }
}

#[test]
fn a_thousand_mute_connections_lock_no_client_out() {
    let host = unwatched_host();
    let id = host.load(&[]);
    host.wait_for_screen(&id, "stub pid");
    let socket = host.home().join("instances").join(&id).join("run/sock");
    // Some wait in the queue until others are given up.
    let mute: Vec<UnixStream> = (0..1000).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    assert!(host.peek(&id).contains("stub pid"));
    host.abide(["send", &id, "still here"]).ok();
    host.wait_for_screen(&id, "heard: still here");
    assert!(host.row(&id).unwrap()["sessions"][0]["pid"].is_number());
    let more: Vec<UnixStream> = (0..300).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    host.abide(["stop", &id]).ok();
    assert_eq!(host.row(&id).unwrap()["because"], "the operator stopped it");
    drop((mute, more));
}

#[test]
fn mux_and_finaliser_come_from_the_keepers_own_image_when_its_file_is_gone() {
    let host = unwatched_host();
    let copy = host.path("bin/abide-copy");
    std::fs::copy(host.program(), &copy).unwrap();
    let said = said(host.command(&copy).args(["load", "stub", "--detach", "--name", "w"]));
    let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    host.wait_for_screen(&id, "stub pid");
    std::fs::remove_file(&copy).unwrap();
    let before = host.pids(&id);
    kill("-KILL", before.mux);
    host.wait_for_screen(&id, "stub pid");
    assert_ne!(host.pids(&id).mux, before.mux);
    // Something else at that path is not started either.
    std::fs::write(&copy, "#!/bin/sh\nexit 1\n").unwrap();
    host.abide(["send", &id, "exit 0"]).ok();
    eventually("the finaliser", || (!exists(host.home().join("instances").join(&id))).then_some(()));
}

#[test]
fn a_signal_that_ended_mux_and_session_at_once_is_a_stop_and_not_an_end() {
    let host = unwatched_host();
    let id = host.load(&[]);
    host.wait_for_screen(&id, "stub pid");
    let pids = host.pids(&id);
    let both = [pids.mux, pids.session].map(|pid| pid.to_string());
    assert!(Command::new("kill").arg("-TERM").args(both).status().unwrap().success());
    wait_for_death(pids.keeper);
    host.wait_for_state(&id, "restorable (stopped)");
    host.abide(["resume", &id, "--detach"]).ok();
    host.wait_for_screen(&id, "stub pid");
}

#[test]
fn a_kept_instance_has_no_socket_of_a_keeper_that_was_killed_at_its_start() {
    let host = unwatched_host();
    let id = host.load(&[]);
    host.abide(["stop", &id]).ok();
    let go = host.path("go");
    let mut resume = host.command(host.program());
    resume.args(["resume", &id, "--detach"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut resume =
        resume.env("ABIDE_PAUSE_AT", format!("keeper.start.spawned={}", go.display())).spawn().unwrap();
    let socket = host.home().join("instances").join(&id).join("run/sock");
    let keeper = eventually("the keeper", || {
        let of_it = |process: &String| {
            process.contains("capsule keeper").then(|| process.split(' ').next()?.parse().ok())?
        };
        host.processes().iter().find_map(of_it).filter(|_| exists(&socket))
    });
    kill("-KILL", keeper);
    assert!(!resume.wait().unwrap().success());
    assert_eq!(host.state(&id), "restorable (stopped)");
    assert!(!exists(&socket));
}
