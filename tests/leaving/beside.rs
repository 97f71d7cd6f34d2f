//! What is in an instance directory beside the trees that abide made: somebody's work like any other.

use abide_testkit::crash_points;

use crate::common::Host;
use crate::repo::{git, host_with_repo, load, repo, traces, tree};

/// What somebody does next to the tree, and which entry that makes.
type Doing = (&'static str, &'static str, fn(&Host, &std::path::Path));

const WORKTREE: Doing = ("worktree", "side", |host, tree| {
    git(host, tree, &["worktree", "add", "-q", "../side", "-b", "side"]);
    std::fs::write(tree.join("../side/work"), "precious\n").unwrap();
    git(host, &tree.join("../side"), &["add", "work"]);
});

#[test]
fn work_beside_a_tree_is_at_risk() {
    let file: Doing =
        ("worktree", "notes.md", |_, tree| std::fs::write(tree.join("../notes.md"), "notes").unwrap());
    let repository: Doing = ("clone", "lib", |host, tree| {
        git(host, tree, &["init", "-q", "../lib"]);
        git(host, &tree.join("../lib"), &["commit", "-q", "--allow-empty", "-m", "work"]);
    });
    for (isolation, entry, make) in [WORKTREE, file, repository] {
        let host = host_with_repo();
        let id = load(&host, &["--isolation", isolation]);
        make(&host, &tree(&host, &id));
        host.abide(["send", &id, "exit 0"]).ok();
        host.wait_for_state(&id, "restorable (dirty)");
        let said = host.abide(["explain", &id]).ok();
        assert!(said.contains(&format!("?? ../{entry}")), "{said}");
    }
}

#[test]
fn a_worktree_that_was_made_inside_an_instance_directory_goes_with_it_and_comes_back_as_it_was() {
    for place in ["../side", "side"] {
        let host = host_with_repo();
        let id = load(&host, &["--isolation", "worktree"]);
        let side = tree(&host, &id).join(place);
        git(&host, &tree(&host, &id), &["worktree", "add", "-q", "--detach", place]);
        std::fs::write(side.join("committed"), "x\n").unwrap();
        git(&host, &side, &["add", "-A"]);
        git(&host, &side, &["commit", "-qm", "only here"]);
        std::fs::write(side.join("staged"), "y\n").unwrap();
        git(&host, &side, &["add", "-A"]);
        let look = || {
            ["rev-parse HEAD", "status --porcelain", "diff --cached", "log --oneline"]
                .map(|args| git(&host, &side, &args.split(' ').collect::<Vec<_>>()))
        };
        let before = look();
        host.abide(["eject", &id, "--clean"]).ok();
        assert!(traces(&host).is_empty(), "{:?}", traces(&host));
        git(&host, &repo(&host), &["gc", "-q", "--prune=now"]);
        host.abide(["trash", "restore", &id]).ok();
        assert_eq!(look(), before, "{place}");
        assert_eq!(traces(&host).len(), 3, "{:?}", traces(&host));
        // Nothing of that is in the way of doing it again.
        host.abide(["eject", &id, "--clean"]).ok();
        assert!(traces(&host).is_empty(), "{:?}", traces(&host));
        host.abide(["trash", "restore", &id]).ok();
        assert_eq!(look(), before, "{place}");
    }
}

#[test]
fn whatever_cuts_that_short_the_next_look_finishes_it() {
    let points = crash_points("../abide-git").into_iter();
    for point in points.filter(|p| p.starts_with("git.release") || p.starts_with("git.restore")) {
        let host = host_with_repo();
        let id = load(&host, &["--isolation", "worktree"]);
        (WORKTREE.2)(&host, &tree(&host, &id));
        let killed = |args: &[&str]| {
            let mut command = host.command(host.program());
            let crashed =
                !command.args(args).env("ABIDE_CRASH_AT", &point).output().unwrap().status.success();
            host.abide(["ls"]).ok();
            crashed
        };
        host.abide(["stop", &id]).ok();
        let ejecting = killed(&["eject", &id, "--clean"]);
        assert!(traces(&host).is_empty(), "{point}: {:?}", traces(&host));
        assert!(killed(&["trash", "restore", &id]) || ejecting, "{point} was not reached");
        let side = tree(&host, &id).join("../side");
        assert_eq!(git(&host, &side, &["status", "--porcelain"]), "A  work\n", "{point}");
        assert_eq!(git(&host, &side, &["symbolic-ref", "--short", "HEAD"]), "side\n", "{point}");
        assert_eq!(traces(&host).len(), 3, "{point}: {:?}", traces(&host));
    }
}

#[test]
fn no_tree_goes_while_another_instance_works_in_it() {
    let host = host_with_repo();
    for policy in [&[][..], &["--clean"]] {
        let id = load(&host, &[&["--isolation", "worktree"], policy].concat());
        let mut command = host.command(host.program());
        command.current_dir(tree(&host, &id)).args(["load", "stub", "--detach", "--new"]);
        let out = command.output().unwrap();
        let guest = String::from_utf8(out.stdout).unwrap()[3..11].to_owned();
        host.abide(["send", &id, "exit 0"]).ok();
        host.wait_for_state(&id, "restorable (unknown)");
        let said = host.abide(["explain", &id]).ok();
        assert!(said.contains(&format!("ab-{guest} works in it")), "{said}");
        let refused = host.abide(["eject", &id, "--clean"]).fails(1);
        assert!(refused.contains(&format!("ab-{guest} works in it")), "{refused}");
        host.abide(["eject", &guest, "--clean"]).ok();
        host.abide(["eject", &id, "--clean"]).ok();
        assert_eq!(host.state(&id), "gone");
    }
}
