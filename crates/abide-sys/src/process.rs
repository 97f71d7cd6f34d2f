//! Who a process is, so that a later one with the same number is not taken for it, and whom it belongs to.

mod pid;
mod signal;
mod stat;

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use abide_model::{Liveness, Pid, ProcessIdentity};
use rustix::io::Errno;
use rustix::process::test_kill_process;

use crate::host::boot_id;

pub use pid::{child_pid, from_rustix, own_pid, send_signal, send_signal_to_group, to_rustix};
pub use signal::{Pidfd, QueuedSignal};
pub use stat::{
    Stat, children, command_line, descendants, environment, has_in_environment, ignores, in_environment,
    tree, variable,
};

/// This process. Where `/proc` cannot be read the start time is 0, which [`alive`] answers with "cannot tell".
pub fn this() -> ProcessIdentity {
    let pid = own_pid();
    identity(pid).unwrap_or_else(|| ProcessIdentity { pid, start: 0, boot: boot_id().to_owned() })
}

/// The process that has the number `pid` now, if there is one that can be seen.
pub fn identity(pid: Pid) -> Option<ProcessIdentity> {
    match look(pid) {
        ProcessState::Running { start } => Some(ProcessIdentity { pid, start, boot: boot_id().to_owned() }),
        ProcessState::Ended | ProcessState::Unclear => None,
    }
}

/// When the process that has the number `pid` now was started, by the wall clock; `None` where that cannot be found out.
pub fn started(pid: Pid) -> Option<SystemTime> {
    let ticks = Stat::read(pid).ok().filter(|stat| !stat.is_dead())?.start;
    let booted = std::fs::read_to_string("/proc/stat").ok()?;
    let booted: u64 = booted.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let rate = rustix::param::clock_ticks_per_second();
    Some(UNIX_EPOCH + Duration::from_secs(booted) + Duration::from_millis(ticks * 1000 / rate.max(1)))
}

/// Whether that very process still runs. A zombie does not run.
pub fn alive(process: &ProcessIdentity) -> Liveness {
    if process.boot.is_empty() || boot_id().is_empty() || process.start == 0 {
        return Liveness::Unknown;
    }
    if process.boot != boot_id() {
        return Liveness::Dead;
    }
    match look(process.pid) {
        ProcessState::Running { start } if start == process.start => Liveness::Alive,
        ProcessState::Running { .. } | ProcessState::Ended => Liveness::Dead,
        ProcessState::Unclear => Liveness::Unknown,
    }
}

enum ProcessState {
    Running { start: u64 },
    Ended,
    Unclear,
}

fn look(pid: Pid) -> ProcessState {
    match Stat::read(pid) {
        Ok(stat) if stat.is_dead() => ProcessState::Ended,
        Ok(stat) => ProcessState::Running { start: stat.start },
        Err(err) if err.kind() == io::ErrorKind::InvalidData => ProcessState::Unclear,
        // A /proc that hides other users' processes, or that is not there, says "no such file" about the living too.
        Err(_) => match to_rustix(pid).map(test_kill_process) {
            Some(Err(Errno::SRCH)) | None => ProcessState::Ended,
            Some(_) => ProcessState::Unclear,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_its_number_alone_is_not_enough() {
        let me = this();
        assert_eq!(alive(&me), Liveness::Alive);
        assert_eq!(
            alive(&ProcessIdentity { start: me.start + 1, ..me.clone() }),
            Liveness::Dead,
            "a reused pid"
        );
        assert_eq!(
            alive(&ProcessIdentity { boot: "other".into(), ..me.clone() }),
            Liveness::Dead,
            "another boot"
        );
        assert_eq!(
            alive(&ProcessIdentity { start: 0, ..me.clone() }),
            Liveness::Unknown,
            "nothing to tell it by"
        );
        assert_eq!(
            alive(&ProcessIdentity { boot: String::new(), ..me }),
            Liveness::Unknown,
            "nothing to tell it by"
        );
    }

    #[test]
    fn a_process_that_ended_is_dead_before_and_after_it_is_reaped() {
        let mut sleeper = std::process::Command::new("sh");
        let mut child = sleeper.args(["-c", "read x"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
        let it = identity(child_pid(&child)).unwrap();
        assert_eq!(alive(&it), Liveness::Alive);
        child.kill().unwrap();
        // Waits for the end without reaping, so that the zombie can be looked at.
        let pid = rustix::process::Pid::from_child(&child);
        let ended = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), ended).unwrap();
        assert_eq!(alive(&it), Liveness::Dead, "a zombie was taken for a process");
        child.wait().unwrap();
        assert_eq!(alive(&it), Liveness::Dead);
        assert!(identity(it.pid).is_none_or(|other| other != it));
    }
}
