//! The processes of a capsule: who descends from whom, and who would not hear a signal.

use std::{fs, io};

use rustix::process::Pid;

/// What the capsule needs of `/proc/<pid>/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub pid: i32,
    pub state: u8,
    pub parent: i32,
    pub session: i32,
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
        Some(Self { pid, state, parent, session })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        let line = b"7 (a) b (c)) S 3 7 5 0 -1 4 0 0 0 0 1 2 0 0 20 0 1 0 4242 999 1";
        let stat = Stat::parse(7, line).unwrap();
        assert_eq!((stat.state, stat.parent, stat.session), (b'S', 3, 5));
    }
}
