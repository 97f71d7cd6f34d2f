//! Whether an instance is alive: one question with three answers.
//!
//! What holds an instance's sessions holds a lock for as long as it lives, and the kernel releases that lock however the
//! holder ends. A process number says nothing to a reader in another PID namespace, and a record may be late or missing,
//! so neither decides. Where the lock is free it must also be certain that the kernel that was asked is the one that
//! would hold it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::decide::Decided;

/// Whether anything of a run is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Liveness {
    Alive,
    /// Its supervisor is certainly gone.
    Dead,
    /// It cannot be determined from here: nothing may be changed.
    Unknown,
}

impl fmt::Display for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Alive => "alive",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
        })
    }
}

/// The machine, its boot and the PID namespace that a start was made in. What cannot be read is empty, or 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostIdentity {
    #[serde(default)]
    pub machine: String,
    /// The id of this boot of the kernel.
    #[serde(default)]
    pub boot: String,
    /// The number of the PID namespace: process numbers mean something only within one.
    #[serde(default)]
    pub pid_namespace: u64,
}

impl HostIdentity {
    /// Whether process numbers that were recorded on `other` mean the same here.
    pub fn shares_processes_with(&self, other: &Self) -> bool {
        self.is_same_boot(other) && self.pid_namespace == other.pid_namespace
    }

    /// Whether both are known to be one boot of one kernel.
    pub fn is_same_boot(&self, other: &Self) -> bool {
        !self.boot.is_empty() && self.boot == other.boot
    }

    fn is_same_machine(&self, other: &Self) -> bool {
        !self.machine.is_empty() && self.machine == other.machine
    }
}

/// The lock that the supervisor of an instance holds for as long as it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SupervisorLock {
    /// A process holds it.
    Held,
    /// No process of this kernel holds it.
    Free,
    /// It could not be tested.
    Unreadable,
}

impl SupervisorLock {
    /// The lock of either of two supervisors that one instance may have.
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Held, _) | (_, Self::Held) => Self::Held,
            (Self::Unreadable, _) | (_, Self::Unreadable) => Self::Unreadable,
            (Self::Free, Self::Free) => Self::Free,
        }
    }
}

/// The file system that abide's home is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeFileSystem {
    /// One that only one kernel mounts at a time.
    Local,
    /// One that several machines may share, or that is not known.
    PerhapsShared,
}

/// Whether the end of a run is on record. Its supervisor writes that when every process of it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// It is.
    Recorded,
    /// It is not, so something may have outlived the supervisor.
    Unrecorded,
}

/// Whether processes that run where a start was made can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessSight {
    /// All of them.
    Visible,
    /// They are in a PID namespace that cannot be looked into.
    Hidden,
}

/// What is known when it is asked whether a run is alive.
#[derive(Debug, Clone, Copy)]
pub struct LivenessFacts<'a> {
    /// The lock of its supervisor.
    pub lock: SupervisorLock,
    /// Where it was started, as its launcher wrote it down.
    pub started_on: Option<&'a HostIdentity>,
    /// Where the question is asked.
    pub here: &'a HostIdentity,
    /// Where abide's home is.
    pub home: HomeFileSystem,
    /// Whether its end is on record.
    pub end: RunEnd,
    /// Whether what it may have left running could be seen.
    pub sight: ProcessSight,
}

/// Decides whether a run is alive.
pub fn liveness(facts: &LivenessFacts<'_>) -> Decided<Liveness> {
    use Liveness::{Alive, Dead, Unknown};
    match facts.lock {
        SupervisorLock::Held => return Decided::new(Alive, "its supervisor holds its lock"),
        SupervisorLock::Unreadable => {
            return Decided::new(Unknown, "the lock of its supervisor cannot be tested");
        }
        SupervisorLock::Free => {}
    }
    let Some(start) = facts.started_on else {
        return Decided::new(Unknown, "where it was started was not recorded");
    };
    if start.is_same_boot(facts.here) {
        return match (facts.end, facts.sight) {
            (RunEnd::Unrecorded, ProcessSight::Hidden) => Decided::new(
                Unknown,
                "its supervisor died in another PID namespace, and what may have outlived it there cannot be seen from here",
            ),
            _ => Decided::new(Dead, "its supervisor died"),
        };
    }
    if !start.is_same_machine(facts.here) {
        return Decided::new(Unknown, "it was started on another machine, which may still run it");
    }
    if start.boot.is_empty() || facts.here.boot.is_empty() {
        return Decided::new(Unknown, "the kernel does not say which boot this is");
    }
    match facts.home {
        HomeFileSystem::Local => Decided::new(Dead, "the machine was restarted"),
        HomeFileSystem::PerhapsShared => Decided::new(
            Unknown,
            "the machine was restarted, but its home may be shared with another machine",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(machine: &str, boot: &str, pid_namespace: u64) -> HostIdentity {
        HostIdentity { machine: machine.into(), boot: boot.into(), pid_namespace }
    }

    fn facts<'a>(
        lock: SupervisorLock,
        started_on: Option<&'a HostIdentity>,
        here: &'a HostIdentity,
        home: HomeFileSystem,
    ) -> LivenessFacts<'a> {
        let (end, sight) = (RunEnd::Unrecorded, ProcessSight::Visible);
        LivenessFacts { lock, started_on, here, home, end, sight }
    }

    #[test]
    fn what_may_have_outlived_a_supervisor_out_of_sight_is_dead_only_once_its_end_is_on_record() {
        use ProcessSight::{Hidden, Visible};
        use RunEnd::{Recorded, Unrecorded};
        let (here, start) = (host("m", "b", 1), host("m", "b", 2));
        for (end, sight, expected) in [
            (Recorded, Visible, Liveness::Dead),
            (Recorded, Hidden, Liveness::Dead),
            (Unrecorded, Visible, Liveness::Dead),
            (Unrecorded, Hidden, Liveness::Unknown),
        ] {
            let free = facts(SupervisorLock::Free, Some(&start), &here, HomeFileSystem::Local);
            let decided = liveness(&LivenessFacts { end, sight, ..free });
            assert_eq!(decided.decision, expected, "{end:?}, {sight:?}: {}", decided.reason);
            let held = LivenessFacts { lock: SupervisorLock::Held, end, sight, ..free };
            assert_eq!(liveness(&held).decision, Liveness::Alive);
        }
        // No process outlives its kernel.
        let before = host("m", "a", 2);
        let rebooted = facts(SupervisorLock::Free, Some(&before), &here, HomeFileSystem::Local);
        assert_eq!(liveness(&LivenessFacts { sight: Hidden, ..rebooted }).decision, Liveness::Dead);
    }

    #[test]
    fn the_lock_decides_and_a_free_one_only_where_its_kernel_was_asked() {
        use HomeFileSystem::{Local, PerhapsShared};
        use Liveness::{Alive, Dead, Unknown};
        use SupervisorLock::{Free, Held, Unreadable};
        let here = host("m", "b", 1);
        let (same, namespace) = (Some(host("m", "b", 1)), Some(host("m", "b", 2)));
        let (rebooted, elsewhere) = (Some(host("m", "a", 1)), Some(host("n", "a", 1)));
        let (no_machine, no_boot) = (Some(host("", "a", 1)), Some(host("m", "", 1)));
        // An image may have a machine id of its own, or none; the kernel is the same.
        let (container, bare) = (Some(host("n", "b", 2)), Some(host("", "b", 2)));
        let everywhere =
            [None, same.clone(), namespace.clone(), rebooted.clone(), elsewhere.clone(), no_machine.clone()];
        for start in &everywhere {
            for home in [Local, PerhapsShared] {
                for (lock, expected) in [(Held, Alive), (Unreadable, Unknown)] {
                    let facts = facts(lock, start.as_ref(), &here, home);
                    assert_eq!(liveness(&facts).decision, expected, "{facts:?}");
                }
            }
        }
        for (start, on_local, on_shared) in [
            (same, Dead, Dead),
            (namespace, Dead, Dead),
            (container, Dead, Dead),
            (bare, Dead, Dead),
            (rebooted, Dead, Unknown),
            (elsewhere, Unknown, Unknown),
            (no_machine, Unknown, Unknown),
            (no_boot, Unknown, Unknown),
            (None, Unknown, Unknown),
        ] {
            for (home, expected) in [(Local, on_local), (PerhapsShared, on_shared)] {
                let facts = facts(Free, start.as_ref(), &here, home);
                let decided = liveness(&facts);
                assert_eq!(decided.decision, expected, "{facts:?}: {}", decided.reason);
            }
        }
    }

    #[test]
    fn a_kernel_that_does_not_say_which_boot_it_is_proves_nothing() {
        let (here, start) = (host("m", "", 1), host("m", "", 1));
        let facts = facts(SupervisorLock::Free, Some(&start), &here, HomeFileSystem::Local);
        assert_eq!(liveness(&facts).decision, Liveness::Unknown);
    }

    #[test]
    fn one_held_lock_of_two_is_a_sign_of_life() {
        use SupervisorLock::{Free, Held, Unreadable};
        for other in [Held, Free, Unreadable] {
            assert_eq!((Held.or(other), other.or(Held)), (Held, Held));
        }
        assert_eq!((Free.or(Unreadable), Free.or(Free)), (Unreadable, Free));
    }
}
