//! States of a tree that git itself does not mention: repositories inside it, refs of its own, worktrees elsewhere, and
//! what git could not read.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use abide_model::Isolation::{self, Clone};
use abide_model::evidence::Verdict;
use abide_testkit::{as_nobody, give_to_nobody};

use crate::common::{Host, commit, git, gits, try_git, write};
use crate::matrix::{State, ahead, each_isolation, file, other_clone, see_and_survive};

/// A repository at `lib` that the tree has as one commit, and that has been pushed as no more than that.
fn embed(tree: &Path, enter: fn(&Path)) {
    let lib = tree.join("lib");
    fs::create_dir(&lib).unwrap();
    git(&lib, ["init", "-q"]);
    commit(&lib, "code", "1");
    gits(tree, &["-c advice.addEmbeddedRepo=false add lib", "commit -q -m lib"]);
    enter(&lib);
    gits(tree, &["push -q origin HEAD:refs/heads/with-lib"]);
}

/// The same with nothing in it that is not in a remote of its own.
fn embed_pushed(host: &Host, tree: &Path, enter: fn(&Path)) {
    let (lib, theirs) = (tree.join("lib"), host.path("lib.git"));
    git(host.remote.parent().unwrap(), ["init", "-q", "--bare", "lib.git"]);
    git(tree, ["clone", "-q", theirs.to_str().unwrap(), "lib"]);
    commit(&lib, ".gitignore", "*.env\n");
    gits(&lib, &["push -q origin HEAD:main", "fetch -q"]);
    gits(tree, &["-c advice.addEmbeddedRepo=false add lib", "commit -q -m lib"]);
    gits(tree, &["push -q origin HEAD:refs/heads/with-lib"]);
    enter(&lib);
}

const STATES: &[State] = &[
    State {
        name: "an embedded repository with commits of its own",
        enter: |_, tree, _| embed(tree, |_| {}),
        verdict: Verdict::Unpushed,
        check: |found, _| assert_eq!(found.ahead, [ahead("lib: main", 1, "no remote")]),
    },
    State {
        name: "an embedded repository that is pushed",
        enter: |host, tree, _| embed_pushed(host, tree, |_| {}),
        verdict: Verdict::Clean,
        check: |_, _| {},
    },
    State {
        name: "an embedded repository with a stash",
        enter: |host, tree, _| {
            embed_pushed(host, tree, |lib| {
                write(lib.join(".gitignore"), "changed\n");
                gits(lib, &["stash push -q -m later"]);
            });
        },
        verdict: Verdict::Dirty,
        check: |found, _| assert_eq!(found.stashes, ["lib: On main: later"]),
    },
    State {
        name: "an embedded repository with another branch",
        enter: |host, tree, _| {
            embed_pushed(host, tree, |lib| {
                gits(lib, &["checkout -q -b side"]);
                commit(lib, "side", "1");
                gits(lib, &["checkout -q main"]);
            });
        },
        verdict: Verdict::Unpushed,
        check: |found, _| assert_eq!(found.ahead, [ahead("lib: side", 1, "no upstream")]),
    },
    State {
        name: "an ignored file in an embedded repository",
        enter: |host, tree, _| embed_pushed(host, tree, |lib| write(lib.join("key.env"), "k")),
        verdict: Verdict::Dirty,
        check: |found, _| assert_eq!(found.files, [file("!!", "lib/key.env")]),
    },
    State {
        name: "an embedded repository in an embedded one",
        enter: |host, tree, _| {
            embed_pushed(host, tree, |lib| {
                embed_inside(lib);
                gits(lib, &["push -q origin main", "fetch -q"]);
            });
            gits(tree, &["commit -q -a -m bump", "push -q origin HEAD:refs/heads/bumped"]);
        },
        verdict: Verdict::Unpushed,
        check: |found, _| assert_eq!(found.ahead, [ahead("lib/inner: main", 1, "no remote")]),
    },
    State {
        name: "a nested repository whose HEAD is damaged",
        enter: |_, tree, _| {
            let lib = tree.join("sub dir/lib");
            fs::create_dir(&lib).unwrap();
            git(&lib, ["init", "-q"]);
            commit(&lib, "code", "1");
            fs::remove_file(lib.join("code")).unwrap();
            fs::write(lib.join(".git/HEAD"), "ref: ref").unwrap();
        },
        verdict: Verdict::Unknown,
        check: |found, _| assert!(found.unknown[0].starts_with("sub dir/lib: "), "{found:?}"),
    },
    State {
        name: "a repository deep in what is rebuilt",
        enter: |_, tree, _| {
            let own = tree.join("target/a/b/c/d/own");
            fs::create_dir_all(&own).unwrap();
            git(&own, ["init", "-q"]);
            commit(&own, "code", "1");
        },
        verdict: Verdict::Dirty,
        check: |found, _| assert_eq!(found.files, [file("!!", "target/a/b/c/d/own/")]),
    },
    State {
        name: "commits on a ref of this worktree alone",
        enter: |_, tree, _| {
            commit(tree, "a", "1");
            gits(tree, &["update-ref refs/worktree/mine HEAD", "reset -q --hard HEAD~1"]);
        },
        verdict: Verdict::Unpushed,
        check: |found, _| assert_eq!(found.ahead, [ahead("refs/worktree/mine", 1, "no upstream")]),
    },
    State {
        name: "the same patch at another place",
        enter: |host, tree, _| {
            let block = "begin\n  a\n  b\n  c\nend\n";
            let other = other_clone(host);
            commit(&other, "table", &format!("{block}{block}"));
            gits(&other, &["push -q origin main"]);
            gits(tree, &["fetch -q origin", "reset -q --hard origin/main"]);
            let new = block.replace("  b\n", "  b\n  NEW\n");
            commit(&other, "table", &format!("{new}{block}"));
            gits(&other, &["push -q origin main"]);
            commit(tree, "table", &format!("{block}{new}"));
            gits(tree, &["fetch -q origin"]);
        },
        verdict: Verdict::Unpushed,
        check: |found, _| assert_eq!(found.ahead[0].commits, 1),
    },
    State {
        name: "a path that is too long for git",
        enter: |_, tree, _| {
            let mut dir = tree.join("deep");
            fs::create_dir(&dir).unwrap();
            let (here, part) = (rustix::fs::CWD, "x".repeat(200));
            let mut at = rustix::fs::openat(here, &dir, FLAGS, 0.into()).unwrap();
            for _ in 0..25 {
                rustix::fs::mkdirat(&at, part.as_str(), 0o700.into()).unwrap();
                at = rustix::fs::openat(&at, part.as_str(), FLAGS, 0.into()).unwrap();
                dir.push(&part);
            }
            let new = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
            rustix::fs::openat(&at, "notes", new, 0o600.into()).unwrap();
        },
        verdict: Verdict::Unknown,
        check: |found, _| assert!(found.unknown.iter().any(|why| why.contains("too long")), "{found:?}"),
    },
    State {
        name: "files that are only announced",
        enter: |_, tree, _| {
            write(tree.join("announced"), "not in the index yet\n");
            gits(tree, &["add -N announced"]);
        },
        verdict: Verdict::Dirty,
        check: |found, _| assert_eq!(found.files, [file(" A", "announced")]),
    },
];

const FLAGS: rustix::fs::OFlags = rustix::fs::OFlags::DIRECTORY;

fn embed_inside(lib: &Path) {
    let inner = lib.join("inner");
    fs::create_dir(&inner).unwrap();
    git(&inner, ["init", "-q"]);
    commit(&inner, "code", "1");
    gits(lib, &["-c advice.addEmbeddedRepo=false add inner", "commit -q -m inner"]);
}

#[test]
fn each_state_that_git_does_not_mention_is_seen_in_a_worktree_and_survives_the_trash() {
    STATES.iter().for_each(|state| see_and_survive(state, Isolation::Worktree));
}

#[test]
fn each_state_that_git_does_not_mention_is_seen_in_a_clone_and_survives_the_trash() {
    STATES.iter().chain(IN_A_CLONE).for_each(|state| see_and_survive(state, Clone));
}

/// A worktree of the clone at `tree`, outside of the instance directory.
fn link_elsewhere(host: &Host, tree: &Path, how: &str) -> std::path::PathBuf {
    let place = host.path("elsewhere");
    git(tree, ["worktree", "add", "-q", how, place.to_str().unwrap()]);
    place
}

const IN_A_CLONE: &[State] = &[
    State {
        name: "a worktree elsewhere",
        enter: |host, tree, _| drop(link_elsewhere(host, tree, "--detach")),
        verdict: Verdict::Dirty,
        check: |found, _| assert!(found.linked[0].ends_with("/elsewhere"), "{found:?}"),
    },
    State {
        name: "a commit on the detached HEAD of a worktree elsewhere",
        enter: |host, tree, _| commit(&link_elsewhere(host, tree, "--detach"), "a", "1"),
        verdict: Verdict::Dirty,
        check: |found, _| {
            let name = format!("{}: HEAD", found.linked[0]);
            assert_eq!(found.ahead, [ahead(&name, 1, "of a worktree elsewhere")]);
        },
    },
    State {
        name: "a staged file of a worktree elsewhere",
        enter: |host, tree, _| {
            let place = link_elsewhere(host, tree, "--detach");
            write(place.join("staged"), "s");
            gits(&place, &["add staged"]);
        },
        verdict: Verdict::Dirty,
        check: |found, _| assert_eq!(found.files, [file("A ", &format!("{}/staged", found.linked[0]))]),
    },
    State {
        name: "the index of a worktree elsewhere whose files are gone",
        enter: |host, tree, _| {
            let place = link_elsewhere(host, tree, "--detach");
            write(place.join("staged"), "s");
            gits(&place, &["add staged"]);
            fs::remove_dir_all(place).unwrap();
        },
        verdict: Verdict::Dirty,
        check: |found, _| assert!(found.files[0].path.ends_with("/elsewhere/staged"), "{found:?}"),
    },
    State {
        name: "a tag with a message on a commit that is pushed",
        enter: |_, tree, _| gits(tree, &["tag -a -m important v1"]),
        verdict: Verdict::Unpushed,
        check: |found, _| assert_eq!(found.refs, ["tag v1, with its message"]),
    },
    State {
        name: "a tag of a blob",
        enter: |_, tree, _| {
            write(tree.join("../blob"), "only here\n");
            let oid = git(tree, ["hash-object", "-w", "../blob"]);
            fs::remove_file(tree.join("../blob")).unwrap();
            gits(tree, &[&format!("tag kept {}", oid.trim())]);
        },
        verdict: Verdict::Unpushed,
        check: |found, _| assert_eq!(found.refs, ["kept, of a blob"]),
    },
];

#[test]
fn tags_that_the_host_has_or_that_are_older_than_the_tree_are_not_work() {
    let host = Host::new();
    gits(&host.repo, &["tag -a -m known known"]);
    let (mount, made) = host.make(Clone);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
    let other = other_clone(&host);
    let old = ["-c", "user.name=o", "-c", "user.email=o", "tag", "-a", "-m", "old", "old"];
    let out = std::process::Command::new("git")
        .current_dir(&other)
        .args(old)
        .env("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z")
        .output()
        .unwrap();
    assert!(out.status.success());
    gits(&other, &["push -q origin main old"]);
    gits(&made.tree, &["fetch -q --tags origin"]);
    let found = host.evidence(&mount);
    assert_eq!(found.verdict(), Verdict::Clean, "{found:?}");
    assert_eq!(found.guesses.len(), 1, "{found:?}");
}

#[test]
fn files_that_are_compared_with_nothing_are_not_known_to_be_clean() {
    let host = Host::new();
    let (mount, made) = host.make(Clone);
    let place = host.path("elsewhere");
    git(&made.tree, ["clone", "-q", host.remote.to_str().unwrap(), place.to_str().unwrap()]);
    git(&made.tree, ["config", "core.worktree", place.to_str().unwrap()]);
    write(made.tree.join("notes"), "precious");
    let found = host.evidence(&mount);
    assert_eq!(found.verdict(), Verdict::Unknown, "{found:?}");
    assert!(found.unknown[0].contains("core.worktree"), "{found:?}");
}

#[test]
fn two_ignored_names_that_are_not_utf8_stay_two() {
    each_isolation(|isolation| {
        let host = Host::new();
        let (mount, made) = host.make(isolation);
        let name = |bytes: &[u8]| made.tree.join(OsStr::from_bytes(bytes));
        write(name(b"caf\xff.env"), "given");
        host.settle(&mount);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
        let given = fs::metadata(name(b"caf\xff.env")).unwrap().modified().unwrap();
        write(name(b"caf\xfe.env"), "mines");
        let new = fs::File::options().write(true).open(name(b"caf\xfe.env")).unwrap();
        new.set_modified(given).unwrap();
        assert_eq!(host.evidence(&mount).files, [file("!!", "\"caf\\376.env\"")], "{isolation}");
    });
}

#[test]
fn a_merge_driver_that_keeps_one_side_does_not_make_work_merged() {
    each_isolation(|isolation| {
        let host = Host::new();
        commit(&host.repo, ".gitattributes", "lock merge=ours\n");
        commit(&host.repo, "lock", "1\n");
        gits(&host.repo, &["push -q origin main"]);
        let (mount, made) = host.make(isolation);
        gits(&made.tree, &["config merge.ours.driver true"]);
        commit(&made.tree, "lock", "mine, and long\n");
        let other = other_clone(&host);
        commit(&other, "lock", "theirs\n");
        gits(&other, &["push -q origin main"]);
        gits(&made.tree, &["fetch -q origin"]);
        assert_eq!(host.evidence(&mount).ahead.len(), 1, "{isolation}");
    });
}

#[test]
fn what_was_merged_and_changed_again_since_is_merged_though_it_may_be_a_guess() {
    each_isolation(|isolation| {
        let host = Host::new();
        let (mount, made) = host.make(isolation);
        commit(&made.tree, "file", "one\ntwo\nthree\nfour\n");
        commit(&made.tree, "b", "2");
        let other = other_clone(&host);
        git(&other, ["fetch", "-q", made.tree.to_str().unwrap(), "HEAD"]);
        gits(&other, &["merge -q --squash FETCH_HEAD", "commit -q -m squashed"]);
        for n in 0..10 {
            commit(&other, "file", &format!("rewritten {}\n", "x".repeat(n)));
        }
        gits(&other, &["rm -q b", "commit -q -m gone", "push -q origin main"]);
        gits(&made.tree, &["fetch -q origin"]);
        let found = host.evidence(&mount);
        assert_eq!(found.verdict(), Verdict::Clean, "{isolation}: {found:?}");
        assert!(!found.guesses.is_empty(), "the commits themselves exist nowhere else: {found:?}");
    });
}

#[test]
fn the_branch_that_is_shown_is_the_one_that_is_checked_out() {
    each_isolation(|isolation| {
        let host = Host::new();
        let (mount, made) = host.make(isolation);
        gits(&made.tree, &["checkout -q -b feature/x"]);
        assert_eq!(host.evidence(&mount).branch.as_deref(), Some("feature/x"));
        gits(&made.tree, &["checkout -q --detach"]);
        assert_eq!(host.evidence(&mount).branch, None);
    });
}

#[test]
fn what_a_person_leaves_between_two_set_ups_stays_work() {
    each_isolation(|isolation| {
        let host = Host::new();
        let (mount, made) = host.make(isolation);
        let before = || abide_git::before_setup(&host.instance_dir, &mount, crate::common::LONG).unwrap();
        let settle =
            |before: &_| abide_git::settle(&host.instance_dir, &mount, before, crate::common::LONG).unwrap();
        let first = before();
        write(made.tree.join("half.env"), "by the set-up that failed");
        settle(&first);
        write(made.tree.join("notes.env"), "by hand");
        let second = before();
        write(made.tree.join("whole.env"), "by the set-up that did not");
        settle(&second);
        assert_eq!(host.evidence(&mount).files, [file("!!", "notes.env")], "{isolation}");
    });
}

#[test]
fn a_directory_that_git_may_not_read_is_not_known_to_be_clean() {
    use std::os::unix::fs::PermissionsExt as _;
    each_isolation(|isolation| {
        let host = Host::new();
        let (mount, made) = host.make(isolation);
        write(made.tree.join("locked/work"), "w");
        let mode =
            |mode| fs::set_permissions(made.tree.join("locked"), fs::Permissions::from_mode(mode)).unwrap();
        mode(0o000);
        give_to_nobody(&host.path(""));
        as_nobody(|| {
            let found = host.evidence(&mount);
            assert_eq!(found.verdict(), Verdict::Unknown, "{isolation}: {found:?}");
            let unreadable = format!("{:?}", found.unknown);
            assert!(unreadable.contains("locked"), "{isolation}: {unreadable}");
            assert!(!try_git(&made.tree, ["diff", "--quiet"]).1.contains("fatal"));
        });
        mode(0o700);
    });
}

#[test]
fn what_people_write_into_the_git_directory_of_a_clone_counts_and_what_git_writes_does_not() {
    let host = Host::new();
    let (mount, made) = host.make(Clone);
    let at = |name: &str| made.tree.join(".git").join(name);
    gits(
        &made.tree,
        &[
            "fetch -q --all", "checkout -q -b feature", "commit -q --allow-empty -m x",
            "push -q -u origin feature", "remote add other /nowhere", "config user.name somebody", "gc -q",
            "update-index --split-index", "notes add -m n HEAD", "update-ref -d refs/notes/commits",
            "merge -q --no-ff --no-edit main", "bisect start", "bisect reset",
        ],
    );
    write(at("opencode"), "0123");
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "{:?}", host.evidence(&mount));
    write(at("hooks/pre-push"), "make check");
    write(at("notes.txt"), "remember");
    write(at("scratch/deep/file"), "x");
    write(at("description"), "what this is");
    write(at("info/exclude"), "*.mine");
    gits(&made.tree, &["config alias.st status"]);
    let found: Vec<_> = host.evidence(&mount).files.into_iter().map(|change| change.path).collect();
    let expected = [
        "config: alias.st", "description", "hooks/pre-push", "info/exclude", "notes.txt", "scratch/deep/file",
    ];
    assert_eq!(found, expected.map(|name| format!(".git/{name}")));
    host.settle(&mount);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "what a set-up put there is given");
}
