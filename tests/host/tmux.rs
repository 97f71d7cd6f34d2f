//! Sessions in a tmux server.

use std::process::Command;

use abide_engine::running::connect;
use abide_engine::substrate;
use abide_model::liveness::SupervisorLock;
use abide_store::Store;
use abide_testkit::{Terminal, eventually};

use crate::common::{Host, alive, compare, exists, host, kill, unwatched_host, wait_for_death};
use crate::conversations;

/// A machine whose instances are runs in tmux.
struct Tmux(Host);

impl std::ops::Deref for Tmux {
    type Target = Host;
    fn deref(&self) -> &Host {
        &self.0
    }
}

impl std::ops::DerefMut for Tmux {
    fn deref_mut(&mut self) -> &mut Host {
        &mut self.0
    }
}

fn on_tmux() -> Tmux {
    hold_by_tmux(unwatched_host())
}

/// The same, and its list is looked at now and then.
fn watched_on_tmux() -> Tmux {
    hold_by_tmux(host())
}

fn hold_by_tmux(host: Host) -> Tmux {
    host.abide(["config", "set", "substrate", "tmux"]).ok();
    Tmux(host)
}

impl Tmux {
    fn command(&self, args: &[&str]) -> Command {
        let mut tmux = self.0.command("tmux");
        tmux.args(["-u", "-L", "abide"]).args(args);
        tmux
    }

    /// Asks the server, as anybody can.
    #[track_caller]
    fn tmux(&self, args: &[&str]) -> String {
        let out = self.command(args).output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    fn server(&self) -> u32 {
        self.tmux(&["display-message", "-p", "#{pid}"]).trim().parse().unwrap()
    }

    fn server_is_gone(&self) -> bool {
        !self.command(&["ls"]).output().unwrap().status.success()
    }

    /// The process of a session, as the list tells it.
    fn pid(&self, id: &str, session: usize) -> u32 {
        u32::try_from(self.row(id).unwrap()["sessions"][session]["pid"].as_u64().unwrap()).unwrap()
    }

    /// The process that tmux started in the first pane of an instance.
    fn parent(&self, id: &str) -> u32 {
        self.tmux(&["list-panes", "-s", "-t", &format!("=ab-{id}"), "-F", "#{pane_pid}"])
            .lines()
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }

    fn sit_down(&self, args: &[&str]) -> Terminal<'_> {
        let abide = self.program().to_str().unwrap().to_owned();
        Terminal::open(&self.0, (100, 30), &[&[abide.as_str()], args].concat())
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

#[test]
fn what_is_loaded_runs_in_tmux_and_every_verb_reaches_it() {
    let host = watched_on_tmux();
    let id = host.load(&["--name", "work", "--", "--fast", "two words;"]);
    assert_eq!(host.tmux(&["list-sessions", "-F", "#S #W"]).trim(), format!("ab-{id} stub"));
    let screen = host.wait_for_screen(&id, "stub pid");
    assert!(screen.contains("args [--fast two words;]"), "{screen}");
    let pid = host.pid(&id, 0);
    assert!(screen.contains(&format!("stub pid {pid} ")), "{screen}");
    host.abide(["send", "work", "semicolon;"]).ok();
    host.abide(["wait", "work", "--text", "heard: semicolon;", "--timeout", "30"]).ok();
    host.abide(["send", "work", "--no-enter", "half #{pid} "]).ok();
    host.abide(["send", "work/s1", "--key", "x", "--key", "enter"]).ok();
    host.wait_for_screen(&id, "heard: half #{pid} x");
    let complaint = host.abide(["send", "work", "--key", "nonsense"]).fails(2);
    compare(&host, "no-such-key", &complaint);
    let cells = host.abide(["peek", "work", "--json"]).json();
    assert_eq!(
        (cells["size"]["cols"].as_u64(), cells["cells"][0][0]["text"].as_str()),
        (Some(80), Some("s"))
    );
    host.abide(["wait", "work", "--idle", "--quiet", "0.1", "--timeout", "30"]).ok();
    let said = host.abide(["upgrade", "work"]).ok();
    assert!(said.contains("runs in tmux"), "{said}");
    assert!(host.abide(["stop", "work"]).ok().contains("kept"));
    assert!(!alive(pid));
    assert_eq!(host.state(&id), "restorable (stopped)");
    eventually("the server to end", || host.server_is_gone().then_some(()));
    assert_eq!(host.processes(), Vec::<String>::new());
}

#[test]
fn an_instance_whose_last_session_ended_leaves_no_trace_in_tmux() {
    let host = watched_on_tmux();
    let (first, second) = (host.load(&[]), host.load(&["--keep"]));
    let waiting = host.abide(["send", &first, "exit 0"]);
    waiting.ok();
    host.wait_for_state(&first, "gone");
    assert!(!exists(host.home().join("instances").join(&first)));
    assert_eq!(host.tmux(&["list-sessions", "-F", "#S"]).trim(), format!("ab-{second}"));
    host.abide(["send", &second, "exit 3"]).ok();
    host.wait_for_state(&second, "restorable (kept)");
    assert_eq!(host.row(&second).unwrap()["sessions"][0]["exit"], "exit 3");
    eventually("the server to end", || host.server_is_gone().then_some(()));
    eventually("the processes to end", || host.processes().is_empty().then_some(()));
}

#[test]
fn the_environment_of_a_session_is_in_no_command_line_and_not_in_the_servers_environment() {
    let mut host = on_tmux();
    host.set("OUTER", "of the first launch");
    host.set("TMUX", "/tmp/operators-own,1,2");
    host.set("TMUX_PANE", "%77");
    host.abide(["config", "set", "env.TOKEN", "cmd:echo hunter2"]).ok();
    let first = host.load(&[]);
    host.unset("OUTER");
    let second = host.load(&[]);
    let environ = |id: &str| std::fs::read(format!("/proc/{}/environ", host.pid(id, 0))).unwrap();
    let has = |text: &[u8], words: &str| String::from_utf8_lossy(text).contains(words);
    for id in [&first, &second] {
        let environ = environ(id);
        assert!(has(&environ, "TOKEN=hunter2"));
        assert!(
            !has(&environ, "operators-own") && !has(&environ, "%77"),
            "the operator's own tmux leaked inward"
        );
        let own = host.path("runtime").join(format!("tmux-{}", rustix::process::getuid().as_raw()));
        assert!(has(&environ, &format!("TMUX={}/abide,", own.display())));
    }
    assert!(has(&environ(&first), "of the first launch") && !has(&environ(&second), "of the first launch"));
    for pid in [host.server(), host.parent(&first)] {
        for file in ["environ", "cmdline"] {
            let text = std::fs::read(format!("/proc/{pid}/{file}")).unwrap();
            assert!(!has(&text, "hunter2") && !has(&text, "of the first launch"), "in {file} of {pid}");
        }
    }
    let command = std::fs::read(format!("/proc/{}/cmdline", host.server())).unwrap();
    assert!(!has(&command, &first), "the server is named after a session");
    let global = host.tmux(&["show-environment", "-g"]);
    assert!(!global.contains("hunter2") && !global.contains("OUTER"), "{global}");
}

#[test]
fn a_resume_brings_back_the_same_sessions_with_what_they_showed() {
    let host = watched_on_tmux();
    let id = host.load(&["--", "original", "args"]);
    host.abide(["send", &id, "remember this"]).ok();
    host.wait_for_screen(&id, "heard: remember this");
    // As a key does it: a second session, with the environment of the first.
    host.tmux(&["new-window", "-d", "-t", &format!("=ab-{id}:")]);
    let second = format!("{id}/s2");
    eventually("the second session", || (host.row(&id)?["sessions"].as_array()?.len() == 2).then_some(()));
    host.abide(["send", &second, "echo I am $ABIDE_SESSION of $ABIDE_INSTANCE"]).ok();
    host.abide(["wait", &second, "--text", &format!("I am s2 of {id}"), "--timeout", "30"]).ok();
    host.abide(["stop", &id]).ok();
    assert_eq!(host.state(&id), "restorable (stopped)");
    host.abide(["resume", &id, "--detach"]).ok();
    assert_eq!(host.state(&id), "active");
    let screen = eventually("the screen", || {
        let screen = host.abide(["peek", &format!("{id}/s1"), "--scrollback"]).stdout;
        (screen.matches("stub pid").count() == 2).then_some(screen)
    });
    assert!(screen.contains("heard: remember this"), "{screen}");
    assert_eq!(screen.matches("args [original args]").count(), 2, "{screen}");
    let screen = host.abide(["peek", &second, "--scrollback"]).ok();
    assert!(screen.contains(&format!("I am s2 of {id}")), "{screen}");
    host.abide(["stop", &second]).ok();
    eventually("the second to end", || (host.tmux(&["list-panes", "-a"]).lines().count() == 1).then_some(()));
    host.abide(["stop", &id]).ok();
    assert!(
        !host.abide(["resume", &id, "--dry-run"]).ok().contains("shell"),
        "what was ended alone stays ended"
    );
}

#[test]
fn what_a_command_in_tmux_showed_before_it_was_resumed_is_not_what_is_waited_for() {
    crate::script::only_what_is_new_is_waited_for(&on_tmux());
}

#[test]
fn a_tab_in_tmux_that_does_not_come_back_is_reported_by_resume_and_marked_by_ls() {
    let mut host = on_tmux();
    let shell = host.work().join("shell-of-the-second-tab");
    std::fs::copy("/bin/sh", &shell).unwrap();
    host.set("SHELL", shell.to_str().unwrap());
    let id = host.load(&[]);
    host.tmux(&["new-window", "-d", "-t", &format!("=ab-{id}:")]);
    eventually("the second session", || (host.row(&id)?["sessions"].as_array()?.len() == 2).then_some(()));
    host.abide(["stop", &id]).ok();
    std::fs::remove_file(&shell).unwrap();
    let resumed = host.abide(["resume", &id, "--detach"]);
    assert_eq!(resumed.code, Some(1), "{resumed:?}");
    compare(&host, "tab-lost-in-tmux", &resumed.stderr);
    assert_eq!(host.state(&id), "active");
    assert!(host.abide(["ls"]).ok().contains("did not start"));
}

#[test]
fn a_conversation_that_an_agent_in_tmux_begins_by_itself_is_followed_and_resumed() {
    for agent in ["claude", "codex"] {
        let host = conversations::machine();
        host.abide(["config", "set", "substrate", "tmux"]).ok();
        let id = host.load_agent(agent, &[]);
        host.say(&id, "the old");
        let old = host.conversation(&id);
        host.say(&id, "/clear");
        host.say(&id, "the new");
        host.stop(&id);
        assert_ne!(host.conversation(&id), old, "{agent}");
        host.resume(&id);
        host.wait_for_screen(&id, "resumed: the new");
        host.stop(&id);
    }
}

#[test]
fn reports_of_an_agent_in_tmux_are_read_on_demand() {
    let host = conversations::machine();
    host.abide(["config", "set", "substrate", "tmux"]).ok();
    for (agent, says) in [("claude", "its registry says idle"), ("opencode", "its hook idle was called")] {
        let id = host.load_agent(agent, &[]);
        host.say(&id, "hello");
        host.abide(["wait", &id, "--idle", "--timeout", "30"]).ok();
        // Whoever else calls the hook is not the agent.
        let said =
            host.write("home/said", r#"{"hook_event_name": "permission", "session_id": "ses_foreign"}"#);
        let mut outsider = host.command(host.program());
        outsider
            .args(["capsule", "report"])
            .env("ABIDE_INSTANCE_DIR", host.home().join("instances").join(&id));
        outsider.env("ABIDE_SESSION", "s1").env("ABIDE_GENERATION", "1");
        assert!(outsider.stdin(std::fs::File::open(said).unwrap()).status().unwrap().success());
        let session = host.row(&id).unwrap()["sessions"][0].clone();
        assert_eq!((&session["activity"], &session["activity_because"]), (&"idle".into(), &says.into()));
        let explained = host.abide(["explain", &id]).ok();
        assert!(explained.contains(&format!("because {says}")), "{explained}");
        host.stop(&id);
    }
    // A program that is no agent says nothing, and that is said.
    let id = host.load(&[]);
    assert_eq!(host.row(&id).unwrap()["sessions"][0]["activity"], serde_json::Value::Null);
    assert!(host.abide(["explain", &id]).ok().contains("is in an unknown state"));
    host.stop(&id);
}

#[test]
fn no_end_of_the_server_ends_an_instance_for_good() {
    let host = watched_on_tmux();
    let ids = [host.load(&["--clean"]), host.load(&["--clean"])];
    for end in ["kill-server", "SIGKILL", "SIGTERM"] {
        let pids = ids.each_ref().map(|id| host.pid(id, 0));
        match end {
            "kill-server" => drop(host.tmux(&["kill-server"])),
            "SIGKILL" => kill("-KILL", host.server()),
            _ => kill("-TERM", host.server()),
        }
        pids.into_iter().for_each(wait_for_death);
        for id in &ids {
            eventually(&format!("{id} to be kept after {end}"), || {
                host.state(id).starts_with("restorable").then_some(())
            });
            host.abide(["resume", id, "--detach"]).ok();
            host.wait_for_screen(id, "stub pid");
        }
    }
}

#[test]
fn a_parent_that_was_killed_leaves_a_restorable_instance_and_no_process() {
    let host = on_tmux();
    let id = host.load(&["--clean"]);
    let pid = host.pid(&id, 0);
    kill("-KILL", host.parent(&id));
    wait_for_death(pid);
    host.wait_for_state(&id, "restorable (crashed)");
}

#[test]
fn a_pane_that_is_closed_beside_others_is_done_with_and_the_others_go_on() {
    let host = on_tmux();
    let id = host.load(&[]);
    host.tmux(&["split-window", "-d", "-t", &format!("=ab-{id}:")]);
    eventually("the second session", || (host.row(&id)?["sessions"].as_array()?.len() == 2).then_some(()));
    let (first, second) = (host.pid(&id, 0), host.pid(&id, 1));
    host.tmux(&["kill-pane", "-t", &format!("=ab-{id}:.1")]);
    wait_for_death(second);
    // Otherwise it ends together with the other, and comes back with it.
    eventually("its end to be written down", || {
        let sessions = host.row(&id)?["sessions"].as_array()?.clone();
        sessions.get(1).is_none_or(|session| !session["exit"].is_null()).then_some(())
    });
    assert!(alive(first));
    assert_eq!(host.state(&id), "active");
    host.tmux(&["kill-session", "-t", &format!("=ab-{id}")]);
    wait_for_death(first);
    host.wait_for_state(&id, "restorable (stopped)");
    let said = host.abide(["resume", &id, "--dry-run"]).ok();
    assert!(said.contains("stub") && !said.contains("shell"), "{said}");
}

#[test]
fn a_pane_that_is_moved_to_another_instance_stays_what_it_is() {
    let host = on_tmux();
    let (first, second) = (host.load(&["--", "first"]), host.load(&["--", "second"]));
    host.tmux(&["join-pane", "-d", "-s", &format!("=ab-{first}:"), "-t", &format!("=ab-{second}:")]);
    assert!(host.wait_for_screen(&first, "stub pid").contains("args [first]"));
    assert!(host.wait_for_screen(&second, "stub pid").contains("args [second]"));
    let pids = (host.pid(&first, 0), host.pid(&second, 0));
    host.abide(["stop", &first]).ok();
    assert_eq!((alive(pids.0), alive(pids.1)), (false, true));
    assert_eq!(
        (host.state(&first).as_str(), host.state(&second).as_str()),
        ("restorable (stopped)", "active")
    );
}

#[test]
fn what_a_logout_or_a_shutdown_ends_comes_back_whole() {
    let host = on_tmux();
    let id = host.load(&["--clean"]);
    host.tmux(&["new-window", "-d", "-t", &format!("=ab-{id}:")]);
    eventually("the second session", || (host.row(&id)?["sessions"].as_array()?.len() == 2).then_some(()));
    // The server is spared, so that the first to end sees the second still there.
    for pid in host.tmux(&["list-panes", "-a", "-F", "#{pane_pid}"]).lines() {
        kill("-TERM", pid.parse().unwrap());
    }
    host.wait_for_state(&id, "restorable (stopped)");
    let said = host.abide(["resume", &id, "--dry-run"]).ok();
    assert!(said.contains("stub, shell"), "{said}");
}

#[test]
fn an_agent_that_does_not_come_up_in_tmux_is_reported_with_its_last_output() {
    let mut host = on_tmux();
    host.add_program("claude", "echo 'no runtime for you'; exit 3");
    let complaint = host.abide(["load", "claude", "--detach"]).fails(1);
    compare(&host, "agent-fails-in-tmux", &complaint);
}

#[test]
fn only_sessions_of_ours_whose_instance_is_gone_are_swept() {
    let mut host = on_tmux();
    let (kept, lost) = (host.load(&[]), host.load(&[]));
    host.tmux(&["new-session", "-d", "-s", "mine", "sleep", "1000"]);
    let elsewhere = host.path("other");
    let home = host.home();
    host.set("ABIDE_HOME", &elsewhere);
    let others = host.load(&[]);
    host.set("ABIDE_HOME", &home);
    let pid = host.pid(&lost, 0);
    std::fs::rename(home.join("instances").join(&lost), host.path("instance_dir")).unwrap();
    std::fs::rename(home.join("instances"), host.path("hidden")).unwrap();
    host.abide(["ls"]);
    assert!(alive(pid), "a home that cannot be seen has no orphans");
    let _ = std::fs::remove_dir(home.join("instances"));
    std::fs::rename(host.path("hidden"), home.join("instances")).unwrap();
    host.abide(["ls"]).ok();
    wait_for_death(pid);
    let left = host.tmux(&["list-sessions", "-F", "#S"]);
    let mut left: Vec<&str> = left.lines().collect();
    left.sort_unstable();
    let mut expected = [format!("ab-{kept}"), format!("ab-{others}"), "mine".to_owned()];
    expected.sort_unstable();
    assert_eq!(left, expected);
}

#[test]
fn without_tmux_a_capsule_holds_the_sessions_and_the_operator_is_warned_once() {
    let mut host = unwatched_host();
    let bin = host.path("bin");
    std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
    host.set("PATH", bin);
    let run = host.abide(["load", "stub", "--detach", "--substrate", "tmux"]);
    assert_eq!(run.stderr.matches("tmux cannot be used").count(), 1, "{}", run.stderr);
    let id = run.ok().split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    host.wait_for_screen(&id, "stub pid");
    assert!(host.pids(&id).keeper > 0);
}

#[test]
fn a_program_that_cannot_be_started_is_an_error_and_leaves_nothing_in_tmux() {
    let host = on_tmux();
    let complaint = host.abide(["load", "no-such-program", "--detach"]).fails(1);
    host.write("work/not-executable", "x");
    let second = host.abide(["load", "./not-executable", "--detach"]).fails(1);
    compare(&host, "not-startable-in-tmux", &(complaint + &second));
    assert_eq!(host.abide(["trash", "list"]).ok(), "The trash is empty.\n");
    assert_eq!(host.abide(["ls", "--json"]).json()["instances"].as_array().unwrap().len(), 0);
    eventually("the server to end", || host.server_is_gone().then_some(()));
}

#[test]
fn a_configuration_of_tmux_is_loaded_and_cannot_end_unattached_sessions() {
    let host = on_tmux();
    let conf = "set -g destroy-unattached on\nset -g remain-on-exit on\nset -g @theirs yes\nset -g history-limit 50000\n";
    host.write("home/.tmux.conf", conf);
    let id = host.load(&[]);
    host.wait_for_screen(&id, "stub pid");
    assert_eq!(host.tmux(&["show-options", "-gv", "@theirs"]).trim(), "yes");
    assert_eq!(host.tmux(&["show-options", "-gv", "history-limit"]).trim(), "50000");
    host.abide(["send", &id, "exit 0"]).ok();
    host.wait_for_state(&id, "gone");
    eventually("the server to end", || host.server_is_gone().then_some(()));
}

#[test]
fn a_name_that_means_something_to_tmux_or_a_shell_is_only_a_name() {
    let mut host = on_tmux();
    let evil = "#(cd;touch proof)";
    host.add_program(evil, "read -r _");
    let said = host.abide(["load", evil, "--detach"]).ok();
    let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    assert!(host.tmux(&["list-windows", "-a", "-F", "#W"]).contains(evil));
    assert_eq!(host.state(&id), "active");
    assert!(!exists(host.path("home/proof")));
}

#[test]
fn a_server_that_hangs_is_not_waited_for_and_not_taken_for_dead() {
    let host = on_tmux();
    let id = host.load(&[]);
    let (server, pid) = (host.server(), host.pid(&id, 0));
    kill("-STOP", server);
    let state = host.state(&id);
    let complaint = host.abide(["peek", &id]).fails(1);
    let unstopped = host.abide(["stop", &id]).fails(1);
    kill("-CONT", server);
    assert_eq!(state, "active");
    assert!(unstopped.contains("does not stop"), "{unstopped}");
    assert_eq!(host.state(&id), "active", "what could not be stopped was taken for stopped");
    assert!(complaint.contains("no answer within"), "{complaint}");
    assert!(alive(pid));
    host.wait_for_screen(&id, "stub pid");
}

#[test]
fn a_socket_that_a_cleaner_removed_comes_back() {
    let host = on_tmux();
    let id = host.load(&[]);
    host.wait_for_screen(&id, "stub pid");
    let socket = host.tmux(&["display-message", "-p", "#{socket_path}"]);
    std::fs::remove_file(socket.trim()).unwrap();
    assert_eq!(host.state(&id), "active");
    host.wait_for_screen(&id, "stub pid");
}

#[test]
fn hardline_is_the_real_tmux_and_leaving_it_ends_nothing() {
    let host = on_tmux();
    let terminal = host.sit_down(&["load", "stub"]);
    terminal.wait_for("stub pid");
    terminal.text("hello there");
    terminal.keys(&["Enter"]);
    terminal.wait_for("heard: hello there");
    let id = host.abide(["ls", "--json"]).json()["instances"][0]["id"].as_str().unwrap().to_owned();
    let pid = host.pid(&id, 0);
    terminal.keys(&["C-b", "d"]);
    terminal.wait_for("detached]");
    assert_eq!(terminal.wait_for_end(), 0);
    let watcher = host.sit_down(&["hardline", &id, "--read-only"]);
    watcher.wait_for("heard: hello there");
    watcher.text("not me");
    watcher.keys(&["Enter"]);
    let typist = host.sit_down(&["hardline", &format!("{id}/s1")]);
    typist.wait_for("heard: hello there");
    typist.text("only me");
    typist.keys(&["Enter"]);
    assert!(!watcher.wait_for("heard: only me").contains("not me"));
    assert_eq!(host.pid(&id, 0), pid);
    typist.text("exit 7");
    typist.keys(&["Enter"]);
    typist.wait_for("exit code 7");
    assert_eq!(typist.wait_for_end(), 0);
}

#[test]
fn no_way_of_losing_the_client_ends_a_session_in_tmux() {
    let host = on_tmux();
    let id = host.load(&[]);
    let pid = host.pid(&id, 0);
    for signal in ["-KILL", "-TERM", "-HUP", "-INT", "-QUIT", "-ABRT"] {
        let terminal = host.sit_down(&["hardline", &id]);
        terminal.wait_for("stub pid");
        kill(signal, terminal.pid());
        terminal.wait_for_end();
        eventually("the client to leave", || host.tmux(&["list-clients"]).is_empty().then_some(()));
        assert_eq!(host.pid(&id, 0), pid, "after {signal}");
    }
    let terminal = host.sit_down(&["hardline", &id]);
    terminal.wait_for("stub pid");
    terminal.close();
    eventually("the client to leave", || host.tmux(&["list-clients"]).is_empty().then_some(()));
    assert_eq!((host.pid(&id, 0), host.state(&id).as_str()), (pid, "active"));
}

#[test]
fn a_client_that_is_killed_gives_the_terminal_back_to_the_shell() {
    let host = on_tmux();
    let id = host.load(&[]);
    let abide = host.program().to_str().unwrap();
    let terminal =
        Terminal::open(&host.0, (100, 30), &["sh", "-c", "\"$0\" hardline \"$1\"; sleep 1000", abide, &id]);
    terminal.wait_for("stub pid");
    let attached = format!("{abide} hardline {id}");
    let processes = host.processes();
    let client = processes
        .iter()
        .find_map(|process| process.split_once(' ').filter(|(_, of)| of.starts_with(&attached)));
    kill("-KILL", client.unwrap().0.parse().unwrap());
    eventually("the client to leave", || host.tmux(&["list-clients"]).is_empty().then_some(()));
    assert_eq!(host.state(&id), "active");
}

#[test]
fn plain_tmux_attaches_too_and_inside_it_hardline_goes_to_the_other_instance() {
    let host = on_tmux();
    let first = host.load(&["--", "the first"]);
    let said = host.abide(["load", "sh", "--detach"]).ok();
    let second = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    let argv = ["env", "-u", "TMUX", "tmux", "-L", "abide", "attach", "-t", &format!("=ab-{second}")];
    let terminal = Terminal::open(&host.0, (100, 30), &argv);
    let hardline = format!("{} hardline {first}", host.program().display());
    terminal.wait_for("ab-");
    terminal.text(&hardline);
    terminal.keys(&["Enter"]);
    terminal.wait_for("args [the first]");
    assert_eq!(host.tmux(&["list-clients", "-F", "#S"]).trim(), format!("ab-{first}"), "it is not nested");
}

#[test]
fn dropping_whatever_reaches_a_session_ends_nothing() {
    let capsule = unwatched_host();
    let tmux = on_tmux();
    for (host, id) in [(&capsule, capsule.load(&[])), (&tmux.0, tmux.load(&[]))] {
        let store = Store::at(host.home());
        let held = substrate::of(&store, id.parse().unwrap());
        let before = held.status().unwrap().sessions[0].pid;
        drop(held);
        let held = substrate::of(&store, id.parse().unwrap());
        assert_eq!(held.status().unwrap().sessions[0].pid, before);
        assert_eq!(held.lock(), SupervisorLock::Held);
        assert_eq!(host.state(&id), "active");
    }
    let id = capsule.load(&[]);
    let instance_dir = connect::instance_dir(&Store::at(capsule.home()), id.parse().unwrap());
    drop(connect::connect(&instance_dir).unwrap());
    assert_eq!(capsule.state(&id), "active");
}
