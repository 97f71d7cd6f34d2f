//! Killed at any point of making, releasing or restoring a tree, the next command finishes or repeats it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use abide_git::{WantedTree, materialise, release, restore};
use abide_model::Isolation::{Clone, Worktree};
use abide_model::evidence::Verdict;

use crate::common::{Host, LONG, commit, git, gits, id, mount, write};

pub const TASK: &str = "ABIDE_GIT_TEST_TASK";
const UNIT: &str = "ABIDE_GIT_TEST_UNIT";
const SOURCE: &str = "ABIDE_GIT_TEST_SOURCE";
/// Set if the tree is a clone.
pub const CLONE: &str = "ABIDE_GIT_TEST_CLONE";

/// Does what the environment says to a worktree of another process's host.
pub fn in_child() {
    let var = |name| std::env::var_os(name).unwrap();
    let isolation = if std::env::var_os(CLONE).is_some() { Clone } else { Worktree };
    let (instance_dir, mount) = (PathBuf::from(var(UNIT)), mount(var(SOURCE).into(), isolation));
    let wanted = WantedTree {
        id: id(),
        instance_dir: &instance_dir,
        mount: &mount,
        base: None,
        branch: None,
        limit: LONG,
        objects: abide_git::CloneObjects::Linked,
    };
    match var(TASK).to_str().unwrap() {
        "make" => drop(materialise(&wanted, &mut |_| {}).unwrap()),
        "release" => drop(release(&instance_dir, &mount, LONG).unwrap()),
        "restore" => drop(restore(&instance_dir, &mount, LONG).unwrap()),
        "look" => {
            let found = abide_git::evidence_of(&[(&instance_dir, &mount)], Duration::from_secs(3)).remove(0);
            assert_eq!(found.unknown, ["git: no answer within 3 s"], "{found:?}");
        }
        "look with an old git" => {
            let found = abide_git::evidence_of(&[(&instance_dir, &mount)], LONG).remove(0);
            assert!(found.unknown[0].contains("needs git 2.38"), "{found:?}");
        }
        other => panic!("no task {other}"),
    }
}

/// A process that does `task`.
pub fn child(host: &Host, task: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]);
    command.env(TASK, task).env(UNIT, &host.instance_dir).env(SOURCE, &host.repo);
    command
}

/// Does `task` in a process that dies at `label` if it passes there; says whether it died. The operator's environment
/// is as misleading as it can be.
fn dies(host: &Host, task: &str, label: &str) -> bool {
    let mut command = child(host, task);
    command.env("ABIDE_CRASH_AT", label);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"] {
        command.env(name, "/nonexistent");
    }
    let out = command.output().unwrap();
    let killed = out.status.signal() == Some(9);
    assert!(killed || out.status.success(), "{task} at {label}: {}", String::from_utf8_lossy(&out.stderr));
    killed
}

fn work_in(tree: &Path) {
    commit(tree, "a", "1");
    write(tree.join("staged"), "s");
    gits(tree, &["add staged"]);
    write(tree.join("file"), "changed\n");
}

fn portrait(tree: &Path) -> String {
    git(tree, ["fsck", "--no-progress", "--no-dangling"])
        + &git(tree, ["status", "--porcelain=v2", "--branch"])
        + &git(tree, ["diff", "--cached"])
}

fn points(operation: &str) -> Vec<String> {
    let all = abide_testkit::crash_points(".").into_iter();
    all.filter(|label| label.starts_with(operation)).collect()
}

#[test]
fn killed_while_making_a_tree_it_is_undone_or_made_again() {
    for label in points("git.materialise.") {
        let label = label.as_str();
        let host = Host::new();
        let before = host.state();
        let mount = host.mount(Worktree);
        assert!(dies(&host, "make", label), "{label}");
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "nobody worked in it");
        release(&host.instance_dir, &mount, LONG).unwrap();
        assert_eq!(host.state(), before, "undone after {label}");
        assert!(!host.instance_dir.join("tree/shop").exists());
        assert!(dies(&host, "make", label));
        let made = materialise(&host.wanted(&mount), &mut |_| {}).unwrap();
        assert_eq!(made.branch.as_deref(), Some("abide/k7p9m2xq"), "made again after {label}");
        work_in(&made.tree);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Dirty);
    }
}

#[test]
fn killed_while_releasing_or_restoring_a_tree_nothing_is_lost() {
    for label in points("git.re") {
        let label = label.as_str();
        let host = Host::new();
        let before = host.state();
        let (mount, made) = host.make(Worktree);
        work_in(&made.tree);
        let (portrayed, found) = (portrait(&made.tree), host.evidence(&mount));
        let reached = dies(&host, "release", label);
        release(&host.instance_dir, &mount, LONG).unwrap();
        assert_eq!(host.state(), before, "released after {label}");
        let trash = host.path("trash");
        fs::rename(&host.instance_dir, &trash).unwrap();
        host.collect_garbage();
        fs::rename(&trash, &host.instance_dir).unwrap();
        assert!(dies(&host, "restore", label) || reached, "{label}");
        restore(&host.instance_dir, &mount, LONG).unwrap();
        assert_eq!(portrait(&made.tree), portrayed, "restored after {label}");
        assert_eq!(host.evidence(&mount), found);
        // A release that comes after a restore that was cut short starts over.
        release(&host.instance_dir, &mount, LONG).unwrap();
        assert!(dies(&host, "restore", label) || !label.starts_with("git.restore."));
        release(&host.instance_dir, &mount, LONG).unwrap();
        assert_eq!(host.state(), before, "released after {label}");
        restore(&host.instance_dir, &mount, LONG).unwrap();
        assert_eq!(portrait(&made.tree), portrayed);
    }
}

#[test]
fn a_git_that_hangs_is_not_waited_for() {
    let host = Host::new();
    host.make(Worktree);
    let slow = host.path("bin/git");
    write(
        &slow,
        "#!/bin/sh\nPATH=${PATH#*:}\ncase \"$*\" in *' status '*) exec sleep 600;; esac\nexec git \"$@\"\n",
    );
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", slow.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let out = child(&host, "look").env("PATH", path).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
}
