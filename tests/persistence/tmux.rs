//! The tmux server, and the logins that come and go around it.

use crate::machine::Machine;
use crate::person::Person;

const TMUX: &str = "substrate = \"tmux\"";

/// The cgroups of the server and of everything that runs in its panes.
fn cgroups(machine: &Machine) -> Vec<String> {
    let script = "for pid in $(pgrep -u ada -x 'tmux: server|cat|abide'); do sed -n s/^0:://p /proc/$pid/cgroup; done | sort -u";
    machine.sh(script).lines().map(str::to_owned).collect()
}

fn clients(machine: &Machine) -> String {
    machine.as_user("ada", &["tmux", "-L", "abide", "list-clients"]).stdout
}

fn ada_on_tmux(machine: &Machine) -> Person<'_> {
    let ada = machine.ada();
    ada.enable_linger();
    ada.configure(TMUX);
    ada
}

#[test]
fn the_tmux_server_survives_the_login_that_started_it() {
    let machine = Machine::boot();
    machine.kill_user_processes();
    let ada = ada_on_tmux(&machine);
    let loaded = ada.load();
    ada.assert_alive(&loaded.id);
    assert_eq!(loaded.warning, "", "there is nothing to warn of");
    let scope = cgroups(&machine);
    assert_eq!(scope.len(), 1, "not all in one unit: {scope:?}");
    assert!(scope[0].ends_with("/user@1000.service/app.slice/abide-tmux.scope"), "{scope:?}");
    let explained = ada.abide(&["explain", &loaded.id]).ok();
    assert!(explained.contains("cgroup isolation: enabled (abide-tmux.scope)"), "{explained}");
}

#[test]
fn all_instances_share_one_unit_that_ends_with_the_last_of_them() {
    let machine = Machine::boot();
    let ada = ada_on_tmux(&machine);
    let (first, second) = (ada.load(), ada.load());
    assert_eq!((first.warning.as_str(), second.warning.as_str()), ("", ""));
    assert_eq!(ada.units(), ["abide-tmux.scope"]);
    ada.abide(&["stop", &first.id]).ok();
    ada.assert_alive(&second.id);
    ada.abide(&["eject", &second.id, "--clean"]).ok();
    ada.wait_for_no_unit();
    ada.ssh(&format!("abide resume {} --detach", first.id)).ok();
    assert_eq!(ada.units(), ["abide-tmux.scope"]);
    ada.assert_alive(&first.id);
}

#[test]
fn without_a_unit_the_tmux_server_is_lost_where_logind_ends_what_a_login_leaves_behind() {
    let machine = Machine::boot();
    machine.kill_user_processes();
    let ada = ada_on_tmux(&machine);
    ada.configure(&format!("{TMUX}\nunit = \"off\""));
    let loaded = ada.load();
    assert!(ada.isolation().starts_with("disabled (config)"), "{}", ada.isolation());
    ada.wait_for_state(&loaded.id, "restorable (stopped)");
}

/// A tmux that knows the user bus moves each pane into a unit of the user manager, which ends with the last logout.
#[test]
fn without_linger_nothing_in_the_tmux_server_is_in_a_unit_that_ends_with_the_last_logout() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.configure(TMUX);
    let loaded = ada.load();
    assert!(loaded.warning.contains("only while logind allows it"), "{}", loaded.warning);
    ada.assert_alive(&loaded.id);
    let scope = cgroups(&machine);
    assert!(scope.iter().all(|path| path.contains("/session-")), "{scope:?}");
}

#[test]
fn a_server_that_was_found_outside_of_a_unit_is_reported_and_left_where_it_is() {
    let machine = Machine::boot();
    let ada = ada_on_tmux(&machine);
    ada.configure(&format!("{TMUX}\nunit = \"off\""));
    let first = ada.load();
    let before = cgroups(&machine);
    ada.configure(TMUX);
    let second = ada.load();
    assert!(second.warning.contains("the tmux server was started without a unit"), "{}", second.warning);
    assert!(ada.isolation().starts_with("requested but failed: fell back ("), "{}", ada.isolation());
    assert_eq!(cgroups(&machine), before);
    ada.assert_alive(&first.id);
    ada.assert_alive(&second.id);
}

#[test]
fn an_ssh_client_that_is_killed_ends_nothing_in_tmux() {
    let machine = Machine::boot();
    machine.kill_user_processes();
    let ada = ada_on_tmux(&machine);
    let mut client = ada.ssh_and_stay("abide load cat");
    let id = abide_testkit::eventually("the instance", || {
        ada.states().into_iter().find(|(_, state)| state == "active").map(|(id, _)| id)
    });
    abide_testkit::eventually("the client", || (clients(&machine).lines().count() == 1).then_some(()));
    machine.sh("pkill -KILL -x ssh");
    client.wait().unwrap();
    ada.wait_for_logout();
    ada.assert_alive(&id);
    assert_eq!(clients(&machine), "");
}

#[test]
fn a_restart_of_the_user_manager_leaves_what_was_in_tmux_to_come_back() {
    let machine = Machine::boot();
    let ada = ada_on_tmux(&machine);
    let id = ada.load().id;
    machine.sh("systemctl restart user@1000.service");
    abide_testkit::eventually("it to be kept", || ada.state(&id).starts_with("restorable").then_some(()));
    ada.ssh(&format!("abide resume {id} --detach")).ok();
    ada.assert_alive(&id);
    assert_eq!(ada.units(), ["abide-tmux.scope"]);
}
