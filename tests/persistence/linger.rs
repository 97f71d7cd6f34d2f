//! Linger, turned on for oneself.

use std::io::Write;

use crate::machine::Machine;
use crate::person::Person;

#[test]
fn the_doctor_turns_linger_on_where_the_policy_lets_people() {
    let machine = Machine::boot();
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
fn the_doctor_names_the_administrator_where_the_policy_refuses_linger() {
    let machine = Machine::boot();
    let ada = machine.ada();
    machine.sh("systemctl mask --now polkit.service");
    let complaint = ada.ssh("abide doctor --fix --yes").fails(1);
    assert!(complaint.contains("sudo loginctl enable-linger ada"), "{complaint}");
    assert!(!ada.lingers());
}

#[test]
fn a_start_turns_linger_on_only_with_leave() {
    let machine = Machine::boot();
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
    let machine = Machine::boot();
    let ada = machine.ada();
    machine.sh("systemctl mask --now polkit.service");
    ada.configure("linger = true");
    let loaded = ada.load();
    assert!(loaded.warning.contains("could not be turned on"), "{}", loaded.warning);
    assert!(loaded.warning.contains("sudo loginctl enable-linger ada"), "{}", loaded.warning);
    ada.assert_alive(&loaded.id);
}

/// Loads at a terminal, where somebody types `answer`.
fn load_at_a_terminal(ada: Person<'_>, flags: &str, answer: &str) {
    let mut terminal = ada.ssh_and_stay(&format!("abide load cat --detach --new {flags}"));
    terminal.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
    assert!(terminal.wait().unwrap().success());
}

#[test]
fn whether_to_turn_linger_on_is_asked_once_and_the_answer_is_remembered() {
    let machine = Machine::boot();
    let ada = machine.ada();
    let remembered = || ada.abide(&["config", "get", "linger"]).ok().trim().to_owned();
    load_at_a_terminal(ada, "", "n\n");
    assert_eq!((ada.lingers(), remembered().as_str()), (false, "false"));
    let file = machine.sh("cat /home/ada/.config/abide/config.toml");
    assert!(file.contains("linger = false"), "not written down: {file}");
    // Were it asked again, this would be the answer.
    load_at_a_terminal(ada, "", "y\n");
    assert!(!ada.lingers(), "it was asked again");
    load_at_a_terminal(ada, "--linger yes", "");
    assert_eq!((ada.lingers(), remembered().as_str()), (true, "true"));
    ada.abide(&["config", "unset", "linger"]).ok();
    machine.sh("loginctl disable-linger ada");
    load_at_a_terminal(ada, "", "y\n");
    assert_eq!((ada.lingers(), remembered().as_str()), (true, "true"));
}
