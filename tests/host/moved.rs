//! Instances whose directory was moved are resumed where it is now, or say what happened and what can be done.

use std::path::Path;

use abide_testkit::Run;

use crate::common::compare;
use crate::conversations::{Agents, machine};

/// What `abide` says in `dir`.
fn abide_in(host: &Agents, dir: &Path, args: &[&str]) -> Run {
    let mut command = host.command(host.program());
    let out = command.args(args).current_dir(dir).env("PWD", dir).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Run { code: out.status.code(), stdout: text(&out.stdout), stderr: text(&out.stderr) }
}

/// An instance of `agent` in the directory `old`, in which something was said, stopped.
fn stopped_in(host: &Agents, old: &Path, agent: &str) -> String {
    std::fs::create_dir_all(old).unwrap();
    let id = host.loaded(abide_in(host, old, &["load", agent, "--detach"]));
    host.wait_for_screen(&id, "ready");
    host.say(&id, "before the move");
    host.conversation(&id);
    host.stop(&id);
    id
}

#[test]
fn a_resume_names_the_new_place_of_a_moved_directory_and_continues_there_with_dir() {
    let host = machine();
    let (old, new) = (host.path("old"), host.path("elsewhere/new place"));
    let id = stopped_in(&host, &old, "codex");
    std::fs::create_dir_all(new.parent().unwrap()).unwrap();
    std::fs::rename(&old, &new).unwrap();

    let explained = host.abide(["explain", &id]).ok();
    assert!(explained.contains(&format!("it was moved to {}", new.display())), "{explained}");
    assert!(!explained.contains("a resume starts"), "{explained}");
    let complaint = host.abide(["resume", &id, "--detach"]).fails(1);
    assert!(complaint.contains(&format!("{} does not exist", old.display())), "{complaint}");
    assert!(
        complaint.contains(&format!("abide resume {id} --dir '{}'`", new.display())),
        "the directory is named as a shell takes it: {complaint}"
    );
    assert!(complaint.contains(&format!("abide eject {id}")), "{complaint}");
    assert_eq!(host.state(&id), "restorable (stopped)", "a refused resume changes nothing");

    host.abide(["resume", &id, "--detach", "--dir", new.to_str().unwrap()]).ok();
    host.wait_for_screen(&id, "resumed: before the move");
    let explained = host.abide(["explain", &id]).ok();
    let moved = format!("its directory was moved from {} to {}", old.display(), new.display());
    assert!(explained.contains(&moved), "{explained}");
    // From now on it is as if it had been launched there.
    host.say(&id, "after the move");
    host.stop(&id);
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: after the move");
}

#[test]
fn an_agent_that_resumes_only_where_it_was_is_not_bound_to_another_directory() {
    let host = machine();
    let (old, new) = (host.path("old"), host.path("new"));
    let id = stopped_in(&host, &old, "kimi");
    std::fs::rename(&old, &new).unwrap();
    let explained = host.abide(["explain", &id]).ok();
    assert!(explained.contains("moves it back") && !explained.contains("--dir"), "{explained}");
    let complaint = host.abide(["resume", &id, "--detach", "--dir", new.to_str().unwrap()]).fails(1);
    compare(&host, "resume-elsewhere", &complaint);
    assert_eq!(host.state(&id), "restorable (stopped)");
    std::fs::rename(&new, &old).unwrap();
    let complaint = host.abide(["resume", &id, "--detach", "--dir", old.to_str().unwrap()]).fails(1);
    assert!(complaint.contains("is still there"), "{complaint}");
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: before the move");
}

#[test]
fn a_directory_that_is_found_nowhere_is_asked_for_and_resume_all_says_so_too() {
    let host = machine();
    let old = host.path("old");
    let id = stopped_in(&host, &old, "codex");
    std::fs::remove_dir_all(&old).unwrap();
    let complaint = host.abide(["resume", &id, "--detach"]).fails(1);
    compare(&host, "directory-nowhere", &complaint);
    compare(&host, "directory-nowhere-all", &host.abide(["resume", "--all"]).stdout);
}

#[test]
fn an_agent_that_does_not_come_up_in_another_directory_leaves_the_old_one_bound() {
    let mut host = machine();
    host.add_program("only-old", "case $PWD in */old) exec codex \"$@\";; esac; echo not here; exit 1");
    host.configure("[agents.codex]\ncommand = [\"only-old\"]\n");
    let (old, new) = (host.path("old"), host.path("new"));
    let id = stopped_in(&host, &old, "codex");
    std::fs::rename(&old, &new).unwrap();
    let file = host.path("file");
    std::fs::write(&file, "").unwrap();
    let complaint = host.abide(["resume", &id, "--detach", "--dir", file.to_str().unwrap()]).fails(1);
    compare(&host, "resume-in-a-file", &complaint);
    host.abide(["resume", &id, "--detach", "--dir", new.to_str().unwrap()]).fails(1);
    std::fs::rename(&new, &old).unwrap();
    host.resume(&id);
    host.wait_for_screen(&id, "resumed: before the move");
}
