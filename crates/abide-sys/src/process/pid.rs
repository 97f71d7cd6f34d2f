//! Numbers of processes, to and from what the system calls take.

use std::io;
use std::process::Child;

use abide_model::Pid;
use rustix::process::{Signal, kill_process, kill_process_group};

/// The number of this process.
pub fn own_pid() -> Pid {
    Pid(std::process::id())
}

pub fn child_pid(child: &Child) -> Pid {
    Pid(child.id())
}

pub fn from_rustix(pid: rustix::process::Pid) -> Pid {
    Pid(pid.as_raw_pid().unsigned_abs())
}

/// `None` for 0, by which the system calls mean the caller's own group.
pub fn to_rustix(pid: Pid) -> Option<rustix::process::Pid> {
    i32::try_from(pid.0).ok().and_then(rustix::process::Pid::from_raw)
}

/// Sends `signal` to the process that has the number now. [`super::Pidfd`] is for a process that may have ended.
pub fn send_signal(pid: Pid, signal: Signal) -> io::Result<()> {
    Ok(kill_process(to_rustix(pid).ok_or(io::ErrorKind::NotFound)?, signal)?)
}

/// Sends `signal` to the process group that `leader` leads.
pub fn send_signal_to_group(leader: Pid, signal: Signal) -> io::Result<()> {
    Ok(kill_process_group(to_rustix(leader).ok_or(io::ErrorKind::NotFound)?, signal)?)
}
