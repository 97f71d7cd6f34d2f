//! What this machine has, and what that means for sessions.
//!
//! Every probe is bounded and they run side by side: a hung engine must not make `abide doctor` hang with it.

use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_model::program::AGENTS;
use abide_model::vars;
use abide_sys::run::{self, RunError};
use serde::Serialize;

/// How long one program may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a finding bears on abide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// As it should be.
    Ok,
    /// Not there, and not needed.
    Absent,
    /// Works, but something could be lost that need not be.
    Warning,
    /// Something is broken.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, e.g. `git`, `linger`, `agent claude`.
    pub subject: String,
    /// How it is.
    pub grade: Grade,
    /// What was found.
    pub detail: String,
    /// What to do about it, where something can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    /// A finding that needs no advice.
    pub fn new(subject: impl Into<String>, grade: Grade, detail: impl Into<String>) -> Self {
        Self { subject: subject.into(), grade, detail: detail.into(), advice: None }
    }

    /// The same finding with what to do about it.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// Where to look. Taken from the environment by the caller, so that tests can look elsewhere.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The value of `PATH`.
    pub path: OsString,
    /// The user manager's runtime directory.
    pub runtime_dir: Option<PathBuf>,
    /// The root of the file system.
    pub root: PathBuf,
    /// The operator's login name, as far as the environment tells it.
    pub user: Option<String>,
}

impl Machine {
    /// The machine we are on.
    pub fn here() -> Self {
        let uid = rustix::process::getuid().as_raw();
        let runtime_dir = std::env::var_os(vars::XDG_RUNTIME_DIR).map(PathBuf::from);
        Self {
            path: std::env::var_os(vars::PATH).unwrap_or_default(),
            // Set by a login, but not by `sudo -u`, cron or `docker exec`, where the manager may still be up.
            runtime_dir: Some(runtime_dir.unwrap_or_else(|| format!("/run/user/{uid}").into())),
            root: "/".into(),
            user: std::fs::read_to_string("/etc/passwd").ok().and_then(|text| login_name(&text, uid)),
        }
    }

    /// The program called `name`, looked up on this machine's path.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(&self.path)
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join(name))
            .find(|p| is_program(p))
    }
}

/// The name of the user `uid` in the text of a passwd file. Read by hand: a static binary must not load NSS modules.
fn login_name(passwd: &str, uid: u32) -> Option<String> {
    let line =
        passwd.lines().find(|line| line.split(':').nth(2).and_then(|f| f.parse().ok()) == Some(uid))?;
    line.split(':').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Looks at everything, side by side.
pub fn examine(machine: &Machine) -> Vec<Finding> {
    let programs: &[(&str, &[&str], &str)] = &[
        ("git", &["--version"], "install git to use worktree and clone mounts"),
        ("tmux", &["-V"], "only needed for `substrate = \"tmux\"`"),
    ];
    std::thread::scope(|scope| {
        let mut found: Vec<_> = programs
            .iter()
            .map(|(name, args, without)| scope.spawn(move || program(machine, name, args, without)))
            .collect();
        found.push(scope.spawn(|| docker(machine)));
        found.extend(AGENTS.iter().map(|name| scope.spawn(move || agent(machine, name))));
        let mut findings = vec![manager(machine), linger(machine)];
        findings.extend(found.into_iter().filter_map(|probe| probe.join().ok()));
        findings
    })
}

fn manager(machine: &Machine) -> Finding {
    let subject = "systemd user bus";
    if !machine.root.join("run/systemd/system").is_dir() {
        return Finding::new(
            subject,
            Grade::Absent,
            "this machine is not run by systemd; sessions run as plain daemons",
        );
    }
    let Some(bus) = machine.runtime_dir.as_ref().map(|dir| dir.join("bus")) else {
        return Finding::new(subject, Grade::Warning, "no runtime directory");
    };
    // Asking `systemd-run --version` proves nothing: it answers where there is no manager. Only the bus itself counts.
    match UnixStream::connect(&bus) {
        Ok(_) => Finding::new(subject, Grade::Ok, format!("answers at {}", bus.display())),
        Err(e) => Finding::new(subject, Grade::Warning, format!("no answer at {}: {e}", bus.display()))
            .advise("log in anew, or install dbus-user-session"),
    }
}

fn linger(machine: &Machine) -> Finding {
    let subject = "linger";
    if !machine.root.join("run/systemd/system").is_dir() {
        return Finding::new(subject, Grade::Absent, "needs systemd");
    }
    let Some(user) = &machine.user else {
        return Finding::new(subject, Grade::Warning, "your login name could not be found out");
    };
    if machine.root.join("var/lib/systemd/linger").join(user).exists() {
        return Finding::new(subject, Grade::Ok, "on: units of yours survive your logout");
    }
    Finding::new(subject, Grade::Warning, "off: the user manager stops when you log out")
        .advise(format!("loginctl enable-linger {user}"))
}

fn program(machine: &Machine, name: &str, args: &[&str], without: &str) -> Finding {
    match machine.find(name) {
        None => Finding::new(name, Grade::Absent, "not on PATH").advise(without),
        Some(path) => match version(&path, args) {
            Ok(version) => Finding::new(name, Grade::Ok, version),
            Err(e) => Finding::new(name, Grade::Problem, e.to_string())
                .advise(format!("try it by hand: {}", path.display())),
        },
    }
}

fn docker(machine: &Machine) -> Finding {
    let Some(path) = machine.find("docker") else {
        return Finding::new("docker", Grade::Absent, "not on PATH")
            .advise("only needed for `place = \"docker\"`");
    };
    let asked =
        run::succeed(&mut run::command(path, ["version", "--format", "{{.Server.Version}}"]), PATIENCE);
    match asked {
        Ok(out) => Finding::new("docker", Grade::Ok, format!("engine {}", out.text())),
        Err(e) => {
            Finding::new("docker", Grade::Absent, format!("the client is there, but no engine answers ({e})"))
                .advise("start the engine to use `place = \"docker\"`")
        }
    }
}

fn agent(machine: &Machine, name: &str) -> Finding {
    let subject = format!("agent {name}");
    match machine.find(name) {
        None => Finding::new(subject, Grade::Absent, "not on PATH"),
        Some(path) => match version(&path, &["--version"]) {
            Ok(version) => Finding::new(subject, Grade::Ok, format!("{version} ({})", path.display())),
            Err(e) => Finding::new(subject, Grade::Problem, e.to_string())
                .advise(format!("try it by hand: {} --version", path.display())),
        },
    }
}

fn version(path: &Path, args: &[&str]) -> Result<String, RunError> {
    let out = run::succeed(&mut run::command(path, args), PATIENCE)?;
    Ok(out.text().lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    struct Fake {
        dir: tempfile::TempDir,
        machine: Machine,
    }

    fn bare_machine() -> Fake {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine {
            path: dir.path().join("bin").into(),
            runtime_dir: Some(dir.path().join("runtime")),
            root: dir.path().to_owned(),
            user: Some("ada".into()),
        };
        for sub in ["bin", "runtime"] {
            std::fs::create_dir(dir.path().join(sub)).unwrap();
        }
        Fake { dir, machine }
    }

    impl Fake {
        fn add_program(&self, name: &str, script: &str) {
            let path = self.dir.path().join("bin").join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn grade(&self, subject: &str) -> (Grade, String) {
            let all = examine(&self.machine);
            let found = all.iter().find(|f| f.subject == subject).unwrap();
            (found.grade, found.detail.clone())
        }
    }

    #[test]
    fn a_bare_machine_has_nothing_and_nothing_is_wrong_with_that() {
        let findings = examine(&bare_machine().machine);
        assert_eq!(findings.len(), 5 + AGENTS.len());
        assert!(findings.iter().all(|f| f.grade == Grade::Absent), "{findings:#?}");
    }

    #[test]
    fn agents_are_found_on_the_path_with_their_version() {
        let fake = bare_machine();
        fake.add_program("claude", "echo '2.1.325 (Claude Code)'");
        let (grade, detail) = fake.grade("agent claude");
        assert_eq!(grade, Grade::Ok);
        assert!(detail.starts_with("2.1.325 (Claude Code) ("), "{detail}");
    }

    #[test]
    fn an_agent_that_can_not_tell_its_version_is_a_problem() {
        let fake = bare_machine();
        fake.add_program("codex", "echo 'no runtime' >&2; exit 1");
        let (grade, detail) = fake.grade("agent codex");
        assert_eq!(grade, Grade::Problem);
        assert!(detail.contains("no runtime"), "{detail}");
    }

    #[test]
    fn only_a_bus_that_answers_counts() {
        let fake = bare_machine();
        std::fs::create_dir_all(fake.dir.path().join("run/systemd/system")).unwrap();
        assert_eq!(fake.grade("systemd user bus").0, Grade::Warning);
        let bus = fake.dir.path().join("runtime/bus");
        let listener = UnixListener::bind(&bus).unwrap();
        assert_eq!(fake.grade("systemd user bus").0, Grade::Ok);
        drop(listener);
        assert_eq!(
            fake.grade("systemd user bus").0,
            Grade::Warning,
            "a socket that nobody answers is no bus"
        );
    }

    #[test]
    fn linger_is_read_from_where_logind_keeps_it() {
        let fake = bare_machine();
        std::fs::create_dir_all(fake.dir.path().join("run/systemd/system")).unwrap();
        assert_eq!(fake.grade("linger").0, Grade::Warning);
        std::fs::create_dir_all(fake.dir.path().join("var/lib/systemd/linger")).unwrap();
        std::fs::write(fake.dir.path().join("var/lib/systemd/linger/ada"), "").unwrap();
        assert_eq!(fake.grade("linger").0, Grade::Ok);
    }

    #[test]
    fn login_names_are_read_without_the_resolver() {
        let passwd = "root:x:0:0::/root:/bin/sh\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(login_name(passwd, 1000).as_deref(), Some("ada"));
        assert_eq!(login_name(passwd, 1), None);
    }
}
