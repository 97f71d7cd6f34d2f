//! What survives the last logout, by what logind does to processes and whether linger is on: every combination is decided
//! for what survives, and behaves as it was announced.

use crate::machine::Machine;
use crate::person::Person;

const FATAL: &str = "will NOT survive your logout";
const COMMAND: &str = "sudo loginctl enable-linger ada";

/// The keeper ended with the login, and was told to rather than killed.
fn assert_lost(ada: Person<'_>, id: &str) {
    ada.wait_for_state(id, "restorable (stopped)");
}

#[test]
fn where_logind_spares_processes_a_plain_daemon_survives_without_linger() {
    let machine = Machine::boot();
    let ada = machine.ada();
    let loaded = ada.load();
    ada.assert_alive(&loaded.id);
    assert!(ada.cgroup(&loaded.id).contains("/session-"), "{}", ada.cgroup(&loaded.id));
    assert!(ada.isolation().starts_with("unavailable (linger is off"), "{}", ada.isolation());
    assert!(loaded.warning.contains("only while logind allows it"), "{}", loaded.warning);
    assert!(loaded.warning.contains(COMMAND), "{}", loaded.warning);
}

#[test]
fn where_nothing_can_survive_the_loss_is_announced_with_the_command_that_prevents_it() {
    let machine = Machine::boot();
    let ada = machine.ada();
    machine.kill_user_processes();
    let loaded = ada.load();
    assert!(loaded.warning.contains(FATAL) && loaded.warning.contains(COMMAND), "{}", loaded.warning);
    assert_lost(ada, &loaded.id);
}

#[test]
fn a_unit_that_was_asked_for_is_not_made_without_linger_and_the_loss_is_announced() {
    let machine = Machine::boot();
    let ada = machine.ada();
    machine.kill_user_processes();
    ada.configure("unit = \"scope\"");
    let loaded = ada.load();
    assert!(
        ada.isolation().starts_with("requested but failed: fell back (linger is off"),
        "{}",
        ada.isolation()
    );
    assert!(loaded.warning.contains(FATAL), "{}", loaded.warning);
    assert_lost(ada, &loaded.id);
}

#[test]
fn a_unit_that_would_be_worse_than_none_is_not_made() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.configure("unit = \"scope\"");
    let loaded = ada.load();
    assert!(
        ada.isolation().starts_with("requested but failed: fell back (linger is off"),
        "{}",
        ada.isolation()
    );
    ada.assert_alive(&loaded.id);
}

#[test]
fn a_service_that_was_asked_for_survives_as_a_scope() {
    let machine = Machine::boot();
    let ada = machine.ada();
    machine.kill_user_processes();
    ada.enable_linger();
    ada.configure("unit = \"service\"");
    let loaded = ada.load();
    assert!(ada.isolation().starts_with("enabled (abide-"), "{}", ada.isolation());
    ada.assert_alive(&loaded.id);
}

/// The row that the rule exists for, made by hand: this is what a unit without linger would do.
#[test]
fn a_user_unit_without_linger_ends_with_the_last_logout() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.ssh("systemd-run --user --scope --quiet --unit=by-hand sh -c 'sleep 1000 >/dev/null 2>&1 &'").ok();
    ada.wait_for_manager_to_stop();
    assert_eq!(machine.root(&["pgrep", "-x", "sleep"]).code, Some(1), "the scope survived after all");
}

#[test]
fn an_ssh_client_that_is_killed_takes_a_plain_daemon_with_it_where_logind_ends_processes() {
    let machine = Machine::boot();
    let ada = machine.ada();
    machine.kill_user_processes();
    ada.enable_linger();
    ada.configure("unit = \"off\"");
    let mut client = ada.ssh_and_stay("abide load cat");
    let id = abide_testkit::eventually("the instance", || {
        ada.states().into_iter().find(|(_, state)| state == "active").map(|(id, _)| id)
    });
    machine.sh("pkill -KILL -x ssh");
    client.wait().unwrap();
    assert_lost(ada, &id);
}
