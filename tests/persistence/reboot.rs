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

#[test]
fn the_boot_service_is_not_installed_without_linger_unless_that_is_wanted() {
    let machine = Machine::boot();
    let ada = machine.ada();
    let file = "test -e ~/.config/systemd/user/abide-resume.service";
    let unasked = ada.ssh("abide service install").fails(3);
    assert!(unasked.contains("--linger yes"), "{unasked}");
    ada.ssh(&format!("! {file}")).ok();
    let run = ada.ssh("env -u XDG_RUNTIME_DIR abide service install --linger no");
    assert!(run.stderr.contains("your last logout ends"), "{}", run.stderr);
    run.ok();
    assert!(!ada.lingers());
    // The user manager of the last login may be on its way out; doctor says then that it does not know.
    eventually("the doctor to say so", || {
        ada.ssh("abide doctor").stdout.contains("installed, but linger is off").then_some(())
    });
    ada.ssh("abide service install --linger yes").ok();
    assert!(ada.lingers());
}

#[test]
fn what_the_boot_service_brought_back_without_linger_is_stopped_and_not_killed_by_the_logout() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.ssh("abide service install --linger no").ok();
    let id = ada.load().id;
    machine.power_cut();
    let said =
        ada.ssh(&format!("until abide wait {id} --text '' --timeout 1; do :; done; abide explain {id}"));
    assert!(said.stdout.contains("it will NOT survive your logout: linger is off"), "{}", said.stdout);
    ada.wait_for_manager_to_stop();
    ada.wait_for_state(&id, "restorable (stopped)");
}

#[test]
fn agents_that_fail_at_boot_hold_back_neither_shells_nor_the_report_of_their_failure() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    machine.sh("printf '#!/bin/sh\\nif test -e ~/broken; then echo Please run /login; exit 1; fi; exec cat\\n' >/usr/local/bin/claude
                chmod +x /usr/local/bin/claude");
    ada.ssh("abide service install").ok();
    for _ in 0..3 {
        ada.ssh("abide load claude --detach --new").ok();
    }
    let shell = ada.load().id;
    ada.ssh("touch ~/broken").ok();
    machine.power_cut();
    ada.wait_for_state(&shell, "active");
    eventually("the service to be done", || {
        let doctor = ada.abide(&["doctor"]).stdout;
        doctor.contains("its last run did not bring everything back").then_some(())
    });
    ada.assert_alive(&shell);
}
