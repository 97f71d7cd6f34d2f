//! The questions at the end of an instance and at the next start, in a real terminal.

use abide_testkit::{Terminal, eventually};

use crate::common::Host;
use crate::repo::{git, host_with_repo, load, repo, traces, tree};

/// A terminal in the repository.
fn sit_down<'a>(host: &'a Host, args: &str) -> Terminal<'a> {
    let line = format!("cd repo && exec {} {args}", host.program().display());
    Terminal::open(host, (110, 32), &["sh", "-c", &line])
}

fn only(host: &Host) -> String {
    let listing = host.abide(["ls", "--json"]).json();
    let rows = listing["instances"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{listing}");
    rows[0]["id"].as_str().unwrap().to_owned()
}

/// Loads the stub in a worktree, leaves work there, and ends it; the first screen is open then.
fn end_with_work<'a>(host: &'a Host) -> (Terminal<'a>, String) {
    let terminal = sit_down(host, "load stub --isolation worktree");
    terminal.wait_for("stub pid");
    let id = only(host);
    std::fs::write(tree(host, &id).join("notes.md"), "notes").unwrap();
    std::fs::write(tree(host, &id).join("feature"), "x").unwrap();
    git(host, &tree(host, &id), &["add", "feature"]);
    git(host, &tree(host, &id), &["commit", "-qm", "feature"]);
    terminal.text("exit 0");
    terminal.keys(&["Enter"]);
    let shown = terminal.wait_for("session ended");
    assert!(shown.contains("?? notes.md"), "{shown}");
    assert!(shown.contains(&format!("abide/{id}")) && shown.contains("1 commit"), "{shown}");
    (terminal, id)
}

#[test]
fn what_is_at_risk_is_shown_and_keeping_it_keeps_it() {
    let host = host_with_repo();
    let (terminal, id) = end_with_work(&host);
    terminal.keys(&["Enter"]);
    let choices = terminal.wait_for("how to end this session");
    assert!(choices.contains("▸ 1  Return to agent"), "returning is the default:\n{choices}");
    terminal.keys(&["2", "Enter"]);
    terminal.wait_for("is kept");
    assert_eq!(terminal.wait_for_end(), 0);
    assert_eq!(host.state(&id), "restorable (dirty)");
    assert!(tree(&host, &id).join("notes.md").exists());
    assert_eq!(host.row(&id).unwrap()["decided_by"], "operator");
    let outcomes = std::fs::read_to_string(host.home().join("log/outcomes.jsonl")).unwrap();
    let decided: Vec<serde_json::Value> =
        outcomes.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let decided: Vec<&str> = decided.iter().filter_map(|line| line["decided_by"].as_str()).collect();
    assert_eq!(decided, ["undecided", "operator"], "{outcomes}");
    let explained = host.abide(["explain", &id]).ok();
    assert!(explained.contains("kept it") && explained.contains("operator"), "{explained}");
}

#[test]
fn cleaning_up_removes_everything_and_the_trash_has_it() {
    let host = host_with_repo();
    let (terminal, id) = end_with_work(&host);
    terminal.keys(&["Enter"]);
    terminal.wait_for("how to end this session");
    terminal.keys(&["3", "Enter"]);
    terminal.wait_for("is in the trash");
    assert_eq!(host.state(&id), "gone");
    assert!(traces(&host).is_empty());
    host.abide(["trash", "restore", &id]).ok();
    assert!(tree(&host, &id).join("notes.md").exists());
}

#[test]
fn returning_to_the_agent_starts_it_again_in_the_same_tree() {
    let host = host_with_repo();
    let (terminal, id) = end_with_work(&host);
    terminal.keys(&["Escape"]);
    eventually("it to run again", || (host.state(&id) == "active").then_some(()));
    terminal.text("hello again");
    terminal.keys(&["Enter"]);
    terminal.wait_for("heard: hello again");
    assert!(tree(&host, &id).join("notes.md").exists());
}

#[test]
fn a_terminal_that_goes_away_while_the_question_is_open_has_kept_everything() {
    let host = host_with_repo();
    let (terminal, id) = end_with_work(&host);
    terminal.close();
    assert_eq!(host.state(&id), "restorable (dirty)");
    assert_eq!(host.row(&id).unwrap()["decided_by"], "undecided");
    eventually("nothing to run", || host.processes().is_empty().then_some(()));
    assert!(tree(&host, &id).join("notes.md").exists());
}

#[test]
fn where_nothing_is_at_risk_nothing_is_asked() {
    let host = host_with_repo();
    let terminal = sit_down(&host, "load stub --isolation worktree");
    terminal.wait_for("stub pid");
    terminal.text("exit 0");
    terminal.keys(&["Enter"]);
    terminal.wait_for("cleaned up");
    assert_eq!(terminal.wait_for_end(), 0);
    assert!(traces(&host).is_empty());
}

#[test]
fn a_terminal_that_cannot_draw_is_asked_in_plain_text() {
    let mut host = host_with_repo();
    host.set("ABIDE_PLAIN", "1");
    let terminal = sit_down(&host, "load stub --isolation clone");
    terminal.wait_for("stub pid");
    let id = only(&host);
    std::fs::write(tree(&host, &id).join("notes.md"), "notes").unwrap();
    terminal.text("exit 0");
    terminal.keys(&["Enter"]);
    terminal.wait_for("?? notes.md");
    terminal.keys(&["Enter"]);
    terminal.wait_for("Exit and keep");
    terminal.text("2");
    terminal.keys(&["Enter"]);
    terminal.wait_for("is kept");
    assert_eq!(host.state(&id), "restorable (dirty)");
}

#[test]
fn a_load_where_something_is_kept_offers_to_come_back_to_it() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    std::fs::write(tree(&host, &id).join("notes.md"), "notes").unwrap();
    host.abide(["stop", &id]).ok();
    // What runs where nothing is asked for is something else, and no reason not to come back.
    let terminal = sit_down(&host, "load");
    let offer = terminal.wait_for("resume or start new");
    assert!(offer.contains("▸ 1  Start new") && offer.contains(&format!("Resume ab-{id}  stub")), "{offer}");
    assert!(offer.contains("default · "), "the role is named:\n{offer}");
    terminal.keys(&["2", "Enter"]);
    let preserved = terminal.wait_for("?? notes.md");
    assert!(preserved.contains("has not changed since"), "{preserved}");
    terminal.keys(&["Enter"]);
    terminal.wait_for("stub pid");
    assert_eq!(only(&host), id);
    assert_eq!(host.state(&id), "active");
}

#[test]
fn a_tree_whose_repository_went_another_way_is_not_resumed_from_here() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    std::fs::write(tree(&host, &id).join("notes.md"), "notes").unwrap();
    host.abide(["stop", &id]).ok();
    git(&host, &repo(&host), &["commit", "-q", "--amend", "-m", "rewritten"]);
    let terminal = sit_down(&host, "load stub");
    terminal.wait_for("resume or start new");
    terminal.keys(&["2", "Enter"]);
    let shown = terminal.wait_for("diverged");
    assert!(!shown.contains("use this tree as it is"), "{shown}");
    terminal.keys(&["2", "Enter"]);
    terminal.wait_for("stub pid");
    assert_eq!(host.state(&id), "restorable (stopped)", "the old one is left alone");
}

#[test]
fn ejecting_shows_what_would_go_and_no_is_the_default() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    std::fs::write(tree(&host, &id).join("notes.md"), "notes").unwrap();
    let terminal = sit_down(&host, &format!("eject {id}"));
    terminal.wait_for("?? notes.md");
    terminal.keys(&["Enter"]);
    terminal.wait_for("Nothing was ended");
    assert_eq!(host.state(&id), "active");
}

/// A kept worktree instance that holds a new file.
fn kept_with_work(host: &Host, args: &[&str]) -> String {
    let id = load(host, &[&["--isolation", "worktree"], args].concat());
    std::fs::write(tree(host, &id).join("notes.md"), "notes").unwrap();
    host.abide(["stop", &id]).ok();
    id
}

#[test]
fn the_same_command_typed_again_offers_what_it_started_before() {
    let host = host_with_repo();
    let id = kept_with_work(&host, &["--keep", "--name", "review", "--", "--fast"]);
    for (flags, fits) in [
        ("load stub --isolation worktree", true),
        ("load stub --isolation worktree --keep", true),
        ("load stub --name review --isolation worktree -- --fast", true),
        ("load stub --isolation clone", false),
        ("load stub --isolation worktree --clean", false),
        ("load stub --new --isolation worktree", false),
        ("load stub -- --slow", false),
    ] {
        let terminal = sit_down(&host, flags);
        if fits {
            let offer = terminal.wait_for("resume or start new");
            assert!(offer.contains("Resume review"), "{flags}:\n{offer}");
            terminal.keys(&["Escape"]);
            assert_eq!(terminal.wait_for_end(), 0);
        } else {
            terminal.wait_for("stub pid");
            terminal.text("exit 0");
            terminal.keys(&["Enter"]);
            terminal.wait_for_end();
        }
    }
    assert_eq!(host.state(&id), "restorable (stopped)");
}

#[test]
fn a_load_that_cannot_ask_says_what_is_kept_and_how_to_come_back() {
    let host = host_with_repo();
    let id = kept_with_work(&host, &[]);
    let mut command = host.command(host.program());
    let out = command.current_dir(repo(&host)).args(["load", "stub", "--detach"]).output().unwrap();
    let complaint = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{complaint}");
    assert!(complaint.contains(&format!("ab-{id} is kept for this directory")), "{complaint}");
    assert!(complaint.contains(&format!("abide resume {id}")), "{complaint}");
}

#[test]
fn a_resume_shows_what_the_tree_holds_and_asks_before_it_is_used() {
    let host = host_with_repo();
    let id = kept_with_work(&host, &[]);
    let terminal = sit_down(&host, &format!("resume {id}"));
    let shown = terminal.wait_for("?? notes.md");
    assert!(shown.contains("has not changed since") && shown.contains("default · "), "{shown}");
    terminal.keys(&["Escape"]);
    terminal.wait_for("Nothing was started");
    assert_eq!(host.state(&id), "restorable (stopped)");
    let terminal = sit_down(&host, &format!("resume {id}"));
    terminal.wait_for("?? notes.md");
    terminal.keys(&["Enter"]);
    terminal.wait_for("stub pid");
    assert_eq!(host.state(&id), "active");
}

#[test]
fn a_tree_whose_repository_diverged_is_resumed_by_the_flag_only() {
    let host = host_with_repo();
    let id = kept_with_work(&host, &[]);
    git(&host, &repo(&host), &["commit", "-q", "--amend", "-m", "rewritten"]);
    let terminal = sit_down(&host, &format!("resume {id}"));
    let shown = terminal.wait_for("diverged");
    assert!(!shown.contains("use this tree as it is"), "{shown}");
    terminal.keys(&["Enter"]);
    terminal.wait_for("Nothing was started");
    let complaint = host.abide(["resume", &id, "--detach"]).fails(3);
    assert!(complaint.contains("?? notes.md") && complaint.contains("--yes"), "{complaint}");
    assert_eq!(host.state(&id), "restorable (stopped)");
    host.abide(["resume", &id, "--detach", "--yes"]).ok();
    assert_eq!(host.state(&id), "active");
}

#[test]
fn without_a_terminal_a_resume_prints_what_the_tree_holds_and_goes_on() {
    let host = host_with_repo();
    let id = kept_with_work(&host, &[]);
    let run = host.abide(["resume", &id, "--detach"]);
    assert!(run.stderr.contains("?? notes.md") && run.stderr.contains("has not changed"), "{}", run.stderr);
    assert_eq!(run.ok(), format!("ab-{id} is back\n"));
}
