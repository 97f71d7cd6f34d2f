//! What is known of a session in a pane, for a client that asks what it is doing: what it was launched with, and the last that its
//! agent's hooks said. No process of ours looks at a pane all the time, so both are files of the instance directory.

use std::io;
use std::path::Path;

use abide_model::watching::HookReport;
use abide_model::{Pid, SessionId, Timestamp};
use abide_sys::atomic::{self, Durability};
use abide_sys::{clock, process, untrusted};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::{hook_report_file, reporter};
use serde::{Deserialize, Serialize};

/// A session that runs in a pane.
#[derive(Debug, Serialize, Deserialize)]
pub struct InPane {
    /// Which run of the instance it is part of.
    pub generation: u64,
    /// The process of ours in the pane, which leads everything that is there.
    pub parent: Pid,
    /// The session's own process.
    pub pid: Pid,
    /// What the launcher passed on about it.
    pub meta: serde_json::Value,
}

/// What a hook said, and when.
#[derive(Debug, Serialize, Deserialize)]
pub struct Heard {
    pub at: Timestamp,
    pub report: HookReport,
}

impl InPane {
    pub fn note(&self, instance_dir: &InstanceDir, session: &SessionId) -> io::Result<()> {
        write(&instance_dir.watched(session), self)
    }

    /// What is known of `session` in run `generation`.
    pub fn read(instance_dir: &InstanceDir, session: &SessionId, generation: u64) -> Option<Self> {
        let known: Self =
            serde_json::from_slice(&untrusted::read(&instance_dir.watched(session)).ok()?).ok()?;
        (known.generation == generation).then_some(known)
    }
}

impl Heard {
    /// Writes down what the hook that this process is has to say, if it is a hook of the session's own agent.
    pub fn note(instance_dir: &InstanceDir, report: &HookReport) -> Result<(), String> {
        let known = InPane::read(instance_dir, &report.session, report.generation);
        let known = known.ok_or("no such session runs in a pane")?;
        reporter::check(Some(process::own_pid()), known.parent)?;
        hook_report_file::append(instance_dir, report);
        let heard = Self { at: clock::now(), report: report.clone() };
        write(&instance_dir.heard(&report.session), &heard).map_err(|error| error.to_string())
    }

    /// The last that was said in run `generation`.
    pub fn last(instance_dir: &InstanceDir, session: &SessionId, generation: u64) -> Option<Self> {
        let heard: Self =
            serde_json::from_slice(&untrusted::read(&instance_dir.heard(session)).ok()?).ok()?;
        (heard.report.generation == generation).then_some(heard)
    }
}

fn write(path: &Path, known: &impl Serialize) -> io::Result<()> {
    atomic::write_path(path, &serde_json::to_vec(known)?, 0o600, Durability::Synced)
}
