//! Sitting at a terminal.

use abide_testkit::{Terminal, eventually};

use crate::common::{Host, alive, kill, unwatched_host, wait_for_death};

fn sit_down<'a>(host: &'a Host, args: &[&str]) -> Terminal<'a> {
    let abide = host.program().to_str().unwrap().to_owned();
    Terminal::open(host, (100, 30), &[&[abide.as_str()], args].concat())
}

/// The one instance there is.
fn only(host: &Host) -> String {
    let listing = host.abide(["ls", "--json"]).json();
    assert_eq!(listing["instances"].as_array().unwrap().len(), 1, "{listing}");
    listing["instances"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn load_attaches_and_what_is_typed_arrives() {
    let host = unwatched_host();
    let terminal = sit_down(&host, &["load", "stub"]);
    terminal.wait_for("stub pid");
    terminal.text("hello there");
    terminal.keys(&["Enter"]);
    terminal.wait_for("heard: hello there");
}

#[test]
fn detaching_leaves_it_running_and_attaching_shows_the_same_screen() {
    let host = unwatched_host();
    let terminal = sit_down(&host, &["load", "stub"]);
    terminal.wait_for("stub pid");
    terminal.text("remember me");
    terminal.keys(&["Enter"]);
    terminal.wait_for("heard: remember me");
    let id = only(&host);
    let pids = host.pids(&id);
    terminal.keys(&["C-b", "d"]);
    terminal.wait_for("detached");
    assert_eq!(terminal.wait_for_end(), 0);
    assert!(alive(pids.session));
    let again = sit_down(&host, &["hardline"]);
    again.wait_for("heard: remember me");
    again.text("still there");
    again.keys(&["Enter"]);
    again.wait_for("heard: still there");
    assert_eq!(host.pids(&id), pids, "nothing was restarted");
}

#[test]
fn the_end_of_a_session_is_reported_with_its_exit_status() {
    let host = unwatched_host();
    let terminal = sit_down(&host, &["load", "stub"]);
    terminal.wait_for("stub pid");
    terminal.text("exit 7");
    terminal.keys(&["Enter"]);
    let screen = terminal.wait_for("exit code 7");
    assert!(!screen.contains("stub pid"), "the terminal was not given back:\n{screen}");
    assert_eq!(terminal.wait_for_end(), 0);
}

#[test]
fn closing_the_terminal_is_a_detach() {
    let host = unwatched_host();
    let terminal = sit_down(&host, &["load", "stub"]);
    terminal.wait_for("stub pid");
    let id = only(&host);
    let (client, pids) = (terminal.pid(), host.pids(&id));
    terminal.close();
    wait_for_death(client);
    assert!(alive(pids.session) && alive(pids.mux) && alive(pids.keeper));
    assert_eq!(host.state(&id), "active");
}

#[test]
fn no_way_of_losing_the_client_ends_the_session() {
    let host = unwatched_host();
    let id = host.load(&[]);
    let pids = host.pids(&id);
    for signal in ["-KILL", "-TERM", "-HUP", "-INT", "-QUIT", "-ABRT"] {
        let terminal = sit_down(&host, &["hardline", &id]);
        terminal.wait_for("stub pid");
        kill(signal, terminal.pid());
        terminal.wait_for_end();
        assert_eq!(host.pids(&id), pids, "after {signal}");
    }
}

#[test]
fn the_screen_comes_back_by_itself_when_the_mux_dies() {
    let host = unwatched_host();
    let terminal = sit_down(&host, &["load", "stub"]);
    terminal.wait_for("stub pid");
    terminal.text("before");
    terminal.keys(&["Enter"]);
    terminal.wait_for("heard: before");
    let before = host.pids(&only(&host));
    kill("-KILL", before.mux);
    wait_for_death(before.mux);
    terminal.text("after");
    terminal.keys(&["Enter"]);
    let screen = terminal.wait_for("heard: after");
    assert!(screen.contains("heard: before"), "{screen}");
    let after = host.pids(&only(&host));
    assert_eq!((after.keeper, after.session), (before.keeper, before.session));
    assert_ne!(after.mux, before.mux);
}

#[test]
fn a_program_has_the_size_of_the_terminal_from_its_first_moment() {
    let mut host = unwatched_host();
    let program = r"import os, signal, sys
def told(*_): print('resized to', os.get_terminal_size(), flush=True)
signal.signal(signal.SIGWINCH, told)
print('begun at', *os.get_terminal_size(), flush=True)
for line in sys.stdin: print('heard', line, end='', flush=True)";
    let path = host.write("home/sized.py", program);
    host.add_program("sized", &format!("exec python3 {}", path.display()));
    let terminal = sit_down(&host, &["load", "sized"]);
    terminal.wait_for("begun at 100 29");
    terminal.text("something");
    terminal.keys(&["Enter"]);
    let screen = terminal.wait_for("heard something");
    assert!(!screen.contains("resized"), "{screen}");
}

#[test]
fn a_new_size_reaches_the_program() {
    let host = unwatched_host();
    let terminal = sit_down(&host, &["load", "sh"]);
    terminal.resize(90, 20);
    terminal.text("while :; do stty size; sleep 0.1; done");
    terminal.keys(&["Enter"]);
    terminal.wait_for("19 90");
    terminal.resize(70, 25);
    terminal.wait_for("24 70");
}

#[test]
fn two_people_see_the_same_and_a_watcher_cannot_type() {
    let host = unwatched_host();
    let id = host.load(&[]);
    let typist = sit_down(&host, &["hardline", &id]);
    let watcher = sit_down(&host, &["hardline", &id, "--read-only"]);
    typist.wait_for("stub pid");
    watcher.wait_for("stub pid");
    watcher.text("not me");
    watcher.keys(&["Enter"]);
    typist.text("only me");
    typist.keys(&["Enter"]);
    let screen = watcher.wait_for("heard: only me");
    assert!(!screen.contains("not me"), "{screen}");
}

#[test]
fn a_second_shell_is_a_second_tab() {
    let host = unwatched_host();
    let terminal = sit_down(&host, &["load", "stub"]);
    terminal.wait_for("stub pid");
    terminal.keys(&["C-b", "c"]);
    terminal.text("echo in the $((1 + 1))nd tab");
    terminal.keys(&["Enter"]);
    terminal.wait_for("in the 2nd tab");
    terminal.keys(&["C-b", "p"]);
    terminal.wait_for("stub pid");
    assert_eq!(host.status(&only(&host))["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_session_that_was_started_from_inside_is_addressed_like_any_other() {
    let mut host = unwatched_host();
    host.set("SHELL", "/bin/sh");
    let terminal = sit_down(&host, &["load", "stub"]);
    terminal.wait_for("stub pid");
    let id = only(&host);
    for number in 2..=3 {
        terminal.keys(&["C-b", "c"]);
        eventually("another session", || {
            (host.status(&id)["sessions"].as_array().unwrap().len() == number).then_some(())
        });
    }
    terminal.keys(&["C-b", "d"]);
    assert_eq!(terminal.wait_for_end(), 0);
    let named = |session: &str| format!("{id}/{session}");
    let complaint = host.abide(["peek", &named("s9")]).fails(1);
    assert!(complaint.contains("s1 (stub), s2 (sh), s3 (sh-2)"), "{complaint}");
    host.abide(["capsule", "call", &id, r#"{"verb": "rename", "session": "s2", "name": "logs"}"#]).ok();
    for session in ["logs", "sh-2"] {
        let session = named(session);
        host.abide(["send", &session, "echo in $((1 + 1))"]).ok();
        host.abide(["wait", &session, "--text", "in 2", "--timeout", "30"]).ok();
        assert!(host.abide(["peek", &session]).ok().contains("in 2"));
    }
    let said = host.abide(["explain", &named("s3")]).ok();
    assert!(said.contains("s3 (sh-2") && !said.contains("s2 (logs"), "{said}");
    let terminal = sit_down(&host, &["hardline", &named("s3")]);
    terminal.wait_for("in 2");
    host.abide(["stop", &named("s3")]).ok();
    host.abide(["wait", &named("s3"), "--exit", "--timeout", "30"]).ok();
    assert_eq!(host.status(&id)["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_terminal_that_cannot_draw_is_refused_before_anything_is_started() {
    let host = unwatched_host();
    let on_a_dumb_one = |args: &str| {
        let command = format!("TERM=dumb {} {args}", host.program().display());
        let terminal = Terminal::open(&host, (100, 30), &["sh", "-c", &command]);
        terminal.wait_for("--detach");
        assert_eq!(terminal.wait_for_end(), 2);
    };
    on_a_dumb_one("load stub");
    assert!(host.abide(["ls", "--json"]).json()["instances"].as_array().unwrap().is_empty());
    let id = host.load(&[]);
    host.abide(["stop", &id]).ok();
    on_a_dumb_one(&format!("resume {id}"));
    assert_eq!(host.state(&id), "restorable (stopped)");
}

#[test]
fn an_instance_is_not_attached_from_within_itself() {
    let mut host = unwatched_host();
    let id = host.load(&[]);
    host.set("ABIDE_INSTANCE", &id);
    let complaint = host.abide(["hardline", &id]).fails(1);
    assert!(complaint.contains("already"), "{complaint}");
}
