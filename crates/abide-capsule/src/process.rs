//! Telling one process from another that later got its number.

use std::{fs, io};

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

/// A process that can still be recognised after its pid was given to somebody else, or after a reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: i32,
    /// When it started, in clock ticks since boot, as `/proc/<pid>/stat` says.
    pub start_ticks: u64,
    /// The boot in which that number means something.
    pub boot_id: String,
}

impl ProcessIdentity {
    /// The identity of the running process `pid`.
    pub fn of(pid: i32) -> io::Result<Self> {
        let stat = Stat::read(pid)?;
        Ok(Self { pid, start_ticks: stat.start_ticks, boot_id: boot_id()? })
    }

    /// Whether this very process still runs. A zombie does not: it only waits to be reaped.
    pub fn is_alive(&self) -> io::Result<bool> {
        if boot_id()? != self.boot_id {
            return Ok(false);
        }
        match Stat::read(self.pid) {
            Ok(stat) => Ok(stat.start_ticks == self.start_ticks && !stat.is_dead()),
            Err(err) if is_gone(&err) => Ok(false),
            Err(err) => Err(err),
        }
    }
}

/// The id of the current boot.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// What the capsule needs of `/proc/<pid>/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub pid: i32,
    pub state: u8,
    pub parent: i32,
    pub session: i32,
    pub start_ticks: u64,
}

impl Stat {
    pub fn read(pid: i32) -> io::Result<Self> {
        let text = fs::read(format!("/proc/{pid}/stat"))?;
        Self::parse(pid, &text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unreadable process state"))
    }

    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    fn parse(pid: i32, text: &[u8]) -> Option<Self> {
        // The command name is in parentheses and may itself hold spaces and parentheses.
        let after_name = text.iter().rposition(|&b| b == b')')? + 1;
        let fields = std::str::from_utf8(text.get(after_name..)?).ok()?;
        let mut fields = fields.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let start_ticks = fields.nth(15)?.parse().ok()?;
        Some(Self { pid, state, parent, session, start_ticks })
    }
}

/// Every process that descends from `root`, zombies left out, without `root` and without what is below `except`.
pub(crate) fn descendants(root: Pid, except: Option<Pid>) -> Vec<Stat> {
    let all = all_processes();
    let mut found: Vec<Stat> = Vec::new();
    let mut parents = vec![root.as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for stat in all.iter().filter(|stat| stat.parent == parent) {
            if except.is_some_and(|except| except.as_raw_nonzero().get() == stat.pid) {
                continue;
            }
            parents.push(stat.pid);
            if !stat.is_dead() {
                found.push(*stat);
            }
        }
    }
    found
}

fn all_processes() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Stat::read(pid).ok())
        .collect()
}

/// Whether the process ignores `signal` altogether, as interactive shells ignore `SIGTERM`.
pub(crate) fn ignores(pid: Pid, signal: rustix::process::Signal) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())) else {
        return false;
    };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal.as_raw() - 1)) != 0
}

fn is_gone(err: &io::Error) -> bool {
    err.kind() == io::ErrorKind::NotFound
        || err.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        let line = b"7 (a) b (c)) S 3 7 5 0 -1 4 0 0 0 0 1 2 0 0 20 0 1 0 4242 999 1";
        let stat = Stat::parse(7, line).unwrap();
        assert_eq!((stat.state, stat.parent, stat.session, stat.start_ticks), (b'S', 3, 5, 4242));
    }

    #[test]
    fn a_process_is_itself_and_not_an_earlier_one_of_the_same_number() {
        let me = ProcessIdentity::of(std::process::id().cast_signed()).unwrap();
        assert!(me.is_alive().unwrap());
        let earlier = ProcessIdentity { start_ticks: me.start_ticks - 1, ..me.clone() };
        assert!(!earlier.is_alive().unwrap());
        let last_boot = ProcessIdentity { boot_id: "another".into(), ..me };
        assert!(!last_boot.is_alive().unwrap());
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        let identity = ProcessIdentity::of(child.id().cast_signed()).unwrap();
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        let pid = rustix::process::WaitId::Pid(Pid::from_child(&child));
        rustix::process::waitid(pid, options).unwrap();
        assert!(!identity.is_alive().unwrap());
        child.wait().unwrap();
    }
}
