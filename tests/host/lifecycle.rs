//! Starting, listing, stopping, ending.

use abide_testkit::eventually;

use crate::common::{alive, compare, exists, wait_for_death, watched_host as host};

#[test]
fn what_is_loaded_runs_and_is_listed_and_what_is_stopped_is_kept() {
    let host = host();
    let id = host.load(&["--name", "work", "--", "--fast", "two words"]);
    let screen = host.wait_for_screen(&id, "stub pid");
    assert!(screen.contains("args [--fast two words]"), "{screen}");
    let row = host.row(&id).unwrap();
    assert_eq!((row["name"].as_str(), row["state"].as_str()), (Some("work"), Some("active")));
    assert_eq!(row["sessions"][0]["name"], "stub");
    let pids = host.pids(&id);
    assert!(host.abide(["stop", "work"]).ok().contains("kept"));
    assert!(!alive(pids.keeper) && !alive(pids.mux) && !alive(pids.session));
    assert_eq!(host.state(&id), "restorable (stopped)");
    assert_eq!(host.processes(), Vec::<String>::new());
}

#[test]
fn an_instance_whose_last_session_ended_leaves_nothing_behind() {
    let host = host();
    let id = host.load(&[]);
    host.abide(["send", &id, "exit 0"]).ok();
    host.wait_for_state(&id, "gone");
    eventually("the processes to end", || host.processes().is_empty().then_some(()));
    assert!(!exists(host.home().join("instances").join(&id)));
    assert_eq!(std::fs::read_dir(host.home().join("instances")).unwrap().count(), 0);
    let staged = std::fs::read_dir(host.home().join("staging")).unwrap().flatten().map(|e| e.file_name());
    assert_eq!(staged.collect::<Vec<_>>(), ["lock"]);
    let outcomes = std::fs::read_to_string(host.home().join("log/outcomes.jsonl")).unwrap();
    let last: serde_json::Value = serde_json::from_str(outcomes.lines().last().unwrap()).unwrap();
    assert_eq!((last["id"].as_str(), last["outcome"].as_str()), (Some(id.as_str()), Some("removed")));
    assert!(host.abide(["trash", "list"]).ok().contains(&id), "the trash has it");
}

#[test]
fn the_policy_keep_keeps_an_instance_whose_last_session_ended() {
    let host = host();
    let id = host.load(&["--keep"]);
    host.abide(["send", &id, "exit 3"]).ok();
    host.wait_for_state(&id, "restorable (kept)");
    assert_eq!(host.row(&id).unwrap()["sessions"][0]["exit"], "exit 3");
    host.abide(["config", "set", "policy", "keep"]).ok();
    let id = host.load(&[]);
    host.abide(["send", &id, "exit 0"]).ok();
    host.wait_for_state(&id, "restorable (kept)");
}

#[test]
fn a_configuration_that_cannot_be_read_when_it_ends_keeps_it() {
    let host = host();
    let id = host.load(&[]);
    host.write("home/.config/abide/config.toml", "version = 1\npolicy = \"kee");
    host.abide(["send", &id, "exit 0"]).ok();
    eventually("the finaliser", || {
        let text =
            std::fs::read_to_string(host.home().join("instances").join(&id).join("instance.json")).ok()?;
        text.contains("\"restorable\"").then_some(())
    });
}

#[test]
fn a_program_that_cannot_be_started_is_an_error_and_leaves_nothing() {
    let host = host();
    let complaint = host.abide(["load", "no-such-program", "--detach"]).fails(1);
    compare(&host, "program-not-on-path", &complaint);
    host.write("work/not-executable", "x");
    host.abide(["load", "./not-executable", "--detach"]).fails(1);
    assert_eq!(host.abide(["ls", "--json"]).json()["instances"].as_array().unwrap().len(), 0);
    assert_eq!(host.abide(["trash", "list"]).ok(), "The trash is empty.\n");
    eventually("the processes to end", || host.processes().is_empty().then_some(()));
}

#[test]
fn eject_removes_a_running_instance_and_the_trash_brings_it_back() {
    let host = host();
    let id = host.load(&[]);
    let pids = host.pids(&id);
    let complaint = host.abide(["eject", &id]).fails(3);
    assert!(complaint.contains("--clean"), "{complaint}");
    assert!(alive(pids.session));
    host.abide(["eject", &id, "--clean"]).ok();
    assert!(!alive(pids.keeper) && !alive(pids.session));
    assert_eq!(host.state(&id), "gone");
    host.abide(["trash", "restore", &id]).ok();
    assert_eq!(host.state(&id), "restorable (kept)");
}

#[test]
fn a_name_means_one_instance() {
    let host = host();
    host.load(&["--name", "work"]);
    let complaint = host.abide(["load", "stub", "--detach", "--name", "work"]).fails(1);
    assert!(complaint.contains("`work` means"), "{complaint}");
    host.abide(["load", "stub", "--detach", "--name", "a/b"]).fails(2);
    host.abide(["load", "stub", "--detach", "--name", ""]).fails(2);
}

#[test]
fn without_a_terminal_load_says_how_to_go_on() {
    let host = host();
    let complaint = host.abide(["load", "stub"]).fails(2);
    assert!(complaint.contains("--detach"), "{complaint}");
    assert_eq!(host.abide(["ls", "--json"]).json()["instances"].as_array().unwrap().len(), 0);
}

#[test]
fn one_session_of_several_is_stopped_alone() {
    let host = host();
    let id = host.load(&[]);
    let request = serde_json::json!({"verb": "spawn", "focus": false, "spec": {
        "id": "s9", "name": "second", "argv": ["sleep", "1000"], "env": [["PATH", "/usr/bin:/bin"]], "cwd": "/",
    }});
    host.abide(["capsule", "call", &id, &request.to_string()]).ok();
    let status = host.status(&id);
    let second = u32::try_from(status["sessions"][1]["pid"].as_u64().unwrap()).unwrap();
    host.abide(["capsule", "call", &id, r#"{"verb": "kill", "session": "s9"}"#]).ok();
    wait_for_death(second);
    assert_eq!(host.state(&id), "active");
    host.wait_for_screen(&id, "stub pid");
}

#[test]
fn the_first_agent_on_the_path_is_started_or_else_a_shell() {
    let mut host = host();
    // The sandbox's PATH is the machine's; whatever agents that has must not decide.
    let path = format!("{}:/usr/bin:/bin", host.path("bin").display());
    host.set("PATH", path);
    assert!(host.abide(["load", "--detach"]).ok().trim_end().ends_with("shell"));
    host.add_program("codex", "echo codex here; read -r _");
    assert!(host.abide(["load", "--detach"]).ok().trim_end().ends_with("codex"));
    host.abide(["config", "set", "agent", "stub"]).ok();
    assert!(host.abide(["load", "--detach"]).ok().trim_end().ends_with("stub"));
}

#[test]
fn what_is_to_live_elsewhere_can_be_started_on_the_host() {
    let host = host();
    host.abide(["workspace", "create", "shop", "--place", "docker"]).ok();
    let id = host.load(&["--place", "host"]);
    assert_eq!(host.state(&id), "active");
}

#[test]
fn one_that_cannot_be_placed_does_not_keep_the_others_from_coming_back() {
    let host = host();
    let other = host.path("other");
    std::fs::create_dir(&other).unwrap();
    let ids = [host.work(), other].map(|dir| {
        let mut command = host.command(host.program());
        let out = command.current_dir(dir).args(["load", "stub", "--detach"]).output().unwrap();
        String::from_utf8_lossy(&out.stdout)[3..11].to_owned()
    });
    for id in &ids {
        host.abide(["stop", id]).ok();
    }
    for name in ["one", "two"] {
        let text = format!("dir = \"{}\"\n", host.work().display());
        host.write(format!("home/.config/abide/workspaces/{name}.toml"), text);
    }
    let resumed = host.abide(["resume", "--all"]);
    assert!(resumed.stderr.contains("several workspaces"), "{}", resumed.stderr);
    resumed.ok();
    assert!(ids.iter().all(|id| host.state(id) == "active"));
}

#[test]
fn a_start_that_cannot_be_written_down_is_found_running_by_the_next_look() {
    let mut host = host();
    let (flag, staging) = (host.path("flag"), host.home().join("staging"));
    // What finds out a value runs after everything else that is written down, and before the start is.
    let script = format!(
        "rm {} 2>/dev/null && mv {1} {1}.away && : > {1}\necho value",
        flag.display(),
        staging.display()
    );
    let program = host.add_program("value", &script);
    host.abide(["config", "set", "env.VALUE", &format!("cmd:{}", program.display())]).ok();
    let id = host.load(&[]);
    host.abide(["stop", &id]).ok();
    std::fs::write(&flag, "").unwrap();
    host.abide(["resume", &id, "--detach"]).ok();
    assert!(!flag.exists());
    std::fs::remove_file(&staging).unwrap();
    std::fs::rename(staging.with_extension("away"), &staging).unwrap();
    assert_eq!(host.state(&id), "active");
    assert!(alive(host.pids(&id).session));
}
