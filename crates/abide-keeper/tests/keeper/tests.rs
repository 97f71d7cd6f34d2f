//! What must hold of a keeper.

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use abide_journal::{Chunk, Recovered};
use abide_keeper::{KeeperArgs, LaunchError, Launching};
use abide_model::liveness::SupervisorLock;
use abide_model::{Liveness, Pid};
use abide_sys::process;
use abide_testkit::cannot_run;
use abide_wire::exit_record::{ExitRecord, StopReason};
use abide_wire::protocol::{CallError, FrameKind, Kill, Shutdown, Spawn, Upgrade, encode_json, error_code};
use abide_wire::session::{ProcessExit, SpawnSpec, TerminalSize};
use abide_wire::socket;
use abide_wire::supervisor_lock::supervisor_lock;
use rustix::io::Errno;
use rustix::process::Signal;

use crate::session::Report;
use crate::support::{CALL, Capsule, exe, id, is_running, part, send_signal, shell, spec, wait_for};

macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub const ALL: &[(&str, fn())] = &[$((stringify!($name), $name)),+];
    };
}

tests![
    a_session_finds_its_terminal_its_environment_and_nothing_else,
    secrets_are_in_no_command_line_and_no_file,
    a_program_that_cannot_be_started_is_reported_with_its_errno_and_leaves_nothing,
    a_vanished_working_directory_is_an_error_and_not_another_directory,
    a_keeper_whose_launcher_goes_away_leaves_nothing,
    a_second_keeper_on_the_same_unit_gives_way,
    another_users_connection_is_turned_away,
    a_unit_deeper_than_a_socket_path_can_be_is_served,
    the_last_output_of_a_session_is_kept_while_there_is_no_mux,
    the_last_output_is_kept_while_a_grandchild_holds_the_terminal,
    the_mux_may_die_two_hundred_times_under_output_and_no_byte_is_lost_or_doubled,
    a_mux_that_does_not_answer_is_replaced_on_a_signal,
    what_a_mux_asked_for_before_it_died_is_done,
    orphans_are_adopted_and_reaped,
    a_killed_session_ends_with_its_whole_tree_and_leaves_the_others,
    a_tool_that_left_the_session_ends_with_it_even_if_its_agent_is_dead_by_then,
    an_interactive_shell_needs_no_killing,
    sigterm_ends_the_stubborn_by_force_and_is_recorded_as_such,
    the_record_says_running_until_it_says_that_the_last_session_ended,
    the_record_says_when_the_operator_ended_it,
    what_a_session_left_behind_goes_with_the_capsule,
    what_follows_the_end_is_started_after_the_record,
    a_running_capsule_moves_to_a_new_binary_and_its_sessions_do_not_notice,
    a_binary_that_cannot_take_over_is_refused_and_everything_goes_on,
    a_binary_that_vanishes_after_its_answer_changes_nothing,
    a_stop_that_meets_an_upgrade_is_carried_out_and_recorded,
    a_kill_that_meets_an_upgrade_is_carried_out,
    a_capsule_whose_mux_cannot_run_ends_with_its_last_session,
    as_pid_1_it_reaps_serves_and_stops,
];

fn a_session_finds_its_terminal_its_environment_and_nothing_else() {
    let mut capsule = Capsule::new();
    let file = capsule.file("report");
    let mut spec = part("r", &["report", file.to_str().unwrap()]);
    spec.env = vec![("ABIDE_SESSION".into(), "r".into()), ("TERM".into(), "dumb".into())];
    spec.cwd = capsule.path().as_os_str().into();
    spec.size = TerminalSize { cols: 123, rows: 45 };
    spec.umask = Some(0o27);
    // What a careless caller leaves open must not reach the keeper, nor the session.
    let (leaked, _other_end) = std::io::pipe().unwrap();
    rustix::io::fcntl_setfd(leaked.as_fd(), rustix::io::FdFlags::empty()).unwrap();
    let launched = capsule.launch(spec);

    let report: Report = wait_for("the report", || serde_json::from_slice(&fs::read(&file).ok()?).ok());
    let mut env = report.env;
    env.sort();
    let expected = [("ABIDE_SESSION", "r"), ("COLORTERM", "truecolor"), ("TERM", "dumb")];
    assert_eq!(env, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(report.descriptors, [0, 1, 2]);
    assert_eq!(report.pid, launched.session_pid);
    assert_eq!([report.session, report.group, report.foreground], [report.pid; 3]);
    assert_eq!(report.cwd, capsule.path().to_str().unwrap());
    assert_eq!((report.cols, report.rows, report.utf8_erase), (123, 45, true));
    // Rust programs ignore SIGPIPE themselves (bit 12); nothing else may be ignored, and nothing blocked.
    assert_eq!(u64::from_str_radix(&report.ignored, 16).unwrap() & !(1 << 12), 0);
    assert_eq!(u64::from_str_radix(&report.blocked, 16).unwrap(), 0);
    assert_eq!(report.umask, "0027");

    let keeper_fds = fs::read_dir(format!("/proc/{}/fd", capsule.keeper_pid())).unwrap();
    let leaked_name =
        fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&leaked))).unwrap();
    for entry in keeper_fds {
        assert_ne!(fs::read_link(entry.unwrap().path()).ok(), Some(leaked_name.clone()));
    }
}

fn secrets_are_in_no_command_line_and_no_file() {
    let mut capsule = Capsule::new();
    let mut spec = shell("s", "echo ready; exec sleep 1000");
    spec.env.push(("API_KEY".into(), "hunter2-hunter2".into()));
    capsule.launch(spec);
    let status = capsule.status();
    let holds = |bytes: &[u8]| bytes.windows(15).any(|window| window == b"hunter2-hunter2");
    for pid in [status.keeper_pid, status.mux_pid] {
        for file in ["cmdline", "environ"] {
            assert!(!holds(&fs::read(format!("/proc/{pid}/{file}")).unwrap()), "{file}");
        }
    }
    for dir in ["run", "state", "journal"] {
        for entry in fs::read_dir(capsule.instance_dir.path().join(dir)).unwrap() {
            let path = entry.unwrap().path();
            assert!(!fs::read(&path).is_ok_and(|bytes| holds(&bytes)), "{}", path.display());
        }
    }
    assert!(!holds(capsule.log().as_bytes()));
}

fn a_program_that_cannot_be_started_is_reported_with_its_errno_and_leaves_nothing() {
    let capsule = Capsule::new();
    let not_executable = capsule.file("plain");
    fs::write(&not_executable, "").unwrap();
    let plain = not_executable.to_str().unwrap();
    let cases = [
        (spec("a", &["/no/such/program"]), Errno::NOENT),
        (spec("a", &["no-such-program-on-the-path"]), Errno::NOENT),
        (spec("a", &[plain]), Errno::ACCESS),
        (spec("a", &[]), Errno::INVAL),
        (SpawnSpec { env: vec![("A=B".into(), "c".into())], ..spec("a", &["true"]) }, Errno::INVAL),
    ];
    for (spec, expected) in cases {
        let Err(LaunchError::Failed { errno, text }) = capsule.try_launch(spec) else { panic!("it started") };
        assert_eq!(errno, expected.raw_os_error(), "{text}");
        wait_for("the socket to go", || {
            (!capsule.instance_dir.run_dir().join("sock").exists()).then_some(())
        });
        assert_eq!(ExitRecord::read(&capsule.instance_dir).unwrap(), None);
    }
}

fn a_vanished_working_directory_is_an_error_and_not_another_directory() {
    let capsule = Capsule::new();
    let mut spec = shell("a", "pwd");
    spec.cwd = "/no/such/directory".into();
    let Err(LaunchError::Failed { errno, text }) = capsule.try_launch(spec) else { panic!("it started") };
    assert_eq!(errno, Errno::NOENT.raw_os_error());
    assert!(text.contains("working directory /no/such/directory"), "{text}");
}

fn a_keeper_whose_launcher_goes_away_leaves_nothing() {
    let capsule = Capsule::new();
    let argv = [exe(), "capsule".into(), "keeper".into()];
    let launching = Launching::begin(&argv, capsule.config.clone(), &capsule.file("log")).unwrap();
    let keeper = launching.keeper().clone();
    assert!(
        process::alive(&keeper) == Liveness::Alive && capsule.instance_dir.run_dir().join("sock").exists()
    );
    drop(launching);
    wait_for("the keeper's end", || (process::alive(&keeper) == Liveness::Dead).then_some(()));
    assert!(!capsule.instance_dir.run_dir().join("sock").exists());
}

fn a_second_keeper_on_the_same_unit_gives_way() {
    let mut capsule = Capsule::new();
    let first = capsule.launch(shell("a", "exec sleep 1000"));
    let second = capsule.try_launch(shell("b", "exec sleep 1000"));
    assert!(matches!(second, Err(LaunchError::AlreadyRunning)), "{second:?}");
    let status = capsule.status();
    assert_eq!(status.keeper_pid, first.keeper.pid);
    assert_eq!(status.sessions.len(), 1);
}

fn another_users_connection_is_turned_away() {
    if !rustix::process::geteuid().is_root() {
        cannot_run("another user to be", "run it as root");
    }
    let dir = tempfile::tempdir().unwrap();
    let (listener, _) = socket::bind(dir.path()).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(dir.path().join("sock"), fs::Permissions::from_mode(0o666)).unwrap();
    let program = dir.path().join("other");
    fs::copy(exe().as_path(), &program).unwrap();
    let mut other =
        Command::new(program).args(["session", "connect"]).arg(dir.path()).uid(65534).spawn().unwrap();
    let refused = socket::accept(&listener).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    assert!(other.wait().unwrap().success());
}

fn a_unit_deeper_than_a_socket_path_can_be_is_served() {
    let deep = format!("{}/{}", "a".repeat(120), "b".repeat(120));
    let mut capsule = Capsule::below(&deep);
    capsule.launch(shell("a", "exec sleep 1000"));
    assert_eq!(capsule.status().sessions.len(), 1);
}

/// What is in the journal of session `name`.
fn journaled(capsule: &Capsule, name: &str) -> String {
    let recovered = Recovered::read(&capsule.instance_dir.journal(&id(name))).unwrap();
    let mut output = Vec::new();
    let each = |chunk: Chunk<'_>| {
        if let Chunk::Output(bytes) = chunk {
            output.extend_from_slice(bytes);
        }
    };
    recovered.replay(each).unwrap();
    String::from_utf8_lossy(&output).into_owned()
}

fn the_last_output_of_a_session_is_kept_while_there_is_no_mux() {
    let mut capsule = Capsule::new();
    // A mux that cannot start yet.
    let mux = capsule.file("mux");
    capsule.config.mux = vec![mux.as_os_str().into(), "capsule".into(), "mux".into()];
    capsule.config.mux_pause_ms = 500;
    let launched = capsule.launch(shell("a", "echo the very last words"));
    wait_for("the session's end", || (!is_running(launched.session_pid)).then_some(()));
    wait_for("the end to be recorded", || {
        let record = ExitRecord::read(&capsule.instance_dir).unwrap()?;
        assert_eq!(record.reason, None);
        record.sessions[0].exit.map(drop)
    });
    std::os::unix::fs::symlink(exe().as_path(), &mux).unwrap();
    assert_eq!(capsule.ended().reason, Some(StopReason::LastSessionEnded));
    assert_eq!(journaled(&capsule, "a"), "the very last words\r\n");
}

fn the_last_output_is_kept_while_a_grandchild_holds_the_terminal() {
    let mut capsule = Capsule::new();
    let script = "trap '' HUP; sleep 1000 & echo $! >pid.new; mv pid.new pid; echo the tail";
    let mut spec = shell("a", script);
    spec.cwd = capsule.path().as_os_str().into();
    capsule.launch(spec);
    let record = capsule.ended();
    assert_eq!(record.reason, Some(StopReason::LastSessionEnded));
    assert_eq!(record.sessions[0].exit, Some(ProcessExit::Code(0)));
    assert_eq!(journaled(&capsule, "a"), "the tail\r\n");
    let grandchild = fs::read_to_string(capsule.file("pid")).unwrap().trim().parse().unwrap();
    assert!(!is_running(grandchild));
}

fn the_mux_may_die_two_hundred_times_under_output_and_no_byte_is_lost_or_doubled() {
    let mut capsule = Capsule::new();
    let stop = capsule.file("stop");
    let flood = |name| part(name, &["flood", stop.to_str().unwrap()]);
    // The verdict is read from the mux, which forgets a session that ended; this one outlives the others.
    capsule.launch(shell("last", "exec sleep 1000"));
    for name in ["a", "b", "c"] {
        let spawn = Spawn { spec: Box::new(flood(name)), focus: false };
        capsule.connect().call(&spawn, CALL).unwrap();
    }
    let mut seed: u64 = 1;
    let mut muxes = std::collections::HashSet::new();
    for _ in 0..200 {
        let mux = capsule.connect().hello().pid;
        muxes.insert(mux);
        // Not to wait for something, but to be killed at another point of its work each time.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_micros(seed >> 51));
        send_signal(mux, Signal::KILL);
        wait_for("the mux's death", || (!is_running(mux)).then_some(()));
    }
    assert_eq!(muxes.len(), 200);
    for session in capsule.status().sessions.iter().filter(|session| session.id != id("last")) {
        assert!(session.title.starts_with("at "), "{}: {}", session.id, session.title);
        assert!(session.exit.is_none() && is_running(session.pid));
    }
    // The floods end; each must be found complete to its last line.
    fs::write(&stop, "").unwrap();
    for name in ["a", "b", "c"] {
        let verdict = wait_for("the end of a flood", || {
            let file = capsule.instance_dir.state_dir().join(format!("{}.verdict", id(name)));
            fs::read_to_string(file).ok()
        });
        assert_eq!(verdict, "complete", "{name}");
    }
}

fn a_mux_that_does_not_answer_is_replaced_on_a_signal() {
    let mut capsule = Capsule::new();
    let launched = capsule.launch(shell("a", "exec sleep 1000"));
    let mux = capsule.connect().hello().pid;
    send_signal(mux, Signal::STOP);
    send_signal(capsule.keeper_pid(), Signal::USR1);
    wait_for("the stopped mux to be gone", || (!is_running(mux)).then_some(()));
    assert_ne!(capsule.connect().hello().pid, mux);
    assert!(is_running(launched.session_pid));
}

fn what_a_mux_asked_for_before_it_died_is_done() {
    let mut capsule = Capsule::new();
    capsule.launch(shell("a", "exec sleep 1000"));
    let mut connection = capsule.connect();
    // The keeper is held until the mux is dead, so that it learns of the death and the wish at once.
    send_signal(capsule.keeper_pid(), Signal::STOP);
    let closed = connection.call(&Shutdown { reason: "die after asking".into() }, CALL).unwrap_err();
    assert!(matches!(closed, CallError::Closed(_)), "{closed}");
    let mux = connection.hello().pid;
    wait_for("the mux's death", || (!is_running(mux)).then_some(()));
    send_signal(capsule.keeper_pid(), Signal::CONT);
    assert_eq!(capsule.ended().reason, Some(StopReason::Operator));
}

/// The processes whose parent is `pid`, with their state.
fn children(pid: Pid) -> Vec<(Pid, char)> {
    let stat = |entry: fs::DirEntry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.chars().next()?;
        (fields.next()?.parse() == Ok(pid)).then_some((number, state))
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(stat).collect()
}

fn orphans_are_adopted_and_reaped() {
    let mut capsule = Capsule::new();
    let mut spec =
        shell("a", "(setsid sleep 1000 & echo $! >orphan.new; mv orphan.new orphan); exec sleep 1000");
    spec.cwd = capsule.path().as_os_str().into();
    capsule.launch(spec);
    let orphan: Pid =
        wait_for("the orphan", || fs::read_to_string(capsule.file("orphan")).ok()?.trim().parse().ok());
    let keeper = capsule.keeper_pid();
    wait_for("the adoption", || children(keeper).iter().any(|(pid, _)| *pid == orphan).then_some(()));
    send_signal(orphan, Signal::KILL);
    wait_for("the reaping", || (!children(keeper).iter().any(|(pid, _)| *pid == orphan)).then_some(()));
    assert!(children(keeper).iter().all(|(_, state)| *state != 'Z'));
}

fn a_killed_session_ends_with_its_whole_tree_and_leaves_the_others() {
    let mut capsule = Capsule::new();
    capsule.config.grace_ms = 200;
    let other = capsule.launch(shell("other", "exec sleep 1000"));
    let script =
        "trap '' TERM HUP; sleep 1000 & echo $! >child.new; mv child.new child; wait; wait; sleep 1000";
    let mut spec = shell("stubborn", script);
    spec.cwd = capsule.path().as_os_str().into();
    let mut connection = capsule.connect();
    let stubborn = connection.call(&Spawn { spec: Box::new(spec), focus: false }, CALL).unwrap();
    let child = wait_for("its child", || fs::read_to_string(capsule.file("child")).ok()?.trim().parse().ok());
    connection.call(&Kill { session: id("stubborn") }, CALL).unwrap();
    wait_for("its end", || (!is_running(stubborn.pid) && !is_running(child)).then_some(()));
    let record = wait_for("the record of it", || {
        let record = ExitRecord::read(&capsule.instance_dir).unwrap()?;
        record.sessions.into_iter().find(|session| session.id == id("stubborn") && session.exit.is_some())
    });
    assert_eq!((record.exit, record.stopped), (Some(ProcessExit::Signal(9)), false));
    assert!(is_running(other.session_pid));
}

fn a_tool_that_left_the_session_ends_with_it_even_if_its_agent_is_dead_by_then() {
    let mut capsule = Capsule::new();
    capsule.config.grace_ms = 200;
    let marked = |name: &str, script: &str| {
        let mut spec = shell(name, script);
        spec.env
            .extend([("ABIDE_INSTANCE".into(), "k7p9m2xq".into()), ("ABIDE_SESSION".into(), name.into())]);
        spec.cwd = capsule.path().as_os_str().into();
        spec
    };
    // It is asked once, with the agent, and has no ties to it afterwards.
    let tool = |name: &str| {
        format!(
            "setsid sh -c 'trap : TERM HUP; echo $$ >{name}.new; mv {name}.new {name}; while :; do sleep 1000; done' &\n"
        )
    };
    let agent = marked("agent", &format!("{}exec sleep 1000", tool("tool")));
    let other = marked("other", &format!("{}exec sleep 1000", tool("other-tool")));
    capsule.launch(other);
    let mut connection = capsule.connect();
    let agent = connection.call(&Spawn { spec: Box::new(agent), focus: false }, CALL).unwrap();
    let pid = |name: &str| fs::read_to_string(capsule.file(name)).ok()?.trim().parse().ok();
    let (tool, others) = wait_for("the tools", || Some((pid("tool")?, pid("other-tool")?)));
    connection.call(&Kill { session: id("agent") }, CALL).unwrap();
    wait_for("the end of both", || (!is_running(agent.pid) && !is_running(tool)).then_some(()));
    assert!(is_running(others), "it belongs to another session");
}

fn an_interactive_shell_needs_no_killing() {
    let mut capsule = Capsule::new();
    // Longer than any test waits: if the shell had to be killed, the test would fail.
    capsule.config.grace_ms = 600_000;
    let mut spec = spec("a", &["bash", "--norc", "-i"]);
    spec.env.push(("HOME".into(), "/nonexistent".into()));
    spec.env.push(("PS1".into(), "prompt> ".into()));
    capsule.launch(spec);
    wait_for("the prompt", || journaled_so_far(&capsule, "a").contains("prompt>").then_some(()));
    send_signal(capsule.keeper_pid(), Signal::TERM);
    assert_eq!(capsule.ended().reason, Some(StopReason::Sigterm));
}

fn journaled_so_far(capsule: &Capsule, name: &str) -> String {
    let exists = capsule.instance_dir.journal(&id(name)).exists();
    if exists { journaled(capsule, name) } else { String::new() }
}

fn sigterm_ends_the_stubborn_by_force_and_is_recorded_as_such() {
    let mut capsule = Capsule::new();
    capsule.config.grace_ms = 300;
    let polite = "trap 'echo cleaned up; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    capsule.launch(shell("polite", polite));
    let stubborn = shell("stubborn", "trap '' TERM HUP INT; echo ready; while :; do sleep 0.05; done");
    capsule.connect().call(&Spawn { spec: Box::new(stubborn), focus: false }, CALL).unwrap();
    for name in ["polite", "stubborn"] {
        wait_for("both", || journaled_so_far(&capsule, name).contains("ready").then_some(()));
    }
    send_signal(capsule.keeper_pid(), Signal::TERM);
    let record = capsule.ended();
    assert_eq!(record.reason, Some(StopReason::Sigterm));
    let exits: Vec<_> = record.sessions.iter().map(|s| (s.name.as_str(), s.exit, s.stopped)).collect();
    assert_eq!(
        exits,
        [("polite", Some(ProcessExit::Code(7)), true), ("stubborn", Some(ProcessExit::Signal(9)), true)]
    );
    assert!(journaled(&capsule, "polite").contains("cleaned up"));
    assert!(!capsule.instance_dir.run_dir().join("sock").exists());
}

fn the_record_says_running_until_it_says_that_the_last_session_ended() {
    let mut capsule = Capsule::new();
    capsule.config.generation = 41;
    capsule.launch(shell("a", "exit 3"));
    assert_eq!(capsule.ended().reason, Some(StopReason::LastSessionEnded));

    capsule.config.generation = 42;
    capsule.launch(shell("b", "read line; exit 4"));
    let record = wait_for("the new record", || {
        ExitRecord::read(&capsule.instance_dir).unwrap().filter(|record| record.generation == 42)
    });
    assert_eq!((record.reason, record.sessions.iter().filter(|s| s.exit.is_some()).count()), (None, 0));
    assert_eq!(process::alive(&record.keeper), Liveness::Alive);
    capsule.connect().call(&Kill { session: id("b") }, CALL).unwrap();
    let record = capsule.ended();
    assert_eq!((record.generation, record.reason), (42, Some(StopReason::LastSessionEnded)));
    assert_eq!(record.sessions[0].exit, Some(ProcessExit::Signal(15)));
    assert_eq!(process::alive(&record.keeper), Liveness::Dead);
}

fn the_record_says_when_the_operator_ended_it() {
    let mut capsule = Capsule::new();
    capsule.launch(shell("a", "exec sleep 1000"));
    capsule.connect().call(&Shutdown { reason: "enough for today".into() }, CALL).unwrap();
    let record = capsule.ended();
    assert_eq!(record.reason, Some(StopReason::Operator));
    assert_eq!(record.note, "enough for today");
    assert_eq!(record.sessions[0].exit, Some(ProcessExit::Signal(15)));
    assert!(record.stopped_ms >= Some(record.started_ms));
}

fn what_a_session_left_behind_goes_with_the_capsule() {
    let mut capsule = Capsule::new();
    capsule.config.grace_ms = 200;
    let mut spec =
        shell("a", "(trap '' TERM HUP; setsid sleep 1000 & echo $! >orphan.new; mv orphan.new orphan)");
    spec.cwd = capsule.path().as_os_str().into();
    capsule.launch(spec);
    assert_eq!(capsule.ended().reason, Some(StopReason::LastSessionEnded));
    let orphan = fs::read_to_string(capsule.file("orphan")).unwrap().trim().parse().unwrap();
    assert!(!is_running(orphan));
}

fn what_follows_the_end_is_started_after_the_record() {
    let mut capsule = Capsule::new();
    let (record, seen) = (capsule.instance_dir.exit_record(), capsule.file("seen"));
    let lock = capsule.instance_dir.keeper_lock();
    let script = r#"flock -n "$2" true && cp "$0" "$1.new" && mv "$1.new" "$1""#;
    let words = ["sh", "-c", script].map(std::ffi::OsString::from).into_iter();
    let files = [record, seen.clone(), lock].into_iter().map(Into::into);
    capsule.config.on_exit = words.chain(files).map(Into::into).collect();
    capsule.launch(shell("a", "true"));
    let seen = wait_for("the hook", || fs::read(&seen).ok());
    let record: ExitRecord = serde_json::from_slice(&seen).unwrap();
    assert_eq!(record.reason, Some(StopReason::LastSessionEnded));
}

fn a_running_capsule_moves_to_a_new_binary_and_its_sessions_do_not_notice() {
    let mut capsule = Capsule::new();
    let stop = capsule.file("stop");
    let launched = capsule.launch(shell("last", "exec sleep 1000"));
    let flood = part("flood", &["flood", stop.to_str().unwrap()]);
    capsule.connect().call(&Spawn { spec: Box::new(flood), focus: false }, CALL).unwrap();
    let new_binary = capsule.file("new-binary");
    fs::copy(exe().as_path(), &new_binary).unwrap();
    for _ in 0..3 {
        let before = capsule.status();
        let refused =
            capsule.connect().call(&Upgrade { exe: new_binary.as_os_str().into() }, CALL).unwrap_err();
        assert!(matches!(refused, CallError::Closed(_)), "{refused}");
        let after =
            wait_for("another mux", || Some(capsule.status()).filter(|now| now.mux_pid != before.mux_pid));
        assert_eq!(after.keeper_pid, before.keeper_pid);
        for pid in [after.keeper_pid, after.mux_pid] {
            assert_eq!(fs::read_link(format!("/proc/{pid}/exe")).unwrap(), new_binary);
        }
        assert_eq!(after.sessions.len(), 2);
    }
    assert!(is_running(launched.session_pid));
    // The lock is still held, and the record still that of this run.
    assert!(matches!(capsule.try_launch(shell("x", "true")), Err(LaunchError::AlreadyRunning)));
    assert_eq!(supervisor_lock(&capsule.instance_dir), SupervisorLock::Held);
    fs::write(&stop, "").unwrap();
    let verdict = capsule.instance_dir.state_dir().join(format!("{}.verdict", id("flood")));
    assert_eq!(wait_for("the end of the flood", || fs::read_to_string(&verdict).ok()), "complete");
    // Its children are still its own: it learns how they end.
    send_signal(launched.session_pid, Signal::KILL);
    let record = capsule.ended();
    assert_eq!(record.sessions[0].exit, Some(ProcessExit::Signal(9)));
}

/// An executable script.
fn script(capsule: &Capsule, name: &str, text: &str) -> std::path::PathBuf {
    let path = capsule.file(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn a_binary_that_cannot_take_over_is_refused_and_everything_goes_on() {
    let mut capsule = Capsule::new();
    let launched = capsule.launch(shell("a", "exec sleep 1000"));
    let newer = script(&capsule, "newer", r#"echo '{"version": "9.9.9", "keeper_state": [77]}'"#);
    let other = script(&capsule, "other", "echo usage: other");
    let missing = capsule.file("missing");
    let mux = capsule.status().mux_pid;
    for exe in [newer, other, missing] {
        let refused = capsule.connect().call(&Upgrade { exe: exe.as_os_str().into() }, CALL).unwrap_err();
        let CallError::Refused(refusal) = refused else { panic!("{refused}") };
        assert_eq!(refusal.code, error_code::UPGRADE_REFUSED);
        assert!(refusal.message.contains(exe.to_str().unwrap()), "{}", refusal.message);
    }
    let status = capsule.status();
    assert_eq!((status.mux_pid, status.sessions[0].pid), (mux, launched.session_pid));
}

fn a_binary_that_vanishes_after_its_answer_changes_nothing() {
    let mut capsule = Capsule::new();
    let launched = capsule.launch(shell("a", "exec sleep 1000"));
    let vanishing = script(&capsule, "vanishing", &format!("rm \"$0\"; echo '{}'", abide_keeper::probe()));
    let before = capsule.status();
    let closed = capsule.connect().call(&Upgrade { exe: vanishing.as_os_str().into() }, CALL).unwrap_err();
    assert!(matches!(closed, CallError::Closed(_)), "{closed}");
    let after =
        wait_for("another mux", || Some(capsule.status()).filter(|now| now.mux_pid != before.mux_pid));
    assert_eq!((after.keeper_pid, after.sessions[0].pid), (before.keeper_pid, launched.session_pid));
    assert_eq!(fs::read_link(format!("/proc/{}/exe", after.mux_pid)).unwrap(), exe().as_path());
    // Descriptors that were meant for the new program must not leak into sessions started by the old one.
    let file = capsule.file("report");
    let report = part("report", &["report", file.to_str().unwrap()]);
    capsule.connect().call(&Spawn { spec: Box::new(report), focus: false }, CALL).unwrap();
    let report: Report = wait_for("the report", || serde_json::from_slice(&fs::read(&file).ok()?).ok());
    assert_eq!(report.descriptors, [0, 1, 2]);
}

fn a_stop_that_meets_an_upgrade_is_carried_out_and_recorded() {
    let mut capsule = Capsule::new();
    let launched = capsule.launch(shell("a", "exec sleep 1000"));
    let mux = capsule.status().mux_pid;
    // It is asked just when everything is told to end, and the old mux does not go at once.
    let meeting = format!("[ $2 = probe ] && kill -STOP {mux} && kill -TERM $PPID");
    let newer = script(&capsule, "newer", &format!("{meeting}\nexec {} \"$@\"", exe().as_path().display()));
    let mut connection = capsule.connect();
    std::thread::scope(|scope| {
        scope.spawn(|| connection.call(&Upgrade { exe: newer.as_os_str().into() }, CALL).unwrap_err());
        wait_for("the session's end", || (!is_running(launched.session_pid)).then_some(()));
        send_signal(mux, Signal::CONT);
    });
    let record = capsule.ended();
    assert_eq!((record.reason, record.sessions[0].stopped), (Some(StopReason::Sigterm), true));
}

fn a_kill_that_meets_an_upgrade_is_carried_out() {
    let mut capsule = Capsule::new();
    capsule.config.grace_ms = 200;
    let script = "trap '' TERM HUP; echo ready; while :; do sleep 0.05; done";
    let stubborn = capsule.launch(shell("stubborn", script));
    wait_for("the session", || journaled_so_far(&capsule, "stubborn").contains("ready").then_some(()));
    let mut frames = Vec::new();
    let upgrade = serde_json::json!({ "id": 1, "verb": "upgrade", "exe": exe() });
    for request in [upgrade, serde_json::json!({ "id": 2, "verb": "kill", "session": id("stubborn") })] {
        encode_json(FrameKind::Request, &request, &mut frames).unwrap();
    }
    let (mut stream, _) = capsule.connect().into_parts();
    stream.write_all(&frames).unwrap();
    wait_for("its end", || (!is_running(stubborn.session_pid)).then_some(()));
    assert_eq!(capsule.ended().sessions[0].exit, Some(ProcessExit::Signal(9)));
}

fn a_capsule_whose_mux_cannot_run_ends_with_its_last_session() {
    for (mux, complaints) in [("/no/such/mux", 1), ("false", 0)] {
        let mut capsule = Capsule::new();
        capsule.config.mux = vec![mux.into()];
        capsule.launch(shell("a", "exit 3"));
        let record = capsule.ended();
        assert_eq!(record.reason, Some(StopReason::LastSessionEnded));
        assert_eq!(record.sessions[0].exit, Some(ProcessExit::Code(3)));
        assert_eq!(capsule.log().matches("cannot be started").count(), complaints);
    }
}

/// A process that does not outlive a failed test.
struct KilledOnDrop(std::process::Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn as_pid_1_it_reaps_serves_and_stops() {
    let works = Command::new("unshare").args(["--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        cannot_run("a pid namespace of its own", "install util-linux and run it as root");
    }
    let capsule = Capsule::new();
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]).arg(exe()).args(["capsule", "keeper"]);
    command.args(KeeperArgs::Serve(capsule.config.clone()).to_argv());
    let log = fs::File::create(capsule.file("log")).unwrap();
    let mut outer = KilledOnDrop(command.stdin(Stdio::null()).stderr(log).spawn().unwrap());
    wait_for("the socket", || capsule.instance_dir.run_dir().join("sock").exists().then_some(()));
    assert_eq!(capsule.status().keeper_pid, Pid(1));
    let mut spec = shell("a", "(setsid sh -c 'exit 0' &); sleep 0.1; echo reaped; exec sleep 1000");
    spec.env.push(("HOME".into(), "/".into()));
    capsule.connect().call(&Spawn { spec: Box::new(spec), focus: false }, CALL).unwrap();
    wait_for("the session", || journaled_so_far(&capsule, "a").contains("reaped").then_some(()));
    let init = children(process::child_pid(&outer.0))[0].0;
    assert!(children(init).iter().all(|(_, state)| *state != 'Z'));
    let identity = process::identity(init).unwrap();
    send_signal(init, Signal::TERM);
    assert_eq!(outer.0.wait().unwrap().code(), Some(143), "the engine is told that it was a signal");
    assert!(process::alive(&identity) == Liveness::Dead);
    let record = ExitRecord::read(&capsule.instance_dir).unwrap().unwrap();
    assert_eq!(
        (record.reason, record.sessions[0].exit),
        (Some(StopReason::Sigterm), Some(ProcessExit::Signal(15)))
    );
}
