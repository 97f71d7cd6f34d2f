//! Processes as `/proc` shows them: who descends from whom, and whose session they are of.

use std::fmt;
use std::time::Duration;

use abide_keeper::{LaunchError, daemons, holds_others};
use abide_model::liveness::SupervisorLock;
use abide_model::{InstanceId, Pid, vars};
use abide_sys::clock::eventually;
use abide_sys::process::{Stat, command_line, in_environment, own_pid, send_signal};
use abide_wire::capsule_part::CapsulePart;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::supervisor_lock::supervisor_lock;
use rustix::process::Signal;
use serde::Serialize;

use crate::error::EngineError;

/// How long what a dead capsule left may take to end when asked.
const GRACE: Duration = Duration::from_secs(2);

/// `root` and what descends from it, generation by generation.
pub(crate) fn generations(root: Pid) -> Vec<Vec<Pid>> {
    let family: Vec<Stat> = Stat::all().collect();
    let mut generations = vec![vec![root]];
    while let Some(last) = generations.last().filter(|last| !last.is_empty()) {
        let of = |process: &Stat| last.contains(&process.parent).then_some(process.pid);
        let next = family.iter().filter_map(of).collect();
        generations.push(next);
    }
    generations
}

/// The instance in a session of which process `pid` was started, as its environment says. What is abide itself, such as the
/// capsule of an instance that was started from inside, is of none.
fn instance_of(pid: Pid) -> Option<InstanceId> {
    let named = in_environment(pid, vars::ABIDE_INSTANCE)?;
    let is_abide = CapsulePart::of(&command_line(pid)).is_some();
    named.parse().ok().filter(|_| !is_abide && !holds_others(pid))
}

/// A process that has outlived the capsule of its instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leftover {
    pub pid: Pid,
    /// The name of its program.
    pub name: String,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.pid)
    }
}

/// The processes that can be seen of each instance's sessions, whether or not it runs; the dead and this one left out.
#[derive(Debug)]
pub struct SessionProcesses {
    all: Vec<Stat>,
    of: Vec<(InstanceId, Stat)>,
}

impl SessionProcesses {
    pub fn look() -> Self {
        let own = own_pid();
        let all: Vec<Stat> = Stat::all().collect();
        let living = all.iter().filter(|process| process.pid != own && !process.is_dead());
        let of = living.filter_map(|process| Some((instance_of(process.pid)?, *process))).collect();
        Self { all, of }
    }

    /// The instances that any of them is of.
    pub fn instances(&self) -> impl Iterator<Item = InstanceId> {
        self.of.iter().map(|(instance, _)| *instance)
    }

    /// What is left of the sessions of `instance`, whose keeper is dead. What the operator spared is not among it, nor what
    /// that started.
    fn left_of(&self, instance: InstanceId, instance_dir: &InstanceDir) -> Vec<Stat> {
        let left = self.of.iter().filter(|(of, _)| *of == instance).map(|(_, process)| *process);
        let left: Vec<Stat> = left.collect();
        if left.is_empty() {
            return left;
        }
        let spared = daemons::spared(instance_dir);
        let exempt: Vec<Pid> = self
            .all
            .iter()
            .filter(|process| daemons::is_among(&spared, process))
            .flat_map(|spared| generations(spared.pid))
            .flatten()
            .collect();
        left.into_iter().filter(|process| !exempt.contains(&process.pid)).collect()
    }

    /// The same, for people.
    pub fn leftovers(&self, instance: InstanceId, instance_dir: &InstanceDir) -> Vec<Leftover> {
        let left = self.left_of(instance, instance_dir);
        left.iter().map(|process| Leftover { pid: process.pid, name: process.name() }).collect()
    }
}

/// Ends what is left of the sessions of `instance`, whose keeper is dead. Some agents outlive their terminal; resumed
/// beside such a one, two processes would write one transcript.
///
/// Refuses while anything supervises them: whatever runs then is no leftover. Gives what it has ended.
pub(crate) fn end_leftovers(
    instance_dir: &InstanceDir,
    instance: InstanceId,
) -> Result<Vec<Leftover>, EngineError> {
    if supervisor_lock(instance_dir) != SupervisorLock::Free {
        return Err(LaunchError::AlreadyRunning.into());
    }
    let left = SessionProcesses::look().leftovers(instance, instance_dir);
    left.iter().for_each(|left| tracing::warn!(%instance, "ending what an earlier run left behind: {left}"));
    if !left.is_empty() {
        end(&left.iter().map(|left| left.pid).collect::<Vec<_>>());
    }
    Ok(left)
}

/// Ends the set-up command that `starter` runs for `instance`. No session is among what descends from a starter.
pub(crate) fn end_set_up(starter: Pid, instance: InstanceId) {
    let below = generations(starter).into_iter().skip(1).flatten();
    end(&below.filter(|pid| instance_of(*pid) == Some(instance)).collect::<Vec<_>>());
}

/// Ends processes: asked to at first.
fn end(pids: &[Pid]) {
    send(pids, Signal::TERM);
    let runs = |pid: &Pid| Stat::read(*pid).is_ok_and(|process| !process.is_dead());
    if !eventually(GRACE, || !pids.iter().any(runs)) {
        send(pids, Signal::KILL);
    }
}

fn send(pids: &[Pid], signal: Signal) {
    for pid in pids {
        // It may be gone by now, which is what is wanted of it.
        let _ = send_signal(*pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::{Command, Stdio};

    use super::*;

    /// Whether a script that is run as `sh ARGS` in a session counts as a process of that session.
    fn counts(args: [&str; 2]) -> bool {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(args[0]), "echo; read _").unwrap();
        let id: InstanceId = "k7p9m2xq".parse().unwrap();
        let mut command = Command::new("sh");
        command.args(args).current_dir(dir.path()).env(vars::ABIDE_INSTANCE, id.as_str());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Until it has spoken it may still be a copy of this process.
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let counts = instance_of(abide_sys::process::child_pid(&child)) == Some(id);
        child.kill().unwrap();
        child.wait().unwrap();
        counts
    }

    #[test]
    fn what_runs_in_a_session_counts_whatever_its_words_and_abide_itself_does_not() {
        assert!(counts(["script", "capsule"]));
        assert!(counts(["capsule", "build"]));
        assert!(!counts(["capsule", "keeper"]));
    }
}
