//! What this machine has, and what that means for sessions.
//!
//! Every probe is bounded and they run side by side: a hung engine must not make `abide doctor` hang with it.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_model::placement::{
    self, Fate, Home, Linger, LingerConsent, LingerPolicy, ManagerFault, Placement, PlacementFacts,
};
use abide_model::program::AGENTS;
use abide_model::{Choice, KeepAwake, Substrate, UnitMode, vars};
use abide_places::host::Login;
use abide_places::host::boot_service::ServiceState;
use abide_store::Store;
use abide_sys::run::{self, RunError};
use serde::Serialize;

/// How long one program may take to print its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a finding bears on abide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// As it should be.
    Ok,
    /// Not there, and not needed.
    Absent,
    /// Could not be found out.
    Unknown,
    /// Works, but something could be lost that need not be.
    Warning,
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, e.g. `git`, `linger`, `agent claude`.
    pub subject: String,
    pub grade: Grade,
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
    /// Who is logged in, and what their systemd can do for them.
    pub login: Login,
}

impl Machine {
    /// The machine we are on.
    pub fn here() -> Self {
        Self { path: std::env::var_os(vars::PATH).unwrap_or_default(), login: Login::here() }
    }

    /// The program called `name`, looked up on this machine's path.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        std::env::split_paths(&self.path)
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join(name))
            .find(|p| is_program(p))
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// How the operator wants instances on the host to be placed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wishes {
    /// The kind of unit.
    pub unit: UnitMode,
    pub linger: LingerConsent,
    /// What holds the sessions.
    pub substrate: Substrate,
    /// When sessions keep the machine from going to sleep.
    pub keep_awake: KeepAwake,
}

/// Looks at everything, side by side.
pub fn examine(machine: &Machine, wishes: Wishes) -> Vec<Finding> {
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
        found.push(scope.spawn(move || keep_awake(machine, wishes)));
        found.extend(AGENTS.iter().map(|name| scope.spawn(move || agent(machine, name))));
        let mut facts = machine.login.rehearse();
        let policy = match facts.linger {
            Linger::On => LingerPolicy::Unknown,
            Linger::Off => machine.login.linger_policy(),
        };
        if policy == LingerPolicy::Refuses {
            facts.linger_refused = Some("the policy of this machine does not allow it".to_owned());
        }
        let mut findings = vec![manager(&facts), linger(&facts), logout(wishes, &facts, policy)];
        findings.extend(found.into_iter().filter_map(|probe| probe.join().ok()));
        findings
    })
}

fn manager(facts: &PlacementFacts) -> Finding {
    let subject = "systemd user manager";
    match &facts.manager_fault {
        _ if !facts.systemd => Finding::new(subject, Grade::Absent, "this machine does not use systemd"),
        None => Finding::new(subject, Grade::Ok, "answers"),
        Some(fault) => {
            let grade = match fault {
                ManagerFault::Silent(_) | ManagerFault::NoTool(_) => Grade::Unknown,
                ManagerFault::Absent(_) | ManagerFault::Fails(_) => Grade::Warning,
            };
            Finding::new(subject, grade, fault.reason()).advise(fault.remedy())
        }
    }
}

fn linger(facts: &PlacementFacts) -> Finding {
    let subject = "linger";
    match facts.linger {
        _ if !facts.systemd => Finding::new(subject, Grade::Absent, "needs systemd"),
        Linger::On => Finding::new(subject, Grade::Ok, "on: your units survive your logout"),
        Linger::Off => {
            let off = "off: the user manager stops when you log out";
            Finding::new(subject, Grade::Warning, off).advise(placement::remedy(facts))
        }
    }
}

/// What the next logout does to a session that would be started now.
fn logout(wishes: Wishes, facts: &PlacementFacts, policy: LingerPolicy) -> Finding {
    let decided = placement::decide(wishes.unit, facts, wishes.linger);
    let reason = &decided.reason;
    let found = |grade, detail: String| Finding::new("logout", grade, detail);
    let fate = match decided.decision {
        Placement::Unit => {
            let detail = match wishes.substrate {
                Substrate::Capsule => "sessions survive it, each instance in its own user unit",
                Substrate::Tmux => "sessions survive it, all in the user unit of the tmux server",
            };
            return found(Grade::Ok, format!("{detail}: {reason}"));
        }
        Placement::EnableLinger => {
            let detail = "sessions survive it: the next start turns linger on";
            return match policy {
                LingerPolicy::Allows | LingerPolicy::Refuses => found(Grade::Ok, detail.to_owned()),
                LingerPolicy::Unknown => {
                    found(Grade::Unknown, format!("{detail}, if the policy of this machine allows it"))
                        .advise(placement::remedy(facts))
                }
            };
        }
        Placement::Plain(fate) => fate,
    };
    let remedy = match wishes.unit {
        UnitMode::Off => "`abide config set unit auto`".to_owned(),
        UnitMode::Auto | UnitMode::Scope | UnitMode::Service => placement::remedy(facts),
    };
    let Some(prospect) = placement::prospect(facts, "a session that is started here") else {
        return match facts.systemd {
            false => found(Grade::Absent, "sessions are plain daemons and survive it".to_owned()),
            true => found(Grade::Ok, "sessions started from here survive it".to_owned()),
        };
    };
    let grade = match fate {
        Fate::Survives if wishes.unit == UnitMode::Off && matches!(facts.home, Home::Login { .. }) => {
            return found(Grade::Ok, "sessions are plain daemons, and logind does not end them".to_owned());
        }
        Fate::Survives | Fate::Lost | Fate::EndsWithService => Grade::Warning,
        Fate::Unknown => Grade::Unknown,
    };
    found(grade, format!("{prospect}: {reason}")).advise(remedy)
}

/// Whether sessions can keep the machine from going to sleep, found out by asking for it.
fn keep_awake(machine: &Machine, wishes: Wishes) -> Finding {
    let found = |grade, detail: String| Finding::new("keep awake", grade, detail);
    let when = wishes.keep_awake.meaning();
    let absent = |why: &str| found(Grade::Absent, format!("this machine may go to sleep {when}: {why}"));
    if wishes.keep_awake == KeepAwake::Off {
        return found(Grade::Absent, "off".to_owned());
    }
    if wishes.substrate == Substrate::Tmux {
        return absent("sessions in tmux are not watched");
    }
    let Some(path) = machine.find("systemd-inhibit") else { return absent("systemd-inhibit is not on PATH") };
    let ask = |what: &str| {
        let words = [&format!("--what={what}"), "--mode=block", "--who=abide", "--why=a trial", "true"];
        run::succeed(&mut run::command(&path, words), PATIENCE)
    };
    match (ask("sleep:idle"), ask("idle")) {
        (Ok(_), _) => found(Grade::Ok, format!("this machine does not go to sleep {when}")),
        (Err(_), Ok(_)) => found(
            Grade::Ok,
            format!(
                "this machine does not go to sleep by itself {when}; the policy allows no more than that"
            ),
        ),
        (Err(error), Err(_)) => absent(&error.to_string()),
    }
}

/// What the boot service does for sessions on `machine`, as it stands.
pub fn boot_service(machine: &Machine, state: ServiceState) -> Finding {
    let found = |grade, detail: &str| Finding::new("boot service", grade, detail);
    let facts = machine.login.look();
    let by_hand = "after a reboot, `abide resume --all` brings instances back";
    match state {
        ServiceState::Absent => found(Grade::Absent, "not installed")
            .advise(format!("{by_hand}; `abide service install` runs it automatically")),
        ServiceState::Failed(status) => {
            let advice = "`abide resume --all` tries again and shows why; `journalctl --user -u abide-resume` has the log";
            found(Grade::Warning, &format!("its last run did not bring everything back (status {status})"))
                .advise(advice)
        }
        ServiceState::Disabled => {
            found(Grade::Warning, "installed, but not enabled").advise("`abide service install` enables it")
        }
        ServiceState::Unknown(why) => {
            found(Grade::Unknown, &format!("installed; its state is unknown: {why}"))
        }
        ServiceState::Waiting | ServiceState::Succeeded if facts.linger == Linger::Off => {
            let detail = "installed, but linger is off: your last logout ends what it resumes";
            found(Grade::Warning, detail).advise(placement::remedy(&facts))
        }
        ServiceState::Waiting => found(Grade::Ok, "installed; it runs when the machine starts"),
        ServiceState::Succeeded => found(Grade::Ok, "installed; its last run brought everything back"),
    }
}

/// What is wrong with the directory of `store`; `None` where nothing is. One that is not there yet is made in the nearest
/// directory above it that is.
pub fn home_fault(store: &Store) -> Option<Finding> {
    let home = store.layout().home();
    let nearest = home.ancestors().find(|above| above.symlink_metadata().is_ok())?;
    let fault =
        |what: String| Finding::new("store", Grade::Problem, format!("{}: {what}", nearest.display()));
    let mode = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    if let Err(refused) = rustix::fs::access(nearest, mode) {
        let why = std::io::Error::from(refused).to_string();
        return Some(
            fault(why).advise(
                "nothing can be started; make it writable, or set ABIDE_HOME to a writable directory",
            ),
        );
    }
    if let Err(refused) = write_nowhere(nearest) {
        return Some(fault(refused.to_string()).advise(
            "nothing can be started or recorded; free some space there, then run `abide doctor` again",
        ));
    }
    store.check_home().err().map(|error| Finding::new("store", Grade::Problem, error.to_string()))
}

/// Writes a page on the file system of `dir`, into a file that has no name; an error only where there is no room for it.
fn write_nowhere(dir: &Path) -> std::io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    let full = |error: std::io::Error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Err(error),
        // Not every file system has files without a name.
        _ => Ok(()),
    };
    match rustix::fs::open(dir, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR) {
        Ok(file) => std::fs::File::from(file).write_all(&[0; 4096]).or_else(full),
        Err(error) => full(error.into()),
    }
}

fn program(machine: &Machine, name: &str, args: &[&str], without: &str) -> Finding {
    match machine.find(name) {
        None => Finding::new(name, Grade::Absent, "not on PATH").advise(without),
        Some(path) => match version(&path, args) {
            Ok(version) => Finding::new(name, Grade::Ok, version),
            Err(e) => Finding::new(name, Grade::Problem, e.to_string())
                .advise(format!("run it by hand: {}", path.display())),
        },
    }
}

fn docker(machine: &Machine) -> Finding {
    let Some(path) = machine.find("docker") else {
        return Finding::new("docker", Grade::Absent, "not on PATH")
            .advise("needed for instances in containers only");
    };
    let asked =
        run::succeed(&mut run::command(path, ["version", "--format", "{{.Server.Version}}"]), PATIENCE);
    match asked {
        Ok(out) if leaks_names(&out.text()) => {
            let detail = format!(
                "engine {}: containers in internal networks can send data out in look-ups of names \
                 (CVE-2024-29018); abide prevents that in its own",
                out.text()
            );
            Finding::new("docker", Grade::Warning, detail).advise("upgrade it to 23.0.11, 25.0.5 or newer")
        }
        Ok(out) => Finding::new("docker", Grade::Ok, format!("engine {}", out.text())),
        Err(e) => Finding::new(
            "docker",
            Grade::Absent,
            format!("the client is installed, but no engine answers ({e})"),
        )
        .advise("needed for instances in containers only"),
    }
}

/// Whether an engine of this version looks names up outside for containers in a network without a way out.
fn leaks_names(version: &str) -> bool {
    let numbers: Vec<u32> = version.split(['.', '-', '+', '~']).map_while(|word| word.parse().ok()).collect();
    match numbers[..] {
        [23, minor, patch, ..] => (minor, patch) < (0, 11),
        [25, minor, patch, ..] => (minor, patch) < (0, 5),
        [major, ..] => major < 26,
        [] => false,
    }
}

fn agent(machine: &Machine, name: &str) -> Finding {
    let subject = format!("agent {name}");
    match machine.find(name) {
        None => Finding::new(subject, Grade::Absent, "not on PATH"),
        Some(path) => match version(&path, &["--version"]) {
            Ok(version) => Finding::new(subject, Grade::Ok, format!("{version} ({})", path.display())),
            Err(e) => Finding::new(subject, Grade::Problem, e.to_string())
                .advise(format!("run it by hand: {} --version", path.display())),
        },
    }
}

fn version(path: &Path, args: &[&str]) -> Result<String, RunError> {
    let out = run::succeed(&mut run::command(path, args), PATIENCE)?;
    Ok(out.text().lines().next().unwrap_or_default().trim().to_owned())
}
