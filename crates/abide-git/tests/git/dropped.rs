//! Commits that the host had when a tree was made, and has not any more: the tree may hold the last copy.

use std::fs;
use std::path::Path;

use abide_git::WantedTree;
use abide_model::Isolation;
use abide_model::evidence::Verdict;
use abide_model::recipe::Mount;

use crate::common::{Host, LONG, commit, git, gits};
use crate::matrix::{ahead, each_isolation};

const DROPPED: &str = "the repository no longer has them";

/// A host with a commit on `main` that no remote has, and that commit.
fn with_unpushed_commit() -> (Host, String) {
    let host = Host::new();
    commit(&host.repo, "private", "never pushed");
    let oid = git(&host.repo, ["rev-parse", "HEAD"]).trim().to_owned();
    (host, oid)
}

/// Makes the host forget, in its logs too, what no ref of its own reaches. Logs of worktrees stay.
fn forget(host: &Host) {
    gits(&host.repo, &["reflog expire --expire=now --all"]);
    host.collect_garbage();
}

#[test]
fn a_commit_that_the_host_has_rewritten_is_the_hosts_business_while_its_log_has_it() {
    each_isolation(|isolation| {
        let (host, _) = with_unpushed_commit();
        gits(&host.repo, &["branch aside"]);
        let (mount, _) = host.make(isolation);
        gits(&host.repo, &["commit -q --amend -m better", "branch -f aside HEAD~1", "gc -q --prune=now"]);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "{:?}", host.evidence(&mount));
    });
}

#[test]
fn a_commit_that_the_host_has_dropped_is_at_risk() {
    each_isolation(|isolation| {
        let (host, _) = with_unpushed_commit();
        let (mount, made) = host.make(isolation);
        gits(&host.repo, &["reset -q --hard HEAD~1"]);
        forget(&host);
        let found = host.evidence(&mount);
        assert_eq!(found.ahead, [ahead(&made.branch.unwrap(), 1, DROPPED)], "{isolation}: {found:?}");
    });
}

#[test]
fn work_on_top_of_what_the_host_has_dropped_is_counted_with_it() {
    each_isolation(|isolation| {
        let (host, _) = with_unpushed_commit();
        let (mount, made) = host.make(isolation);
        commit(&made.tree, "work", "on top");
        gits(&host.repo, &["reset -q --hard HEAD~1"]);
        forget(&host);
        let found = host.evidence(&mount);
        assert_eq!((found.ahead.len(), found.ahead[0].commits), (1, 2), "{isolation}: {found:?}");
        assert_ne!(found.ahead[0].against, DROPPED);
    });
}

#[test]
fn a_branch_of_the_hosts_that_only_a_clone_still_has_is_at_risk() {
    let host = Host::new();
    gits(&host.repo, &["checkout -q -b mine"]);
    commit(&host.repo, "private", "never pushed");
    gits(&host.repo, &["checkout -q main"]);
    let (mount, _) = host.make(Isolation::Clone);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "{:?}", host.evidence(&mount));
    gits(&host.repo, &["branch -q -D mine"]);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "the log of HEAD has it");
    forget(&host);
    assert_eq!(host.evidence(&mount).ahead, [ahead("host/mine", 1, DROPPED)]);
}

#[test]
fn a_branch_that_was_pushed_to_the_host_and_deleted_there_is_at_risk() {
    let host = Host::new();
    let (mount, made) = host.make(Isolation::Clone);
    commit(&made.tree, "work", "handed over");
    gits(&made.tree, &["push -q host HEAD:refs/heads/handed-over"]);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "{:?}", host.evidence(&mount));
    gits(&host.repo, &["branch -q -D handed-over"]);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Unpushed, "{:?}", host.evidence(&mount));
}

#[test]
fn a_clone_whose_host_is_gone_or_cannot_be_read_is_not_known_to_be_clean() {
    let spoil: [fn(&Path); 2] =
        [|repo| fs::remove_dir_all(repo).unwrap(), |repo| fs::remove_file(repo.join(".git/HEAD")).unwrap()];
    for spoil in spoil {
        let (host, _) = with_unpushed_commit();
        let (mount, _) = host.make(Isolation::Clone);
        spoil(&host.repo);
        let found = host.evidence(&mount);
        assert_eq!(found.verdict(), Verdict::Unknown, "{found:?}");
        assert!(found.unknown[0].contains("repository"), "{found:?}");
        assert_eq!(found.ahead.len(), 1, "{found:?}");
    }
}

#[test]
fn what_another_instance_of_the_host_holds_is_not_this_trees_work() {
    each_isolation(|isolation| {
        let host = Host::new();
        let (other, theirs) = host.make(Isolation::Worktree);
        commit(&theirs.tree, "work", "of another");
        // One is taken of the host, the other of the first one's tree.
        for (id, source) in [("00000000", &host.repo), ("00000001", &theirs.tree)] {
            let mount = Mount { isolation, source: source.clone(), ..other.clone() };
            let instance_dir = host.instance_dir.with_file_name(id);
            let wanted =
                WantedTree { id: id.parse().unwrap(), instance_dir: &instance_dir, ..host.wanted(&mount) };
            abide_git::materialise(&wanted, &mut |_| {}).unwrap();
            let found = abide_git::evidence_of(&[(&instance_dir, &mount)], LONG).remove(0);
            assert_eq!(found.verdict(), Verdict::Clean, "{isolation} of {}: {found:?}", source.display());
        }
    });
}
