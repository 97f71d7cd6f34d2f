//! Making trees of every kind of repository, and leaving no trace where that fails.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use abide_git::{Drift, GitError, WantedTree, adrift, materialise, release, restore};
use abide_model::InstanceId;
use abide_model::Isolation::{self, Clone, Worktree};
use abide_model::evidence::Verdict;
use abide_model::recipe::Mount;
use abide_testkit::cannot_run;

use crate::common::{Host, ID, LONG, commit, git, gits, id, try_git, write};

fn silent(_: &str) {}

fn branch_of(tree: &Path) -> String {
    git(tree, ["branch", "--show-current"]).trim().to_owned()
}

#[test]
fn a_worktree_has_a_branch_of_its_own_and_is_locked() {
    let host = Host::new();
    let (mount, made) = host.make(Worktree);
    assert_eq!(made.branch.as_deref(), Some("abide/k7p9m2xq"));
    assert_eq!(branch_of(&made.tree), "abide/k7p9m2xq");
    assert_eq!(made.tree, host.instance_dir.join("tree/shop"));
    let away = host.path("away");
    fs::rename(&made.tree, &away).unwrap();
    gits(&host.repo, &["worktree prune --expire=now"]);
    fs::rename(&away, &made.tree).unwrap();
    assert_eq!(
        host.evidence(&mount).verdict(),
        Verdict::Clean,
        "pruning forgot a worktree that was out of sight"
    );
    let again = materialise(&host.wanted(&mount), &mut silent).unwrap();
    assert_eq!(again, made, "asked again, the same tree");
}

#[test]
fn a_second_tree_of_one_repository_has_a_branch_with_a_number() {
    let host = Host::new();
    host.make(Worktree);
    let second = Mount { tree: Some("shop-2".into()), ..host.mount(Worktree) };
    let made = materialise(&host.wanted(&second), &mut silent).unwrap();
    assert_eq!(made.branch.as_deref(), Some("abide/k7p9m2xq-2"));
    release(&host.instance_dir, &second, LONG).unwrap();
    assert_eq!(
        git(&host.repo, ["branch", "--list", "abide/*", "--format=%(refname:short)"]),
        "abide/k7p9m2xq\n"
    );
}

#[test]
fn a_branch_called_abide_leaves_room_for_ours() {
    let host = Host::new();
    gits(&host.repo, &["branch abide"]);
    let (mount, made) = host.make(Worktree);
    assert_eq!(made.branch.as_deref(), Some("abide-k7p9m2xq"));
    commit(&made.tree, "a", "1");
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Unpushed);
    release(&host.instance_dir, &mount, LONG).unwrap();
    host.collect_garbage();
    restore(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(git(&made.tree, ["log", "-1", "--format=%s"]).trim(), "a-1");
}

#[test]
fn a_tree_begins_at_the_base_or_on_the_branch_that_was_asked_for() {
    for isolation in [Worktree, Clone] {
        let host = Host::new();
        gits(&host.repo, &["branch topic"]);
        commit(&host.repo, "later", "x");
        let mount = host.mount(isolation);
        let made =
            materialise(&WantedTree { base: Some("HEAD~1"), ..host.wanted(&mount) }, &mut silent).unwrap();
        assert_eq!(made.branch.as_deref(), Some("abide/k7p9m2xq"));
        assert!(!made.tree.join("later").exists());
        let other = Mount { tree: Some("topic".into()), ..host.mount(isolation) };
        let made =
            materialise(&WantedTree { branch: Some("topic"), ..host.wanted(&other) }, &mut silent).unwrap();
        assert_eq!(branch_of(&made.tree), "topic");
        commit(&made.tree, "a", "1");
        assert_eq!(host.evidence(&other).ahead[0].branch, "topic");
        let before = git(&host.repo, ["rev-parse", "topic"]);
        release(&host.instance_dir, &other, LONG).unwrap();
        assert_eq!(git(&host.repo, ["rev-parse", "topic"]), before, "a branch of the operator's stays");
    }
}

#[test]
fn what_cannot_be_made_is_refused_with_a_next_step_and_leaves_nothing() {
    let host = Host::new();
    gits(&host.repo, &["branch topic"]);
    write(host.path("plain/file"), "x");
    let before = host.state();
    let plain = Mount { source: host.path("plain"), ..host.mount(Worktree) };
    let mount = host.mount(Worktree);
    let cases: [(WantedTree<'_>, &str); 5] = [
        (host.wanted(&plain), "`shared`"),
        (WantedTree { base: Some("no-such"), ..host.wanted(&mount) }, "git branch -a"),
        (WantedTree { base: Some("--all"), ..host.wanted(&mount) }, "git branch -a"),
        (WantedTree { branch: Some("no-such"), ..host.wanted(&mount) }, "--base"),
        (WantedTree { branch: Some("main"), ..host.wanted(&mount) }, "--base main"),
    ];
    for (wanted, hint) in cases {
        let error = materialise(&wanted, &mut silent).unwrap_err().to_string();
        assert!(error.contains(hint), "{error}");
        assert_eq!(host.state(), before, "{error}");
        assert!(
            !host.instance_dir.join("tree/shop").exists() && !host.instance_dir.join("git/shop").exists(),
            "{error}"
        );
    }
    write(host.instance_dir.join("tree/shop/mine"), "x");
    let error = materialise(&host.wanted(&mount), &mut silent).unwrap_err();
    assert!(matches!(error, GitError::InTheWay(_)), "{error}");
    assert!(host.instance_dir.join("tree/shop/mine").exists());
}

#[test]
fn a_failure_half_way_is_undone() {
    for isolation in [Worktree, Clone] {
        let host = Host::new();
        // The tree has a file where the session would begin.
        commit(&host.repo, "config", "a file");
        fs::remove_file(host.repo.join("config")).unwrap();
        fs::create_dir(host.repo.join("config")).unwrap();
        let before = host.state();
        let mount = Mount { source: host.repo.join("config"), ..host.mount(isolation) };
        let error = materialise(&host.wanted(&mount), &mut silent).unwrap_err().to_string();
        assert!(error.contains("create"), "{error}");
        assert_eq!(host.state(), before);
        assert!(
            !host.instance_dir.join("tree/shop").exists() && !host.instance_dir.join("git/shop").exists()
        );
    }
}

#[test]
fn a_file_behind_a_link_of_the_commit_is_left_out_and_named() {
    for isolation in [Worktree, Clone] {
        let host = Host::new();
        let outside = host.path("outside");
        fs::create_dir(&outside).unwrap();
        symlink(&outside, host.repo.join("config")).unwrap();
        gits(&host.repo, &["add config", "commit -q -m link"]);
        fs::remove_file(host.repo.join("config")).unwrap();
        write(host.repo.join("config/local.env"), "secret");
        write(host.repo.join("plain.env"), "copied");
        let mount = Mount { copy: vec!["*.env".into()], ..host.mount(isolation) };
        let made = materialise(&host.wanted(&mount), &mut silent).unwrap();
        assert!(made.notices.iter().any(|notice| notice.contains("config/local.env")), "{:?}", made.notices);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "a link was followed out of the tree");
        assert_eq!(fs::read_to_string(made.tree.join("plain.env")).unwrap(), "copied");
    }
}

#[test]
fn a_source_may_be_a_part_of_a_repository_or_itself_a_worktree() {
    for isolation in [Worktree, Clone] {
        let host = Host::new();
        let part = Mount { source: host.repo.join("sub dir"), ..host.mount(isolation) };
        let made = materialise(&host.wanted(&part), &mut silent).unwrap();
        assert_eq!(made.workdir, made.tree.join("sub dir"));
        assert!(made.workdir.join("deep").exists());
        let linked = host.path("linked");
        git(&host.repo, ["worktree", "add", "-q", "-b", "linked", linked.to_str().unwrap()]);
        commit(&linked, "only-there", "x");
        let from = Mount { source: linked, tree: Some("two".into()), ..host.mount(isolation) };
        let made = materialise(&host.wanted(&from), &mut silent).unwrap();
        assert!(
            made.tree.join("only-there").exists(),
            "it begins at the HEAD of the worktree it was taken from"
        );
        commit(&made.tree, "a", "1");
        assert_eq!(host.evidence(&from).verdict(), Verdict::Unpushed);
    }
}

#[test]
fn bare_and_empty_repositories_have_trees_too() {
    for isolation in [Worktree, Clone] {
        let host = Host::new();
        let bare = Mount { source: host.remote.clone(), ..host.mount(isolation) };
        let made = materialise(&host.wanted(&bare), &mut silent).unwrap();
        assert!(made.tree.join("file").exists());
        commit(&made.tree, "a", "1");
        assert_eq!(host.evidence(&bare).verdict(), Verdict::Unpushed, "{isolation}");
        let host = Host::empty();
        let (mount, made) = host.make(isolation);
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "{:?}", host.evidence(&mount));
        write(made.tree.join("first"), "x");
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Dirty);
        release(&host.instance_dir, &mount, LONG).unwrap();
        restore(&host.instance_dir, &mount, LONG).unwrap();
        commit(&made.tree, "first", "x");
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Unpushed);
    }
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    for isolation in [Worktree, Clone] {
        let host = Host::new();
        commit(&host.repo, "wide/a", "x");
        git(&host.repo, ["sparse-checkout", "set", "sub dir"]);
        let (mount, made) = host.make(isolation);
        assert!(made.tree.join("sub dir/deep").exists() && !made.tree.join("wide").exists(), "{isolation}");
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
    }
}

#[test]
fn neither_hooks_nor_a_monitor_nor_a_download_is_started() {
    for isolation in [Worktree, Clone] {
        let host = Host::new();
        let ran = host.path("ran");
        let hook = host.repo.join(".git/hooks/post-checkout");
        write(&hook, &format!("#!/bin/sh\ntouch {}\n", ran.display()));
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        git(&host.repo, ["config", "core.fsmonitor", &format!("touch {};:", ran.display())]);
        let smudge = host.path("smudge");
        git(
            &host.repo,
            [
                "config",
                "filter.lfs.smudge",
                &format!("echo \"$GIT_LFS_SKIP_SMUDGE\" >{}; cat", smudge.display()),
            ],
        );
        write(host.repo.join(".gitattributes"), "*.bin filter=lfs\n");
        write(host.repo.join("a.bin"), "pointer");
        gits(&host.repo, &["add -A", "commit -q -m lfs"]);
        fs::remove_file(&ran).unwrap();
        let (mount, made) = host.make(isolation);
        git(&made.tree, ["config", "core.fsmonitor", &format!("touch {};:", ran.display())]);
        if isolation == Clone {
            gits(&made.tree, &["config extensions.worktreeConfig true"]);
            git(
                &made.tree,
                ["config", "--worktree", "filter.mi=ne.clean", &format!("touch {}; cat", ran.display())],
            );
            write(made.tree.join(".git/info/attributes"), "* filter=mi=ne\n");
            write(made.tree.join("file"), "as long as it\n");
        }
        host.evidence(&mount);
        assert!(!ran.exists(), "{isolation}");
        if isolation == Worktree {
            assert_eq!(fs::read_to_string(&smudge).unwrap(), "1\n");
        }
    }
}

#[test]
fn files_that_git_ignores_are_carried_over_where_they_are_named() {
    for isolation in [Worktree, Clone] {
        let host = Host::new();
        for (file, text) in [
            (".env", "A"),
            ("deep/er/b.env", "B"),
            ("secrets/key", "C"),
            ("secrets/other", "D"),
            ("plain", "not ignored"),
            ("target/x", "not named"),
            (".worktreeinclude", "# what we need\n/secrets/key\nplain\n"),
        ] {
            write(host.repo.join(file), text);
        }
        symlink("/etc/hostname", host.repo.join("link.env")).unwrap();
        let mount = Mount { copy: vec!["*.env".into()], ..host.mount(isolation) };
        let made = materialise(&host.wanted(&mount), &mut silent).unwrap();
        for (file, there) in [
            (".env", true),
            ("deep/er/b.env", true),
            ("secrets/key", true),
            ("secrets/other", false),
            ("plain", false),
            ("target", false),
        ] {
            assert_eq!(made.tree.join(file).exists(), there, "{file}");
        }
        assert_eq!(fs::read_link(made.tree.join("link.env")).unwrap(), Path::new("/etc/hostname"));
        assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
    }
}

#[test]
fn a_clone_stands_on_its_own_and_its_origin_is_the_real_one() {
    let host = Host::new();
    gits(&host.repo, &["remote add other https://user:secret@example.org/x.git", "config user.name Someone"]);
    gits(&host.repo, &["remote set-url --push origin ../remote.git", "branch local-only"]);
    commit(&host.repo, "unpushed", "x");
    let (mount, made) = host.make(Clone);
    let get = |args: &[&str]| git(&made.tree, args).trim().to_owned();
    assert_eq!(get(&["remote", "get-url", "origin"]), host.remote.to_str().unwrap());
    assert_eq!(get(&["remote", "get-url", "--push", "origin"]), host.remote.to_str().unwrap());
    assert_eq!(get(&["remote", "get-url", "other"]), "https://example.org/x.git");
    assert_eq!(get(&["config", "user.name"]), "Someone");
    let pushed = git(&host.repo, ["rev-parse", "origin/main"]);
    assert_eq!(git(&made.tree, ["rev-parse", "origin/main"]), pushed, "origin is what the host knows of it");
    assert_eq!(get(&["rev-parse", "--abbrev-ref", "main@{upstream}"]), "origin/main");
    assert_eq!(get(&["rev-parse", "--abbrev-ref", "origin/HEAD"]), "origin/main");
    get(&["rev-parse", "host/local-only"]);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean, "what the host had not pushed is the host's");
    assert!(!made.tree.join(".git/objects/info/alternates").exists());
    commit(&made.tree, "a", "1");
    gits(&host.repo, &["checkout -q --detach origin/main", "branch -q -D main local-only"]);
    host.collect_garbage();
    git(&made.tree, ["fsck", "--no-progress"]);
    gits(&made.tree, &["push -q origin main"]);
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
}

#[test]
fn a_clone_of_a_repository_that_borrows_objects_does_not_borrow() {
    let host = Host::new();
    let lender = host.path("lender");
    fs::rename(&host.repo, &lender).unwrap();
    let args = ["clone", "-q", "--shared", lender.to_str().unwrap(), host.repo.to_str().unwrap()];
    git(host.repo.parent().unwrap(), args);
    let (_, made) = host.make(Clone);
    fs::remove_dir_all(&lender).unwrap();
    git(&made.tree, ["fsck", "--no-progress"]);
}

#[test]
fn a_host_that_moved_on_is_noticed() {
    for isolation in [Worktree, Clone] {
        let host = Host::new();
        let (mount, _) = host.make(isolation);
        let drift = || adrift(&host.instance_dir, &mount, LONG).unwrap();
        assert_eq!(drift(), None);
        commit(&host.repo, "a", "1");
        commit(&host.repo, "a", "22");
        let moved = |new, lost| Some(Drift::Moved { branch: "main".into(), new, lost });
        assert_eq!(drift(), moved(2, 0));
        gits(&host.repo, &["reset -q --hard HEAD~3"]);
        commit(&host.repo, "b", "instead");
        assert_eq!(drift(), moved(1, 1));
        gits(&host.repo, &["checkout -q -b other", "branch -q -D main"]);
        assert_eq!(drift(), Some(Drift::Gone { branch: "main".into() }));
        fs::rename(&host.repo, host.path("elsewhere")).unwrap();
        assert_eq!(drift(), Some(Drift::RepositoryGone));
        if isolation == Worktree {
            assert_eq!(host.evidence(&mount).verdict(), Verdict::Unknown);
        }
        release(&host.instance_dir, &mount, LONG).unwrap();
    }
}

#[test]
fn a_branch_whose_name_was_taken_comes_back_under_another() {
    let host = Host::new();
    let (mount, made) = host.make(Worktree);
    commit(&made.tree, "a", "1");
    write(made.tree.join("file"), "changed\n");
    let (head, status) = (git(&made.tree, ["rev-parse", "HEAD"]), git(&made.tree, ["status", "--porcelain"]));
    release(&host.instance_dir, &mount, LONG).unwrap();
    gits(&host.repo, &["branch abide/k7p9m2xq origin/main"]);
    commit(&host.repo, "b", "2");
    gits(&host.repo, &["branch -f abide/k7p9m2xq main"]);
    host.collect_garbage();
    let restored = restore(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(restored.branch.as_deref(), Some("abide/k7p9m2xq-2"));
    assert_eq!(restored.notices.len(), 1);
    assert_eq!(branch_of(&made.tree), "abide/k7p9m2xq-2");
    assert_eq!(git(&made.tree, ["rev-parse", "HEAD"]), head);
    assert_eq!(git(&made.tree, ["status", "--porcelain"]), status);
    release(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(
        git(&host.repo, ["branch", "--list", "abide/*", "--format=%(refname:short)"]),
        "abide/k7p9m2xq\n"
    );
}

#[test]
fn a_tree_on_a_branch_of_the_hosts_comes_back_at_its_commit() {
    let host = Host::new();
    let (mount, made) = host.make(Worktree);
    gits(&made.tree, &["checkout -q -b feature"]);
    commit(&made.tree, "a", "1");
    let head = git(&made.tree, ["rev-parse", "HEAD"]);
    release(&host.instance_dir, &mount, LONG).unwrap();
    gits(&host.repo, &["checkout -q feature"]);
    commit(&host.repo, "b", "2");
    let restored = restore(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(restored.notices.len(), 1, "{restored:?}");
    assert_eq!(git(&made.tree, ["rev-parse", "HEAD"]), head);
    assert_eq!(git(&made.tree, ["status", "--porcelain"]), "");
}

#[test]
fn a_branch_that_is_used_elsewhere_is_left_alone() {
    let host = Host::new();
    let (mount, made) = host.make(Worktree);
    commit(&made.tree, "a", "1");
    gits(&made.tree, &["checkout -q --detach"]);
    gits(&host.repo, &[&format!("checkout -q abide/{ID}")]);
    let released = release(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(released.kept_branch.as_deref(), Some("abide/k7p9m2xq"));
    assert_eq!(branch_of(&host.repo), "abide/k7p9m2xq");
}

#[test]
fn the_upstream_of_the_trees_branch_comes_back_with_it() {
    let host = Host::new();
    let before = host.state();
    let (mount, made) = host.make(Worktree);
    gits(&made.tree, &["push -q -u origin HEAD"]);
    release(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(host.state(), before, "nothing of the branch is left in the settings");
    restore(&host.instance_dir, &mount, LONG).unwrap();
    let upstream = git(&made.tree, ["rev-parse", "--abbrev-ref", "@{upstream}"]);
    assert_eq!(upstream.trim(), "origin/abide/k7p9m2xq");
}

#[test]
fn a_unit_on_another_file_system_is_released_and_restored_all_the_same() {
    use std::os::unix::fs::MetadataExt as _;
    let mut host = Host::new();
    let memory = Path::new("/dev/shm");
    let device = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
    if device(memory).is_none() || device(memory) == device(&host.repo) {
        cannot_run("a second file system", "mount one at /dev/shm and keep TMPDIR elsewhere");
    }
    let other = tempfile::tempdir_in(memory).unwrap();
    host.instance_dir = other.path().canonicalize().unwrap();
    let (mount, made) = host.make(Worktree);
    commit(&made.tree, "a", "1");
    write(made.tree.join("staged"), "s");
    gits(&made.tree, &["add staged"]);
    let status = || git(&made.tree, ["status", "--porcelain=v2", "--branch"]);
    let before = status();
    for _ in 0..2 {
        release(&host.instance_dir, &mount, LONG).unwrap();
        assert!(!host.repo.join(".git/worktrees").exists());
        host.collect_garbage();
        restore(&host.instance_dir, &mount, LONG).unwrap();
        assert_eq!(status(), before);
        git(&made.tree, ["fsck", "--no-progress"]);
    }
}

#[test]
fn a_shared_mount_is_its_own_tree_and_nothing_is_asked_about_it() {
    let host = Host::new();
    let mount = Mount { tree: None, ..host.mount(Isolation::Shared) };
    write(host.repo.join("file"), "changed");
    let made = materialise(&host.wanted(&mount), &mut silent).unwrap();
    assert_eq!((made.tree, made.workdir), (host.repo.clone(), host.repo.clone()));
    assert_eq!(host.evidence(&mount).verdict(), Verdict::Clean);
    release(&host.instance_dir, &mount, LONG).unwrap();
    assert_eq!(id().as_str(), ID);
    assert!(try_git(&host.repo, ["diff", "--quiet"]).1.is_empty());
}

#[test]
fn many_instances_of_one_repository_come_and_go_at_once() {
    let host = Host::new();
    let before = host.state();
    let instance_dirs: Vec<_> = (0..6u64)
        .map(|n| (InstanceId::from_bits(n), host.path("instance_dirs").join(n.to_string())))
        .collect();
    let mount = host.mount(Worktree);
    std::thread::scope(|scope| {
        let (host, mount) = (&host, &mount);
        for (id, instance_dir) in &instance_dirs {
            scope.spawn(move || {
                let wanted = WantedTree { id: *id, instance_dir, ..host.wanted(mount) };
                let made = materialise(&wanted, &mut silent).unwrap();
                write(made.tree.join(format!("work of {id}")), "x");
            });
        }
    });
    let all: Vec<(&Path, &Mount)> =
        instance_dirs.iter().map(|(_, instance_dir)| (instance_dir.as_path(), &mount)).collect();
    let found = abide_git::evidence_of(&all, LONG);
    for ((id, _), found) in instance_dirs.iter().zip(&found) {
        assert_eq!(
            found.files[0].path,
            format!("work of {id}"),
            "the answers are in the order of the questions"
        );
    }
    std::thread::scope(|scope| {
        for (_, instance_dir) in &instance_dirs {
            scope.spawn(|| release(instance_dir, &mount, LONG).unwrap());
        }
    });
    assert_eq!(host.state(), before);
}
