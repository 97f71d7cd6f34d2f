//! Getting back to what is there: by directory, by workspace, by name, and with what has changed meanwhile.

use abide_testkit::{Terminal, eventually};

use crate::common::{Host, compare, host};

fn sit_down<'a>(host: &'a Host, dir: &str, args: &str) -> Terminal<'a> {
    let line = format!("cd {} && exec {} {args}", host.work().join(dir).display(), host.program().display());
    Terminal::open(host, (110, 32), &["sh", "-c", &line])
}

fn in_dir(host: &Host, dir: &str, args: &[&str]) -> std::process::Output {
    host.command(host.program()).current_dir(host.work().join(dir)).args(args).output().unwrap()
}

/// A workspace `shop` with a directory `shop/sub`.
fn shop() -> Host {
    let host = host();
    std::fs::create_dir_all(host.work().join("shop/sub")).unwrap();
    host.abide(["workspace", "create", "shop", host.work().join("shop").to_str().unwrap()]).ok();
    host
}

#[test]
fn what_runs_of_a_workspace_is_found_from_all_its_directories_and_by_its_name() {
    let host = shop();
    let out = in_dir(&host, "shop/sub", &["load", "stub", "--detach"]);
    assert!(out.status.success(), "{out:?}");
    for (dir, args) in [("shop", "hardline"), ("shop/sub", "hardline"), (".", "hardline shop")] {
        let terminal = sit_down(&host, dir, args);
        terminal.wait_for("stub pid");
        terminal.keys(&["C-b", "d"]);
        terminal.wait_for("detached");
    }
}

#[test]
fn what_is_kept_is_offered_where_nothing_runs_and_a_flag_brings_it_back() {
    let host = host();
    let id = host.load(&["--name", "review"]);
    host.abide(["stop", &id]).ok();
    for args in ["hardline", "hardline review"] {
        let terminal = sit_down(&host, ".", args);
        let offer = terminal.wait_for("come back to which");
        assert!(offer.contains("Resume review") && !offer.contains("Start new"), "{offer}");
        terminal.keys(&["Escape"]);
        assert_eq!(terminal.wait_for_end(), 0);
        assert_eq!(host.state(&id), "restorable (stopped)");
    }
    let terminal = sit_down(&host, ".", "hardline --resume");
    terminal.wait_for("stub pid");
    assert_eq!(host.state(&id), "active");
}

#[test]
fn several_kept_ones_are_chosen_from_on_a_terminal_and_listed_without_one() {
    let host = host();
    let (one, other) = (host.load(&["--name", "one"]), host.load(&["--new", "--name", "other"]));
    let complaint = host.abide(["hardline"]).fails(2);
    assert!(complaint.contains(&one) && complaint.contains(&other), "{complaint}");
    host.abide(["stop", &one]).ok();
    host.abide(["stop", &other]).ok();
    let complaint = host.abide(["hardline"]).fails(2);
    assert!(complaint.contains(&one) && complaint.contains(&other), "{complaint}");
    let terminal = sit_down(&host, ".", "hardline");
    let offer = terminal.wait_for("come back to which");
    assert!(offer.contains("Resume one") && offer.contains("Resume other"), "{offer}");
    terminal.keys(&["1", "Enter"]);
    eventually("one of them to run", || {
        [&one, &other].iter().any(|id| host.state(id) == "active").then_some(())
    });
}

#[test]
fn without_an_instance_hardline_says_what_to_do() {
    let host = host();
    compare(&host, "nothing-to-attach-to", &host.abide(["hardline"]).fails(1));
}

#[test]
fn a_resume_says_what_has_changed_in_the_configuration_and_applies_none_of_it() {
    let host = host();
    host.abide(["config", "set", "agents.stub.args", r#"["--model", "a"]"#]).ok();
    host.abide(["config", "set", "env.MODE", "one"]).ok();
    let id = host.load(&["--", "--by-flag"]);
    host.wait_for_screen(&id, "args [--model a --by-flag]");
    host.abide(["stop", &id]).ok();
    let unchanged = host.abide(["resume", &id, "--detach"]);
    assert!(!unchanged.stderr.contains("have changed"), "a flag is no difference:\n{}", unchanged.stderr);
    host.abide(["stop", &id]).ok();
    host.abide(["config", "set", "agents.stub.args", r#"["--model", "b"]"#]).ok();
    host.abide(["config", "set", "env.MODE", "two"]).ok();
    let run = host.abide(["resume", &id, "--detach"]);
    for said in ["command: stub --model a (now stub --model b)", "env MODE: a plain value (now another"] {
        assert!(run.stderr.contains(said), "{said} is missing:\n{}", run.stderr);
    }
    run.ok();
    let screen = host.wait_for_screen(&id, "args [--model a --by-flag]");
    assert!(!screen.contains("--model b"), "{screen}");
}

#[test]
fn a_name_goes_to_one_of_those_who_want_it_at_once() {
    let host = host();
    let start = || {
        host.command(host.program())
            .args(["load", "stub", "--detach", "--name", "same"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let started: Vec<_> = (0..6).map(|_| start()).collect();
    let ended: Vec<bool> = started.into_iter().map(|mut child| child.wait().unwrap().success()).collect();
    assert_eq!(ended.iter().filter(|success| **success).count(), 1, "{ended:?}");
    let listing = host.abide(["ls", "--json"]).json();
    assert_eq!(listing["instances"].as_array().unwrap().len(), 1, "{listing}");
}
