//! A machine of a test's own: a container that systemd runs, with people who can log in to it.

use std::cell::Cell;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use abide_testkit::{Run, eventually, require_containers};

use crate::person::Person;

/// systemd as PID 1, on a cgroup hierarchy and with a boot id of the machine's own; the kernel's would stay the same when
/// the container is started again.
const BOOT: &str = "cat /proc/sys/kernel/random/uuid >/run/boot_id
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
umount -R /sys/fs/cgroup && mount -t cgroup2 -o nsdelegate cgroup2 /sys/fs/cgroup && exec /sbin/init";

/// A container. Removed with everything in it, however the test ends.
pub struct Machine {
    name: String,
    kills_user_processes: Cell<bool>,
}

impl Machine {
    /// A machine that systemd runs.
    pub fn boot() -> Self {
        let machine = Self::run(&["sh", "-ec", BOOT]);
        machine.wait_until_up();
        machine
    }

    /// A machine that runs nothing but what is started on it.
    pub fn without_systemd() -> Self {
        Self::run(&["sleep", "infinity"])
    }

    #[track_caller]
    fn run(command: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let run = require_containers();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("abide-test-persistence-{}-{number}", std::process::id());
        let machine = Self { name, kills_user_processes: Cell::new(false) };
        let label = format!("abide-test-run={run}");
        let program = format!("{}:/usr/local/bin/abide:ro", env!("CARGO_BIN_EXE_abide"));
        let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts:/opt/abide/scripts:ro");
        let flags = ["run", "-d", "--name", &machine.name, "--label", &label, "--network", "none"];
        let systemd =
            ["--privileged", "--cgroupns=private", "--stop-signal", "SIGRTMIN+3", "-e", "container=docker"];
        let mounts = [
            "--tmpfs", "/run", "--tmpfs", "/run/lock", "--tmpfs", "/tmp:exec,mode=1777", "-v", &program,
            "-v", scripts,
        ];
        docker(&[&flags[..], &systemd, &mounts, &[&format!("abide-test-systemd:{run}")], command].concat())
            .ok();
        machine
    }

    fn wait_until_up(&self) {
        eventually("the machine to be up", || {
            let state = self.root(&["systemctl", "is-system-running", "--wait"]).stdout;
            ["running", "degraded"].contains(&state.trim()).then_some(())
        });
    }

    /// Runs a command as root, outside of any login.
    pub fn root(&self, argv: &[&str]) -> Run {
        docker(&[&["exec", &self.name], argv].concat())
    }

    /// Runs a shell script as root, and gives what it printed.
    #[track_caller]
    pub fn sh(&self, script: &str) -> String {
        self.root(&["sh", "-euc", script]).ok()
    }

    /// Runs a command as `user`, outside of any login.
    pub fn as_user(&self, user: &str, argv: &[&str]) -> Run {
        let (home, name) = (format!("HOME=/home/{user}"), format!("USER={user}"));
        let flags = ["exec", "-u", user, "-w", &home["HOME=".len()..], "-e", &home, "-e", &name, &self.name];
        docker(&[&flags[..], argv].concat())
    }

    /// A command on the machine that goes on while the test does.
    pub fn in_background(&self, argv: &[&str]) -> std::process::Child {
        let mut command = Command::new("docker");
        command.args(["exec", "-i", &self.name]).args(argv);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    pub fn ada(&self) -> Person<'_> {
        Person::new(self, "ada")
    }

    pub fn bob(&self) -> Person<'_> {
        Person::new(self, "bob")
    }

    /// Has logind end what a login leaves behind.
    pub fn kill_user_processes(&self) {
        self.sh("printf '[Login]\\nKillUserProcesses=yes\\n' >/etc/systemd/logind.conf.d/kill.conf
                 systemctl restart systemd-logind");
        eventually("logind to be back", || {
            let said = self.root(&["loginctl", "list-sessions"]);
            (said.code == Some(0)).then_some(())
        });
        self.kills_user_processes.set(true);
    }

    /// Whether logind ends what a login leaves behind.
    pub fn kills_user_processes(&self) -> bool {
        self.kills_user_processes.get()
    }

    /// An orderly shutdown, and a new boot.
    pub fn reboot(&self) {
        docker(&["stop", "-t", "60", &self.name]).ok();
        self.start();
    }

    /// Everything ends in the middle of whatever it does; then a new boot.
    pub fn power_cut(&self) {
        docker(&["kill", &self.name]).ok();
        self.start();
    }

    fn start(&self) {
        docker(&["start", &self.name]).ok();
        self.wait_until_up();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        docker(&["rm", "-f", "-v", &self.name]);
    }
}

fn docker(args: &[&str]) -> Run {
    let out = Command::new("docker").args(args).stdin(Stdio::null()).output().unwrap();
    Run {
        code: out.status.code(),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    }
}
