//! What is remembered of each session: its name, when it began, how it ended, and when it was last looked at.

use abide_testkit::{Terminal, eventually};
use serde_json::Value;

use crate::common::{Host, alive, host, kill, wait_for_death};

fn sit_down<'a>(host: &'a Host, args: &str) -> Terminal<'a> {
    let line = format!("exec {} {args}", host.program().display());
    Terminal::open(host, (110, 32), &["sh", "-c", &line])
}

fn session(host: &Host, id: &str, session: &str) -> Option<Value> {
    let sessions = host.row(id)?["sessions"].as_array()?.clone();
    sessions.into_iter().find(|row| row["id"] == session)
}

#[test]
fn a_tab_has_a_name_of_its_own_and_its_end_is_remembered() {
    let host = host();
    let id = host.load(&[]);
    let terminal = sit_down(&host, &format!("hardline {id}"));
    terminal.wait_for("stub pid");
    eventually("the visit to be noted", || {
        session(&host, &id, "s1").filter(|row| row["attached"].is_string()).map(drop)
    });
    for tab in ["s2", "s3"] {
        terminal.keys(&["C-b", "c"]);
        eventually("a new tab", || session(&host, &id, tab).filter(|row| row["pid"].is_number()).map(drop));
    }
    let names = ["s2", "s3"].map(|tab| session(&host, &id, tab).unwrap()["name"].clone());
    assert_eq!(names, ["sh", "sh-2"]);
    assert!(session(&host, &id, "s3").unwrap()["created"].is_string());
    assert!(
        session(&host, &id, "s2").unwrap()["attached"].is_null(),
        "it was not looked at when one came or left"
    );
    terminal.text("exit 3");
    terminal.keys(&["Enter"]);
    let ended = eventually("its end", || session(&host, &id, "s3").filter(|row| row["exit"].is_string()));
    assert_eq!(ended["exit"], "exit 3");
    assert!(ended["created"].is_string(), "{ended}");
    terminal.keys(&["C-b", "d"]);
    terminal.wait_for("detached");
    let keeper = host.pids(&id).keeper;
    let began = session(&host, &id, "s2").unwrap()["created"].clone();
    kill("-KILL", keeper);
    wait_for_death(keeper);
    assert!(!alive(keeper));
    host.wait_for_state(&id, "restorable (crashed)");
    assert_eq!(session(&host, &id, "s2").unwrap()["created"], began, "a crash is not when it began");
    assert_eq!(session(&host, &id, "s3").unwrap()["exit"], "exit 3");
}

#[test]
fn a_renamed_tab_keeps_its_name_while_it_is_stopped() {
    let host = host();
    let id = host.load(&[]);
    let call = r#"{"verb": "rename", "session": "s1", "name": "review"}"#;
    host.abide(["capsule", "call", &id, call]).ok();
    eventually("the name to be known", || (session(&host, &id, "s1")?["name"] == "review").then_some(()));
    let layout = host.home().join("instances").join(&id).join("state/layout.json");
    eventually("the name to be written", || {
        std::fs::read_to_string(&layout).ok()?.contains("review").then_some(())
    });
    host.abide(["stop", &id]).ok();
    assert_eq!(session(&host, &id, "s1").unwrap()["name"], "review");
    let terminal = sit_down(&host, "load stub");
    let offer = terminal.wait_for("resume or start new");
    assert!(offer.contains(&format!("Resume ab-{id}")), "it still runs the stub:\n{offer}");
}

#[test]
fn only_a_session_that_runs_an_agent_has_an_agent_in_its_environment() {
    let mut host = host();
    host.add_program("claude", "env > \"$HOME/agent.env\"; exec cat");
    let said = host.abide(["load", "claude", "--detach"]);
    let id = said.stdout.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    let agent = host.path("home/agent.env");
    let env = eventually("its environment", || {
        std::fs::read_to_string(&agent).ok().filter(|text| text.contains("ABIDE_SESSION="))
    });
    assert!(env.contains("ABIDE_AGENT=claude\n") && env.contains("ABIDE_INSTANCE="), "{env}");
    let terminal = sit_down(&host, &format!("hardline {id}"));
    eventually("the client to be attached", || (host.status(&id)["attached"] == 1).then_some(()));
    terminal.keys(&["C-b", "c"]);
    eventually("a new tab", || (host.status(&id)["sessions"].as_array()?.len() == 2).then_some(()));
    terminal.text("env > \"$HOME/tab.env\"; echo done >> \"$HOME/tab.env\"");
    terminal.keys(&["Enter"]);
    let tab = host.path("home/tab.env");
    let env = eventually("the tab's environment", || {
        std::fs::read_to_string(&tab).ok().filter(|text| text.contains("done"))
    });
    assert!(env.contains("ABIDE_SESSION=s2\n") && !env.contains("ABIDE_AGENT"), "{env}");
}

#[test]
fn a_directory_whose_name_is_not_text_is_refused_with_what_to_do() {
    use std::os::unix::ffi::OsStrExt;
    let host = host();
    let dir = host.work().join(std::ffi::OsStr::from_bytes(b"caf\xff"));
    std::fs::create_dir(&dir).unwrap();
    let mut command = host.command(host.program());
    let out = command.current_dir(&dir).args(["load", "stub", "--detach"]).output().unwrap();
    let complaint = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("UTF-8") && complaint.contains("hint:"), "{complaint}");
}
