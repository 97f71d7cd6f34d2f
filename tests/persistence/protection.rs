//! What runs already: whether it is known to be in danger, and whether it can be moved out of it.

use abide_testkit::Run;
use serde_json::Value;

use crate::machine::Machine;
use crate::person::{Loaded, Person};

const MANAGER: &str = "systemd user manager";

/// Asks the doctor in a login of its own.
fn doctor(ada: Person<'_>) -> Value {
    findings(ada.ssh("abide doctor --json"))
}

fn findings(run: Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", run.stdout, run.stderr))
}

/// The grade and the words of what the doctor found about `subject`.
#[track_caller]
fn found(report: &Value, subject: &str) -> (String, String) {
    let all = report["findings"].as_array().unwrap();
    let one = all.iter().find(|finding| finding["subject"] == subject);
    let one = one.unwrap_or_else(|| panic!("nothing about {subject} in {report:#}"));
    let word = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
    (word("grade"), format!("{} → {}", word("detail"), word("advice")))
}

#[track_caller]
fn assert_found(report: &Value, subject: &str, grade: &str, words: &str) {
    let (is, says) = found(report, subject);
    assert!(is == grade && says.contains(words), "{subject} is {is}: {says}");
}

/// Starts an instance with a process in the background in a login, and does `then` in the same login.
#[track_caller]
fn load_and(ada: Person<'_>, then: &str) -> (Loaded, String) {
    let run = ada.ssh(&format!("abide load --detach sh -- -c 'sleep 1000 & exec cat' && {then}"));
    let warning = run.stderr.clone();
    let said = run.ok();
    let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    (Loaded { id, warning }, said)
}

/// Starts an instance, and stays logged in. Without input there is no question to answer.
const LOAD_AND_STAY: &str = "sh -c 'abide load cat --detach </dev/null && exec cat'";

/// The instance that runs.
fn instance(ada: Person<'_>) -> String {
    abide_testkit::eventually("the instance", || {
        ada.states().into_iter().find(|(_, state)| state == "active").map(|(id, _)| id)
    })
}

/// The cgroups of everything that runs in instances.
fn cgroups(machine: &Machine) -> Vec<String> {
    let script = "for pid in $(pgrep -u ada -x 'abide|cat|sleep'); do sed -n s/^0:://p /proc/$pid/cgroup; done | sort -u";
    machine.sh(script).lines().map(str::to_owned).collect()
}

#[test]
fn the_doctor_moves_what_runs_already_and_it_survives() {
    let machine = Machine::boot();
    machine.kill_user_processes();
    let ada = machine.ada();
    let (loaded, said) = load_and(
        ada,
        "abide ls && abide doctor --fix --yes && abide ls && abide explain -- $(ls ~/.abide/instances)",
    );
    let id = &loaded.id;
    assert!(loaded.warning.contains("will NOT survive"), "{}", loaded.warning);
    assert!(said.contains(&format!("ab-{id} was moved into abide-{id}.scope")), "{said}");
    let (before, after) = said.split_once("was moved").unwrap();
    assert!(before.contains(&format!("{id}: it will NOT survive your logout")), "{said}");
    assert!(!after.contains("NOT survive"), "{said}");
    assert!(after.contains("it survives a logout"), "{said}");
    ada.assert_alive(id);
    let all = cgroups(&machine);
    assert!(all.len() == 1 && all[0].ends_with(&format!("/abide-{id}.scope")), "{all:?}");
}

#[test]
fn an_upgrade_moves_what_runs_already() {
    let machine = Machine::boot();
    machine.kill_user_processes();
    let ada = machine.ada();
    let mut login = ada.ssh_and_stay(LOAD_AND_STAY);
    let id = instance(ada);
    ada.enable_linger();
    assert!(ada.abide(&["ls"]).ok().contains("it will NOT survive your logout"));
    assert_found(
        &findings(ada.abide(&["doctor", "--json"])),
        &format!("instance {id}"),
        "warning",
        "doctor --fix",
    );
    let said = ada.abide(&["upgrade", "--all"]).ok();
    assert!(said.contains(&format!("was moved into abide-{id}.scope")), "{said}");
    machine.sh("pkill -KILL -x ssh");
    login.wait().unwrap();
    ada.wait_for_logout();
    ada.assert_alive(&id);
}

#[test]
fn a_tmux_server_that_runs_already_is_moved_with_all_its_panes() {
    let machine = Machine::boot();
    machine.kill_user_processes();
    let ada = machine.ada();
    ada.configure("substrate = \"tmux\"");
    let (loaded, said) = load_and(ada, "abide doctor --fix --yes");
    assert!(said.contains("was moved into abide-tmux.scope"), "{said}");
    ada.assert_alive(&loaded.id);
    let all = cgroups(&machine);
    assert!(all.len() == 1 && all[0].ends_with("/abide-tmux.scope"), "{all:?}");
}

#[test]
fn linger_that_was_turned_off_is_noticed_for_what_runs() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    let mut login = ada.ssh_and_stay(LOAD_AND_STAY);
    let id = instance(ada);
    assert!(!ada.abide(&["ls"]).ok().contains("NOT survive"));
    machine.sh("loginctl disable-linger ada");
    let words = "it will NOT survive your logout: linger is off";
    for verb in [&["ls"][..], &["explain", &id]] {
        let said = ada.abide(verb).ok();
        assert!(said.contains(words) && said.contains("doctor --fix"), "{said}");
    }
    let report = findings(ada.abide(&["doctor", "--json"]));
    assert_found(&report, &format!("instance {id}"), "warning", "linger is off");
    login.kill().unwrap();
    login.wait().unwrap();
}

#[test]
fn the_doctor_does_not_take_a_user_manager_that_hangs_for_one_that_answers() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    assert_found(&doctor(ada), MANAGER, "ok", "answers");
    assert_found(&doctor(ada), "logout", "ok", "its own user unit");
    assert_eq!(ada.units(), [""; 0], "the trial left something behind");
    machine.sh("pkill -STOP -u ada -x systemd");
    let report = doctor(ada);
    assert_found(&report, MANAGER, "unknown", "no answer within");
    assert_ne!(found(&report, "logout").0, "ok");
}

#[test]
fn the_doctor_does_not_promise_linger_that_the_policy_refuses() {
    let machine = Machine::boot();
    machine.kill_user_processes();
    let ada = machine.ada();
    ada.configure("linger = true");
    assert_found(&doctor(ada), "logout", "ok", "the next start turns linger on");
    machine.sh("systemctl mask --now polkit.service");
    let report = doctor(ada);
    assert_found(&report, "logout", "warning", "will NOT survive");
    assert_found(&report, "logout", "warning", "sudo loginctl enable-linger ada");
    assert!(!found(&report, "logout").1.contains("doctor --fix"), "{report:#}");
    assert!(!ada.lingers(), "only asked");
}

#[test]
fn the_doctor_says_that_busctl_is_missing() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    machine.sh("mv /usr/bin/busctl /usr/bin/busctl.away");
    let report = doctor(ada);
    assert_found(&report, MANAGER, "unknown", "busctl");
    assert_ne!(found(&report, "logout").0, "ok");
}

#[test]
fn a_user_manager_without_the_system_bus_is_noticed_and_not_waited_for() {
    let machine = Machine::boot();
    let ada = machine.ada();
    ada.enable_linger();
    machine.sh("systemctl restart dbus.service");
    let report = findings(ada.abide(&["doctor", "--json"]));
    ada.abide(&["load", "cat", "--detach"]).ok();
    if ada.isolation().starts_with("enabled (") {
        assert_eq!(found(&report, MANAGER).0, "ok", "a start gets a unit");
    } else {
        assert_found(&report, MANAGER, "warning", "could not move");
        assert!(!ada.isolation().contains("within 2 s"), "waited for: {}", ada.isolation());
    }
}

#[test]
fn a_home_that_cannot_be_written_is_a_problem() {
    let machine = Machine::boot();
    let ada = machine.ada();
    machine.sh("mkdir /readonly && mount -t tmpfs -o ro none /readonly");
    let run = machine.as_user("ada", &["env", "HOME=/readonly", "abide", "doctor", "--json"]);
    assert_eq!(run.code, Some(1));
    assert_found(&findings(run), "store", "problem", "Read-only file system");
    assert_found(&findings(ada.abide(&["doctor", "--json"])), "store", "ok", "0 instances");
}

#[test]
fn what_a_service_starts_is_announced_to_end_with_it() {
    let machine = Machine::boot();
    let ada = machine.ada();
    let service = |script: &str| {
        let run = "systemd-run --quiet --pipe --wait --uid=ada -E HOME=/home/ada --unit=nightly sh -c";
        machine.root(&["sh", "-c", &format!("{run} '{script}'")])
    };
    let run = service("abide load cat --detach --new");
    assert!(run.stderr.contains("ends with nightly.service"), "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("enable-linger ada"), "{}", run.stderr);
    let report = findings(service("abide doctor --json"));
    assert_found(&report, "logout", "warning", "ends with nightly.service");
    ada.enable_linger();
    let run = service("abide load cat --detach --new");
    assert_eq!(run.stderr, "");
    let id = run.ok().split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    ada.assert_alive(&id);
}

#[test]
fn a_service_that_leaves_its_processes_alone_is_no_danger() {
    let machine = Machine::boot();
    let ada = machine.ada();
    let run = "systemd-run --quiet --pipe --wait --uid=ada -E HOME=/home/ada -p KillMode=process";
    let run = machine.root(&["sh", "-c", &format!("{run} abide load cat --detach")]);
    assert_eq!(run.stderr, "");
    let id = run.ok().split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
    ada.assert_alive(&id);
}

#[test]
fn a_stale_runtime_directory_does_not_cost_the_protection() {
    let machine = Machine::boot();
    machine.kill_user_processes();
    let ada = machine.ada();
    ada.enable_linger();
    for stale in ["/run/user/0", "/nonexistent"] {
        let run = ada.ssh(&format!("XDG_RUNTIME_DIR={stale} abide load cat --detach"));
        assert_eq!(run.stderr, "", "{stale}");
        assert!(ada.isolation().starts_with("enabled ("), "{stale}: {}", ada.isolation());
    }
    let states = ada.states();
    assert!(states.len() == 2 && states.iter().all(|(_, state)| state == "active"), "{states:?}");
}

#[test]
fn the_owner_of_the_login_decides_what_logind_ends() {
    let machine = Machine::boot();
    machine.kill_user_processes();
    machine.sh("printf 'KillOnlyUsers=bob\\n' >>/etc/systemd/logind.conf.d/kill.conf
                systemctl restart systemd-logind
                chmod u+s /usr/bin/setpriv");
    let as_ada = "setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/ada";
    let run = machine.bob().ssh(&format!("cd / && {as_ada} abide load cat --detach"));
    assert!(run.stderr.contains("will NOT survive"), "{}{}", run.stdout, run.stderr);
}
