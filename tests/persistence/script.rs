//! The checklist that a person runs on their own machine.

use crate::machine::Machine;

const SCRIPT: &str = "/opt/abide/scripts/verify-session-persistence.sh";

#[test]
fn the_checklist_passes_whole_where_linger_is_on() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let told = ada.ssh(SCRIPT).ok();
    assert!(told.contains(" 0 failed, 0 skipped"), "{told}");
    let (announced, done) =
        told.split_once("\n 1. capsule ").unwrap().1.split_once("\n 1. capsule ").unwrap();
    for scenario in ["tmux    the login that started the tmux server ends", "capsule its keeper is killed"] {
        assert!(announced.contains(scenario) && done.contains(scenario), "{told}");
    }
    let placed =
        |unit: &str| done.lines().any(|line| line.contains("/user@1000.service/") && line.ends_with(unit));
    assert!(placed("/abide-tmux.scope") && done.contains("/abide-"), "{told}");
    let started = |option: &str| {
        let lines = done.lines().filter(|line| line.contains("command line: "));
        lines.filter(|line| line.contains(&format!("/claude {option} "))).count()
    };
    assert_eq!((started("--session-id"), started("--resume")), (2, 4), "{told}");
    ada.wait_for_no_unit();
    assert_eq!(
        machine.root(&["pgrep", "-u", "ada", "abide|claude|tmux"]).code,
        Some(1),
        "something was left running"
    );
}

#[test]
fn the_checklist_skips_what_cannot_be_had_and_says_why() {
    let machine = Machine::boot();
    let told = machine.ada().ssh(SCRIPT).ok();
    assert!(told.contains(" 0 failed, 4 skipped"), "{told}");
    assert!(told.contains("[SKIP] sessions have no unit of their own here"), "{told}");
}

#[test]
fn the_checklist_fails_where_an_instance_does_not_come_back() {
    let machine = Machine::boot();
    let ada = machine.ada();
    let frail = "#!/bin/bash\n[ \"$1\" = resume ] || exec -a \"$0\" abide \"$@\"\n";
    machine.sh(&format!("cat >/usr/local/bin/frail <<'END'\n{frail}END\nchmod +x /usr/local/bin/frail"));
    let run = ada.ssh(&format!("{SCRIPT} /usr/local/bin/frail"));
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    assert!(run.stdout.contains("[FAIL] it is active"), "{}", run.stdout);
}
