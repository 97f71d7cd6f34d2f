//! Linger, turned on for oneself.

use crate::machine::Machine;

#[test]
fn the_doctor_turns_linger_on_where_the_policy_lets_people() {
    let Some(machine) = Machine::boot() else { return };
    let ada = machine.ada();
    let unasked = ada.ssh("abide doctor --fix").fails(3);
    assert!(unasked.contains("--yes"), "{unasked}");
    assert!(!ada.lingers(), "nobody had agreed");
    let said = ada.ssh("abide doctor --fix --yes").ok();
    assert!(said.contains("Linger is on for ada"), "{said}");
    assert!(ada.lingers());
    let id = ada.load().id;
    assert!(ada.isolation().starts_with("enabled ("), "{}", ada.isolation());
    ada.assert_alive(&id);
}

#[test]
fn the_doctor_says_who_can_where_the_policy_does_not_let_people() {
    let Some(machine) = Machine::boot() else { return };
    let ada = machine.ada();
    machine.sh("systemctl mask --now polkit.service");
    let complaint = ada.ssh("abide doctor --fix --yes").fails(1);
    assert!(complaint.contains("sudo loginctl enable-linger ada"), "{complaint}");
    assert!(!ada.lingers());
}

#[test]
fn a_start_turns_linger_on_only_with_leave() {
    let Some(machine) = Machine::boot() else { return };
    let ada = machine.ada();
    machine.kill_user_processes();
    ada.load();
    assert!(!ada.lingers(), "nobody had agreed");
    ada.configure("linger = true");
    let loaded = ada.load();
    assert!(ada.lingers());
    assert_eq!(loaded.warning, "");
    ada.assert_alive(&loaded.id);
}

#[test]
fn a_start_that_may_not_turn_linger_on_goes_on_without_and_says_so() {
    let Some(machine) = Machine::boot() else { return };
    let ada = machine.ada();
    machine.sh("systemctl mask --now polkit.service");
    ada.configure("linger = true");
    let loaded = ada.load();
    assert!(loaded.warning.contains("could not be turned on"), "{}", loaded.warning);
    assert!(loaded.warning.contains("sudo loginctl enable-linger ada"), "{}", loaded.warning);
    ada.assert_alive(&loaded.id);
}
