//! The checklist that a person runs on their own machine.

use crate::machine::Machine;

const SCRIPT: &str = "/opt/abide/scripts/verify-session-persistence.sh";

#[test]
fn the_checklist_passes_whole_where_linger_is_on() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let told = ada.ssh(SCRIPT).ok();
    assert!(told.contains(" 0 failed, 0 skipped") && told.contains("/abide-"), "{told}");
    ada.wait_for_no_unit();
    assert_eq!(
        machine.root(&["pgrep", "-u", "ada", "abide|stub"]).code,
        Some(1),
        "something was left running"
    );
}

#[test]
fn the_checklist_skips_what_can_not_be_had_and_says_why() {
    let machine = Machine::boot();
    let told = machine.ada().ssh(SCRIPT).ok();
    assert!(told.contains(" 0 failed, 2 skipped"), "{told}");
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
