//! Isolated trees: made at the first start, used again by every later one.

use std::process::{Child, Stdio};

use abide_testkit::eventually;

use crate::common::{Host, kill, wait_for_death};
use crate::repo::{git, host_with_repo, load, repo, traces, tree};

#[test]
fn a_worktree_is_on_a_branch_of_its_own_and_the_session_works_in_it() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    let tree = tree(&host, &id);
    host.wait_for_screen(&id, "stub pid");
    assert_eq!(host.row(&id).unwrap()["dir"], repo(&host).to_str().unwrap());
    assert_eq!(git(&host, &tree, &["symbolic-ref", "--short", "HEAD"]).trim(), format!("abide/{id}"));
    assert_eq!(cwd_of_session(&host, &id), tree);
    let listed = git(&host, &repo(&host), &["worktree", "list", "--porcelain"]);
    assert!(listed.contains("locked"), "{listed}");
    host.abide(["eject", &id, "--clean"]).ok();
    assert!(traces(&host).is_empty(), "{:?}", traces(&host));
}

#[test]
fn a_clone_stands_on_its_own_and_pushes_to_the_real_remote() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "clone"]);
    let tree = tree(&host, &id);
    assert_eq!(cwd_of_session(&host, &id), tree);
    let url = git(&host, &tree, &["remote", "get-url", "origin"]);
    assert_eq!(url.trim(), host.work().join("origin.git").to_str().unwrap());
    assert!(!tree.join(".git/objects/info/alternates").exists(), "a gc of the source would break it");
    assert!(traces(&host).is_empty());
}

#[test]
fn a_resume_finds_the_tree_as_it_was_left() {
    for isolation in ["worktree", "clone"] {
        let host = host_with_repo();
        let id = load(&host, &["--isolation", isolation]);
        std::fs::write(tree(&host, &id).join("unfinished"), "half").unwrap();
        host.abide(["stop", &id]).ok();
        host.abide(["resume", &id, "--detach"]).ok();
        assert_eq!(cwd_of_session(&host, &id), tree(&host, &id));
        assert_eq!(std::fs::read_to_string(tree(&host, &id).join("unfinished")).unwrap(), "half");
    }
}

#[test]
fn a_subdirectory_of_a_repository_is_where_the_session_starts() {
    let host = host_with_repo();
    std::fs::create_dir(repo(&host).join("sub")).unwrap();
    std::fs::write(repo(&host).join("sub/file"), "x").unwrap();
    git(&host, &repo(&host), &["add", "-A"]);
    git(&host, &repo(&host), &["commit", "-qm", "sub"]);
    let mut command = host.command(host.program());
    command.current_dir(repo(&host).join("sub"));
    let out = command.args(["load", "stub", "--detach", "--isolation", "worktree"]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let id = String::from_utf8_lossy(&out.stdout)[3..11].to_owned();
    assert!(cwd_of_session(&host, &id).ends_with("sub"), "{:?}", cwd_of_session(&host, &id));
}

#[test]
fn a_directory_without_git_is_refused_with_what_to_do_and_nothing_is_left() {
    let host = host_with_repo();
    let refused = host.abide(["load", "stub", "--detach", "--isolation", "worktree"]).fails(1);
    assert!(refused.contains("shared"), "{refused}");
    assert!(host.abide(["ls", "--json"]).json()["instances"].as_array().unwrap().is_empty());
    assert_eq!(host.abide(["trash", "list"]).ok(), "The trash is empty.\n");
}

#[test]
fn a_start_that_failed_after_something_was_made_is_in_the_trash() {
    let host = host_with_repo();
    std::fs::write(repo(&host).join("no-program"), "x").unwrap();
    let fails = |args: &[&str]| {
        let mut command = host.command(host.program());
        let out = command.current_dir(repo(&host)).args(["load", "./no-program", "--detach"]).args(args);
        assert!(!out.output().unwrap().status.success());
        assert!(host.abide(["ls", "--json"]).json()["instances"].as_array().unwrap().is_empty());
        host.abide(["trash", "list", "--json"]).json()["trash"].as_array().unwrap().len()
    };
    assert_eq!(fails(&["--isolation", "worktree", "--base", "no-such-thing"]), 0);
    assert_eq!(fails(&["--isolation", "worktree"]), 1, "a hook of git may have written into its tree");
    let text = format!("version = 1\ndir = \"{}\"\nsetup = [\"true\"]\n", repo(&host).display());
    host.write("home/.config/abide/workspaces/shop.toml", text);
    assert_eq!(fails(&[]), 2, "its set-up may have made something");
}

#[test]
fn a_setup_command_runs_once_in_the_new_tree() {
    let host = host_with_repo();
    with_workspace(&host, r#"setup = ["sh", "-c", "echo run >> setup.log"]"#);
    let id = load(&host, &[]);
    let log = || std::fs::read_to_string(tree(&host, &id).join("setup.log")).unwrap();
    assert_eq!(log(), "run\n");
    host.abide(["stop", &id]).ok();
    host.abide(["resume", &id, "--detach"]).ok();
    assert_eq!(log(), "run\n");
}

#[test]
fn a_setup_command_that_fails_leaves_an_instance_that_says_why_and_can_be_resumed() {
    let host = host_with_repo();
    with_workspace(&host, r#"setup = ["sh", "-c", "echo no such compiler; test -e fixed"]"#);
    let mut command = host.command(host.program());
    let out = command.current_dir(repo(&host)).args(["load", "stub", "--detach"]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && said.contains("no such compiler"), "{said}");
    let listing = host.abide(["ls", "--json"]).json();
    let row = &listing["instances"][0];
    assert_eq!(row["reason"], "setup-failed");
    let id = row["id"].as_str().unwrap();
    assert!(host.abide(["explain", id]).ok().contains("set-up"));
    std::fs::write(tree(&host, id).join("fixed"), "").unwrap();
    host.abide(["resume", id, "--detach"]).ok();
    assert_eq!(host.state(id), "active");
}

#[test]
fn what_a_setup_command_leaves_in_the_background_does_not_hold_the_start() {
    let host = host_with_repo();
    with_workspace(&host, r#"setup = ["sh", "-c", "sleep 1000 & echo served by $!"]"#);
    let id = load(&host, &[]);
    assert_eq!(host.state(&id), "active");
}

#[test]
fn a_load_that_is_interrupted_ends_its_setup_and_says_how_to_go_on() {
    for signal in ["-INT", "-HUP", "-TERM"] {
        let host = host_with_repo();
        with_workspace(&host, r#"setup = ["sh", "-c", "test -e again || { touch begun; sleep 1000; }"]"#);
        let (starter, id) = load_until_set_up_begins(&host);
        kill(signal, starter.id());
        let out = starter.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.code() == Some(1) && said.contains(&format!("`abide resume {id}`")), "{said}");
        assert_eq!(host.processes(), [""; 0], "{signal}");
        assert_eq!(host.state(&id), "restorable (setup-failed)");
        std::fs::write(tree(&host, &id).join("again"), "").unwrap();
        host.abide(["resume", &id, "--detach"]).ok();
        assert_eq!(host.state(&id), "active");
    }
}

#[test]
fn a_setup_does_not_go_on_without_its_load_and_never_runs_beside_a_second_one() {
    let host = host_with_repo();
    // The second time it succeeds if nothing is left of the first.
    let script = "if test -e again; then ! grep -qs 'State:.[RSD]' /proc/$(cat begun)/status; exit; fi; \
                  sleep 1000 & echo $! > begun; wait; touch gone-on";
    with_workspace(&host, &format!("setup = [\"sh\", \"-c\", \"{script}\"]"));
    let (mut starter, id) = load_until_set_up_begins(&host);
    let shell = host.processes().into_iter().find(|process| process.contains(" sh -c ")).unwrap();
    starter.kill().unwrap();
    starter.wait().unwrap();
    wait_for_death(shell.split(' ').next().unwrap().parse().unwrap());
    std::fs::write(tree(&host, &id).join("again"), "").unwrap();
    host.abide(["resume", &id, "--detach"]).ok();
    assert!(!tree(&host, &id).join("gone-on").exists());
}

#[test]
fn stopping_what_is_still_set_up_ends_its_setup_and_keeps_it() {
    let host = host_with_repo();
    with_workspace(&host, r#"setup = ["sh", "-c", "test -e again || { touch begun; exec sleep 1000; }"]"#);
    let (mut starter, id) = load_until_set_up_begins(&host);
    assert!(host.abide(["stop", &id]).ok().contains("kept"));
    assert_eq!(host.state(&id), "restorable (setup-failed)");
    assert!(!starter.wait().unwrap().success());
    eventually("the set-up to end", || host.processes().is_empty().then_some(()));
    std::fs::write(tree(&host, &id).join("again"), "").unwrap();
    host.abide(["resume", &id, "--detach"]).ok();
    assert_eq!(host.state(&id), "active");
}

#[test]
fn no_command_waits_for_others_that_examine_trees_of_ended_instances() {
    let mut host = host_with_repo();
    let real = String::from_utf8(host.command("sh").args(["-c", "command -v git"]).output().unwrap().stdout)
        .unwrap();
    let gate = host.path("gate");
    let script = format!(
        "case \"$*\" in *status*) while [ -e {0} ]; do touch {0}.reached; sleep 0.01; done ;; esac\nexec {1} \"$@\"",
        gate.display(),
        real.trim()
    );
    host.add_program("git", &script);
    let id = load(&host, &["--isolation", "worktree"]);
    std::fs::write(&gate, "").unwrap();
    host.abide(["send", &id, "exit 0"]).ok();
    eventually("git to be called", || gate.with_extension("reached").exists().then_some(()));
    let store = abide_store::Store::at(host.home()).with_patience(std::time::Duration::ZERO);
    store.lock(id.parse().unwrap()).unwrap();
    assert_eq!(host.state(&id), "active", "a list waited, and decided for itself");
    std::fs::remove_file(&gate).unwrap();
    host.wait_for_state(&id, "gone");
}

#[test]
fn files_that_git_ignores_are_carried_over_where_asked_for() {
    let host = host_with_repo();
    std::fs::write(repo(&host).join("api.secret"), "token").unwrap();
    std::fs::write(repo(&host).join("other.secret"), "other").unwrap();
    with_workspace(&host, "");
    let file = host.config().join("workspaces/shop.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text + "copy = [\"api.*\"]\n").unwrap();
    let id = load(&host, &[]);
    assert_eq!(std::fs::read_to_string(tree(&host, &id).join("api.secret")).unwrap(), "token");
    assert!(!tree(&host, &id).join("other.secret").exists());
    // What was carried over is no work.
    host.abide(["send", &id, "exit 0"]).ok();
    host.wait_for_state(&id, "gone");
}

#[test]
fn another_base_and_an_existing_branch_can_be_chosen() {
    let host = host_with_repo();
    git(&host, &repo(&host), &["branch", "release"]);
    std::fs::write(repo(&host).join("later"), "x").unwrap();
    git(&host, &repo(&host), &["add", "-A"]);
    git(&host, &repo(&host), &["commit", "-qm", "later"]);
    let based = load(&host, &["--isolation", "worktree", "--base", "release"]);
    assert!(!tree(&host, &based).join("later").exists());
    let on = load(&host, &["--isolation", "worktree", "--branch", "release"]);
    assert_eq!(git(&host, &tree(&host, &on), &["symbolic-ref", "--short", "HEAD"]).trim(), "release");
    host.abide(["eject", &on, "--clean"]).ok();
    // A branch that was there before is not ours to delete.
    git(&host, &repo(&host), &["rev-parse", "--verify", "-q", "release"]);
    let wrong = host
        .command(host.program())
        .current_dir(repo(&host))
        .args(["load", "stub", "-d", "--new"])
        .args(["--isolation", "worktree", "--base", "no-such-thing"])
        .output()
        .unwrap();
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("no-such-thing"));
}

#[test]
fn a_keep_workspace_holds_no_more_than_its_limit_and_never_lets_work_go() {
    let host = host_with_repo();
    with_workspace(&host, "policy = \"keep\"\nkeep_max = 2");
    let ids: Vec<String> = (0..4).map(|_| load(&host, &[])).collect();
    std::fs::write(tree(&host, &ids[0]).join("work"), "x").unwrap();
    for id in &ids {
        host.abide(["send", id, "exit 0"]).ok();
        eventually("it to be settled", || (host.state(id) != "active").then_some(()));
    }
    host.abide(["ls"]).ok();
    let states: Vec<String> = ids.iter().map(|id| host.state(id)).collect();
    assert_eq!(states, ["restorable (kept)", "gone", "gone", "restorable (kept)"]);
}

#[test]
fn a_plain_directory_keeps_no_more_than_the_general_limit_and_never_lets_work_go() {
    let host = host_with_repo();
    host.abide(["config", "set", "policy", "keep"]).ok();
    host.abide(["config", "set", "keep_max", "2"]).ok();
    let ids: Vec<String> = (0..4).map(|_| load(&host, &["--isolation", "worktree"])).collect();
    std::fs::write(tree(&host, &ids[0]).join("work"), "x").unwrap();
    for id in &ids {
        host.abide(["send", id, "exit 0"]).ok();
        eventually("it to be settled", || (host.state(id) != "active").then_some(()));
    }
    host.abide(["ls"]).ok();
    let states: Vec<String> = ids.iter().map(|id| host.state(id)).collect();
    assert_eq!(states, ["restorable (kept)", "gone", "gone", "restorable (kept)"]);
}

#[test]
fn a_limit_does_not_displace_what_the_operator_said_to_keep() {
    let host = host_with_repo();
    host.abide(["config", "set", "policy", "keep"]).ok();
    host.abide(["config", "set", "keep_max", "1"]).ok();
    let ids = [&["--keep"][..], &["--keep"], &[]].map(|flags| load(&host, flags));
    for id in &ids {
        host.abide(["send", id, "exit 0"]).ok();
        eventually("it to be settled", || (host.state(id) != "active").then_some(()));
    }
    host.abide(["ls"]).ok();
    let states: Vec<String> = ids.iter().map(|id| host.state(id)).collect();
    assert_eq!(states, ["restorable (kept)", "restorable (kept)", "gone"]);
    assert!(host.abide(["stop", &ids[0]]).ok().contains("was not running"));
}

/// Starts the stub, up to where its set-up command has made the file `begun`; who starts it, and the instance's id.
fn load_until_set_up_begins(host: &Host) -> (Child, String) {
    let mut command = host.command(host.program());
    command.current_dir(repo(host)).args(["load", "stub", "--detach"]).stderr(Stdio::piped());
    // Whoever runs the tests may ignore what they send.
    abide_sys::signals::start_fresh(&mut command);
    let starter = command.spawn().unwrap();
    let id = eventually("the set-up to begin", || {
        let units = std::fs::read_dir(host.home().join("instances")).ok()?;
        let id = units.flatten().find(|unit| unit.path().join("tree/repo/begun").exists())?;
        Some(id.file_name().into_string().unwrap())
    });
    (starter, id)
}

/// A workspace over the repository that isolates it, with `more` in its file.
pub fn with_workspace(host: &Host, more: &str) {
    let dir = repo(host);
    let text = format!(
        "version = 1\ndir = \"{0}\"\n{more}\n[[mounts]]\nsource = \"{0}\"\nisolation = \"worktree\"\n",
        dir.display()
    );
    host.write("home/.config/abide/workspaces/shop.toml", text);
}

fn cwd_of_session(host: &Host, id: &str) -> std::path::PathBuf {
    std::fs::read_link(format!("/proc/{}/cwd", host.pids(id).session)).unwrap()
}

#[test]
fn a_directory_of_abide_that_was_moved_is_named_and_a_link_at_the_old_place_brings_its_trees_back() {
    let mut host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    std::fs::write(tree(&host, &id).join("notes.md"), "notes").unwrap();
    host.abide(["stop", &id]).ok();
    let (old, new) = (host.home(), host.path("moved"));
    std::fs::rename(&old, &new).unwrap();
    host.set("ABIDE_HOME", &new);
    let complaint = host.abide(["resume", &id, "--detach"]).fails(1);
    let moved = format!("abide's own directory was moved from {} to {}", old.display(), new.display());
    assert!(complaint.contains(&moved), "{complaint}");
    let link = format!("ln -s {} {}", new.display(), old.display());
    assert!(complaint.contains(&link), "{complaint}");
    std::os::unix::fs::symlink(&new, &old).unwrap();
    host.abide(["resume", &id, "--detach"]).ok();
    assert_eq!(std::fs::read_to_string(tree(&host, &id).join("notes.md")).unwrap(), "notes");
    host.abide(["stop", &id]).ok();
}
