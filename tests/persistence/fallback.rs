//! No unit can be had: the session runs all the same.

use crate::machine::Machine;

#[test]
fn without_systemd_a_session_is_a_plain_daemon_without_a_warning() {
    let machine = Machine::without_systemd();
    let ada = machine.ada();
    let run = ada.abide(&["load", "cat", "--detach"]);
    assert_eq!(run.stderr, "");
    let said = run.ok();
    let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap();
    ada.assert_alive(id);
    assert!(
        ada.isolation().starts_with("unavailable (this machine does not use systemd)"),
        "{}",
        ada.isolation()
    );
    let log = ada.log();
    assert!(!log.contains("ERROR") && !log.contains("WARN"), "{log}");
}

#[test]
fn without_a_bus_a_session_is_a_plain_daemon_and_the_operator_is_warned() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    machine.sh("rm /run/user/1000/bus");
    let loaded = ada.load();
    assert!(ada.isolation().starts_with("unavailable (the user bus does not answer"), "{}", ada.isolation());
    assert!(loaded.warning.contains("dbus-user-session"), "{}", loaded.warning);
    ada.assert_alive(&loaded.id);
}

#[test]
fn a_user_manager_that_hangs_is_not_waited_for() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    machine.sh("pkill -STOP -u ada -x systemd");
    let loaded = ada.load();
    let expected = "requested but failed: fell back (busctl: no answer within 2 s)";
    assert!(ada.isolation().starts_with(expected), "{}", ada.isolation());
    assert!(loaded.warning.contains("no answer within 2 s"), "{}", loaded.warning);
    ada.assert_alive(&loaded.id);
}

#[test]
fn a_systemd_that_does_not_know_a_property_is_asked_without_it() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let older = "#!/bin/sh\ncase \"$*\" in *OOMPolicy*) \
        echo 'Call failed: Cannot set property OOMPolicy, or unknown property.' >&2; exit 1 ;; esac\n\
        exec /usr/bin/busctl \"$@\"\n";
    machine.sh(&format!("cat >/usr/local/bin/busctl <<'END'\n{older}END\nchmod +x /usr/local/bin/busctl"));
    let loaded = ada.load();
    assert!(ada.isolation().starts_with("enabled ("), "{}", ada.isolation());
    ada.assert_alive(&loaded.id);
}

#[test]
fn a_runtime_directory_that_the_environment_does_not_name_is_found() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let said = ada.ssh("env -u XDG_RUNTIME_DIR -u DBUS_SESSION_BUS_ADDRESS abide load cat --detach").ok();
    assert!(said.starts_with("ab-"), "{said}");
    assert!(ada.isolation().starts_with("enabled ("), "{}", ada.isolation());
}
