//! Liveness where the home is odd: full, linked, another user's, deleted under a running capsule; and abide as process 1.

use std::process::{Command, Stdio};

use abide_testkit::{cannot_run, eventually};

use crate::common::{alive, compare, kill, unwatched_host, wait_for_death};

/// `unshare` with the rights of root in namespaces of its own.
fn unshare(command: &mut Command, what: &[&str]) {
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(what);
}

#[test]
fn a_stop_on_a_full_disk_is_recorded_as_a_stop_once_there_is_room_again() {
    let host = unwatched_host();
    // Whatever a stop frees is taken at once, so that it may not be able to write anything down.
    let script = r#"
set -e
mkdir -p "$ABIDE_HOME"
mount -t tmpfs -o size=24m,mode=700 none "$ABIDE_HOME"
id=$("$0" load stub --detach | cut -c4-11)
fill() { dd if=/dev/zero bs=4096 >> "$ABIDE_HOME/ballast" 2>/dev/null || :; }
fill
(while [ -e "$ABIDE_HOME/ballast" ]; do fill; done) &
"$0" stop "$id" >&2 || echo "not written down"
rm "$ABIDE_HOME/ballast"
wait
rm -f "$ABIDE_HOME/ballast"
"$0" ls
"$0" explain "$id"
"#;
    let mut command = host.command("unshare");
    unshare(&mut command, &["--mount"]);
    let out = command.args(["sh", "-c", script]).arg(host.program()).output().unwrap();
    let [said, complaint] = [out.stdout, out.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(said.contains("restorable (stopped)"), "{said}{complaint}");
    assert!(said.contains("because the operator stopped it"), "{said}{complaint}");
    if said.contains("not written down") {
        assert!(complaint.contains("its processes have ended"), "{complaint}");
    }
}

#[test]
fn a_capsule_whose_directory_is_gone_is_found_and_ended_by_prune() {
    let host = unwatched_host();
    let (id, other) = (host.load(&[]), host.load(&[]));
    let (pids, others) = (host.pids(&id), host.pids(&other));
    std::fs::remove_dir_all(host.home().join("instances").join(&id)).unwrap();
    let listed = host.abide(["ls"]).ok();
    assert!(listed.contains(&format!("ab-{id} still runs, but its directory is gone")), "{listed}");
    assert!(listed.contains("abide prune"), "{listed}");
    let found = host.abide(["doctor"]).stdout;
    assert!(found.contains(&id) && found.contains("its directory is gone"), "{found}");
    let shown = host.abide(["prune", "--dry-run"]).ok();
    assert!(shown.contains(&id) && shown.contains(&pids.keeper.to_string()), "{shown}");
    assert!(alive(pids.session), "shown, not ended");
    host.abide(["prune", "--yes"]).ok();
    assert!(!alive(pids.keeper) && !alive(pids.session) && !alive(pids.mux));
    assert!(alive(others.keeper) && alive(others.session));
    assert!(!host.abide(["ls"]).ok().contains(&id));
}

#[test]
fn every_verb_refuses_the_home_of_another_user_and_writes_nothing() {
    let mut host = unwatched_host();
    let id = host.load(&[]);
    host.abide(["stop", &id]).ok();
    eventually("the finaliser to end", || host.processes().is_empty().then_some(()));
    // Whoever runs the tests, one of these is another user's.
    if rustix::process::geteuid().is_root() {
        assert!(Command::new("chown").args(["-R", "4711"]).arg(host.home()).status().unwrap().success());
    } else {
        host.set("ABIDE_HOME", "/usr");
    }
    let tree = |dir: &std::path::Path| {
        let listed = Command::new("find").arg(dir).args(["-printf", "%p %U %T@ %s\n"]).output().unwrap();
        String::from_utf8_lossy(&listed.stdout).into_owned()
    };
    let before = tree(&host.path("home"));
    for verb in [
        &["ls"][..],
        &[],
        &["explain", &id],
        &["stop", &id],
        &["eject", &id, "--clean"],
        &["prune", "--yes"],
        &["config", "set", "policy", "keep"],
        &["config", "list"],
        &["workspace", "create", "shop"],
        &["service", "install"],
        &["trash", "list"],
        &["trash", "empty", "--yes"],
        &["conversations"],
        &["load", "stub", "--detach"],
        &["resume", &id],
        &["resume", "--all"],
        &["hardline", &id],
        &["peek", &id],
        &["send", &id, "x"],
        &["wait", &id, "--idle"],
        &["leave"],
        &["upgrade", "--all"],
        &["doctor"],
    ] {
        let refused = host.abide(verb);
        assert!(refused.stderr.contains("belongs to uid"), "{verb:?}: {}{}", refused.stdout, refused.stderr);
        assert_ne!(refused.code, Some(0), "{verb:?}");
    }
    assert_eq!(tree(&host.path("home")), before);
}

#[test]
fn a_configuration_is_not_made_in_the_directory_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        cannot_run("to write into the directory of another user", "run it as root");
    }
    let mut host = unwatched_host();
    let theirs = host.path("theirs");
    std::fs::create_dir(&theirs).unwrap();
    assert!(Command::new("chown").arg("4711").arg(&theirs).status().unwrap().success());
    host.set("HOME", &theirs);
    host.set("XDG_CONFIG_HOME", theirs.join(".config"));
    host.set("ABIDE_HOME", theirs.join(".abide"));
    let refused = host.abide(["config", "set", "policy", "keep"]).fails(1);
    compare(&host, "home-of-another-user", &refused);
    assert_eq!(std::fs::read_dir(theirs).unwrap().count(), 0);
}

#[test]
fn a_home_behind_a_link_is_one_home_for_capsules_and_for_tmux() {
    let mut host = unwatched_host();
    std::fs::create_dir_all(host.path("real/.abide")).unwrap();
    std::os::unix::fs::symlink(host.path("real"), host.path("linked")).unwrap();
    let home = host.path("linked/.abide");
    host.set("ABIDE_HOME", home);
    for substrate in ["capsule", "tmux"] {
        let id = host.load(&["--substrate", substrate]);
        host.wait_for_screen(&id, "stub pid");
        assert_eq!(host.state(&id), "active");
        host.abide(["stop", &id]).ok();
        assert_eq!(host.state(&id), "restorable (stopped)");
    }
}

#[test]
fn git_does_not_outlive_a_load_that_was_killed() {
    let mut host = unwatched_host();
    let git = |args: &[&str]| {
        let done = host
            .command("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(args)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    let real = String::from_utf8(host.command("sh").args(["-c", "command -v git"]).output().unwrap().stdout)
        .unwrap();
    let (at, go) = (host.path("at"), host.path("go"));
    // A clone that takes its time before it makes anything.
    let script = format!(
        "case \"$*\" in *clone*) echo $$ > {0}.new; mv {0}.new {0}; while [ ! -e {1} ]; do sleep 0.01; done ;; esac\nexec {2} \"$@\"",
        at.display(),
        go.display(),
        real.trim()
    );
    host.add_program("git", &script);
    let mut load = host.command(host.program());
    let mut load = load
        .args(["load", "stub", "--detach", "--isolation", "clone"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let git: u32 = eventually("git", || std::fs::read_to_string(&at).ok()?.trim().parse().ok());
    kill("-KILL", load.id());
    load.wait().unwrap();
    wait_for_death(git);
    host.abide(["ls"]).ok();
    std::fs::write(&go, "").unwrap();
    assert_eq!(std::fs::read_dir(host.home().join("instances")).unwrap().count(), 0);
}

#[test]
fn as_process_1_it_stays_until_the_instance_has_ended() {
    let host = unwatched_host();
    let mut command = host.command("unshare");
    unshare(&mut command, &["--pid", "--fork", "--mount-proc", "--kill-child"]);
    command.arg(host.program()).args(["load", "stub", "--detach", "--keep", "--name", "one"]);
    let mut first = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("the instance to run", || (host.state("one") == "active").then_some(()));
    host.wait_for_screen("one", "stub pid");
    assert!(first.try_wait().unwrap().is_none(), "the container would have ended under the session");
    host.abide(["send", "one", "exit 0"]).ok();
    let out = first.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success() && said.contains("process 1"), "{said}");
    assert_eq!(host.state("one"), "restorable (kept)");
}

#[test]
fn as_process_1_it_passes_a_stop_on() {
    let host = unwatched_host();
    let mut command = host.command("unshare");
    unshare(&mut command, &["--pid", "--fork", "--mount-proc", "--kill-child"]);
    command.arg(host.program()).args(["load", "stub", "--detach", "--name", "one"]);
    let mut first = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the instance to run", || (host.state("one") == "active").then_some(()));
    let inner = eventually("process 1", || {
        abide_sys::process::children(abide_sys::process::child_pid(&first)).first().copied()
    });
    kill("-TERM", inner.0);
    assert!(first.wait().unwrap().success());
    assert_eq!(host.state("one"), "restorable (stopped)");
}
