//! Somebody with an account on the machine, and what the tests ask about their instances.

use std::process::Child;

use abide_testkit::{Run, eventually};
use serde_json::Value;

use crate::machine::Machine;

/// An SSH client that knows nobody and asks nothing.
const SSH: &[&str] = &["ssh", "-q", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes"];

#[derive(Clone, Copy)]
pub struct Person<'a> {
    machine: &'a Machine,
    user: &'a str,
}

/// An instance that was started, and what its start told the operator.
pub struct Loaded {
    pub id: String,
    pub warning: String,
}

impl<'a> Person<'a> {
    pub fn new(machine: &'a Machine, user: &'a str) -> Self {
        Self { machine, user }
    }

    /// Logs in over SSH, runs `command` in that login, and logs out; returns when the logout is over.
    pub fn ssh(&self, command: &str) -> Run {
        let address = format!("{}@localhost", self.user);
        let noted = format!("echo $XDG_SESSION_ID >~/.login; {command}");
        let run = self.machine.root(&[SSH, &[&address, &noted]].concat());
        self.wait_for_logout();
        run
    }

    /// Logs in over SSH with a terminal, and stays in `command`.
    pub fn ssh_and_stay(&self, command: &str) -> Child {
        let address = format!("{}@localhost", self.user);
        let noted = format!("echo $XDG_SESSION_ID >~/.login; TERM=xterm {command}");
        self.machine.in_background(&[SSH, &["-tt", &address, &noted]].concat())
    }

    /// Waits until logind has done to the last login whatever it does to one that ended.
    pub fn wait_for_logout(&self) {
        let login = self.machine.sh(&format!("cat /home/{}/.login", self.user));
        eventually("the login to end", || {
            let args = ["loginctl", "show-session", login.trim(), "-p", "State", "--value"];
            let state = self.machine.root(&args);
            let gone = state.code != Some(0);
            // A login whose processes are left alone closes for as long as one of them runs.
            let left_alone = !self.machine.kills_user_processes() && state.stdout.trim() == "closing";
            (gone || left_alone).then_some(())
        });
    }

    /// Waits until the user manager has stopped, as it does some time after the last logout.
    pub fn wait_for_manager_to_stop(&self) {
        eventually("the user manager to stop", || {
            let state =
                self.machine.sh(&format!("systemctl show -P ActiveState user@$(id -u {})", self.user));
            (state.trim() == "inactive").then_some(())
        });
    }

    /// Runs abide outside of any login.
    pub fn abide(&self, args: &[&str]) -> Run {
        self.machine.as_user(self.user, &[&["abide"], args].concat())
    }

    /// Starts an instance in a login of its own, which is over when this returns.
    #[track_caller]
    pub fn load(&self) -> Loaded {
        let run = self.ssh("abide load cat --detach --new");
        let warning = run.stderr.clone();
        let said = run.ok();
        let id = said.split_whitespace().next().unwrap().strip_prefix("ab-").unwrap().to_owned();
        Loaded { id, warning }
    }

    pub fn enable_linger(&self) {
        self.machine.sh(&format!("loginctl enable-linger {}", self.user));
        // Its socket is there before the manager is: one that is stopped while it still starts never comes up.
        eventually("the user manager", || {
            let asked = "test -S /run/user/$uid/bus && systemctl show -P ActiveState user@$uid || :";
            let state = self.machine.sh(&format!("uid=$(id -u {}); {asked}", self.user));
            (state.trim() == "active").then_some(())
        });
    }

    pub fn lingers(&self) -> bool {
        self.machine.root(&["test", "-e", &format!("/var/lib/systemd/linger/{}", self.user)]).code == Some(0)
    }

    pub fn configure(&self, settings: &str) {
        let script = format!(
            "mkdir -p ~/.config/abide; printf 'version = 1\\n%s\\n' '{settings}' >~/.config/abide/config.toml"
        );
        self.machine.as_user(self.user, &["sh", "-euc", &script]).ok();
    }

    /// `state` or `state (reason)` of each instance, by id.
    pub fn states(&self) -> Vec<(String, String)> {
        let listing = self.abide(&["ls", "--json"]).json();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let rows = listing["instances"].as_array().unwrap().iter();
        rows.map(|row| match row["reason"].as_str() {
            Some(reason) => (word(&row["id"]), format!("{} ({reason})", word(&row["state"]))),
            None => (word(&row["id"]), word(&row["state"])),
        })
        .collect()
    }

    pub fn state(&self, id: &str) -> String {
        self.states().into_iter().find(|(found, _)| found == id).map_or("gone".to_owned(), |(_, state)| state)
    }

    #[track_caller]
    pub fn wait_for_state(&self, id: &str, state: &str) {
        eventually(&format!("{id} to be {state}"), || (self.state(id) == state).then_some(()));
    }

    /// Asserts that the session of `id` runs: it hears, and it answers.
    #[track_caller]
    pub fn assert_alive(&self, id: &str) {
        self.abide(&["send", id, "still there"]).ok();
        self.abide(&["wait", id, "--text", "still there", "--timeout", "30"]).ok();
        assert_eq!(self.state(id), "active");
    }

    /// The path of the keeper of `id` in the cgroup hierarchy.
    pub fn cgroup(&self, id: &str) -> String {
        let status = self.abide(&["capsule", "call", id, r#"{"verb": "status"}"#]).json();
        self.machine.sh(&format!("sed -n s/^0:://p /proc/{}/cgroup", status["keeper_pid"])).trim().to_owned()
    }

    /// Asks the user manager, outside of any login.
    #[track_caller]
    pub fn systemctl(&self, args: &[&str]) -> String {
        let uid = self.machine.sh(&format!("id -u {}", self.user));
        let runtime = format!("XDG_RUNTIME_DIR=/run/user/{}", uid.trim());
        self.machine.as_user(self.user, &[&["env", &runtime, "systemctl", "--user"], args].concat()).ok()
    }

    /// The units of all instances.
    pub fn units(&self) -> Vec<String> {
        let listed = self.systemctl(&["list-units", "--all", "--plain", "--no-legend", "abide-*"]);
        listed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    }

    pub fn wait_for_no_unit(&self) {
        eventually("all units to be gone", || self.units().is_empty().then_some(()));
    }

    pub fn log(&self) -> String {
        self.machine.sh(&format!("cat /home/{}/.abide/log/abide.log", self.user))
    }

    /// What the log says about the unit of the newest instance.
    pub fn isolation(&self) -> String {
        let log = self.log();
        let line = log.lines().rev().find_map(|line| line.split_once("cgroup isolation: "));
        line.map(|(_, told)| told.to_owned()).unwrap_or_else(|| panic!("the log says nothing:\n{log}"))
    }
}
