//! Keeping the machine from going to sleep, with a stand-in for `systemd-inhibit`: no logind runs where the tests do.

use abide_testkit::eventually;

use crate::common::{Host, kill, unwatched_host};

/// A machine whose `systemd-inhibit` writes down what it was asked for, refuses `refused`, and else runs the command that
/// it was given.
fn host_with_logind(refused: &str) -> Host {
    let mut host = unwatched_host();
    let log = host.path("inhibited").to_str().unwrap().to_owned();
    let script = format!(
        r#"echo "$1" >>'{log}'
[ "$1" = '{refused}' ] && exit 1
while case $1 in --*) ;; *) false ;; esac; do shift; done
"$@"
echo over >>'{log}'"#
    );
    host.add_program("systemd-inhibit", &script);
    host
}

fn log(host: &Host) -> Vec<String> {
    let text = std::fs::read_to_string(host.path("inhibited")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn wait_for_log(host: &Host, expected: &[&str]) {
    eventually(&format!("the lock to go {expected:?}"), || (log(host) == expected).then_some(()));
}

#[test]
fn the_machine_is_kept_awake_while_a_session_runs_and_no_longer() {
    let host = host_with_logind("");
    host.abide(["config", "set", "keep_awake", "running"]).ok();
    let id = host.load(&[]);
    wait_for_log(&host, &["--what=sleep:idle"]);
    eventually("explain to say so", || {
        let said = host.abide(["explain", &id]).stdout;
        said.contains("keeps this machine awake (sleep:idle)").then_some(())
    });
    // A mux that dies takes its lock along, and the next one takes it again.
    kill("-KILL", host.pids(&id).mux);
    eventually("the lock to be taken again", || {
        let taken = log(&host).iter().filter(|line| *line == "--what=sleep:idle").count();
        (taken == 2 && log(&host).contains(&"over".to_owned())).then_some(())
    });
    host.abide(["stop", &id]).ok();
    eventually("both locks to be given back", || {
        (log(&host).iter().filter(|line| *line == "over").count() == 2).then_some(())
    });
    eventually("nothing to be left", || host.processes().is_empty().then_some(()));
}

#[test]
fn where_the_policy_refuses_to_prevent_sleep_only_idleness_is_prevented() {
    let host = host_with_logind("--what=sleep:idle");
    host.abide(["config", "set", "keep_awake", "running"]).ok();
    let id = host.load(&[]);
    wait_for_log(&host, &["--what=sleep:idle", "--what=idle"]);
    host.abide(["stop", &id]).ok();
    wait_for_log(&host, &["--what=sleep:idle", "--what=idle", "over"]);
}

#[test]
fn work_keeps_the_machine_awake_unless_that_is_off() {
    let host = host_with_logind("");
    let id = host.load(&[]);
    host.wait_for_screen(&id, "stub pid");
    host.abide(["send", &id, "flood"]).ok();
    wait_for_log(&host, &["--what=sleep:idle"]);
    host.abide(["stop", &id]).ok();
    wait_for_log(&host, &["--what=sleep:idle", "over"]);
    host.abide(["config", "set", "keep_awake", "off"]).ok();
    let id = host.load(&[]);
    host.wait_for_screen(&id, "stub pid");
    host.abide(["send", &id, "flood"]).ok();
    host.wait_for_screen(&id, "flood 1");
    host.abide(["stop", &id]).ok();
    assert_eq!(log(&host), ["--what=sleep:idle", "over"]);
}
