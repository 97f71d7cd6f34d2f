//! What was first started in a session and has left it.

use abide_testkit::{Terminal, eventually};

use crate::common::{Host, alive, host, kill, wait_for_death};

/// Starts a daemon beside the shell that runs it, and is that shell until it is told to end.
const WITH_DAEMON: &str =
    "(setsid sh -c 'echo $$ >daemon.pid; exec sleep 1000' </dev/null >/dev/null 2>&1 &)\nexec head -n 1";

/// Starts a shell with a daemon beside it, and gives the instance and the daemon's process.
fn load_with_daemon(host: &Host, flags: &[&str]) -> (String, u32) {
    let words = [&["load", "sh", "--detach", "--new"], flags, &["--", "-c", WITH_DAEMON]].concat();
    let said = host.abide(words).ok();
    let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    (id, daemon(host))
}

/// The daemon, once it runs.
fn daemon(host: &Host) -> u32 {
    eventually("the daemon", || {
        let pid = std::fs::read_to_string(host.work().join("daemon.pid")).ok()?.trim().parse().ok()?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (status.trim() == "sleep").then_some(pid)
    })
}

#[test]
fn a_stop_names_what_it_ends_beyond_the_sessions() {
    for substrate in ["capsule", "tmux"] {
        let host = host();
        let (id, daemon) = load_with_daemon(&host, &["--substrate", substrate]);
        let said = host.abide(["stop", &id]).ok();
        assert!(said.contains(&format!("ended as well: sleep ({daemon})")), "{substrate}: {said}");
        assert!(!said.contains("head"), "a session is no daemon: {said}");
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
    assert!(asked.contains(&format!("including sleep ({daemon})")), "{asked}");
    assert!(alive(daemon), "nobody had agreed");
    let said = host.abide(["eject", &id, "--clean"]).ok();
    assert!(said.contains(&format!("ended as well: sleep ({daemon})")), "{said}");
    wait_for_death(daemon);
}

#[test]
fn the_end_of_the_last_session_names_what_ends_with_it() {
    for substrate in ["capsule", "tmux"] {
        let host = host();
        let (id, daemon) = load_with_daemon(&host, &["--substrate", substrate, "--keep"]);
        host.abide(["send", &id, "done"]).ok();
        host.wait_for_state(&id, "restorable (kept)");
        wait_for_death(daemon);
        let named = format!("sleep ({daemon})");
        let told = host.abide(["explain", &id]).ok();
        assert!(told.contains(&format!("ended with its last run: {named}")), "{substrate}: {told}");
        let outcomes = std::fs::read_to_string(host.home().join("log/outcomes.jsonl")).unwrap();
        assert!(outcomes.lines().last().unwrap().contains(&named), "{substrate}: {outcomes}");
        std::fs::remove_file(host.work().join("daemon.pid")).unwrap();
        host.abide(["resume", &id, "--detach"]).ok();
        assert!(!host.abide(["explain", &id]).ok().contains(&named), "{substrate}: it is of an earlier run");
    }
}

#[test]
fn a_client_that_sees_the_last_session_end_names_what_ended_with_it() {
    for policy in ["--keep", "--clean"] {
        let host = host();
        let program = host.program().to_str().unwrap();
        let words = [program, "load", "sh", "--new", policy, "--", "-c", WITH_DAEMON];
        let terminal = Terminal::open(&host, (100, 30), &words);
        let daemon = daemon(&host);
        terminal.text("done");
        terminal.keys(&["Enter"]);
        terminal.wait_for(&format!("ended as well: sleep ({daemon})"));
        wait_for_death(daemon);
    }
}

#[test]
fn stopping_one_session_names_the_daemons_that_end_with_it() {
    let host = host();
    let (id, daemon) = load_with_daemon(&host, &[]);
    let second = serde_json::json!({"verb": "spawn", "focus": false, "spec": {
        "id": "s2", "name": "second", "argv": ["cat"], "env": [["PATH", "/usr/bin:/bin"]], "cwd": "/",
    }});
    host.abide(["capsule", "call", &id, &second.to_string()]).ok();
    let said = host.abide(["stop", &format!("{id}/s2")]).ok();
    assert!(!said.contains("sleep"), "the daemon is not of that session: {said}");
    assert!(alive(daemon));
    let said = host.abide(["stop", &format!("{id}/s1")]).ok();
    assert!(said.contains(&format!("ended as well: sleep ({daemon})")), "{said}");
    wait_for_death(daemon);
}

/// Starts a shell whose set-up command has left a daemon, and gives the instance and the daemon's process.
fn load_with_daemon_of_set_up(host: &Host, substrate: &str) -> (String, u32) {
    let left = "setsid sh -c 'echo $$ >daemon.pid; exec sleep 1000' </dev/null >/dev/null 2>&1 &";
    let workspace =
        format!("version = 1\ndir = \"{}\"\nsetup = [\"sh\", \"-c\", \"{left}\"]\n", host.work().display());
    host.write("home/.config/abide/workspaces/work.toml", &workspace);
    let id = host.load(&["--substrate", substrate]);
    (id, daemon(host))
}

#[test]
fn a_daemon_that_the_set_up_left_is_named_ended_and_spared_as_one_of_a_session() {
    for substrate in ["capsule", "tmux"] {
        let host = host();
        let (id, daemon) = load_with_daemon_of_set_up(&host, substrate);
        let said = host.abide(["stop", &id]).ok();
        assert!(said.contains(&format!("ended as well: sleep ({daemon})")), "{substrate}: {said}");
        wait_for_death(daemon);

        let host = crate::common::host();
        let (id, daemon) = load_with_daemon_of_set_up(&host, substrate);
        let said = host.abide(["eject", &id, "--clean", "--spare-daemons"]).ok();
        assert!(said.contains(&format!("left running: sleep ({daemon})")), "{substrate}: {said}");
        assert!(alive(daemon), "{substrate}: it was not spared");
        kill("-KILL", daemon);
        wait_for_death(daemon);
    }
}
