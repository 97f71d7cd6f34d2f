//! The login that started an instance ends.

use abide_testkit::eventually;

use crate::machine::Machine;

#[test]
fn a_capsule_survives_the_login_that_started_it() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let loaded = ada.load();
    ada.assert_alive(&loaded.id);
    assert!(
        ada.cgroup(&loaded.id).ends_with(&format!("/user@1000.service/app.slice/abide-{}.scope", loaded.id))
    );
    assert_eq!(loaded.warning, "", "there is nothing to warn of");
}

#[test]
fn a_capsule_survives_where_logind_ends_what_a_login_leaves_behind() {
    let machine = Machine::boot();
    let ada = machine.ada();
    machine.kill_user_processes();
    ada.enable_linger();
    let loaded = ada.load();
    ada.assert_alive(&loaded.id);
    assert_eq!(loaded.warning, "");
}

#[test]
fn without_a_unit_the_session_is_lost_where_logind_ends_what_a_login_leaves_behind() {
    let machine = Machine::boot();
    let ada = machine.ada();
    machine.kill_user_processes();
    ada.enable_linger();
    ada.configure("unit = \"off\"");
    let loaded = ada.load();
    assert!(ada.isolation().starts_with("disabled (config)"), "{}", ada.isolation());
    ada.wait_for_state(&loaded.id, "restorable (stopped)");
}

#[test]
fn a_unit_is_the_default_and_is_reported_in_the_log_and_by_explain() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let id = ada.load().id;
    let expected = format!("enabled (abide-{id}.scope)");
    assert!(ada.isolation().starts_with(&expected), "{}", ada.isolation());
    let explained = ada.abide(&["explain", &id]).ok();
    assert!(explained.contains(&format!("cgroup isolation: {expected}")), "{explained}");
    let policy = ada.systemctl(&["show", "-P", "OOMPolicy", &format!("abide-{id}.scope")]);
    assert_eq!(policy.trim(), "continue", "one child that ran out of memory would end them all");
}

#[test]
fn an_instance_that_ended_leaves_no_unit_behind() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let id = ada.load().id;
    assert_eq!(ada.units(), [format!("abide-{id}.scope")]);
    ada.abide(&["stop", &id]).ok();
    ada.wait_for_no_unit();
    ada.ssh(&format!("abide resume {id} --detach")).ok();
    assert_eq!(ada.units(), [format!("abide-{id}.scope")]);
    ada.abide(&["eject", &id, "--clean"]).ok();
    ada.wait_for_no_unit();
}

#[test]
fn an_instance_whose_earlier_unit_still_holds_something_gets_another() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let id = ada.load().id;
    ada.abide(&["stop", &id]).ok();
    ada.wait_for_no_unit();
    let name = format!("abide-{id}.scope");
    ada.ssh(&format!(
        "systemd-run --user --scope --quiet --unit={name} sh -c 'sleep 1000 >/dev/null 2>&1 &'"
    ))
    .ok();
    ada.ssh(&format!("abide resume {id} --detach")).ok();
    let cgroup = ada.cgroup(&id);
    assert!(cgroup.contains(&format!("/abide-{id}-")) && cgroup.ends_with(".scope"), "{cgroup}");
    assert!(ada.units().contains(&name), "what was there is not ours to end");
    ada.assert_alive(&id);
}

#[test]
fn an_ssh_client_that_is_killed_ends_nothing() {
    let machine = Machine::boot();
    let ada = machine.ada();
    machine.kill_user_processes();
    ada.enable_linger();
    let mut client = ada.ssh_and_stay("abide load cat --name attached");
    let id = eventually("the instance", || {
        ada.states().into_iter().find(|(_, state)| state == "active").map(|(id, _)| id)
    });
    ada.assert_alive(&id);
    machine.sh("pkill -KILL -x ssh");
    client.wait().unwrap();
    ada.wait_for_logout();
    ada.assert_alive(&id);
}

#[test]
fn a_daemon_that_is_spared_leaves_the_unit_of_its_instance() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let script = "(setsid sleep 1000 </dev/null >/dev/null 2>&1 &); exec cat";
    let said = ada.ssh(&format!("abide load --detach sh -- -c '{script}'")).ok();
    let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    eventually("the daemon", || (machine.root(&["pgrep", "-x", "sleep"]).code == Some(0)).then_some(()));
    let said = ada.abide(&["stop", &id, "--spare-daemons"]).ok();
    assert!(said.contains("left running: sleep ("), "{said}");
    let cgroup = machine.sh("sed -n s/^0:://p /proc/$(pgrep -x sleep)/cgroup");
    assert!(cgroup.trim().ends_with(&format!("/abide-spared-{id}.scope")), "{cgroup}");
    ada.ssh(&format!("abide resume {id} --detach")).ok();
    assert!(ada.cgroup(&id).ends_with(&format!("/abide-{id}.scope")), "its name is free again");
}

#[test]
fn logind_keeps_the_machine_awake_while_a_session_runs() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.ssh("abide config set keep_awake running").ok();
    let locks = || machine.sh("systemd-inhibit --list --no-pager");
    let id = ada.load().id;
    eventually("a lock", || {
        locks().lines().any(|line| line.contains("abide") && line.contains("idle")).then_some(())
    });
    ada.abide(&["stop", &id]).ok();
    eventually("no lock", || (!locks().contains("abide")).then_some(()));
}
