//! Repositories of other users, on other file systems, moved ones, and others in the place of ours.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use abide_git::{GitError, check_restore, materialise, release, restore};
use abide_model::Isolation::{Clone, Worktree};
use abide_model::evidence::Verdict;

use crate::common::{Host, LONG, commit, git, gits, write};
use crate::crash::{CLONE, child};

/// Everything about a repository that a restore could change.
fn state(repo: &Path) -> String {
    let objects = git(repo, ["count-objects", "-v"]);
    let refs = git(repo, ["for-each-ref"]);
    let config = fs::read_to_string(repo.join(".git/config")).unwrap();
    format!("{objects}{refs}{config}{}", git(repo, ["worktree", "list"]))
}

#[test]
fn a_restore_into_another_repository_is_refused_and_changes_nothing() {
    let host = Host::new();
    commit(&host.repo, "base", "never pushed");
    let (mount, made) = host.make(Worktree);
    commit(&made.tree, "a", "1");
    release(&host.instance_dir, &mount, LONG).unwrap();
    let original = host.path("original");
    fs::rename(&host.repo, &original).unwrap();
    git(
        host.remote.parent().unwrap(),
        ["clone", "-q", host.remote.to_str().unwrap(), host.repo.to_str().unwrap()],
    );
    let before = state(&host.repo);
    for refused in [
        check_restore(&host.instance_dir, &mount, LONG).err(),
        restore(&host.instance_dir, &mount, LONG).err(),
    ] {
        let refused = refused.unwrap();
        assert!(matches!(refused, GitError::AnotherRepository { .. }), "{refused}");
    }
    assert_eq!(state(&host.repo), before);
    gits(&host.repo, &["fsck --no-progress", "gc -q"]);
    // The right one is taken back as if nothing had happened.
    fs::remove_dir_all(&host.repo).unwrap();
    fs::rename(&original, &host.repo).unwrap();
    restore(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Unpushed);
}

#[test]
fn a_restore_into_a_clone_that_has_all_of_it_works() {
    let host = Host::new();
    let (mount, made) = host.make(Worktree);
    commit(&made.tree, "a", "1");
    release(&host.instance_dir, &mount, LONG).unwrap();
    fs::remove_dir_all(&host.repo).unwrap();
    git(
        host.remote.parent().unwrap(),
        ["clone", "-q", host.remote.to_str().unwrap(), host.repo.to_str().unwrap()],
    );
    restore(&host.instance_dir, &mount, LONG).unwrap();
    gits(&made.tree, &["fsck --no-progress", "log -1"]);
}

#[test]
fn commits_on_a_branch_of_the_hosts_come_back_though_the_branch_lost_them() {
    let host = Host::new();
    gits(&host.repo, &["branch feat"]);
    let mount = host.mount(Worktree);
    let wanted = abide_git::WantedTree { branch: Some("feat"), ..host.wanted(&mount) };
    let made = materialise(&wanted, &mut |_| {}).unwrap();
    commit(&made.tree, "a", "1");
    let head = git(&made.tree, ["rev-parse", "HEAD"]);
    release(&host.instance_dir, &mount, LONG).unwrap();
    gits(&host.repo, &["branch -q -f feat main"]);
    host.collect_garbage();
    restore(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(git(&made.tree, ["rev-parse", "HEAD"]), head);
    assert_eq!(git(&made.tree, ["status", "--porcelain"]), "");
    gits(&made.tree, &["fsck --no-progress"]);
}

#[test]
fn a_clone_on_another_file_system_is_a_copy() {
    let mut host = Host::new();
    let memory = Path::new("/dev/shm");
    let device = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
    assert!(device(memory).is_some() && device(memory) != device(&host.repo), "this needs /dev/shm");
    let other = tempfile::tempdir_in(memory).unwrap();
    host.instance_dir = other.path().canonicalize().unwrap();
    let (mount, made) = host.make(Clone);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
    gits(&made.tree, &["fsck --no-progress"]);
}

/// Makes and releases a tree in a process whose git is configured by the text `config`.
fn come_and_go(host: &Host, config: &str, isolation: Option<&str>) {
    let file = host.path("gitconfig");
    write(&file, config);
    for task in ["make", "release", "restore", "release"] {
        let mut command = child(host, task);
        command.env("GIT_CONFIG_GLOBAL", &file);
        if isolation.is_some() {
            command.env(CLONE, "1");
        }
        let out = command.output().unwrap();
        assert!(out.status.success(), "{task}, {isolation:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
    assert!(!host.repo.join("worktrees").exists() && !host.repo.join(".git/worktrees").exists());
}

#[test]
fn a_bare_repository_that_must_be_named_to_git_comes_and_goes() {
    for isolation in [None, Some("clone")] {
        let mut host = Host::new();
        let checkout = host.path("checkout");
        let bare = host.remote.clone();
        git(&bare, ["worktree", "add", "-q", checkout.to_str().unwrap(), "-b", "work"]);
        host.repo = checkout;
        come_and_go(&host, "[safe]\n\tbareRepository = explicit\n", isolation);
        let left = git(&bare, ["for-each-ref", "refs/heads/abide"]);
        assert_eq!(left, "");
    }
}

#[test]
fn a_repository_of_another_user_that_is_declared_safe_comes_and_goes() {
    assert!(rustix::process::geteuid().is_root(), "only root can give a repository to another user");
    for isolation in [None, Some("clone")] {
        let host = Host::new();
        chown_all(&host.repo);
        let config =
            format!("[safe]\n\tdirectory = \"{}\"\n", host.repo.display().to_string().replace('\n', "\\n"));
        come_and_go(&host, &config, isolation);
    }
}

fn chown_all(path: &Path) {
    std::os::unix::fs::lchown(path, Some(12_345), Some(12_345)).unwrap();
    if path.symlink_metadata().unwrap().is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| chown_all(&entry.unwrap().path()));
    }
}

#[test]
fn a_git_that_cannot_try_a_merge_leaves_it_unknown() {
    let host = Host::new();
    let (_, made) = host.make(Worktree);
    commit(&made.tree, "a", "1");
    gits(&host.repo, &["commit -q --allow-empty -m more", "push -q origin main"]);
    let old = host.path("old-git");
    write(
        old.join("git"),
        "#!/bin/sh\nfor w; do [ \"$w\" = merge-tree ] && echo 'usage: git merge-tree' >&2 && exit 129; done\nPATH=${PATH#*:} exec git \"$@\"\n",
    );
    fs::set_permissions(old.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", old.display(), std::env::var("PATH").unwrap());
    let out = child(&host, "look with an old git").env("PATH", path).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn files_put_into_an_unfinished_tree_are_neither_deleted_nor_overlooked() {
    for isolation in [Worktree, Clone] {
        for name in ["notes", "file", "key.env"] {
            for point in ["git.materialise.made", "git.materialise.settled"] {
                let host = Host::new();
                let mut command = child(&host, "make");
                if isolation == Clone {
                    command.env(CLONE, "1");
                }
                command.env("ABIDE_CRASH_AT", point).output().unwrap();
                let mount = host.mount(isolation);
                let tree = host.instance_dir.join("tree/shop");
                assert!(tree.is_dir());
                assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "{isolation}, {point}");
                write(tree.join(name), "by hand");
                let found = host.evidence(&mount);
                assert_eq!(found.verdict(), Verdict::Unknown, "{isolation}, {name}, {point}: {found:?}");
                let made = materialise(&host.wanted(&mount), &mut |_| {}).unwrap();
                assert_eq!(made.notices.len(), 1, "{made:?}");
                let aside = host.instance_dir.join("tree/shop-unfinished").join(name);
                assert_eq!(fs::read_to_string(aside).unwrap(), "by hand");
                assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
            }
        }
    }
}

#[test]
fn a_repository_that_moved_keeps_branch_and_worktree_and_a_notice_says_how_to_remove_them() {
    let host = Host::new();
    let (mount, _) = host.make(Worktree);
    fs::rename(&host.repo, host.path("moved")).unwrap();
    let left = release(&host.instance_dir, &mount, LONG).unwrap().left.unwrap();
    for word in ["abide/k7p9m2xq", "git worktree unlock", "git branch -D"] {
        assert!(left.contains(word), "{left}");
    }
}
