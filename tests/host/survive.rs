//! What survives what.

use abide_testkit::eventually;

use crate::common::{alive, compare, kill, wait_for_death, watched_host as host};

#[test]
fn the_mux_may_die_any_number_of_times() {
    let host = host();
    let id = host.load(&[]);
    host.wait_for_screen(&id, "stub pid");
    let first = host.pids(&id);
    for round in 0..5 {
        host.abide(["send", &id, &format!("round {round}")]).ok();
        host.wait_for_screen(&id, &format!("heard: round {round}"));
        kill("-KILL", host.pids(&id).mux);
    }
    let screen = host.wait_for_screen(&id, "heard: round 4");
    for round in 0..5 {
        assert!(screen.contains(&format!("heard: round {round}")), "{screen}");
    }
    let last = host.pids(&id);
    assert_eq!((first.keeper, first.session), (last.keeper, last.session));
}

#[test]
fn a_keeper_that_was_killed_leaves_a_restorable_instance_and_no_process() {
    let host = host();
    let id = host.load(&[]);
    let pids = host.pids(&id);
    kill("-KILL", pids.keeper);
    for pid in [pids.keeper, pids.mux, pids.session] {
        wait_for_death(pid);
    }
    assert_eq!(host.state(&id), "restorable (crashed)");
}

#[test]
fn being_terminated_is_not_finishing() {
    let host = host();
    let id = host.load(&["--clean"]);
    let pids = host.pids(&id);
    kill("-TERM", pids.keeper);
    wait_for_death(pids.keeper);
    assert!(!alive(pids.session));
    host.wait_for_state(&id, "restorable (stopped)");
}

#[test]
fn a_home_with_a_long_path_works() {
    let mut host = host();
    let deep = host
        .path("home")
        .join("very-long-directory-name-".repeat(4))
        .join("and-another-".repeat(8))
        .join("abide");
    std::fs::create_dir_all(deep.parent().unwrap()).unwrap();
    assert!(deep.as_os_str().len() > 150);
    host.set("ABIDE_HOME", &deep);
    let id = host.load(&[]);
    host.wait_for_screen(&id, "stub pid");
    host.abide(["stop", &id]).ok();
}

#[test]
fn the_death_of_one_instance_takes_no_other_with_it() {
    let host = host();
    let (one, other) = (host.load(&[]), host.load(&[]));
    let (gone, stays) = (host.pids(&one), host.pids(&other));
    kill("-KILL", gone.keeper);
    wait_for_death(gone.session);
    assert_eq!(host.pids(&other), stays);
    assert_eq!(host.state(&other), "active");
}

#[test]
fn an_instance_that_was_started_from_inside_another_does_not_end_with_it() {
    for end in [&["stop", "outer"][..], &["send", "outer", "exit"]] {
        let host = host();
        host.abide(["load", "sh", "--detach", "--name", "outer"]).ok();
        let load = format!("{} load stub --detach --name inner", env!("CARGO_BIN_EXE_abide"));
        host.abide(["send", "outer", &load]).ok();
        let id = |name: &str| host.row(name).map(|row| row["id"].as_str().unwrap().to_owned());
        let inner = eventually("the inner instance", || id("inner"));
        host.wait_for_screen(&inner, "stub pid");
        let (outer, pids) = (host.pids(&id("outer").unwrap()), host.pids(&inner));
        host.abide(end).ok();
        wait_for_death(outer.keeper);
        assert_eq!(host.pids(&inner), pids);
        assert_eq!(host.state(&inner), "active");
    }
}

#[test]
fn an_upgrade_disturbs_no_session() {
    let host = host();
    let id = host.load(&[]);
    host.abide(["send", &id, "before"]).ok();
    host.wait_for_screen(&id, "heard: before");
    let before = host.pids(&id);
    let said = host.abide(["upgrade", "--all"]).ok();
    assert!(said.contains("now runs on"), "{said}");
    host.abide(["send", &id, "after"]).ok();
    let screen = host.wait_for_screen(&id, "heard: after");
    assert!(screen.contains("heard: before"), "{screen}");
    let after = host.pids(&id);
    assert_eq!((before.keeper, before.session), (after.keeper, after.session));
    assert_ne!(before.mux, after.mux, "the mux is a new one");
}

#[test]
fn a_stopped_instance_comes_back_with_its_tabs_and_its_scrollback() {
    let host = host();
    let id = host.load(&["--", "original", "args"]);
    host.abide(["send", &id, "remember this"]).ok();
    host.wait_for_screen(&id, "heard: remember this");
    let second = serde_json::json!({"verb": "spawn", "focus": false, "spec": {
        "id": "s2", "name": "second", "argv": ["sh", "-c", "echo the second tab; read x"],
        "env": [["PATH", "/usr/bin:/bin"]], "cwd": host.work(),
    }});
    host.abide(["capsule", "call", &id, &second.to_string()]).ok();
    let ended = serde_json::json!({"verb": "spawn", "focus": false, "spec": {
        "id": "s3", "name": "third", "argv": ["true"], "env": [["PATH", "/usr/bin:/bin"]], "cwd": "/",
    }});
    host.abide(["capsule", "call", &id, &ended.to_string()]).ok();
    eventually("the third to end", || {
        (host.status(&id)["sessions"].as_array().unwrap().len() == 2).then_some(())
    });
    let before = host.pids(&id);
    host.abide(["stop", &id]).ok();
    assert!(host.abide(["resume", &id, "--dry-run"]).ok().contains("stub, second"));

    host.abide(["resume", &id, "--detach"]).ok();
    assert_eq!(host.state(&id), "active");
    let after = host.pids(&id);
    assert!(after.keeper != before.keeper && after.session != before.session);
    let screen = eventually("the screen", || {
        let screen = host.abide(["peek", &format!("{id}/s1"), "--scrollback"]).stdout;
        (screen.matches("stub pid").count() == 2).then_some(screen)
    });
    assert!(screen.contains("heard: remember this"), "the scrollback is gone:\n{screen}");
    assert!(screen.contains("args [original args]"), "{screen}");
    let screen = host.abide(["peek", &format!("{id}/s2"), "--scrollback"]).ok();
    assert!(screen.contains("the second tab"), "{screen}");
    assert_eq!(host.status(&id)["sessions"].as_array().unwrap().len(), 2, "what had ended stays ended");
}

#[test]
fn a_tab_that_does_not_come_back_is_reported_by_resume_and_marked_by_ls() {
    let host = host();
    let id = host.load(&[]);
    let program = host.work().join("second");
    std::fs::copy("/bin/sleep", &program).unwrap();
    let second = serde_json::json!({"verb": "spawn", "focus": false, "spec": {
        "id": "s2", "name": "second", "argv": [program, "1000"], "env": [["PATH", "/usr/bin:/bin"]],
        "cwd": host.work(),
    }});
    host.abide(["capsule", "call", &id, &second.to_string()]).ok();
    host.abide(["stop", &id]).ok();
    std::fs::remove_file(&program).unwrap();
    let resumed = host.abide(["resume", &id, "--detach"]);
    assert_eq!(resumed.code, Some(1), "{resumed:?}");
    compare(&host, "tab-lost", &resumed.stderr);
    let row = host.row(&id).unwrap();
    assert_eq!(
        (host.state(&id).as_str(), row["sessions"][1]["exit"].as_str()),
        ("active", Some("did not start"))
    );
    assert!(host.abide(["ls"]).ok().contains("did not start"));
    // It is not forgotten: with its program there again, it comes back.
    std::fs::copy("/bin/sleep", &program).unwrap();
    host.abide(["stop", &id]).ok();
    host.abide(["resume", &id, "--detach"]).ok();
    assert_eq!(host.status(&id)["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn everything_that_was_interrupted_comes_back_at_once_and_what_was_kept_does_not() {
    let host = host();
    let (stopped, crashed, kept) = (host.load(&[]), host.load(&[]), host.load(&["--keep"]));
    host.abide(["stop", &stopped]).ok();
    kill("-KILL", host.pids(&crashed).keeper);
    host.abide(["send", &kept, "exit 0"]).ok();
    host.wait_for_state(&kept, "restorable (kept)");
    host.wait_for_state(&crashed, "restorable (crashed)");
    let said = host.abide(["resume", "--all", "--dry-run"]).ok();
    assert_eq!(said.lines().count(), 2, "{said}");
    let said = host.abide(["resume", "--all"]).ok();
    assert_eq!(said.matches("is back").count(), 2, "{said}");
    assert_eq!(host.state(&stopped), "active");
    assert_eq!(host.state(&crashed), "active");
    assert_eq!(host.state(&kept), "restorable (kept)");
    assert!(host.abide(["resume", "--all"]).ok().contains("Nothing was interrupted"));
    let complaint = host.abide(["resume", &stopped, "--detach"]).fails(1);
    assert!(complaint.contains("abide hardline"), "{complaint}");
}

#[test]
fn a_resume_that_cannot_start_keeps_the_instance_as_it_was() {
    let mut host = host();
    let id = host.load(&[]);
    host.abide(["stop", &id]).ok();
    host.set("PATH", "/usr/bin:/bin");
    let complaint = host.abide(["resume", &id, "--detach"]).fails(1);
    assert!(complaint.contains("stub"), "{complaint}");
    assert_eq!(host.state(&id), "restorable (stopped)");
    let complaint = host.abide(["resume", "--all"]).fails(1);
    assert!(complaint.contains("did not come back"), "{complaint}");
    assert_eq!(host.state(&id), "restorable (stopped)");
}
