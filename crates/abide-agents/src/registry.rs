//! What claude publishes about its running processes: `sessions/<pid>.json` in its directory, written anew at each change.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use abide_model::Pid;
use abide_model::activity::Says;
use serde::Deserialize;

use crate::activity::Statement;
use crate::argv::is_uuid;
use crate::files;

/// How far below the session's first process the agent is looked for: wrappers start it.
const MAX_DEPTH: usize = 4;

/// An entry of a process that runs.
#[derive(Debug, Clone)]
pub(crate) struct RegistryEntry {
    /// The conversation that the process is in.
    pub(crate) conversation: String,
    /// What it says that it is doing, if it says so.
    pub(crate) statement: Option<Statement>,
    pub(crate) updated: SystemTime,
}

/// The entry of one session's agent.
#[derive(Debug)]
pub(crate) struct Registry {
    dir: PathBuf,
    root: Pid,
    /// The process that has an entry, once it is known.
    pid: Option<Pid>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegistryRecord {
    session_id: String,
    proc_start: String,
    status: Option<String>,
    waiting_for: Option<String>,
    status_updated_at: Option<u64>,
}

impl Registry {
    pub(crate) fn new(config_dir: &Path, root: Pid) -> Self {
        Self { dir: config_dir.join("sessions"), root, pid: None }
    }

    /// Where the entry is, once there is one.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        Some(self.dir.join(format!("{}.json", self.pid?)))
    }

    /// What the entry says now.
    pub(crate) fn look(&mut self) -> Option<RegistryEntry> {
        if let Some(entry) = self.pid.and_then(|pid| read(&self.dir, pid)) {
            return Some(entry);
        }
        let (pid, entry) = descent(self.root).find_map(|pid| Some((pid, read(&self.dir, pid)?)))?;
        self.pid = Some(pid);
        Some(entry)
    }
}

/// The entry of process `pid` in the registry `dir`.
pub(crate) fn read(dir: &Path, pid: Pid) -> Option<RegistryEntry> {
    let path = dir.join(format!("{pid}.json"));
    let record: RegistryRecord = serde_json::from_slice(&files::head(&path).ok()?).ok()?;
    // The entry of a process that was killed stays, and its number may be another's by now.
    let process = abide_sys::process::identity(pid)?;
    let own = record.proc_start == process.start.to_string() && is_uuid(&record.session_id);
    own.then(|| RegistryEntry {
        statement: statement(record.status.as_deref(), record.waiting_for),
        conversation: record.session_id,
        updated: since(record.status_updated_at, &path),
    })
}

/// The conversations of all processes that have an entry in the registry `dir`.
pub(crate) fn all(dir: &Path) -> Vec<(String, Pid)> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".json")?.parse().ok());
    pids.filter_map(|pid| Some((read(dir, pid)?.conversation, pid))).collect()
}

/// Since when the entry at `path` says what it says. One that does not say so was written when its file was.
fn since(updated: Option<u64>, path: &Path) -> SystemTime {
    let written = || path.metadata().and_then(|file| file.modified());
    match updated.filter(|ms| *ms > 0) {
        Some(ms) => UNIX_EPOCH + Duration::from_millis(ms),
        None => written().unwrap_or_else(|_| SystemTime::now()),
    }
}

fn statement(status: Option<&str>, waiting_for: Option<String>) -> Option<Statement> {
    let says = match status? {
        "busy" => Says::Working,
        "idle" => Says::Idle,
        "shell" => Says::Background,
        "waiting" => Says::NeedsInput,
        _ => return None,
    };
    let waits = waiting_for.filter(|_| says == Says::NeedsInput).map(|what| format!(" for: {what}"));
    let detail = format!("its registry says {}{}", status?, waits.unwrap_or_default());
    Some(Statement::new(says, detail))
}

/// `root`, its first child, the first child of that, and so on.
fn descent(root: Pid) -> impl Iterator<Item = Pid> {
    let child = |pid: &Pid| abide_sys::process::children(*pid).first().copied();
    std::iter::successors(Some(root), child).take(MAX_DEPTH)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn published(dir: &Path, pid: Pid, start: u64, status: &str) {
        let record = serde_json::json!({
            "pid": pid, "sessionId": "25252525-4444-4444-8444-444444444444", "procStart": start.to_string(),
            "status": status, "waitingFor": "permission prompt", "statusUpdatedAt": 1_794_713_328_801_u64,
        });
        fs::create_dir_all(dir.join("sessions")).unwrap();
        fs::write(dir.join(format!("sessions/{pid}.json")), record.to_string()).unwrap();
    }

    #[test]
    fn an_entry_counts_while_its_very_process_runs() {
        let dir = tempfile::tempdir().unwrap();
        let me = abide_sys::process::this();
        let mut registry = Registry::new(dir.path(), me.pid);
        assert!(registry.look().is_none());
        for (status, says) in [
            ("busy", Some(Says::Working)),
            ("idle", Some(Says::Idle)),
            ("shell", Some(Says::Background)),
            ("waiting", Some(Says::NeedsInput)),
            ("dreaming", None),
        ] {
            published(dir.path(), me.pid, me.start, status);
            let entry = registry.look().unwrap();
            assert_eq!(entry.statement.map(|statement| statement.says), says, "{status}");
        }
        published(dir.path(), me.pid, me.start + 1, "busy");
        assert!(registry.look().is_none(), "the entry of a process that was killed");
    }

    #[test]
    fn an_entry_without_a_time_is_as_old_as_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let me = abide_sys::process::this();
        published(dir.path(), me.pid, me.start, "idle");
        let path = dir.path().join(format!("sessions/{}.json", me.pid));
        let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        record.as_object_mut().unwrap().remove("statusUpdatedAt");
        fs::write(&path, record.to_string()).unwrap();
        let entry = Registry::new(dir.path(), me.pid).look().unwrap();
        assert_eq!(entry.updated, fs::metadata(path).unwrap().modified().unwrap());
    }

    #[test]
    fn the_agent_is_found_below_a_wrapper() {
        let dir = tempfile::tempdir().unwrap();
        let mut wrapper = std::process::Command::new("sh");
        let wrapper = wrapper.args(["-c", "sh -c 'read line; :'; :"]).stdin(std::process::Stdio::piped());
        let mut wrapper = wrapper.spawn().unwrap();
        let root = abide_sys::process::child_pid(&wrapper);
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        let agent = loop {
            if let Some(pid) = descent(root).nth(1) {
                break pid;
            }
            assert!(std::time::Instant::now() < deadline, "the wrapper starts nothing");
        };
        published(dir.path(), agent, abide_sys::process::identity(agent).unwrap().start, "idle");
        assert!(Registry::new(dir.path(), root).look().is_some());
        drop(wrapper.stdin.take());
        wrapper.wait().unwrap();
    }
}
