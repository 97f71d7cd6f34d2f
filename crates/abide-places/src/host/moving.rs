//! Moving processes into a scope of the user manager.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use abide_model::placement::{Linger, ManagerFault};
use abide_model::{InstanceId, Pid};
use abide_sys::process::child_pid;
use abide_sys::run::RunError;

use crate::host::scope::{ScopeOutcome, TO_HAPPEN};
use crate::host::{Login, bus, cgroup};

/// How often a manager that has not moved the processes yet is asked whether it still tries.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How often it is tried to move processes that start others meanwhile.
const ATTEMPTS: usize = 5;

/// A scope that is to be made.
pub(super) struct NewScope {
    name: String,
    description: String,
}

impl NewScope {
    /// The scope of an instance.
    pub fn of(id: InstanceId) -> Self {
        Self { name: format!("abide-{id}"), description: format!("abide {}", id.display_name()) }
    }

    /// The scope of the tmux server. It serves all instances, so it is named after none.
    pub fn of_tmux() -> Self {
        Self { name: "abide-tmux".to_owned(), description: "the tmux server of abide".to_owned() }
    }
}

/// Moves the instance `id`, which runs, into a unit of its own. `processes` gives all of it at the time of the call, the
/// supervisor first; it is called again until nothing stays behind.
pub fn move_instance(id: InstanceId, processes: &dyn Fn() -> Vec<Pid>) -> Result<ScopeOutcome, String> {
    move_running(&NewScope::of(id), processes)
}

/// Moves what outlives the instance `id` out of its unit, into one of its own.
pub fn move_spared(id: InstanceId, processes: &dyn Fn() -> Vec<Pid>) -> Result<ScopeOutcome, String> {
    let description = format!("daemons that outlive abide {}", id.display_name());
    move_running(&NewScope { name: format!("abide-spared-{id}"), description }, processes)
}

/// Moves a tmux server that runs into a unit, with everything in its panes.
pub fn move_server(processes: &dyn Fn() -> Vec<Pid>) -> Result<ScopeOutcome, String> {
    move_running(&NewScope::of_tmux(), processes)
}

fn move_running(scope: &NewScope, processes: &dyn Fn() -> Vec<Pid>) -> Result<ScopeOutcome, String> {
    let login = Login::here();
    // A process that was listed may end before it could be moved, which fails the whole request.
    let mut unit = move_into_unit(&login, &processes(), scope);
    for _ in 1..ATTEMPTS {
        if matches!(unit, Err(ManagerFault::Fails(_))) {
            unit = move_into_unit(&login, &processes(), scope);
        }
    }
    let unit = unit.map_err(|fault| fault.why().to_owned())?;
    let is_outside = |pid: &Pid| cgroup::of(*pid).is_some_and(|path| !cgroup::is_in(&path, &unit));
    let mut fault = None;
    for _ in 0..ATTEMPTS {
        let outside: Vec<Pid> = processes().into_iter().filter(is_outside).collect();
        if outside.is_empty() {
            return Ok(ScopeOutcome::Enabled { unit });
        }
        fault = bus::attach(&login, &unit, &outside).err();
    }
    let why = fault.map_or_else(|| "they start new processes too fast".to_owned(), |error| error.to_string());
    Err(format!("some of its processes could not be moved into {unit}: {why}"))
}

/// Asks the user manager as a start does. Where linger is on, a start has it move a supervisor; so it is asked to move a
/// process that does nothing.
pub(super) fn rehearse(login: &Login, linger: Linger) -> Result<(), ManagerFault> {
    bus::ask_manager(login).map_err(fault_of)?;
    if linger == Linger::Off {
        return Ok(());
    }
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| ManagerFault::NoTool(format!("cat: {error}")))?;
    let scope = NewScope {
        name: format!("abide-doctor-{}", child.id()),
        description: "a trial of `abide doctor`".to_owned(),
    };
    let moved = move_into_unit(login, &[child_pid(&child)], &scope);
    // It ends when its input does; killed as well, because it may have been stopped meanwhile.
    drop(child.kill());
    drop(child.wait());
    moved.map(drop)
}

fn fault_of(error: RunError) -> ManagerFault {
    let why = error.to_string();
    match error {
        RunError::TimedOut { .. } => ManagerFault::Silent(why),
        RunError::NotFound { .. } => ManagerFault::NoTool(why),
        RunError::Io { .. } | RunError::Failed { .. } => ManagerFault::Fails(why),
    }
}

/// Makes a scope of the processes and gives its name.
pub(super) fn move_into_unit(login: &Login, pids: &[Pid], scope: &NewScope) -> Result<String, ManagerFault> {
    let (first, base) = (pids.first().copied().unwrap_or_default(), &scope.name);
    let name = format!("{base}.scope");
    match make_scope(login, pids, scope, &name) {
        // The scope of an earlier run is still there because something that left the capsule still runs in it. It is
        // not this run's to end, and a scope takes no further processes.
        Err(fault) if fault.why().contains("already loaded") => {
            let name = format!("{base}-{first}.scope");
            make_scope(login, pids, scope, &name).map(|()| name)
        }
        other => other.map(|()| name),
    }
}

fn make_scope(login: &Login, pids: &[Pid], scope: &NewScope, name: &str) -> Result<(), ManagerFault> {
    let asked = bus::start_scope(login, name, &scope.description, pids);
    let is_outside = |pid: &Pid| cgroup::of(*pid).is_some_and(|path| !cgroup::is_in(&path, name));
    let first = || pids.first().and_then(|pid| cgroup::of(*pid));
    let are_there = || first().is_some_and(|path| cgroup::is_in(&path, name)) && !pids.iter().any(is_outside);
    // Only the kernel's word counts, in both directions: a job that was accepted may fail, and an answer may get lost.
    let begun = Instant::now();
    let mut ask_at = begun + ASK_AGAIN;
    loop {
        match &asked {
            _ if are_there() => return Ok(()),
            Err(_) => break,
            Ok(()) if begun.elapsed() >= TO_HAPPEN => break,
            Ok(()) => {}
        }
        if Instant::now() >= ask_at {
            // A scope whose job failed is forgotten at once. Its processes may have been moved just before this look.
            if bus::knows_unit(login, name) == bus::UnitKnown::No && !are_there() {
                let why = format!("systemd could not move it into {name}");
                return Err(ManagerFault::Fails(why));
            }
            ask_at = Instant::now() + ASK_AGAIN;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Err(match asked {
        Err(error) => fault_of(error),
        Ok(()) => ManagerFault::Silent(format!(
            "systemd did not move it into {name} within {} s",
            TO_HAPPEN.as_secs()
        )),
    })
}
