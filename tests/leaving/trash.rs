//! The trash: what comes back out of it, and what goes for good.

use std::path::Path;

use abide_testkit::eventually;

use crate::common::{Host, compare};
use crate::repo::{git, host_with_repo, load, repo, traces, tree};

#[test]
fn what_is_too_old_or_too_much_goes_oldest_first_and_a_dry_run_only_says_so() {
    let host = host_with_repo();
    host.write("home/.config/abide/config.toml", "version = 1\n[trash]\nmax_size = \"2MiB\"\n");
    let ids: Vec<String> = (0..3)
        .map(|_| {
            let id = load(&host, &["--isolation", "clone"]);
            fill(&tree(&host, &id));
            id
        })
        .collect();
    let entries = || host.abide(["trash", "list"]).ok();
    for id in &ids {
        host.abide(["eject", id, "--clean"]).ok();
    }
    // A verb lets old things go only as long as that does not hold it up.
    let left = eventually("the first to go", || {
        host.abide(["prune", "--yes"]).ok();
        Some(entries()).filter(|left| !left.contains(&ids[1]))
    });
    assert!(!left.contains(&ids[0]) && !left.contains(&ids[1]) && left.contains(&ids[2]), "{ids:?} {left}");
    let old = host.home().join("trash");
    let name = std::fs::read_dir(&old).unwrap().flatten().next().unwrap().file_name();
    let aged = format!("{}-20200101T000000000Z", &name.to_str().unwrap()[..8]);
    std::fs::rename(old.join(&name), old.join(&aged)).unwrap();
    assert!(host.abide(["trash", "empty", "--dry-run"]).ok().contains(&ids[2]));
    assert!(old.join(&aged).exists(), "a dry run removed something");
    eventually("what is years too old to go", || {
        host.abide(["prune", "--yes"]).ok();
        (!old.join(&aged).exists()).then_some(())
    });
}

/// Makes something large that is nobody's work.
fn fill(tree: &Path) {
    std::fs::create_dir(tree.join("target")).unwrap();
    std::fs::write(tree.join("target/large"), vec![7; 1_200_000]).unwrap();
}

#[test]
fn work_in_the_trash_is_not_pushed_out_by_what_is_clean() {
    let host = host_with_repo();
    host.write("home/.config/abide/config.toml", "version = 1\n[trash]\nmax_size = \"2MiB\"\n");
    let worked = load(&host, &["--isolation", "worktree"]);
    std::fs::write(tree(&host, &worked).join("work"), vec![7; 900_000]).unwrap();
    host.abide(["eject", &worked, "--clean"]).ok();
    let clean: Vec<String> = (0..2)
        .map(|_| {
            let id = load(&host, &["--isolation", "worktree"]);
            fill(&tree(&host, &id));
            host.abide(["send", &id, "exit 0"]).ok();
            host.wait_for_state(&id, "gone");
            id
        })
        .collect();
    let left = eventually("room to be made", || {
        host.abide(["prune", "--yes"]).ok();
        Some(host.abide(["trash", "list"]).ok()).filter(|left| !left.contains(&clean[0]))
    });
    assert!(left.contains(&worked) && left.contains(&clean[1]), "{left}");
}

#[test]
fn a_branch_whose_name_was_taken_meanwhile_comes_back_under_another_and_both_stay() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    std::fs::write(tree(&host, &id).join("work"), "x").unwrap();
    git(&host, &tree(&host, &id), &["add", "-A"]);
    git(&host, &tree(&host, &id), &["commit", "-qm", "work"]);
    let tip = git(&host, &tree(&host, &id), &["rev-parse", "HEAD"]);
    host.abide(["eject", &id, "--clean"]).ok();
    git(&host, &repo(&host), &["branch", &format!("abide/{id}"), "main"]);
    host.abide(["trash", "restore", &id]).ok();
    assert_eq!(git(&host, &tree(&host, &id), &["rev-parse", "HEAD"]), tip);
    let taken = git(&host, &repo(&host), &["rev-parse", &format!("abide/{id}")]);
    assert_ne!(taken, tip);
    assert_eq!(traces(&host).iter().filter(|trace| trace.starts_with("refs/")).count(), 2);
}

#[test]
fn a_removal_from_a_repository_that_is_gone_still_ends() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    host.abide(["stop", &id]).ok();
    std::fs::remove_dir_all(repo(&host)).unwrap();
    host.abide(["eject", &id, "--clean"]).ok();
    assert_eq!(host.state(&id), "gone");
}

#[test]
fn what_git_still_knows_of_a_unit_that_was_deleted_by_hand_is_forgotten_but_no_commit_is() {
    let host = host_with_repo();
    let clean = load(&host, &["--isolation", "worktree"]);
    let worked = load(&host, &["--isolation", "worktree"]);
    std::fs::write(tree(&host, &worked).join("work"), "x").unwrap();
    git(&host, &tree(&host, &worked), &["add", "-A"]);
    git(&host, &tree(&host, &worked), &["commit", "-qm", "work"]);
    for id in [&clean, &worked] {
        host.abide(["stop", id]).ok();
        std::fs::remove_dir_all(host.home().join("instances").join(id)).unwrap();
    }
    prune(&host);
    assert_eq!(traces(&host), [format!("refs/heads/abide/{worked}")]);
}

/// A stopped instance with work that only its index has.
fn stopped_with_staged(host: &Host) -> String {
    let id = load(host, &["--isolation", "worktree"]);
    std::fs::write(tree(host, &id).join("staged"), "x").unwrap();
    git(host, &tree(host, &id), &["add", "-A"]);
    host.abide(["stop", &id]).ok();
    id
}

fn is_still_staged(host: &Host, id: &str) -> bool {
    git(host, &tree(host, id), &["status", "--porcelain"]) == "A  staged\n"
}

/// `abide prune --yes` in the repository, and what it says.
fn prune(host: &Host) -> String {
    let out = host.command(host.program()).current_dir(repo(host)).args(["prune", "--yes"]).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn a_prune_leaves_what_git_knows_of_what_is_in_the_trash() {
    let host = host_with_repo();
    let id = stopped_with_staged(&host);
    let away = host.work().join("away");
    std::fs::rename(repo(&host), &away).unwrap();
    host.abide(["eject", &id, "--clean"]).ok();
    std::fs::rename(&away, repo(&host)).unwrap();
    prune(&host);
    host.abide(["trash", "restore", &id]).ok();
    assert!(is_still_staged(&host, &id));
}

#[test]
fn a_prune_with_an_empty_home_takes_nothing_for_gone() {
    let host = host_with_repo();
    let id = stopped_with_staged(&host);
    let away = host.work().join("away");
    std::fs::rename(host.home(), &away).unwrap();
    std::fs::create_dir(host.home()).unwrap();
    let said = prune(&host);
    assert!(said.contains(&id) && said.contains("ABIDE_HOME"), "{said}");
    std::fs::remove_dir_all(host.home()).unwrap();
    std::fs::rename(&away, host.home()).unwrap();
    assert!(is_still_staged(&host, &id));
}

#[test]
fn a_prune_with_another_home_in_place_of_the_right_one_leaves_what_git_knows() {
    let host = host_with_repo();
    let id = stopped_with_staged(&host);
    let away = host.work().join("away");
    std::fs::rename(host.home(), &away).unwrap();
    let other = load(&host, &[]);
    let said = prune(&host);
    assert!(said.contains(&id) && said.contains("ABIDE_HOME") && said.contains("worktree unlock"), "{said}");
    host.abide(["eject", &other, "--clean"]).ok();
    std::fs::remove_dir_all(host.home()).unwrap();
    std::fs::rename(&away, host.home()).unwrap();
    assert!(is_still_staged(&host, &id));
}

#[test]
fn a_prune_leaves_the_registration_of_a_deleted_instance_whose_index_alone_has_work() {
    let host = host_with_repo();
    let id = stopped_with_staged(&host);
    let before = traces(&host);
    std::fs::remove_dir_all(host.home().join("instances").join(&id)).unwrap();
    let said = prune(&host);
    assert!(said.contains("staged") && said.contains("worktree unlock"), "{said}");
    assert_eq!(traces(&host), before);
}

#[test]
fn a_resume_reports_that_git_does_not_work_in_the_tree() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    host.abide(["stop", &id]).ok();
    std::fs::remove_dir_all(repo(&host).join(".git/worktrees")).unwrap();
    git(&host, &repo(&host), &["branch", "-D", &format!("abide/{id}")]);
    let resumed = host.abide(["resume", &id, "--detach"]);
    compare(&host, "resume-in-unregistered-worktree", &resumed.stderr);
}
