//! Daemons: what was first started in a session, has left it, and would outlive it.
//!
//! A tmux server, an ssh agent, an editor's server. They end with their instance, unless the operator spares them: then they
//! are written down, and whatever ends processes of the instance leaves them and what is below them alone.

use std::{fmt, io};

use abide_model::{Liveness, Pid, ProcessIdentity};
use abide_sys::atomic::{self, Durability};
use abide_sys::process::{self, Stat, command_line, descendants};
use abide_sys::untrusted;
use abide_wire::capsule_part::CapsulePart;
use abide_wire::instance_dir::InstanceDir;

use crate::holds_others;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Daemon {
    pub process: ProcessIdentity,
    /// The name of its program.
    pub name: String,
    /// How many processes it has started that still run.
    pub below: usize,
}

impl fmt::Display for Daemon {
    /// How it is named to the operator: `tmux: server (4711, with 3 processes below it)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, pid) = (&self.name, self.process.pid);
        match self.below {
            0 => write!(f, "{name} ({pid})"),
            1 => write!(f, "{name} ({pid}, with a process below it)"),
            n => write!(f, "{name} ({pid}, with {n} processes below it)"),
        }
    }
}

/// The daemons below `holder`, which is the parent of sessions and of whatever left them.
///
/// What has left its session is a child of the holder and has no terminal; a session has one. Something that merely runs
/// apart from its terminal, as the tools of some agents do, is still below its session.
pub fn below(holder: Pid) -> Vec<Daemon> {
    let all = descendants(holder, |pid| holds_others(pid) || is_ours(pid));
    let left = all.iter().filter(|process| process.parent == holder && process.foreground.is_none());
    let found = left.filter_map(|process| {
        let below = descendants(process.pid, holds_others).len();
        let identity = process::identity(process.pid)?;
        Some(Daemon { process: identity, name: process.name(), below })
    });
    found.collect()
}

/// Whether a process is part of the capsule itself.
fn is_ours(pid: Pid) -> bool {
    CapsulePart::is_any(&command_line(pid))
}

/// Writes down that `processes` are spared, together with those that were spared before.
pub fn spare(instance_dir: &InstanceDir, processes: &[ProcessIdentity]) -> io::Result<()> {
    let mut all = spared(instance_dir);
    all.retain(|process| process::alive(process) != Liveness::Dead && !processes.contains(process));
    all.extend_from_slice(processes);
    atomic::write_path(&instance_dir.spared(), &serde_json::to_vec(&all)?, 0o600, Durability::Synced)
}

/// What was spared of the instance, the dead among it.
pub fn spared(instance_dir: &InstanceDir) -> Vec<ProcessIdentity> {
    let text = untrusted::read(&instance_dir.spared()).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Whether `process` is one of `spared`.
pub fn is_among(spared: &[ProcessIdentity], process: &Stat) -> bool {
    let is_it = |one: &ProcessIdentity| one.pid == process.pid && one.start == process.start;
    spared.iter().any(is_it)
}

/// Everything that descends from this process, without `except`, what is `spared`, and what is below those.
pub(crate) fn own_descendants(spared: &[ProcessIdentity], except: impl Fn(Pid) -> bool) -> Vec<Stat> {
    let is_spared =
        |pid: Pid| !spared.is_empty() && Stat::read(pid).is_ok_and(|stat| is_among(spared, &stat));
    descendants(process::own_pid(), |pid| except(pid) || is_spared(pid))
}
