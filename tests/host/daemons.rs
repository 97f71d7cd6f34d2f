//! What was first started in a session and has left it.

use abide_testkit::eventually;

use crate::common::{Host, alive, host, kill, wait_for_death};

/// Starts a shell with a daemon beside it, and gives the instance and the daemon's process.
fn load_with_daemon(host: &Host, flags: &[&str]) -> (String, u32) {
    let script =
        "(setsid sh -c 'echo $$ >daemon.pid; exec sleep 1000' </dev/null >/dev/null 2>&1 &)\nexec cat";
    let dir = host.work();
    let words = [&["load", "sh", "--detach", "--new"], flags, &["--", "-c", script]].concat();
    let said = host.abide(words).ok();
    let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    let pid = eventually("the daemon", || {
        let pid = std::fs::read_to_string(dir.join("daemon.pid")).ok()?.trim().parse().ok()?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (status.trim() == "sleep").then_some(pid)
    });
    (id, pid)
}

#[test]
fn a_stop_names_what_it_ends_beyond_the_sessions() {
    for substrate in ["capsule", "tmux"] {
        let host = host();
        let (id, daemon) = load_with_daemon(&host, &["--substrate", substrate]);
        let said = host.abide(["stop", &id]).ok();
        assert!(said.contains(&format!("ended as well: sleep ({daemon})")), "{substrate}: {said}");
        assert!(!said.contains("cat"), "a session is no daemon: {said}");
        wait_for_death(daemon);
    }
}

#[test]
fn a_daemon_that_is_spared_outlives_the_stop_a_resume_and_the_removal() {
    for substrate in ["capsule", "tmux"] {
        let host = host();
        let (id, daemon) = load_with_daemon(&host, &["--substrate", substrate]);
        let said = host.abide(["stop", &id, "--spare-daemons"]).ok();
        assert!(said.contains(&format!("left running: sleep ({daemon})")), "{substrate}: {said}");
        assert!(alive(daemon), "{substrate}: it was not spared");
        let outcomes = std::fs::read_to_string(host.home().join("log/outcomes.jsonl")).unwrap();
        assert!(outcomes.lines().last().unwrap().contains(&format!("sleep ({daemon})")), "{outcomes}");
        std::fs::remove_file(host.work().join("daemon.pid")).unwrap();
        host.abide(["resume", &id, "--detach"]).ok();
        eventually("another daemon", || std::fs::metadata(host.work().join("daemon.pid")).ok());
        assert!(alive(daemon), "{substrate}: the resume ended it");
        host.abide(["eject", &id, "--clean"]).ok();
        assert!(alive(daemon), "{substrate}: the removal ended it");
        kill("-KILL", daemon);
        wait_for_death(daemon);
    }
}

#[test]
fn a_question_about_removal_names_what_ends_beyond_the_sessions() {
    let host = host();
    let (id, daemon) = load_with_daemon(&host, &[]);
    let asked = host.abide(["eject", &id]).fails(3);
    assert!(asked.contains(&format!("beyond its sessions sleep ({daemon})")), "{asked}");
    assert!(alive(daemon), "nobody had agreed");
    let said = host.abide(["eject", &id, "--clean"]).ok();
    assert!(said.contains(&format!("ended as well: sleep ({daemon})")), "{said}");
    wait_for_death(daemon);
}
