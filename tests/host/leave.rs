//! Leaving for today: what is closed, what runs on, and what the dialog says of it.

use abide_testkit::{Terminal, eventually};
use serde_json::json;

use crate::activity::{CLAUDE, registered};
use crate::common::Host;

/// An idle claude in a conversation, and beside it a shell that waits for a command after it has read `bashrc`.
fn agent_and_shell(host: &Host, bashrc: &str) -> String {
    host.write("shell/.bashrc", bashrc);
    let id = host.load_agent("claude", &["--name", "shop"]);
    host.tell(&id, &format!("idle|{CLAUDE}"));
    let spawn = json!({"verb": "spawn", "focus": false, "spec": {
        "id": "s2", "name": "bash", "argv": ["bash"], "cwd": "/",
        "env": [["PATH", "/usr/bin:/bin"], ["HOME", host.path("shell")]],
    }});
    host.abide(["capsule", "call", &id, &spawn.to_string()]).ok();
    eventually("both to be idle", || {
        let row = host.row(&id)?;
        let sessions = row["sessions"].as_array()?;
        let idle = sessions.len() == 2 && sessions.iter().all(|session| session["activity"] == "idle");
        (idle && sessions[0]["conversation"] == CLAUDE).then_some(())
    });
    id
}

#[test]
fn a_shell_that_runs_nothing_does_not_keep_the_agent_beside_it() {
    let host = registered();
    let id = agent_and_shell(&host, "");
    let said = host.abide(["leave", "--apply"]).ok();
    assert!(!said.contains("keeps running"), "{said}");
    assert_eq!(host.state(&id), "restorable (stopped)");
}

#[test]
fn a_shell_with_a_job_in_the_background_keeps_its_instance_and_the_dialog_says_so() {
    let host = registered();
    let id = agent_and_shell(&host, "sleep 1000 &");
    let abide = host.program().to_str().unwrap();
    let terminal = Terminal::open(&host, (80, 24), &[abide, "leave"]);
    let shown = terminal.wait_for("Apply");
    for row in ["shop/s1", "shop/s2"] {
        let line = shown.lines().find(|line| line.contains(row)).unwrap_or_default();
        assert!(line.contains("→ detach, keeps running"), "{shown}");
    }
    terminal.keys(&["a"]);
    terminal.wait_for("1 instance keeps running.");
    assert_eq!(host.state(&id), "active");

    let terminal = Terminal::open(&host, (80, 24), &[abide, "leave"]);
    terminal.wait_for("Apply");
    terminal.keys(&["s"]);
    terminal.wait_for("What should happen");
    terminal.keys(&["Space"]);
    let shown = terminal.wait_for("close, begins anew");
    assert!(shown.contains("→ close, resumes next time"), "the instance is closed as a whole:\n{shown}");
    terminal.keys(&["Enter"]);
    terminal.wait_for("is stopped and kept");
    assert_eq!(host.state(&id), "restorable (stopped)");
}
