//! What `/proc` shows of processes: who descends from whom, what they were started with, what they would not hear.

use std::{fs, io};

use abide_model::Pid;
use rustix::process::Signal;

/// The most processes of a tree that are looked at.
const MAX_TREE: usize = 256;

/// One process, out of `/proc/<pid>/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub pid: Pid,
    /// Its state, as a letter.
    state: u8,
    /// The process that is its parent now.
    pub parent: Pid,
    pub group: Pid,
    pub session: Pid,
    /// The process group that has its terminal; `None` if it has no terminal.
    pub foreground: Option<Pid>,
    /// The processor time of it and of the children it has waited for, in clock ticks.
    pub ticks: u64,
    /// When it was started, in clock ticks since the machine was.
    pub start: u64,
}

impl Stat {
    /// The process that has the number `pid` now.
    pub fn read(pid: Pid) -> io::Result<Self> {
        let text = fs::read(format!("/proc/{pid}/stat"))?;
        Self::parse(pid, &text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unreadable process state"))
    }

    /// Every process that can be seen.
    pub fn all() -> impl Iterator<Item = Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(|pid| Self::read(pid).ok())
    }

    /// Whether it has ended, even if it was not reaped yet.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Whether its first thread waits for something to happen, and not for a processor or a disk.
    pub fn is_at_rest(&self) -> bool {
        !matches!(self.state, b'R' | b'D')
    }

    /// The name of its program.
    pub fn name(&self) -> String {
        fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default().trim_end().to_owned()
    }

    fn parse(pid: Pid, text: &[u8]) -> Option<Self> {
        // The command name is in parentheses and may itself hold spaces and parentheses.
        let after_name = text.iter().rposition(|&b| b == b')')? + 1;
        let mut fields = std::str::from_utf8(text.get(after_name..)?).ok()?.split_ascii_whitespace();
        let state = fields.next()?.bytes().next()?;
        let mut numbers = [0_i64; 19];
        for number in &mut numbers {
            *number = fields.next()?.parse().ok()?;
        }
        let id = |at: usize| u32::try_from(numbers[at]).ok().map(Pid);
        Some(Self {
            pid,
            state,
            parent: id(0)?,
            group: id(1)?,
            session: id(2)?,
            foreground: id(4),
            ticks: numbers[10..14].iter().map(|ticks| ticks.unsigned_abs()).sum(),
            start: numbers[18].unsigned_abs(),
        })
    }
}

/// Every process that descends from `root`, the dead left out, without `root`, `except` and what is below those.
pub fn descendants(root: Pid, except: impl Fn(Pid) -> bool) -> Vec<Stat> {
    let all: Vec<Stat> = Stat::all().collect();
    let (mut found, mut parents) = (Vec::new(), vec![root]);
    while let Some(parent) = parents.pop() {
        for stat in all.iter().filter(|stat| stat.parent == parent && !except(stat.pid)) {
            parents.push(stat.pid);
            found.extend(Some(*stat).filter(|stat| !stat.is_dead()));
        }
    }
    found
}

/// `root` and what descends from it, as far as `MAX_TREE`. Costs what the tree costs, however many others there are.
pub fn tree(root: Pid) -> Vec<Stat> {
    let (mut found, mut pids) = (Vec::new(), vec![root]);
    while let Some(pid) = pids.pop().filter(|_| found.len() < MAX_TREE) {
        found.extend(Stat::read(pid));
        pids.extend(children(pid));
    }
    found
}

/// What any thread of the process has started, those of the first thread first.
pub fn children(pid: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let lists: Vec<String> = threads.map(of).collect();
    lists.iter().flat_map(|list| list.split_ascii_whitespace()).filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether the process was started with all of `marks`, each `NAME=value`, in its environment. No marks mark nothing.
pub fn has_in_environment(pid: Pid, marks: &[Vec<u8>]) -> bool {
    if marks.is_empty() {
        return false;
    }
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let has = |mark: &Vec<u8>| environment.split(|byte| *byte == 0).any(|variable| variable == mark);
    marks.iter().all(has)
}

/// The value that the variable `name` had when the process was started, as text.
pub fn in_environment(pid: Pid, name: &str) -> Option<String> {
    variable(&environment(pid)?, name)
}

/// The variables that the process was started with, each `NAME=value`, with a NUL after each.
pub fn environment(pid: Pid) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ")).ok()
}

/// The value of the variable `name` in an [`environment`], as text.
pub fn variable(environment: &[u8], name: &str) -> Option<String> {
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// What the process was started with: its program and its arguments. Empty if that cannot be seen.
pub fn command_line(pid: Pid) -> Vec<Vec<u8>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// Whether the process ignores `signal` altogether, as interactive shells ignore `SIGTERM`.
pub fn ignores(pid: Pid, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal.as_raw() - 1)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{child_pid, own_pid};

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        let line = b"7 (a) R 1 (b) c) S 3 6 5 34816 9 4 0 0 0 0 1 2 10 20 20 0 1 0 4242 999 1";
        let stat = Stat::parse(Pid(7), line).unwrap();
        assert_eq!((stat.state, stat.parent, stat.group, stat.session), (b'S', Pid(3), Pid(6), Pid(5)));
        assert_eq!((stat.foreground, stat.ticks, stat.start), (Some(Pid(9)), 33, 4242));
        assert_eq!(Stat::parse(Pid(7), b"7 (sh) S 1"), None);
        assert_eq!(Stat::parse(Pid(7), b""), None);
    }

    #[test]
    fn a_tree_holds_its_root_and_what_any_of_its_threads_started() {
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-c", "sleep 100 & read line; kill $!"]).stdin(std::process::Stdio::piped());
        let mut child = std::thread::scope(|scope| scope.spawn(|| shell.spawn().unwrap()).join().unwrap());
        let shell = child_pid(&child);
        let root = own_pid();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while tree(shell).len() < 2 {
            assert!(std::time::Instant::now() < deadline, "the shell starts nothing");
        }
        for pids in [tree(root), descendants(root, |_| false)]
            .map(|found| found.iter().map(|stat| stat.pid).collect::<Vec<_>>())
        {
            assert!(
                pids.contains(&shell) && pids.iter().filter(|pid| **pid != root).count() >= 2,
                "{pids:?}"
            );
        }
        assert_eq!(tree(root)[0].pid, root);
        assert!(descendants(root, |pid| pid == shell).iter().all(|stat| stat.parent != shell));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
