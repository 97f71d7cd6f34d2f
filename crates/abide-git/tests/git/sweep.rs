//! Worktrees whose instance is gone.

use std::fs;

use abide_git::{Forgotten, forget, registered};
use abide_model::Isolation::Worktree;

use crate::common::{Host, LONG, commit, git, gits, id};

fn the_only(host: &Host) -> abide_git::Registration {
    let mut all = registered(&host.repo, LONG).unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn only_worktrees_of_instances_are_found_and_they_say_whose_they_are() {
    let host = Host::new();
    let theirs = host.path("theirs");
    git(&host.repo, ["worktree", "add", "-q", "--lock", "--reason", "mine", theirs.to_str().unwrap()]);
    let (_, made) = host.make(Worktree);
    let found = the_only(&host);
    assert_eq!((found.id, found.tree), (id(), made.tree));
    assert_eq!(found.branch, made.branch);
}

#[test]
fn a_lost_worktree_without_work_leaves_nothing() {
    let host = Host::new();
    let before = host.state();
    host.make(Worktree);
    assert_eq!(forget(&the_only(&host), LONG).unwrap(), Forgotten::Kept("its tree is still there"));
    fs::remove_dir_all(&host.instance_dir).unwrap();
    assert_eq!(forget(&the_only(&host), LONG).unwrap(), Forgotten::Whole);
    assert_eq!(host.state(), before);
}

#[test]
fn commits_that_nothing_else_has_keep_their_branch() {
    let host = Host::new();
    let (_, made) = host.make(Worktree);
    commit(&made.tree, "a", "1");
    fs::remove_dir_all(&host.instance_dir).unwrap();
    assert_eq!(forget(&the_only(&host), LONG).unwrap(), Forgotten::KeptBranch("abide/k7p9m2xq".into()));
    assert!(registered(&host.repo, LONG).unwrap().is_empty());
    git(&host.repo, ["rev-parse", "abide/k7p9m2xq"]);
}

#[test]
fn commits_without_a_branch_keep_the_whole_registration() {
    let host = Host::new();
    let (_, made) = host.make(Worktree);
    gits(&made.tree, &["checkout -q --detach"]);
    commit(&made.tree, "a", "1");
    fs::remove_dir_all(&host.instance_dir).unwrap();
    assert!(matches!(forget(&the_only(&host), LONG).unwrap(), Forgotten::Kept(_)));
    the_only(&host);
}

#[test]
fn a_worktree_that_was_unlocked_is_not_unregistered() {
    let host = Host::new();
    host.make(Worktree);
    let found = the_only(&host);
    fs::remove_dir_all(&host.instance_dir).unwrap();
    git(&host.repo, ["worktree", "unlock", found.tree.to_str().unwrap()]);
    assert!(matches!(forget(&found, LONG).unwrap(), Forgotten::Kept(_)));
}
