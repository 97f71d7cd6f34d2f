//! Trees whose place, whose name in the repository or whose kind of repository is not the usual one.

use std::fs;
use std::path::{Path, PathBuf};

use abide_git::{WantedTree, evidence_of, materialise, registered, release, restore};
use abide_model::Isolation::{Clone, Worktree};
use abide_model::evidence::{MountEvidence, Verdict};
use abide_model::recipe::Mount;
use abide_testkit::cannot_run;

use crate::common::{Host, LONG, commit, git, gits, id, try_git, write};

fn evidence(instance_dir: &Path, mount: &Mount) -> MountEvidence {
    evidence_of(&[(instance_dir, mount)], LONG).remove(0)
}

fn rev(dir: &Path, name: &str) -> String {
    git(dir, ["rev-parse", name]).trim().to_owned()
}

/// A host with the submodule `outer`, which has the submodule `in/ner`.
pub fn with_submodules() -> Host {
    let host = Host::new();
    let repository = |name: &str| {
        let dir = host.path(name);
        fs::create_dir(&dir).unwrap();
        git(&dir, ["init", "-q"]);
        commit(&dir, "code", "1");
        dir
    };
    let (outer, inner) = (repository("outer"), repository("inner"));
    git(&outer, ["submodule", "--quiet", "add", inner.to_str().unwrap(), "in/ner"]);
    gits(&outer, &["commit -q -m submodule"]);
    git(&host.repo, ["submodule", "--quiet", "add", outer.to_str().unwrap(), "outer"]);
    gits(&host.repo, &["submodule --quiet update --init --recursive", "commit -q -m submodule"]);
    host
}

/// A tree of another instance of the same repository.
fn another(host: &Host, mount: &Mount) -> (PathBuf, PathBuf) {
    let instance_dir = host.instance_dir.with_file_name("00000000");
    let wanted =
        WantedTree { id: "00000000".parse().unwrap(), instance_dir: &instance_dir, ..host.wanted(mount) };
    let tree = materialise(&wanted, &mut |_| {}).unwrap().tree;
    (instance_dir, tree)
}

#[test]
fn submodules_come_back_tied_to_their_own_tree_and_not_to_the_one_that_has_its_name_now() {
    for moved in [false, true] {
        let mut host = with_submodules();
        let (mount, _) = host.make(Worktree);
        release(&host.instance_dir, &mount, LONG).unwrap();
        let (instance_dir, theirs) = another(&host, &mount);
        if moved {
            let new = host.path("new home/k7p9m2xq");
            fs::create_dir(new.parent().unwrap()).unwrap();
            fs::rename(&host.instance_dir, &new).unwrap();
            host.instance_dir = new;
        }
        restore(&host.instance_dir, &mount, LONG).unwrap();
        let tree = host.instance_dir.join("tree/shop");
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "{:?}", host.evidence(&mount));
        for module in ["outer", "outer/in/ner"] {
            let at = rev(&tree.join(module), "--absolute-git-dir");
            assert!(Path::new(&at).starts_with(rev(&tree, "--absolute-git-dir")), "{module} leads to {at}");
            let changed = theirs.join(module).join("code");
            write(&changed, "theirs");
            gits(&tree.join(module), &["checkout -q ."]);
            assert_eq!(fs::read_to_string(&changed).unwrap(), "theirs", "{module}");
            commit(&tree.join(module), "code", "ours, and long");
        }
        let ahead = |found: MountEvidence| found.ahead.into_iter().map(|a| a.branch).collect::<Vec<_>>();
        assert_eq!(ahead(host.evidence(&mount)), ["outer: HEAD", "outer/in/ner: HEAD"]);
        assert_eq!(ahead(evidence(&instance_dir, &mount)), [""; 0]);
    }
}

#[test]
fn a_submodule_that_is_tied_to_another_tree_is_not_known_to_be_clean() {
    let host = with_submodules();
    let (mount, made) = host.make(Worktree);
    let (_, theirs) = another(&host, &mount);
    fs::copy(theirs.join("outer/.git"), made.tree.join("outer/.git")).unwrap();
    let found = host.evidence(&mount);
    assert_eq!(found.verdict(), Verdict::Unknown, "{found:?}");
    assert!(found.unknown[0].contains("outer"), "{found:?}");
}

/// A host with refs that only git can read.
#[track_caller]
fn with_reftable() -> Host {
    let mut host = Host::new();
    let (from, to) = (host.remote.clone(), host.path("reftable"));
    let args = ["clone", "-q", "--ref-format=reftable", from.to_str().unwrap(), to.to_str().unwrap()];
    if !try_git(&from, args).0 {
        cannot_run("a git that can make a reftable repository", "install git 2.45 or newer");
    }
    host.repo = to;
    host
}

#[test]
fn with_reftable_a_commit_that_only_the_log_of_head_names_is_found() {
    for isolation in [Worktree, Clone] {
        let host = with_reftable();
        let (mount, made) = host.make(isolation);
        if isolation == Clone {
            fs::remove_dir_all(made.tree.join(".git/logs")).unwrap();
            gits(&made.tree, &["refs migrate --ref-format=reftable"]);
        }
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "{:?}", host.evidence(&mount));
        gits(&made.tree, &["checkout -q --detach"]);
        commit(&made.tree, "a", "1");
        gits(&made.tree, &["checkout -q -"]);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Unpushed, "{:?}", host.evidence(&mount));
    }
}

#[test]
fn with_reftable_a_tree_comes_back_from_the_trash_with_all_it_had() {
    let host = with_reftable();
    let before = host.state();
    let (mount, made) = host.make(Worktree);
    commit(&made.tree, "branch", "1");
    gits(&made.tree, &["checkout -q --detach"]);
    commit(&made.tree, "left", "1");
    let left = rev(&made.tree, "HEAD");
    gits(&made.tree, &["checkout -q --detach HEAD~1"]);
    commit(&made.tree, "marked", "1");
    gits(&made.tree, &["update-ref refs/worktree/mark HEAD", "reset -q --hard HEAD~1"]);
    let marked = rev(&made.tree, "refs/worktree/mark");
    commit(&made.tree, "head", "1");
    write(made.tree.join("staged"), "s");
    gits(&made.tree, &["add staged"]);
    let portrait = || {
        git(&made.tree, ["status", "--porcelain=v2", "--branch"])
            + &git(&made.tree, ["diff", "--cached"])
            + &git(&made.tree, ["reflog"])
    };
    let (was, found) = (portrait(), host.evidence(&mount));
    assert_eq!(found.verdict(), Verdict::Dirty);
    release(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(host.state(), before);
    host.collect_garbage();
    assert!(!try_git(&host.repo, ["cat-file", "-e", &left]).0);
    restore(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(portrait(), was);
    assert_eq!(host.evidence(&mount), found);
    for oid in [left, marked] {
        gits(&made.tree, &[&format!("cat-file -e {oid}")]);
    }
    git(&made.tree, ["fsck", "--no-progress"]);
}

#[test]
fn with_reftable_a_branch_that_is_used_elsewhere_stays_and_one_that_was_taken_gets_a_new_name() {
    let host = with_reftable();
    let (mount, made) = host.make(Worktree);
    commit(&made.tree, "a", "1");
    assert_eq!(registered(&host.repo, LONG).unwrap()[0].branch, made.branch);
    let head = rev(&made.tree, "HEAD");
    release(&host.instance_dir, &mount, LONG).unwrap();
    gits(&host.repo, &["branch abide/k7p9m2xq main"]);
    let restored = restore(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(restored.branch.as_deref(), Some("abide/k7p9m2xq-2"));
    assert_eq!(git(&made.tree, ["branch", "--show-current"]).trim(), "abide/k7p9m2xq-2");
    assert_eq!(rev(&made.tree, "HEAD"), head);
    gits(&made.tree, &["checkout -q --detach"]);
    gits(&host.repo, &["checkout -q abide/k7p9m2xq-2"]);
    let released = release(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(released.kept_branch.as_deref(), Some("abide/k7p9m2xq-2"));
    assert_eq!(rev(&host.repo, "HEAD"), head);
}

#[test]
fn with_reftable_a_tree_on_a_branch_of_the_hosts_comes_back_at_its_commit() {
    let host = with_reftable();
    let (mount, made) = host.make(Worktree);
    gits(&made.tree, &["checkout -q -b feature"]);
    commit(&made.tree, "a", "1");
    let head = rev(&made.tree, "HEAD");
    release(&host.instance_dir, &mount, LONG).unwrap();
    gits(&host.repo, &["checkout -q feature"]);
    commit(&host.repo, "b", "2");
    let restored = restore(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(restored.notices.len(), 1, "{restored:?}");
    assert_eq!(rev(&made.tree, "HEAD"), head);
    assert_eq!(git(&made.tree, ["status", "--porcelain"]), "");
}

#[test]
fn with_reftable_a_lost_worktree_is_forgotten_only_without_commits_of_its_own() {
    for own in [false, true] {
        let host = with_reftable();
        let (_, made) = host.make(Worktree);
        gits(&made.tree, &["checkout -q --detach"]);
        if own {
            commit(&made.tree, "a", "1");
        }
        fs::remove_dir_all(&host.instance_dir).unwrap();
        let found = registered(&host.repo, LONG).unwrap().remove(0);
        let forgotten = abide_git::forget(&found, LONG).unwrap();
        assert_eq!(forgotten == abide_git::Forgotten::Whole, !own, "{forgotten:?}");
        assert_eq!(registered(&host.repo, LONG).unwrap().len(), usize::from(own));
    }
}

#[test]
fn with_reftable_a_head_that_left_commits_for_an_empty_branch_is_neither_clean_nor_given_up() {
    let host = with_reftable();
    let (mount, made) = host.make(Worktree);
    gits(&made.tree, &["checkout -q --detach"]);
    commit(&made.tree, "a", "1");
    let left = rev(&made.tree, "HEAD");
    gits(&made.tree, &["checkout -q --orphan empty", "rm -rfq ."]);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Unknown, "{:?}", host.evidence(&mount));
    let before = host.state();
    let error = release(&host.instance_dir, &mount, LONG).unwrap_err().to_string();
    assert!(error.contains("commit something there"), "{error}");
    assert_eq!(host.state(), before);
    commit(&made.tree, "b", "1");
    release(&host.instance_dir, &mount, LONG).unwrap();
    host.collect_garbage();
    restore(&host.instance_dir, &mount, LONG).unwrap();
    gits(&made.tree, &[&format!("cat-file -e {left}")]);
}

#[test]
fn a_clone_of_a_partial_clone_fetches_what_it_has_not() {
    let mut host = Host::new();
    for text in ["two\n", "three\n"] {
        commit(&host.repo, "file", text);
    }
    gits(&host.repo, &["push -q origin main"]);
    gits(&host.remote, &["config uploadpack.allowFilter true", "config uploadpack.allowAnySHA1InWant true"]);
    host.repo = host.path("partial");
    let url = format!("file://{}", host.remote.display());
    git(&host.path("."), ["clone", "-q", "--filter=blob:none", &url, host.repo.to_str().unwrap()]);
    let (mount, made) = host.make(Clone);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "{:?}", host.evidence(&mount));
    let log = git(&made.tree, ["log", "-p", "--format="]);
    assert!(log.contains("+two"), "{log}");
    assert_eq!(rev(&made.tree, "HEAD"), rev(&host.repo, "HEAD"));
    commit(&made.tree, "a", "1");
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Unpushed);
}

#[test]
fn a_tree_whose_home_has_moved_leaves_nothing_in_the_repository_and_comes_back() {
    let mut host = with_submodules();
    let (mount, made) = host.make(Worktree);
    release(&host.instance_dir, &mount, LONG).unwrap();
    let before = host.state();
    restore(&host.instance_dir, &mount, LONG).unwrap();
    let second = Mount { tree: Some("shop-2".into()), ..mount.clone() };
    materialise(&host.wanted(&second), &mut |_| {}).unwrap();
    commit(&made.tree, "a", "1");
    commit(&made.tree.join("outer/in/ner"), "code", "changed");
    write(made.tree.join("staged"), "s");
    gits(&made.tree, &["add staged"]);
    let portrait = |tree: &Path| {
        git(tree, ["status", "--porcelain=v2", "--branch"])
            + &git(tree, ["diff", "--cached"])
            + &git(&tree.join("outer/in/ner"), ["log"])
    };
    let was = portrait(&made.tree);
    // One directory deeper: git writes some of the ways between a tree and its submodules down as relative.
    fs::create_dir(host.path("moved")).unwrap();
    fs::rename(host.path("home"), host.path("moved/home")).unwrap();
    host.instance_dir = host.path("moved/home/instances").join(id().as_str());
    let found = host.evidence(&second);
    assert_eq!(found.verdict(), Verdict::Unknown, "git does not see into its submodules: {found:?}");
    for mount in [&second, &mount] {
        release(&host.instance_dir, mount, LONG).unwrap();
    }
    assert_eq!(host.state(), before);
    host.collect_garbage();
    for mount in [&mount, &second] {
        restore(&host.instance_dir, mount, LONG).unwrap();
    }
    assert_eq!(portrait(&host.instance_dir.join("tree/shop")), was);
    let trees: Vec<_> = registered(&host.repo, LONG).unwrap().into_iter().map(|r| r.tree).collect();
    assert!(trees.contains(&host.instance_dir.join("tree/shop")) && trees.len() == 2, "{trees:?}");
}

#[test]
fn a_copy_of_a_home_does_not_take_the_trees_of_the_one_it_was_copied_from() {
    let host = Host::new();
    let (mount, made) = host.make(Worktree);
    let copy = host.path("copy").join(id().as_str());
    fs::create_dir_all(copy.join("git/shop")).unwrap();
    fs::create_dir_all(copy.join("tree/shop")).unwrap();
    fs::copy(host.instance_dir.join("git/shop/record.json"), copy.join("git/shop/record.json")).unwrap();
    fs::copy(made.tree.join(".git"), copy.join("tree/shop/.git")).unwrap();
    release(&copy, &mount, LONG).unwrap();
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
    assert_eq!(registered(&host.repo, LONG).unwrap()[0].tree, made.tree);
}
