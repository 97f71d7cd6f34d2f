//! Repositories and trees that are moved, removed, replaced or damaged while an instance needs them, and removals that
//! cannot be carried out.

use std::path::{Path, PathBuf};

use abide_testkit::{ReadOnly, SmallDisk, eventually};

use crate::common::{Host, compare};
use crate::isolation::with_workspace;
use crate::repo::{git, host_with_repo, load, repo, traces, tree};

/// What abide says to a command that succeeds, on both of its streams.
#[track_caller]
fn said(host: &Host, args: &[&str]) -> String {
    let out = host.command(host.program()).args(args).output().unwrap();
    let said = [out.stdout, out.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(out.status.success(), "{args:?}: {said}");
    said
}

fn commit(host: &Host, dir: &Path, file: &str) {
    std::fs::write(dir.join(file), file).unwrap();
    git(host, dir, &["add", file]);
    git(host, dir, &["commit", "-qm", file]);
}

#[test]
fn another_repository_at_the_old_place_is_not_written_to_by_a_restore_or_a_list() {
    let host = host_with_repo();
    commit(&host, &repo(&host), "never-pushed");
    let id = load(&host, &["--isolation", "worktree"]);
    commit(&host, &tree(&host, &id), "work");
    host.abide(["eject", &id, "--clean"]).ok();
    let original = host.work().join("original");
    std::fs::rename(repo(&host), &original).unwrap();
    git(&host, &host.work(), &["clone", "-q", "origin.git", "repo"]);
    let refused = host.abide(["trash", "restore", &id]).fails(1);
    compare(&host, "restore-into-another-repository", &refused);
    host.abide(["ls"]).ok();
    assert!(traces(&host).is_empty(), "{:?}", traces(&host));
    git(&host, &repo(&host), &["fsck", "--no-progress"]);
    std::fs::remove_dir_all(repo(&host)).unwrap();
    std::fs::rename(&original, repo(&host)).unwrap();
    assert!(said(&host, &["trash", "restore", &id]).contains("is back"));
    git(&host, &tree(&host, &id), &["fsck", "--no-progress"]);
}

/// Keeps git from deleting the branch of the instance `id`, as a git command does that runs or has died; gives what to
/// remove.
fn obstruct(host: &Host, id: &str) -> PathBuf {
    let lock = repo(host).join(format!(".git/refs/heads/abide/{id}.lock"));
    std::fs::write(&lock, "").unwrap();
    lock
}

#[test]
fn a_removal_that_cannot_be_carried_out_says_why_and_can_be_taken_back() {
    let host = host_with_repo();
    for undo in
        [&["eject", "ID", "--keep"][..], &["trash", "restore", "ID"], &["resume", "ID", "--detach", "--yes"]]
    {
        let id = load(&host, &["--isolation", "worktree"]);
        let lock = obstruct(&host, &id);
        let why = lock.file_name().unwrap().to_str().unwrap().to_owned();
        host.abide(["eject", &id, "--clean"]).fails(1);
        assert_eq!(host.state(&id), "ending (discard)");
        for args in [&["ls"][..], &["prune"], &["explain", &id]] {
            assert!(said(&host, args).contains(&why), "{args:?}: {}", said(&host, args));
        }
        let doctor = host.command(host.program()).arg("doctor").output().unwrap();
        assert!(String::from_utf8_lossy(&doctor.stdout).contains(&why));
        std::fs::remove_file(lock).unwrap();
        let words: Vec<&str> =
            undo.iter().map(|word| if *word == "ID" { id.as_str() } else { word }).collect();
        // A look that comes first carries it out, which is as good.
        let undone = host.command(host.program()).args(&words).output().unwrap();
        assert!(undone.status.success() || host.state(&id) == "gone", "{undone:?}");
        if host.state(&id) != "gone" {
            git(&host, &tree(&host, &id), &["status"]);
            host.abide(["eject", &id, "--clean"]).ok();
        }
    }
}

#[test]
fn a_removal_that_cannot_be_carried_out_is_taken_back_while_the_obstacle_stays() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    std::fs::write(tree(&host, &id).join("work"), "precious").unwrap();
    obstruct(&host, &id);
    host.abide(["eject", &id, "--clean"]).fails(1);
    host.abide(["eject", &id, "--keep"]).ok();
    assert_eq!(host.state(&id), "restorable (kept)");
    assert!(said(&host, &["resume", &id, "--detach", "--yes"]).contains("is back"));
    assert_eq!(std::fs::read_to_string(tree(&host, &id).join("work")).unwrap(), "precious");
}

#[test]
fn a_removal_from_a_read_only_repository_waits_until_it_can_be_written_to() {
    let host = host_with_repo();
    for take_back in [false, true] {
        let id = load(&host, &["--isolation", "worktree"]);
        commit(&host, &tree(&host, &id), "work");
        let read_only = ReadOnly::make(&repo(&host));
        let refused = host.abide(["eject", &id, "--clean"]).fails(1);
        assert!(refused.contains("Read-only"), "{refused}");
        assert_eq!(host.state(&id), "ending (discard)");
        assert!(said(&host, &["explain", &id]).contains("Read-only"));
        if take_back {
            let kept = host.abide(["eject", &id, "--keep"]).fails(1);
            assert!(kept.contains("is kept, but") && kept.contains("Read-only"), "{kept}");
            assert_eq!(host.state(&id), "restorable (kept)");
        }
        drop(read_only);
        host.abide(["ls"]).ok();
        if take_back {
            assert!(said(&host, &["resume", &id, "--detach", "--yes"]).contains("is back"));
            assert_eq!(git(&host, &tree(&host, &id), &["status", "--porcelain"]), "");
            host.abide(["eject", &id, "--clean"]).ok();
        }
        assert_eq!(host.state(&id), "gone");
        assert!(traces(&host).is_empty(), "{:?}", traces(&host));
        assert!(said(&host, &["trash", "restore", &id]).contains("is back"));
        assert!(tree(&host, &id).join("work").exists());
        host.abide(["eject", &id, "--clean"]).ok();
    }
}

#[test]
fn a_removal_for_which_no_file_can_be_made_changes_nothing_until_one_can() {
    let host = host_with_repo();
    let disk = SmallDisk::mount(&host.home(), 64);
    let id = load(&host, &["--isolation", "worktree"]);
    disk.fill_with_files();
    let refused = host.abide(["eject", &id, "--clean"]).fails(1);
    assert!(refused.contains("free some space"), "{refused}");
    host.pids(&id);
    disk.remove_files();
    let mut eject = host.command(host.program());
    eject.env("ABIDE_CRASH_AT", "engine.finish.stamped").args(["eject", &id, "--clean"]);
    assert!(!eject.output().unwrap().status.success());
    disk.fill_with_files();
    assert_eq!(host.state(&id), "ending (discard)");
    let refused = host.abide(["eject", &id, "--keep"]).fails(1);
    assert!(refused.contains("free some space"), "{refused}");
    disk.remove_files();
    assert_eq!(host.state(&id), "gone");
    assert!(traces(&host).is_empty(), "{:?}", traces(&host));
    eventually("nothing to run", || host.processes().is_empty().then_some(()));
}

#[test]
fn a_tree_whose_record_is_lost_or_damaged_counts_as_work_and_can_be_removed_and_restored() {
    let host = host_with_repo();
    for (isolation, damage, resume_first) in [
        ("worktree", Some("{"), false),
        ("worktree", None, true),
        ("clone", Some("{"), true),
        ("clone", None, false),
    ] {
        let id = load(&host, &["--isolation", isolation]);
        std::fs::write(tree(&host, &id).join("work"), "precious").unwrap();
        git(&host, &tree(&host, &id), &["add", "work"]);
        let record = host.home().join("instances").join(&id).join("git/repo/record.json");
        match damage {
            Some(text) => std::fs::write(&record, text).unwrap(),
            None => std::fs::remove_file(&record).unwrap(),
        }
        host.abide(["send", &id, "exit 0"]).ok();
        eventually("it to be kept", || (host.state(&id) == "restorable (unknown)").then_some(()));
        let explained = said(&host, &["explain", &id]);
        assert!(explained.contains("record.json") && explained.contains("abide eject"), "{explained}");
        if resume_first {
            let back = said(&host, &["resume", &id, "--detach", "--yes"]);
            assert!(back.contains("recreated from its tree") && back.contains("is back"), "{back}");
        }
        host.abide(["eject", &id, "--clean"]).ok();
        assert!(traces(&host).is_empty(), "{:?}", traces(&host));
        assert!(said(&host, &["trash", "restore", &id]).contains("is back"));
        assert_eq!(git(&host, &tree(&host, &id), &["status", "--porcelain"]), "A  work\n");
        assert!(said(&host, &["explain", &id]).contains("is lost"));
        host.abide(["eject", &id, "--clean"]).ok();
        assert!(traces(&host).is_empty(), "{:?}", traces(&host));
    }
}

#[test]
fn a_removal_that_is_taken_back_before_anything_was_ended_leaves_nothing_running_unseen() {
    let host = host_with_repo();
    for (undo, state) in [
        (&["stop", "ID"][..], "restorable (stopped)"),
        (&["eject", "ID", "--keep"], "restorable (stopped)"),
        (&["trash", "restore", "ID"], "active"),
    ] {
        let id = load(&host, &["--isolation", "worktree"]);
        let mut eject = host.command(host.program());
        eject.env("ABIDE_CRASH_AT", "engine.finish.stamped").args(["eject", &id, "--clean"]);
        assert!(!eject.output().unwrap().status.success());
        let words: Vec<&str> =
            undo.iter().map(|word| if *word == "ID" { id.as_str() } else { word }).collect();
        host.command(host.program()).args(&words).output().unwrap();
        assert_eq!(host.state(&id), state, "{undo:?}");
        if state == "active" {
            host.pids(&id);
        } else {
            eventually("nothing to run", || host.processes().is_empty().then_some(()));
        }
        host.abide(["eject", &id, "--clean"]).ok();
    }
}

#[test]
fn a_tree_that_is_gone_is_made_again_from_its_branch() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    commit(&host, &tree(&host, &id), "committed");
    host.abide(["stop", &id]).ok();
    git(
        &host,
        &repo(&host),
        &["worktree", "remove", "--force", "--force", tree(&host, &id).to_str().unwrap()],
    );
    assert!(said(&host, &["explain", &id]).contains("recreates a worktree from its branch"));
    let back = said(&host, &["resume", &id, "--detach", "--yes"]);
    compare(&host, "resume-without-tree", &back);
    assert!(tree(&host, &id).join("committed").exists());
    assert_eq!(git(&host, &tree(&host, &id), &["status", "--porcelain"]), "");
    host.abide(["eject", &id, "--clean"]).ok();
    assert!(traces(&host).is_empty(), "{:?}", traces(&host));
}

#[test]
fn a_worktree_that_git_has_forgotten_is_known_again_with_its_files_as_they_were() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    std::fs::write(tree(&host, &id).join("README"), "changed").unwrap();
    host.abide(["stop", &id]).ok();
    std::fs::remove_dir_all(repo(&host).join(".git/worktrees")).unwrap();
    assert!(said(&host, &["resume", &id, "--detach", "--yes"]).contains("is back"));
    assert_eq!(git(&host, &tree(&host, &id), &["status", "--porcelain"]), " M README\n");
}

#[test]
fn a_tree_without_its_branch_is_not_said_to_be_back() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    host.abide(["stop", &id]).ok();
    git(
        &host,
        &repo(&host),
        &["worktree", "remove", "--force", "--force", tree(&host, &id).to_str().unwrap()],
    );
    git(&host, &repo(&host), &["branch", "-q", "-D", &format!("abide/{id}")]);
    let refused = host.abide(["resume", &id, "--detach", "--yes"]).fails(1);
    compare(&host, "resume-without-tree-and-branch", &refused);
}

#[test]
fn a_repository_that_moved_is_explained_and_found_again_after_a_repair() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    host.abide(["stop", &id]).ok();
    let moved = host.work().join("moved");
    std::fs::rename(repo(&host), &moved).unwrap();
    let explained = said(&host, &["explain", &id]);
    assert!(
        explained.contains("before that: the repository") && !explained.contains("no longer knows"),
        "{explained}"
    );
    let back = said(&host, &["resume", &id, "--detach", "--yes"]);
    compare(&host, "resume-without-repository", &back);
    host.abide(["stop", &id]).ok();
    git(&host, &moved, &["worktree", "repair", tree(&host, &id).to_str().unwrap()]);
    assert!(said(&host, &["resume", &id, "--detach", "--yes"]).contains("is back"));
    host.abide(["eject", &id, "--clean"]).ok();
    assert_eq!(git(&host, &moved, &["for-each-ref", "refs/heads/abide"]), "");
}

#[test]
fn what_a_moved_repository_keeps_of_a_removed_instance_is_named() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    std::fs::rename(repo(&host), host.work().join("moved")).unwrap();
    let gone = said(&host, &["eject", &id, "--clean"]);
    assert!(
        gone.contains(&format!("git branch -D abide/{id}")) && gone.contains("worktree unlock"),
        "{gone}"
    );
}

#[test]
fn an_eject_that_cannot_ask_names_what_it_would_ask_about() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "worktree"]);
    std::fs::write(tree(&host, &id).join("only-here"), "work").unwrap();
    let refused = host.abide(["eject", &id]).fails(3);
    assert!(refused.contains("only-here") && refused.contains("--clean"), "{refused}");
    assert_eq!(host.state(&id), "active");
}

#[test]
fn a_load_that_was_killed_half_way_is_settled_by_whichever_verb_comes_next() {
    for verb in [&["eject", "--clean"][..], &["stop"], &["ls"], &["prune", "--yes"]] {
        let host = host_with_repo();
        let mut load = host.command(host.program());
        load.current_dir(repo(&host)).env("ABIDE_CRASH_AT", "git.materialise.settled");
        load.args(["load", "stub", "--detach", "--isolation", "worktree"]);
        assert!(!load.output().unwrap().status.success());
        let unit = std::fs::read_dir(host.home().join("instances")).unwrap().next().unwrap().unwrap();
        let id = unit.file_name().into_string().unwrap();
        let mut words = verb.to_vec();
        if matches!(verb[0], "eject" | "stop") {
            words.push(&id);
        }
        said(&host, &words);
        assert!(!unit.path().exists() && traces(&host).is_empty(), "{verb:?}: {:?}", traces(&host));
    }
}

#[test]
fn worktrees_that_hang_on_a_clone_are_named_before_it_goes() {
    let host = host_with_repo();
    let id = load(&host, &["--isolation", "clone"]);
    let place = host.work().join("elsewhere");
    git(&host, &tree(&host, &id), &["worktree", "add", "-q", "--detach", place.to_str().unwrap()]);
    assert!(said(&host, &["explain", &id]).contains(place.to_str().unwrap()));
    assert!(said(&host, &["eject", &id, "--clean"]).contains(place.to_str().unwrap()));
    host.abide(["trash", "restore", &id]).ok();
    git(&host, &place, &["status"]);
}

#[test]
fn a_corrected_setup_command_is_taken_by_the_next_resume() {
    let host = host_with_repo();
    with_workspace(&host, r#"setup = ["sh", "-c", "echo half > half.secret; no-such-command"]"#);
    let mut command = host.command(host.program());
    let out = command.current_dir(repo(&host)).args(["load", "stub", "--detach"]).output().unwrap();
    assert!(!out.status.success());
    let id = host.abide(["ls", "--json"]).json()["instances"][0]["id"].as_str().unwrap().to_owned();
    std::fs::write(tree(&host, &id).join("by-hand.secret"), "precious").unwrap();
    with_workspace(&host, r#"setup = ["sh", "-c", "echo whole > whole.secret"]"#);
    let back = said(&host, &["resume", &id, "--detach", "--yes"]);
    compare(&host, "resume-with-corrected-set-up", &back);
    assert!(tree(&host, &id).join("whole.secret").exists());
    let explained = said(&host, &["explain", &id]);
    assert!(
        explained.contains("uncommitted  1 file") && explained.contains("!! by-hand.secret"),
        "{explained}"
    );
}

#[test]
fn an_instance_stopped_on_a_full_disk_is_shown_as_stopped_while_the_disk_is_full() {
    let host = host_with_repo();
    let disk = SmallDisk::mount(&host.home(), 64);
    let id = load(&host, &["--isolation", "worktree"]);
    disk.fill();
    let stopped = host.command(host.program()).args(["stop", &id]).output().unwrap();
    let complaint = String::from_utf8_lossy(&stopped.stderr).into_owned();
    assert!(!complaint.contains("nothing was changed"), "{complaint}");
    eventually("nothing to run", || host.processes().is_empty().then_some(()));
    // The end of the last process frees some space, which is taken again.
    disk.fill();
    assert_eq!(host.state(&id), "restorable (stopped)", "{complaint}");
    let explained = said(&host, &["explain", &id]);
    assert!(explained.contains("because the operator stopped it"), "{explained}");
    let refused = host.abide(["resume", &id, "--detach", "--yes"]).fails(1);
    assert!(!refused.contains("it is running"), "{refused}");
    disk.empty();
    assert!(said(&host, &["resume", &id, "--detach", "--yes"]).contains("is back"));
}

#[test]
fn a_full_disk_is_reported_by_the_doctor_and_a_removal_says_what_to_do() {
    let host = host_with_repo();
    let disk = SmallDisk::mount(&host.home(), 64);
    let id = load(&host, &["--isolation", "worktree"]);
    std::fs::write(tree(&host, &id).join("work"), "precious").unwrap();
    disk.fill();
    let found = host.abide(["doctor"]).stdout;
    assert!(found.contains("No space left") && found.contains("free some space"), "{found}");
    let refused = host.abide(["eject", &id, "--clean"]).fails(1);
    assert!(refused.contains("free some space"), "{refused}");
    disk.empty();
    assert!(!host.abide(["doctor"]).stdout.contains("No space left"));
}

#[test]
fn a_home_that_others_can_write_to_is_reported_by_the_doctor() {
    use std::os::unix::fs::PermissionsExt;
    let host = host_with_repo();
    load(&host, &[]);
    for (mode, is_open) in [(0o1777, true), (0o770, true), (0o755, false), (0o700, false)] {
        std::fs::set_permissions(host.home(), std::fs::Permissions::from_mode(mode)).unwrap();
        let found = host.abide(["doctor"]).stdout;
        assert_eq!(found.contains("can be written by other users"), is_open, "{mode:o}: {found}");
        assert_eq!(found.contains("chmod 700"), is_open, "{mode:o}: {found}");
    }
}
