//! Work in places where it is easily overlooked.

use std::fs;
use std::path::Path;

use abide_model::Isolation;
use abide_model::evidence::Verdict;

use crate::common::{Host, commit, git, gits, write};
use crate::matrix::{ahead, each_isolation, file, other_clone};

#[test]
fn a_commit_that_only_another_ref_of_the_clone_reaches_is_not_kept_elsewhere() {
    for refs in
        [&["update-ref refs/wip/x HEAD"][..], &["update-ref refs/wip/x HEAD", "reset -q --hard HEAD~1"]]
    {
        let host = Host::new();
        let (mount, made) = host.make(Isolation::Clone);
        commit(&made.tree, "a", "1");
        gits(&made.tree, refs);
        let found = host.evidence(&mount);
        assert!(found.ahead.contains(&ahead("refs/wip/x", 1, "no upstream")), "{found:?}");
    }
}

#[test]
fn an_annotated_tag_that_alone_has_a_commit_of_the_clone_counts() {
    let host = Host::new();
    let (mount, made) = host.make(Isolation::Clone);
    commit(&made.tree, "a", "1");
    gits(&made.tree, &["tag -a -m first v1", "reset -q --hard HEAD~1"]);
    assert_eq!(host.evidence(&mount).ahead, [ahead("v1", 1, "no upstream")]);
}

#[test]
fn notes_in_a_clone_count_unless_the_host_has_them() {
    let host = Host::new();
    gits(&host.repo, &["notes add -m known"]);
    let (mount, made) = host.make(Isolation::Clone);
    gits(&made.tree, &["fetch -q host refs/notes/commits:refs/notes/commits"]);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
    gits(&made.tree, &["notes append -m important"]);
    assert_eq!(host.evidence(&mount).ahead, [ahead("refs/notes/commits", 1, "no upstream")]);
}

/// Lets upstream have what `body` does in another clone, and the tree know of it.
fn upstream(host: &Host, tree: &Path, body: impl FnOnce(&Path)) {
    let other = host.path("other");
    if !other.exists() {
        other_clone(host);
    }
    body(&other);
    gits(&other, &["push -q origin main"]);
    gits(tree, &["fetch -q origin"]);
}

#[test]
fn work_inside_a_merge_commit_is_not_merged_with_the_commits_beside_it() {
    each_isolation(|isolation| {
        let host = Host::new();
        let (mount, made) = host.make(isolation);
        let tree = &made.tree;
        commit(tree, "a", "1");
        gits(tree, &["push -q origin HEAD:refs/heads/pull"]);
        upstream(&host, tree, |_| {});
        gits(tree, &["merge -q --no-commit origin/main"]);
        commit(tree, "precious", "only in the merge\n");
        upstream(&host, tree, |other| {
            gits(other, &["fetch -q origin", "cherry-pick origin/pull", "push -q origin :pull"]);
        });
        gits(tree, &["fetch -q --prune origin"]);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Unpushed, "{isolation}");
        upstream(&host, tree, |other| commit(other, "precious", "only in the merge\n"));
        let found = host.evidence(&mount);
        assert_eq!(found.verdict(), Verdict::Clean, "merging it would change nothing any more: {found:?}");
        assert!(!found.guesses.is_empty(), "its own commits exist nowhere else: {found:?}");
    });
}

#[test]
fn a_branch_with_merges_from_upstream_that_was_squashed_is_merged() {
    each_isolation(|isolation| {
        let host = Host::new();
        let (mount, made) = host.make(isolation);
        let tree = &made.tree;
        commit(tree, "a", "1");
        upstream(&host, tree, |_| {});
        gits(tree, &["merge -q --no-edit origin/main"]);
        commit(tree, "b", "2");
        gits(tree, &["push -q origin HEAD:refs/heads/pull"]);
        upstream(&host, tree, |other| {
            gits(other, &["fetch -q origin", "merge -q --squash origin/pull", "commit -q -m squashed"]);
            gits(other, &["push -q origin :pull"]);
        });
        gits(tree, &["fetch -q --prune origin"]);
        let found = host.evidence(&mount);
        assert_eq!(found.verdict(), Verdict::Clean, "{isolation}: {found:?}");
    });
}

#[test]
fn work_that_differs_from_upstreams_in_whitespace_alone_is_not_merged() {
    each_isolation(|isolation| {
        let host = Host::new();
        let (mount, made) = host.make(isolation);
        commit(&made.tree, "p.py", "if x:\n    a()\n    b()\n");
        upstream(&host, &made.tree, |other| commit(other, "p.py", "if x:\n    a()\nb()\n"));
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Unpushed, "{isolation}");
    });
}

/// A tree whose set-up made what `set_up` makes.
fn settled(host: &Host, set_up: impl FnOnce(&Path)) -> (abide_model::recipe::Mount, std::path::PathBuf) {
    let (mount, made) = host.make(Isolation::Worktree);
    set_up(&made.tree);
    host.settle(&mount);
    let found = host.evidence(&mount);
    assert_eq!(found.verdict(), Verdict::Clean, "{found:?}");
    (mount, made.tree)
}

fn repository(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    git(dir, ["init", "-q"]);
    commit(dir, "p", "1");
}

#[test]
fn a_large_ignored_directory_that_was_there_counts_once_something_in_it_changes() {
    let host = Host::new();
    let (mount, tree) = settled(&host, |tree| {
        (0..1100).for_each(|n| write(tree.join(format!("secrets/r{n}")), "old"));
    });
    let is_one_entry = |why| assert_eq!(host.evidence(&mount).files, [file("!!", "secrets/")], "{why}");
    write(tree.join("secrets/r1"), "new");
    is_one_entry("changed");
    host.settle(&mount);
    write(tree.join("secrets/deep/new"), "");
    is_one_entry("added");
}

#[test]
fn an_ignored_repository_that_was_there_counts_once_something_in_it_changes() {
    let changes: [fn(&Path); 4] = [
        |repo| commit(repo, "q", "2"),
        |repo| write(repo.join("p"), "changed"),
        |repo| write(repo.join("bin/deploy"), "its own sources, whatever they are called"),
        |repo| {
            commit(repo, "q", "2");
            gits(repo, &["reset -q --hard HEAD~1"]);
        },
    ];
    for change in changes {
        let host = Host::new();
        let (mount, tree) = settled(&host, |tree| repository(&tree.join("secrets/other")));
        gits(&tree.join("secrets/other"), &["status"]);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "looking is not work");
        change(&tree.join("secrets/other"));
        assert_eq!(host.evidence(&mount).files, [file("!!", "secrets/other/")]);
    }
}

#[test]
fn a_repository_in_a_directory_that_is_rebuilt_counts_unless_it_was_only_fetched() {
    for place in ["target", "target/own", "target/deep/own"] {
        let host = Host::new();
        let (mount, tree) = settled(&host, |tree| write(tree.join("target/debug/big"), "rebuilt"));
        let from = host.remote.to_str().unwrap();
        git(&tree, ["clone", "-q", from, "target/_deps/fetched"]);
        gits(&tree.join("target/_deps/fetched"), &["checkout -q HEAD~1", "reset -q --hard"]);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
        repository(&tree.join(place));
        assert_eq!(host.evidence(&mount).files, [file("!!", &format!("{place}/"))]);
        host.settle(&mount);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
        commit(&tree.join("target/_deps/fetched"), "q", "2");
        assert!(host.evidence(&mount).verdict() != Verdict::Clean);
    }
}

#[test]
fn ignored_files_in_a_submodule_count_like_those_outside() {
    each_isolation(|isolation| {
        let host = Host::new();
        let lib = host.path("lib");
        repository(&lib);
        commit(&lib, ".gitignore", "*.env\ntarget/\n");
        git(&host.repo, ["submodule", "--quiet", "add", lib.to_str().unwrap(), "vendored"]);
        gits(&host.repo, &["commit -q -m submodule"]);
        let (mount, made) = host.make(isolation);
        let inside = made.tree.join("vendored");
        write(inside.join("set-up.env"), "given");
        host.settle(&mount);
        write(inside.join("target/big"), "rebuilt");
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "{isolation}");
        write(inside.join("secret.env"), "k");
        assert_eq!(host.evidence(&mount).files, [file("!!", "vendored/secret.env")], "{isolation}");
    });
}

#[test]
fn files_that_git_is_configured_to_overlook_count() {
    each_isolation(|isolation| {
        let flags = ["--assume-unchanged", "--skip-worktree"];
        for (flag, index) in flags.iter().flat_map(|flag| ["2", "4", "split"].map(|index| (flag, index))) {
            let host = Host::new();
            let (mount, made) = host.make(isolation);
            git(&made.tree, ["update-index", flag, "sub dir/deep"]);
            match index {
                "split" => git(&made.tree, ["update-index", "--split-index"]),
                version => git(&made.tree, ["update-index", "--index-version", version]),
            };
            host.settle(&mount);
            assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "by the set-up");
            write(made.tree.join("sub dir/deep"), "precious");
            let found = host.evidence(&mount);
            assert_eq!(found.files, [file("!!", "sub dir/deep")], "{isolation}, {flag}, {index}");
            fs::remove_file(made.tree.join("sub dir/deep")).unwrap();
            assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "nothing is left to lose");
        }
    });
}
