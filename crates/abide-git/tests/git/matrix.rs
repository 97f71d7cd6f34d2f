//! Every state a tree can be left in, in a worktree and in a clone: what the evidence says, and that nothing is lost
//! on the way to the trash and back.

use std::fs;
use std::path::Path;
use std::time::Duration;

use abide_git::{release, restore};
use abide_model::Isolation;
use abide_model::evidence::{Ahead, FileChange, MountEvidence, Verdict};

use crate::common::{Host, LONG, commit, git, gits, try_git, write};
use crate::elsewhere::with_submodules;

/// What each state needs: the host, the tree, the branch of the tree.
pub type Enter = fn(&Host, &Path, &str);
pub type Check = fn(&MountEvidence, &str);

pub struct State {
    pub name: &'static str,
    pub enter: Enter,
    pub verdict: Verdict,
    pub check: Check,
}

pub fn file(code: &str, path: &str) -> FileChange {
    FileChange { code: code.into(), path: path.into() }
}

pub fn ahead(branch: &str, commits: u64, against: &str) -> Ahead {
    Ahead { branch: branch.into(), commits, against: against.into() }
}

/// Pushes one commit of somebody else's, so that the remote's main has moved.
pub fn other_clone(host: &Host) -> std::path::PathBuf {
    let other = host.path("other");
    git(other.parent().unwrap(), ["clone", "-q", host.remote.to_str().unwrap(), "other"]);
    commit(&other, "unrelated", "somebody else's\n");
    other
}

fn conflict_with_main(tree: &Path) {
    gits(tree, &["branch side"]);
    commit(tree, "file", "mine\n");
    gits(tree, &["checkout -q side"]);
    commit(tree, "file", "theirs\n");
}

const STATES: &[State] = &[
    State {
        name: "clean",
        enter: |_, _, _| {},
        verdict: Verdict::Clean,
        check: |found, _| assert!(found.files.is_empty() && found.ahead.is_empty(), "{found:?}"),
    },
    State {
        name: "modified",
        enter: |_, tree, _| write(tree.join("file"), "changed\n"),
        verdict: Verdict::Dirty,
        check: |found, _| assert_eq!(found.files, [file(" M", "file")]),
    },
    State {
        name: "staged",
        enter: |_, tree, _| {
            write(tree.join("new one"), "only in the index\n");
            git(tree, ["add", "new one"]);
            write(tree.join("new one"), "and changed since\n");
        },
        verdict: Verdict::Dirty,
        check: |found, _| assert_eq!(found.files, [file("AM", "new one")]),
    },
    State {
        name: "untracked",
        enter: |_, tree, _| write(tree.join("notes/a\nb"), "x"),
        verdict: Verdict::Dirty,
        check: |found, _| assert_eq!(found.files, [file("??", "notes/a\nb")]),
    },
    State {
        name: "conflicted",
        enter: |_, tree, branch| {
            conflict_with_main(tree);
            assert!(!try_git(tree, ["merge", branch]).0);
        },
        verdict: Verdict::Dirty,
        check: |found, _| {
            assert_eq!(found.files, [file("UU", "file")]);
            assert_eq!(found.operation.as_deref(), Some("merge"));
        },
    },
    State {
        name: "ignored but new",
        enter: |_, tree, _| {
            write(tree.join(".env"), "TOKEN=1");
            write(tree.join("secrets/key"), "k");
            write(tree.join("target/debug/big"), "rebuilt");
        },
        verdict: Verdict::Dirty,
        check: |found, _| assert_eq!(found.files, [file("!!", ".env"), file("!!", "secrets/key")]),
    },
    State {
        name: "stash",
        enter: |_, tree, _| {
            write(tree.join("file"), "put aside\n");
            git(tree, ["stash", "push", "-q", "-m", "for later"]);
        },
        verdict: Verdict::Dirty,
        check: |found, branch| assert_eq!(found.stashes, [format!("On {branch}: for later")]),
    },
    State {
        name: "commits on a detached HEAD",
        enter: |_, tree, _| {
            gits(tree, &["checkout -q --detach"]);
            commit(tree, "a", "1");
            commit(tree, "a", "22");
        },
        verdict: Verdict::Unpushed,
        check: |found, _| assert_eq!(found.ahead, [ahead("HEAD", 2, "detached")]),
    },
    State {
        name: "commits on a detached HEAD that was left",
        enter: |_, tree, branch| {
            gits(tree, &["checkout -q --detach"]);
            commit(tree, "a", "1");
            gits(tree, &[&format!("checkout -q {branch}")]);
        },
        verdict: Verdict::Unpushed,
        check: |found, _| {
            assert_eq!(found.ahead.len(), 1, "{found:?}");
            assert!(found.ahead[0].branch.starts_with("HEAD at "), "{found:?}");
        },
    },
    State {
        name: "rebase in progress",
        enter: |_, tree, branch| {
            conflict_with_main(tree);
            gits(tree, &[&format!("checkout -q {branch}")]);
            commit(tree, "second", "2");
            assert!(!try_git(tree, ["rebase", "side"]).0);
        },
        verdict: Verdict::Dirty,
        check: |found, branch| {
            assert_eq!(found.operation.as_deref(), Some("rebase"));
            assert!(found.files.contains(&file("UU", "file")), "{found:?}");
            assert!(found.ahead.contains(&ahead(branch, 2, "no upstream")) || branch == "main", "{found:?}");
        },
    },
    State {
        name: "branch ahead",
        enter: |_, tree, _| {
            gits(tree, &["checkout -q -b feature", "push -q -u origin feature"]);
            commit(tree, "a", "1");
        },
        verdict: Verdict::Unpushed,
        check: |found, _| assert_eq!(found.ahead, [ahead("feature", 1, "origin/feature")]),
    },
    State {
        name: "own branch ahead",
        enter: |_, tree, branch| {
            gits(tree, &[&format!("push -q -u origin {branch}")]);
            commit(tree, "a", "1");
        },
        verdict: Verdict::Unpushed,
        check: |found, branch| assert_eq!(found.ahead, [ahead(branch, 1, &format!("origin/{branch}"))]),
    },
    State {
        name: "branch without upstream",
        enter: |_, tree, _| {
            gits(tree, &["checkout -q -b feature"]);
            commit(tree, "a", "1");
        },
        verdict: Verdict::Unpushed,
        check: |found, _| assert_eq!(found.ahead, [ahead("feature", 1, "no upstream")]),
    },
    State {
        name: "pushed",
        enter: |_, tree, _| {
            commit(tree, "a", "1");
            gits(tree, &["push -q origin HEAD:refs/heads/published"]);
        },
        verdict: Verdict::Clean,
        check: |_, _| {},
    },
    State {
        name: "upstream gone with newer commits",
        enter: |host, tree, _| {
            gits(tree, &["checkout -q -b feature", "push -q -u origin feature"]);
            commit(tree, "a", "1");
            gits(&host.remote, &["branch -q -D feature"]);
            gits(tree, &["fetch -q --prune origin"]);
        },
        verdict: Verdict::Unpushed,
        check: |found, _| assert_eq!(found.ahead, [ahead("feature", 1, "upstream gone")]),
    },
    State {
        name: "squash-merged",
        enter: |host, tree, _| {
            commit(tree, "file", "one\ntwo\nthree\nfour\n");
            commit(tree, "b", "2");
            gits(tree, &["push -q origin HEAD:refs/heads/pull"]);
            let other = other_clone(host);
            gits(&other, &["merge -q --squash origin/pull", "commit -q -m squashed"]);
            commit(&other, "file", "one\ntwo\nthree\nfour\nand more\n");
            gits(&other, &["push -q origin main", "push -q origin :pull"]);
            gits(tree, &["fetch -q --prune origin"]);
        },
        verdict: Verdict::Clean,
        check: |_, _| {},
    },
    State {
        name: "merged by rebase",
        enter: |host, tree, _| {
            commit(tree, "file", "one\ntwo\nthree\nfour\n");
            commit(tree, "b", "2");
            gits(tree, &["push -q origin HEAD:refs/heads/pull"]);
            let other = other_clone(host);
            gits(
                &other,
                &["cherry-pick origin/pull~1 origin/pull", "push -q origin main", "push -q origin :pull"],
            );
            gits(tree, &["fetch -q --prune origin"]);
        },
        verdict: Verdict::Clean,
        check: |_, _| {},
    },
    State {
        name: "work and its opposite",
        enter: |host, tree, _| {
            commit(tree, "b", "2");
            gits(tree, &["revert --no-edit HEAD"]);
            let other = other_clone(host);
            gits(&other, &["commit -q --allow-empty -m nothing", "push -q origin main"]);
            gits(tree, &["fetch -q origin"]);
        },
        verdict: Verdict::Unpushed,
        check: |found, _| assert_eq!(found.ahead[0].commits, 2),
    },
    State {
        name: "lock file",
        enter: |_, tree, _| {
            let dir = git(tree, ["rev-parse", "--absolute-git-dir"]);
            write(Path::new(dir.strip_suffix('\n').unwrap()).join("index.lock"), "");
        },
        verdict: Verdict::Unknown,
        check: |found, _| assert!(found.unknown[0].contains("index.lock"), "{found:?}"),
    },
];

/// Everything git says of a tree.
fn portrait(tree: &Path) -> String {
    let ask = |args: &[&str]| git(tree, args);
    let refs = try_git(tree, ["for-each-ref", "refs/heads", "refs/stash"]).1;
    let bisect = try_git(tree, ["rebase", "--show-current-patch"]).1;
    let fsck = ask(&["fsck", "--no-dangling", "--no-progress"]);
    let staged = ask(&["diff", "--cached", "--binary"]);
    let rest = [
        ask(&["status", "--porcelain=v2", "--branch", "--ignored"]),
        ask(&["log", "--format=%H %s", "HEAD"]),
        ask(&["reflog", "HEAD"]),
        ask(&["diff", "--binary"]),
    ];
    [refs, bisect, fsck, staged].concat() + &rest.concat()
}

pub fn each_isolation(mut test: impl FnMut(Isolation)) {
    for isolation in [Isolation::Worktree, Isolation::Clone] {
        test(isolation);
    }
}

#[test]
fn each_state_of_a_worktree_is_seen_for_what_it_is_and_survives_the_trash() {
    STATES.iter().for_each(|state| see_and_survive(state, Isolation::Worktree));
}

#[test]
fn each_state_of_a_clone_is_seen_for_what_it_is_and_survives_the_trash() {
    STATES.iter().for_each(|state| see_and_survive(state, Isolation::Clone));
}

pub fn see_and_survive(state: &State, isolation: Isolation) {
    let host = Host::new();
    let before = host.state();
    let (mount, made) = host.make(isolation);
    let branch = made.branch.unwrap();
    (state.enter)(&host, &made.tree, &branch);
    let found = host.evidence(&mount);
    assert_eq!(found.verdict(), state.verdict, "{} in a {isolation}: {found:?}", state.name);
    (state.check)(&found, &branch);
    to_the_trash_and_back(&host, &mount, &made.tree, &found);
    if state.verdict == Verdict::Clean {
        release(&host.instance_dir, &mount, LONG).unwrap();
        assert_eq!(host.state(), before, "{}", state.name);
    }
}

fn to_the_trash_and_back(
    host: &Host,
    mount: &abide_model::recipe::Mount,
    tree: &Path,
    found: &MountEvidence,
) {
    let portrayed = portrait(tree);
    release(&host.instance_dir, mount, LONG).unwrap();
    assert_eq!(
        release(&host.instance_dir, mount, LONG).unwrap().kept_branch,
        None,
        "a second release has nothing to do"
    );
    assert!(!host.repo.join(".git/worktrees").exists(), "the repository still knows the worktree");
    assert_eq!(git(&host.repo, ["for-each-ref", "refs/heads/abide"]), "", "the scratch branch is left");
    let trash = host.path("trash");
    fs::rename(&host.instance_dir, &trash).unwrap();
    host.collect_garbage();
    assert_eq!(git(&host.repo, ["worktree", "prune", "-n", "-v"]), "");
    fs::rename(&trash, &host.instance_dir).unwrap();
    restore(&host.instance_dir, mount, LONG).unwrap();
    assert_eq!(portrait(tree), portrayed);
    assert_eq!(host.evidence(mount), *found);
    let again = restore(&host.instance_dir, mount, LONG).unwrap();
    assert!(again.notices.is_empty(), "a second restore has nothing to do");
    if mount.isolation == Isolation::Worktree {
        let known = abide_git::registered(&host.repo, LONG).unwrap();
        assert_eq!(known.iter().map(|known| known.tree.as_path()).collect::<Vec<_>>(), [tree]);
        assert_eq!(
            fs::read_dir(host.instance_dir.join("git/shop")).unwrap().count(),
            2,
            "only record and baseline stay"
        );
    }
}

#[test]
fn without_a_remote_commits_are_at_risk() {
    each_isolation(|isolation| {
        let host = Host::bare();
        let (mount, made) = host.make(isolation);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
        commit(&made.tree, "a", "1");
        let against = if isolation == Isolation::Clone { "host/main" } else { "no remote" };
        assert_eq!(host.evidence(&mount).ahead, [ahead(&made.branch.unwrap(), 1, against)]);
    });
}

#[test]
fn what_the_host_has_on_a_branch_of_its_own_is_not_lost() {
    each_isolation(|isolation| {
        let host = Host::new();
        let (mount, made) = host.make(isolation);
        commit(&made.tree, "a", "1");
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Unpushed);
        git(&host.repo, ["fetch", "-q", made.tree.to_str().unwrap(), "HEAD"]);
        gits(&host.repo, &["merge -q --no-edit FETCH_HEAD"]);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "{isolation}");
    });
}

#[test]
fn the_hosts_own_branches_stashes_and_files_are_not_this_trees_work() {
    each_isolation(|isolation| {
        let host = Host::new();
        gits(&host.repo, &["branch mine"]);
        write(host.repo.join("file"), "aside\n");
        gits(&host.repo, &["checkout -q --detach", "stash push -q", "checkout -q mine"]);
        commit(&host.repo, "private", "never pushed");
        write(host.repo.join("untracked"), "x");
        let (mount, made) = host.make(isolation);
        assert_eq!(made.notices.len(), 1, "{:?}", made.notices);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
        // The host goes on, and rewrites what the tree began at.
        commit(&host.repo, "later", "x");
        write(host.repo.join("file"), "aside again\n");
        gits(&host.repo, &["stash push -q", "reset -q --hard HEAD~2"]);
        commit(&host.repo, "instead", "x");
        let found = host.evidence(&mount);
        assert_eq!(found.verdict(), Verdict::Clean, "{found:?}");
    });
}

#[test]
fn a_squash_into_the_branch_the_tree_began_at_is_recognised() {
    each_isolation(|isolation| {
        let host = Host::new();
        gits(&host.repo, &["checkout -q -b develop", "push -q -u origin develop"]);
        let (mount, made) = host.make(isolation);
        commit(&made.tree, "a", "1");
        commit(&made.tree, "b", "2");
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Unpushed);
        git(&host.repo, ["fetch", "-q", made.tree.to_str().unwrap(), "HEAD"]);
        gits(
            &host.repo,
            &["merge -q --squash FETCH_HEAD", "commit -q -m squashed", "push -q origin develop"],
        );
        gits(&host.repo, &["branch -q -m develop elsewhere"]);
        gits(&made.tree, &["fetch -q origin"]);
        let found = host.evidence(&mount);
        assert_eq!(found.verdict(), Verdict::Clean, "{isolation}: {found:?}");
    });
}

#[test]
fn another_instances_branch_does_not_make_commits_safe() {
    let host = Host::new();
    let (mount, made) = host.make(Isolation::Worktree);
    commit(&made.tree, "a", "1");
    gits(&host.repo, &["branch abide/00000000 abide/k7p9m2xq"]);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Unpushed);
}

#[test]
fn files_that_were_carried_over_or_set_up_count_only_once_they_change() {
    each_isolation(|isolation| {
        let host = Host::new();
        write(host.repo.join(".env"), "A=1");
        let mut mount = host.mount(isolation);
        mount.copy = vec![".env".into()];
        let made = abide_git::materialise(&host.wanted(&mount), &mut |_| {}).unwrap();
        write(made.tree.join("setup.env"), "made by the set-up");
        assert_eq!(host.evidence(&mount).files, [file("!!", "setup.env")]);
        host.settle(&mount);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
        write(made.tree.join(".env"), "A=2 and more");
        assert_eq!(host.evidence(&mount).files, [file("!!", ".env")]);
    });
}

#[test]
fn submodules_are_filled_without_network_and_looked_into() {
    each_isolation(|isolation| {
        let host = Host::new();
        let lib = host.path("lib");
        fs::create_dir(&lib).unwrap();
        git(&lib, ["init", "-q"]);
        commit(&lib, "code", "1");
        git(&host.repo, ["submodule", "--quiet", "add", lib.to_str().unwrap(), "vendored"]);
        gits(&host.repo, &["commit -q -m submodule"]);
        fs::rename(&lib, host.path("offline")).unwrap();
        let (mount, made) = host.make(isolation);
        let inside = made.tree.join("vendored");
        assert_eq!(fs::read_to_string(inside.join("code")).unwrap(), "1", "{:?}", made.notices);
        assert_eq!(git(&inside, ["remote", "get-url", "origin"]).trim(), lib.to_str().unwrap());
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
        write(inside.join("code"), "changed");
        let found = host.evidence(&mount);
        assert!(found.files.contains(&file(" M", "vendored/code")), "{found:?}");
        to_the_trash_and_back(&host, &mount, &made.tree, &found);
        commit(&inside, "code", "committed");
        gits(&made.tree, &["commit -q -a -m bump", "push -q origin HEAD:refs/heads/pushed"]);
        let found = host.evidence(&mount);
        assert_eq!(
            found.ahead,
            [ahead("vendored: HEAD", 1, "detached")],
            "the superproject is pushed, this is not"
        );
        to_the_trash_and_back(&host, &mount, &made.tree, &found);
    });
}

#[test]
fn a_submodule_in_a_submodule_is_filled_and_looked_into() {
    each_isolation(|isolation| {
        let host = with_submodules();
        fs::rename(host.path("inner"), host.path("offline")).unwrap();
        let (mount, made) = host.make(isolation);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "{:?}", made.notices);
        commit(&made.tree.join("outer/in/ner"), "code", "changed");
        let found = host.evidence(&mount);
        assert!(found.ahead.contains(&ahead("outer/in/ner: HEAD", 1, "detached")), "{found:?}");
    });
}

#[test]
fn what_cannot_be_found_out_counts_as_work() {
    each_isolation(|isolation| {
        let host = Host::new();
        let (mount, made) = host.make(isolation);
        let late = abide_git::evidence_of(&[(&host.instance_dir, &mount)], Duration::ZERO).remove(0);
        assert_eq!(late.verdict(), Verdict::Unknown);
        let git_dir = git(&made.tree, ["rev-parse", "--absolute-git-dir"]);
        let git_dir = Path::new(git_dir.strip_suffix('\n').unwrap());
        let broken: [(&str, &dyn Fn()); 4] = [
            ("index", &|| fs::write(git_dir.join("index"), "nonsense").unwrap()),
            ("HEAD", &|| fs::remove_file(git_dir.join("HEAD")).unwrap()),
            (".git", &|| fs::rename(made.tree.join(".git"), made.tree.join("git")).unwrap()),
            ("tree", &|| fs::remove_dir_all(&made.tree).unwrap()),
        ];
        for (what, break_it) in broken {
            break_it();
            let found = host.evidence(&mount);
            assert_eq!(found.verdict(), Verdict::Unknown, "{isolation}, {what}: {found:?}");
        }
        // The operator may still decide that it goes.
        release(&host.instance_dir, &mount, LONG).unwrap();
        assert!(!host.repo.join(".git/worktrees").exists());
    });
}

#[test]
fn a_repository_around_the_unit_does_not_answer_for_a_broken_clone() {
    let host = Host::new();
    git(&host.path("home"), ["init", "-q"]);
    let (mount, made) = host.make(Isolation::Clone);
    fs::remove_file(made.tree.join(".git/HEAD")).unwrap();
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Unknown);
}
