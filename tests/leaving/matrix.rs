//! Every state that a tree can be in × worktree and clone × every way to end: what exists nowhere else can always be had
//! back as it was, and what is clean goes.

use std::path::Path;

use crate::common::{Host, kill, wait_for_death};
use crate::hidden;
use crate::repo::{git, host_like, host_with_repo, load, repo, traces, tree};

/// What the state of a tree means.
#[derive(Clone, Copy, PartialEq)]
pub enum Means {
    Clean,
    Dirty,
    Unpushed,
    Unknown,
}

pub struct State {
    pub name: &'static str,
    pub means: Means,
    pub make: fn(&Host, &Path),
}

pub fn change(tree: &Path, file: &str, text: &str) {
    std::fs::write(tree.join(file), text).unwrap();
}

pub fn commit(host: &Host, tree: &Path, file: &str) {
    change(tree, file, &format!("{file}\n"));
    git(host, tree, &["add", file]);
    git(host, tree, &["commit", "-qm", file]);
}

/// Two commits that both change the README, the second on a branch of its own; ends on that one.
fn diverge(host: &Host, tree: &Path) {
    git(host, tree, &["checkout", "-qb", "theirs"]);
    change(tree, "README", "theirs\n");
    git(host, tree, &["commit", "-qam", "theirs"]);
    git(host, tree, &["checkout", "-qb", "ours", "HEAD~1"]);
    change(tree, "README", "ours\n");
    git(host, tree, &["commit", "-qam", "ours"]);
}

/// Runs git where it is expected to stop halfway.
fn stops(host: &Host, tree: &Path, args: &[&str]) {
    let out = host.command("git").current_dir(tree).args(args).output().unwrap();
    assert!(!out.status.success(), "git {args:?} did not stop");
}

/// Somebody else brings the tree's last commit to `main` of the remote, by `how`.
fn merged_upstream(host: &Host, tree: &Path, how: &[&str]) {
    commit(host, tree, "feature");
    let other = host.work().join(format!("other-{}", std::fs::read_dir(host.work()).unwrap().count()));
    let (origin, other_name) = (host.work().join("origin.git"), other.to_str().unwrap());
    git(host, &host.work(), &["clone", "-q", origin.to_str().unwrap(), other_name]);
    commit(host, &other, "meanwhile");
    git(host, &other, &["fetch", "-q", tree.to_str().unwrap(), "HEAD"]);
    git(host, &other, how);
    if how[0] == "merge" {
        git(host, &other, &["commit", "-qm", "squashed"]);
    }
    git(host, &other, &["push", "-q", "origin", "main"]);
    git(host, tree, &["fetch", "-q", "origin"]);
}

const STATES: &[State] = &[
    State { name: "clean", means: Means::Clean, make: |_, _| {} },
    State { name: "modified", means: Means::Dirty, make: |_, tree| change(tree, "README", "changed\n") },
    State {
        name: "staged",
        means: Means::Dirty,
        make: |host, tree| {
            change(tree, "README", "staged\n");
            git(host, tree, &["add", "README"]);
            change(tree, "README", "and changed again\n");
        },
    },
    State { name: "untracked", means: Means::Dirty, make: |_, tree| change(tree, "notes é.md", "notes\n") },
    State {
        name: "conflicted",
        means: Means::Dirty,
        make: |host, tree| {
            diverge(host, tree);
            stops(host, tree, &["merge", "-q", "theirs"]);
        },
    },
    State {
        name: "ignored but new",
        means: Means::Dirty,
        make: |_, tree| change(tree, "key.secret", "1234\n"),
    },
    State {
        name: "stash",
        means: Means::Dirty,
        make: |host, tree| {
            change(tree, "README", "stashed\n");
            git(host, tree, &["stash", "-q"]);
        },
    },
    State {
        name: "detached commits",
        means: Means::Unpushed,
        make: |host, tree| {
            git(host, tree, &["checkout", "-q", "--detach"]);
            commit(host, tree, "detached");
        },
    },
    State {
        name: "rebase in progress",
        means: Means::Dirty,
        make: |host, tree| {
            diverge(host, tree);
            stops(host, tree, &["rebase", "-q", "theirs"]);
        },
    },
    State {
        name: "branch ahead",
        means: Means::Unpushed,
        make: |host, tree| {
            git(host, tree, &["push", "-q", "-u", "origin", "HEAD:refs/heads/topic"]);
            commit(host, tree, "ahead");
        },
    },
    State {
        name: "branch without upstream",
        means: Means::Unpushed,
        make: |host, tree| {
            git(host, tree, &["checkout", "-qb", "local-only"]);
            commit(host, tree, "local");
        },
    },
    State {
        name: "upstream gone with newer commits",
        means: Means::Unpushed,
        make: |host, tree| {
            git(host, tree, &["push", "-q", "-u", "origin", "HEAD:refs/heads/short-lived"]);
            commit(host, tree, "newer");
            git(host, tree, &["push", "-q", "origin", ":short-lived"]);
            git(host, tree, &["fetch", "-q", "--prune", "origin"]);
        },
    },
    State {
        name: "pushed",
        means: Means::Clean,
        make: |host, tree| {
            commit(host, tree, "pushed");
            git(host, tree, &["push", "-q", "-u", "origin", "HEAD:refs/heads/pushed"]);
        },
    },
    State {
        name: "squash-merged",
        means: Means::Clean,
        make: |host, tree| merged_upstream(host, tree, &["merge", "-q", "--squash", "FETCH_HEAD"]),
    },
    State {
        name: "merged by rebase",
        means: Means::Clean,
        make: |host, tree| merged_upstream(host, tree, &["cherry-pick", "FETCH_HEAD"]),
    },
    State {
        name: "no remote",
        means: Means::Unpushed,
        make: |host, tree| {
            git(host, tree, &["remote", "remove", "origin"]);
            commit(host, tree, "nowhere else");
        },
    },
    State {
        name: "submodule dirty",
        means: Means::Dirty,
        make: |host, tree| {
            let origin = host.work().join("origin.git");
            let add = [
                "-c",
                "protocol.file.allow=always",
                "submodule",
                "add",
                "-q",
                origin.to_str().unwrap(),
                "sub",
            ];
            git(host, tree, &add);
            git(host, tree, &["commit", "-qm", "a submodule"]);
            git(host, tree, &["push", "-q", "origin", "HEAD:refs/heads/with-submodule"]);
            change(tree, "sub/inside", "never committed\n");
        },
    },
    State {
        name: "git broken",
        means: Means::Unknown,
        make: |_, tree| {
            let git = tree.join(".git");
            let broken = if git.is_dir() { git.join("HEAD") } else { git };
            std::fs::write(broken, "garbage").unwrap();
            change(tree, "README", "who knows\n");
        },
    },
    State {
        name: "lock file present",
        means: Means::Unknown,
        make: |host, tree| {
            let dir = git(host, tree, &["rev-parse", "--absolute-git-dir"]);
            std::fs::write(Path::new(dir.trim()).join("index.lock"), "").unwrap();
        },
    },
];

/// How many lines of a fingerprint are git's.
const GIT_LINES: usize = 5;

/// Everything about a tree that somebody might miss: what git says, then the files.
fn fingerprint(host: &Host, tree: &Path) -> Vec<String> {
    let say = |args: &[&str]| {
        let out = host.command("git").current_dir(tree).args(args).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let mut all = vec![
        say(&["status", "--porcelain", "--untracked-files=all", "--ignored"]),
        say(&["log", "--oneline", "-5"]),
        say(&["symbolic-ref", "-q", "HEAD"]),
        say(&["diff", "--cached"]),
        say(&["stash", "list"]),
    ];
    let mut files: Vec<_> = std::fs::read_dir(tree).unwrap().flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.is_file() && !file.ends_with(".git")) {
        all.push(format!("{}: {}", file.display(), std::fs::read_to_string(file).unwrap()));
    }
    all
}

/// Makes every state in a tree that is isolated so, ends the instance in one way, and looks what became of it.
fn for_every_state(
    isolation: &str,
    args: &[&str],
    end: fn(&Host, &str),
    then: fn(&Host, &str, &State, &[String]),
) {
    let of_a_clone = if isolation == "clone" { hidden::OF_A_CLONE } else { &[] };
    let first = host_with_repo();
    for state in STATES.iter().chain(hidden::STATES).chain(of_a_clone) {
        let host = host_like(&first);
        let id = load(&host, &[&["--isolation", isolation], args].concat());
        (state.make)(&host, &tree(&host, &id));
        let before = fingerprint(&host, &tree(&host, &id));
        println!("{isolation}, {}", state.name);
        end(&host, &id);
        then(&host, &id, state, &before);
    }
}

macro_rules! of_each_isolation {
    ($($test:ident),+ $(,)?) => {
        mod worktree {
            $(#[test] fn $test() { super::$test("worktree") })+
        }
        mod clone {
            $(#[test] fn $test() { super::$test("clone") })+
        }
    };
}

of_each_isolation![
    at_an_unattended_exit_work_is_kept_and_what_is_clean_goes,
    at_an_exit_with_the_policy_clean_everything_goes_and_can_be_had_back,
    at_an_exit_with_the_policy_keep_everything_stays,
    what_is_ejected_can_be_had_back,
    what_is_pruned_can_be_had_back,
    after_a_crash_nothing_is_touched,
];

fn ends_by_itself(host: &Host, id: &str) {
    host.abide(["send", id, "exit 0"]).ok();
    let keeper = host.home().join("instances").join(id).join("run/sock");
    abide_testkit::eventually("the capsule to end", || (!keeper.exists()).then_some(()));
    host.abide(["ls"]).ok();
    // A list shows what another process settles as it is.
    abide_testkit::eventually("a decision that was carried out", || {
        let state = host.state(id);
        (state == "gone" || state.starts_with("restorable")).then_some(())
    });
}

fn is_there(host: &Host, id: &str, state: &State, status: &str, before: &[String]) {
    assert_eq!(host.state(id), status, "{}", state.name);
    assert_eq!(fingerprint(host, &tree(host, id)), before, "{}", state.name);
}

/// It is gone without a trace, and comes back from the trash as it was.
fn is_gone_and_can_be_had_back(host: &Host, id: &str, state: &State, before: &[String]) {
    assert_eq!(host.state(id), "gone", "{}", state.name);
    assert!(traces(host).is_empty(), "{}: {:?}", state.name, traces(host));
    git(host, &repo(host), &["gc", "-q", "--prune=now"]);
    host.abide(["trash", "restore", id]).ok();
    // What git could not read before it may well read again now; the files are the same in any case.
    let same = if state.name == "git broken" { GIT_LINES } else { 0 };
    assert_eq!(host.state(id), "restorable (kept)", "{}", state.name);
    assert_eq!(fingerprint(host, &tree(host, id))[same..], before[same..], "{}", state.name);
    host.abide(["eject", id, "--clean"]).ok();
}

fn at_an_unattended_exit_work_is_kept_and_what_is_clean_goes(isolation: &str) {
    for_every_state(isolation, &[], ends_by_itself, |host, id, state, before| match state.means {
        Means::Clean => is_gone_and_can_be_had_back(host, id, state, before),
        Means::Dirty => is_there(host, id, state, "restorable (dirty)", before),
        Means::Unpushed => is_there(host, id, state, "restorable (unpushed)", before),
        Means::Unknown => is_there(host, id, state, "restorable (unknown)", before),
    });
}

fn at_an_exit_with_the_policy_clean_everything_goes_and_can_be_had_back(isolation: &str) {
    for_every_state(isolation, &["--clean"], ends_by_itself, is_gone_and_can_be_had_back);
}

fn at_an_exit_with_the_policy_keep_everything_stays(isolation: &str) {
    for_every_state(isolation, &["--keep"], ends_by_itself, |host, id, state, before| {
        is_there(host, id, state, "restorable (kept)", before);
    });
}

fn what_is_ejected_can_be_had_back(isolation: &str) {
    let eject = |host: &Host, id: &str| drop(host.abide(["eject", id, "--clean"]).ok());
    for_every_state(isolation, &[], eject, is_gone_and_can_be_had_back);
}

fn what_is_pruned_can_be_had_back(isolation: &str) {
    let prune = |host: &Host, id: &str| {
        host.abide(["stop", id]).ok();
        host.abide(["prune", "--yes"]).ok();
        assert_eq!(host.state(id), "restorable (stopped)", "a plain prune took it");
        host.abide(["prune", "--discard-restorable", "--yes"]).ok();
    };
    for_every_state(isolation, &[], prune, is_gone_and_can_be_had_back);
}

fn after_a_crash_nothing_is_touched(isolation: &str) {
    let crash = |host: &Host, id: &str| {
        let pids = host.pids(id);
        kill("-KILL", pids.keeper);
        wait_for_death(pids.keeper);
        host.wait_for_state(id, "restorable (crashed)");
    };
    for_every_state(isolation, &[], crash, |host, id, state, before| {
        is_there(host, id, state, "restorable (crashed)", before);
    });
}
