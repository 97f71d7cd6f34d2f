//! The processes of a capsule: who descends from whom, and who would not hear a signal.

use std::{fs, io};

use rustix::process::Pid;

/// The most processes of a tree that are looked at.
const MAX_TREE: usize = 256;

/// What the capsule needs of `/proc/<pid>/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub pid: i32,
    pub state: u8,
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    pub session: i32,
    /// The process group that has its terminal.
    pub foreground: i32,
    /// The processor time of it and of the children it has waited for, in clock ticks.
    pub ticks: u64,
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
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let foreground = fields.nth(1)?.parse().ok()?;
        let times: Vec<i64> = fields.skip(5).take(4).filter_map(|ticks| ticks.parse().ok()).collect();
        let ticks = times.iter().map(|ticks| ticks.unsigned_abs()).sum();
        Some(Self { pid, state, parent, group, session, foreground, ticks })
    }

    /// The name of its program.
    pub fn name(&self) -> String {
        fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default().trim_end().to_owned()
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

/// `root` and what descends from it, as far as [`MAX_TREE`]. Costs what the tree costs, however many others there are.
pub(crate) fn tree(root: i32) -> Vec<Stat> {
    let (mut found, mut pids) = (Vec::new(), vec![root]);
    while let Some(pid) = pids.pop().filter(|_| found.len() < MAX_TREE) {
        found.extend(Stat::read(pid));
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            pids.extend(children.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
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

/// Whether the process was started with all of `marks`, each `NAME=value`, in its environment. No marks mark nothing.
pub(crate) fn has_in_environment(pid: i32, marks: &[Vec<u8>]) -> bool {
    if marks.is_empty() {
        return false;
    }
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let has = |mark: &Vec<u8>| environment.split(|byte| *byte == 0).any(|variable| variable == mark);
    marks.iter().all(has)
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
        let line = b"7 (a) b (c)) S 3 6 5 34816 9 4 0 0 0 0 1 2 10 20 20 0 1 0 4242 999 1";
        let stat = Stat::parse(7, line).unwrap();
        assert_eq!((stat.state, stat.parent, stat.group, stat.session), (b'S', 3, 6, 5));
        assert_eq!((stat.foreground, stat.ticks), (9, 33));
    }

    #[test]
    fn a_tree_holds_its_root_and_what_any_of_its_threads_started() {
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-c", "cat & read line"]).stdin(std::process::Stdio::piped());
        let mut child = std::thread::scope(|scope| scope.spawn(|| shell.spawn().unwrap()).join().unwrap());
        let shell = child.id().cast_signed();
        let root = std::process::id().cast_signed();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while tree(shell).len() < 2 {
            assert!(std::time::Instant::now() < deadline, "the shell starts nothing");
        }
        let pids: Vec<i32> = tree(root).iter().map(|stat| stat.pid).collect();
        assert!(pids.contains(&root) && pids.contains(&shell) && pids.len() >= 3, "{pids:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
