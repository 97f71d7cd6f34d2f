//! The exit record: why a capsule stopped, for the process that decides what its end means.
//!
//! From start to end the file says `running`, so that a record of an earlier run is never read as that of a later
//! one; and it carries the generation, so that a start that died before writing is noticed too. A record that says
//! `running` while its keeper's lock is free means that the keeper was killed or the machine went down.

use std::io;
use std::time::Duration;

use abide_model::{Pid, ProcessIdentity};
use abide_sys::atomic::{self, Durability};
use abide_sys::{clock, process, untrusted};
use serde::{Deserialize, Serialize};

use crate::instance_dir::InstanceDir;
use crate::os_text::OsText;
use crate::session::{ProcessExit, SessionId, SpawnSpec};
use crate::supervisor_lock;

/// The most sessions that the record remembers; beyond that, those that ended first are forgotten.
const MAX_SESSIONS: usize = 256;
/// The most daemons that the record names.
const MAX_DAEMONS: usize = 64;

/// Why a capsule stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// A client asked for it over the socket.
    Operator,
    /// Nothing was left to keep.
    LastSessionEnded,
    /// A signal: `docker stop`, a shutdown, a logout. Says nothing about the work being finished.
    Sigterm,
    /// The keeper could not go on.
    Fatal,
}

impl StopReason {
    /// What process 1 of a container exits with. Its engine passes it on, where nothing inside can forge it.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::LastSessionEnded => 0,
            Self::Fatal => 1,
            Self::Operator => 3,
            Self::Sigterm => 143,
        }
    }

    /// What the exit code of process 1 means; `None` if it did not end by itself.
    pub fn of_exit_code(code: i32) -> Option<Self> {
        let all = [Self::LastSessionEnded, Self::Fatal, Self::Operator, Self::Sigterm];
        all.into_iter().find(|reason| reason.exit_code() == code)
    }
}

/// The record of one run of a capsule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// Which run of the instance it is about.
    pub generation: u64,
    /// The keeper's process; the tmux server's, where that holds the sessions.
    pub keeper: ProcessIdentity,
    /// The socket of the tmux server that holds the sessions, where no keeper does.
    pub tmux: Option<OsText>,
    /// When the run began, in milliseconds since 1970.
    pub started_ms: u64,
    /// Why it stopped; absent while it runs.
    pub reason: Option<StopReason>,
    /// The reason that the requester gave, or what went wrong.
    #[serde(default)]
    pub note: String,
    pub stopped_ms: Option<u64>,
    /// The daemons that were ended with it, or with one of its sessions, as shown to the operator.
    #[serde(default)]
    pub ended_as_well: Vec<String>,
    /// The sessions of this run, in the order in which they were started.
    #[serde(default)]
    pub sessions: Vec<RecordedSession>,
}

/// One session of a run: enough to start it again, without its environment, which may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSession {
    pub id: SessionId,
    /// What the operator calls it.
    pub name: String,
    pub argv: Vec<OsText>,
    pub cwd: OsText,
    /// Its first process; absent in the record of an earlier version.
    pub process: Option<ProcessIdentity>,
    /// When it was started, in milliseconds since 1970; absent in the record of an earlier version.
    pub started_ms: Option<u64>,
    /// How it ended, if it has.
    pub exit: Option<ProcessExit>,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// Whether it was ended together with the capsule, and not by itself or on its own: such a one comes back.
    #[serde(default)]
    pub stopped: bool,
    /// Whether it was asked to end, or sent a signal, on the operator's behalf.
    #[serde(default)]
    pub asked: bool,
}

impl ExitRecord {
    /// Reads the record of `instance_dir`; `None` where no keeper ever ran.
    pub fn read(instance_dir: &InstanceDir) -> io::Result<Option<Self>> {
        match untrusted::read(&instance_dir.exit_record()) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// The record of a run that begins, and is held together by `keeper`.
    pub fn running(generation: u64, keeper: ProcessIdentity) -> Self {
        Self {
            generation,
            keeper,
            tmux: None,
            started_ms: now_ms(),
            reason: None,
            note: String::new(),
            stopped_ms: None,
            ended_as_well: Vec::new(),
            sessions: Vec::new(),
        }
    }

    /// Writes the record of a run that no keeper serves; `WouldBlock` where one does.
    pub fn begin(&self, instance_dir: &InstanceDir) -> io::Result<()> {
        let _served = supervisor_lock::take(instance_dir)?;
        let _lock = supervisor_lock::take_to_change(instance_dir)?;
        self.write(instance_dir)
    }

    /// Read-modify-write under the keeper's lock; `None` if the record is about another run than `generation`.
    pub fn update<T>(
        instance_dir: &InstanceDir,
        generation: u64,
        change: impl FnOnce(&mut Self) -> T,
    ) -> io::Result<Option<T>> {
        let _lock = supervisor_lock::take_to_change(instance_dir)?;
        let record = Self::read(instance_dir)?.filter(|record| record.generation == generation);
        let Some(mut record) = record else { return Ok(None) };
        let given = change(&mut record);
        record.write(instance_dir)?;
        Ok(Some(given))
    }

    /// Notes that a session runs as process `pid`.
    pub fn session_started(&mut self, spec: &SpawnSpec, pid: Pid) {
        self.sessions.retain(|session| session.id != spec.id);
        if self.sessions.len() >= MAX_SESSIONS
            && let Some(oldest) = self.sessions.iter().position(|session| session.exit.is_some())
        {
            self.sessions.remove(oldest);
        }
        self.sessions.push(RecordedSession {
            id: spec.id,
            name: spec.name.clone(),
            argv: spec.argv.clone(),
            cwd: spec.cwd.clone(),
            process: process::identity(pid),
            started_ms: Some(now_ms()),
            exit: None,
            ended_ms: None,
            stopped: false,
            asked: false,
        });
    }

    /// Notes that a session is ended, or sent a signal, on the operator's behalf.
    pub fn session_asked(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.iter_mut().find(|session| session.id == *id) {
            session.asked = true;
        }
    }

    /// Notes that `daemons` are ended beyond sessions.
    pub fn note_ended_as_well(&mut self, daemons: &[impl ToString]) {
        for daemon in daemons.iter().map(ToString::to_string) {
            if !self.ended_as_well.contains(&daemon) && self.ended_as_well.len() < MAX_DAEMONS {
                tracing::info!("ended as well: {daemon}");
                self.ended_as_well.push(daemon);
            }
        }
    }

    /// Notes how a session ended; `stopped`, if it did so together with its instance.
    pub fn session_ended(&mut self, id: &SessionId, exit: ProcessExit, stopped: bool) {
        if let Some(session) = self.sessions.iter_mut().find(|session| session.id == *id) {
            (session.exit, session.ended_ms, session.stopped) = (Some(exit), Some(now_ms()), stopped);
        }
    }

    /// Notes that the sessions that ended within the last `moment` did so together with the capsule.
    pub fn ended_from_outside(&mut self, moment: Duration) {
        let since = now_ms().saturating_sub(u64::try_from(moment.as_millis()).unwrap_or(u64::MAX));
        let ended = |session: &&mut RecordedSession| session.ended_ms.is_some_and(|at| at >= since);
        self.sessions.iter_mut().filter(ended).for_each(|session| session.stopped = true);
    }

    /// Notes that the run is over.
    pub fn stopped(&mut self, reason: StopReason, note: String) {
        self.reason = Some(reason);
        self.note = note;
        self.stopped_ms = Some(now_ms());
    }

    /// Replaces the file as a whole. Only the final record is worth waiting for the disk: one that says `running`
    /// and is lost leaves an older generation, which no reader takes for this one.
    pub fn write(&self, instance_dir: &InstanceDir) -> io::Result<()> {
        let durability = if self.reason.is_some() { Durability::Synced } else { Durability::Unsynced };
        atomic::write_path(&instance_dir.exit_record(), &serde_json::to_vec(self)?, 0o600, durability)
    }
}

fn now_ms() -> u64 {
    clock::now().0.unsigned_abs()
}
