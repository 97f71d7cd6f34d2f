//! The machine, or the user manager, goes down and comes back.

use abide_testkit::eventually;

use crate::machine::Machine;
use crate::person::Person;

#[track_caller]
fn assert_comes_back(ada: Person<'_>, id: &str) {
    ada.ssh(&format!("abide resume {id} --detach")).ok();
    ada.assert_alive(id);
}

#[test]
fn a_restart_of_the_user_manager_leaves_an_instance_that_comes_back() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let id = ada.load().id;
    machine.sh("systemctl restart user@1000.service");
    ada.wait_for_state(&id, "restorable (stopped)");
    assert_comes_back(ada, &id);
    assert!(ada.cgroup(&id).ends_with(&format!("/abide-{id}.scope")), "{}", ada.cgroup(&id));
}

#[test]
fn a_user_manager_that_is_killed_leaves_an_instance_that_comes_back() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let id = ada.load().id;
    machine.sh("systemctl kill -s KILL --kill-whom=all user@1000.service");
    ada.wait_for_state(&id, "restorable (crashed)");
    assert_comes_back(ada, &id);
}

#[test]
fn a_reboot_leaves_an_instance_that_comes_back() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let id = ada.load().id;
    machine.reboot();
    assert_eq!(ada.state(&id), "restorable (stopped)", "a shutdown is not finishing");
    assert!(ada.abide(&["ls"]).ok().contains("restorable (stopped)"));
    assert_comes_back(ada, &id);
}

#[test]
fn a_power_cut_leaves_an_instance_that_comes_back() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let id = ada.load().id;
    machine.power_cut();
    assert_eq!(ada.state(&id), "restorable (host-lost)");
    assert!(ada.abide(&["ls"]).ok().contains("restorable (host-lost)"));
    assert_comes_back(ada, &id);
}

#[test]
fn with_the_boot_service_an_instance_comes_back_by_itself() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    ada.ssh("abide service install").ok();
    let id = ada.load().id;
    machine.power_cut();
    ada.wait_for_state(&id, "active");
    ada.assert_alive(&id);
    assert!(ada.cgroup(&id).ends_with(&format!("/abide-{id}.scope")), "{}", ada.cgroup(&id));
    ada.ssh("abide service remove").ok();
    machine.power_cut();
    assert_eq!(ada.state(&id), "restorable (host-lost)", "nobody asked for it any more");
}

#[test]
fn the_boot_service_looks_for_instances_and_programs_where_they_were_when_it_was_installed() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    ada.ssh("mkdir '50% \"mine\"' && ln -s /bin/cat '50% \"mine\"/my-agent'").ok();
    let login = "export ABIDE_HOME=$HOME/state PATH=\"$HOME/50% \\\"mine\\\":$PATH\"";
    ada.ssh(&format!("{login}; abide service install && abide load my-agent --detach")).ok();
    let state = || ada.ssh(&format!("{login}; abide ls --json")).json()["instances"][0]["state"].clone();
    assert_eq!(state(), "active");
    machine.power_cut();
    eventually("it to come back", || (state() == "active").then_some(()));
}
