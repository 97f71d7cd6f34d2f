//! The manifest of an instance: everything that is known about it, in one document.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::choice::Policy;
use crate::id::{InstanceId, ProcessIdentity, SessionId};
use crate::liveness::HostIdentity;
use crate::recipe::Recipe;
use crate::session::{Conversation, Session};
use crate::status::{DecidedBy, Gone, Standing, Status, StatusEvent, StatusRefusal, next};
use crate::time::Timestamp;

/// Fields that this version does not know. They are kept, so that an older abide does not strip a newer one's.
pub type Extra = serde_json::Map<String, serde_json::Value>;

/// The version of the manifest that this abide writes.
pub const MANIFEST_VERSION: u32 = 1;

/// How many changes of status are remembered.
const HISTORY: usize = 64;

/// What the operator launched from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchScope {
    /// The workspace's name; `None` for a plain directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    pub dir: PathBuf,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

impl LaunchScope {
    pub fn directory(dir: PathBuf) -> Self {
        Self { workspace: None, dir, extra: Extra::default() }
    }

    /// What the scope is called in names and lists: the workspace, or the last part of the directory.
    pub fn short_name(&self) -> String {
        match (&self.workspace, self.dir.file_name()) {
            (Some(name), _) => name.clone(),
            (None, Some(last)) => last.to_string_lossy().into_owned(),
            (None, None) => Path::new("/").display().to_string(),
        }
    }
}

/// A directory as the file system knows it: it keeps this when it is moved within its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirIdentity {
    pub dev: u64,
    /// The directory in it.
    pub ino: u64,
}

/// One change of status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusChange {
    pub at: Timestamp,
    /// To which state, e.g. `restorable (kept)`.
    pub to: String,
    pub because: String,
    /// Whose decision it was, where it needed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<DecidedBy>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One environment with durable state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The version of this document.
    pub version: u32,
    pub id: InstanceId,
    /// What the operator calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it was launched from.
    pub scope: LaunchScope,
    /// The role it was launched with.
    pub role: String,
    /// Where it is in its life.
    pub status: Standing,
    /// The policy of this launch, where it differs from the scope's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// How often it was started. What was said about an earlier run does not count for a later one.
    #[serde(default)]
    pub generation: u64,
    /// Where the present run was started, as its launcher knew it: which distinguishes a dead run from one that cannot be seen.
    /// Absent once nothing of the run can be left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_on: Option<HostIdentity>,
    /// When it was made.
    pub created: Timestamp,
    /// How to start it again.
    pub recipe: Recipe,
    /// Which directory it was launched from, whatever that is called by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir_identity: Option<DirIdentity>,
    /// Its directories are made and its set-up command has run. Neither happens twice.
    #[serde(default)]
    pub prepared: bool,
    /// Its sessions, in the order of their tabs.
    #[serde(default)]
    pub sessions: Vec<Session>,
    /// Conversations of tabs that were closed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parked: Vec<Conversation>,
    /// The number of the last session it had: session ids are never used twice.
    #[serde(default)]
    pub last_session: u32,
    /// How it came to be what it is, oldest first.
    #[serde(default)]
    pub history: Vec<StatusChange>,
    /// Whether the capsule has a systemd scope of its own, and if not, why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Instance {
    /// An instance that `by` begins to set up at `now`.
    pub fn starting(
        id: InstanceId,
        scope: LaunchScope,
        role: String,
        recipe: Recipe,
        by: ProcessIdentity,
        now: Timestamp,
    ) -> Self {
        let status = Status::Starting { by, resuming: None };
        let because = "launched by the operator".to_owned();
        let mut instance = Self {
            version: MANIFEST_VERSION,
            id,
            name: None,
            scope,
            role,
            status: Standing {
                status,
                since: now,
                because,
                decided_by: None,
                obstacle: None,
                extra: Extra::new(),
            },
            policy: None,
            generation: 1,
            started_on: None,
            created: now,
            recipe,
            dir_identity: None,
            prepared: false,
            sessions: Vec::new(),
            parked: Vec::new(),
            last_session: 0,
            history: Vec::new(),
            isolation: None,
            extra: Extra::new(),
        };
        instance.remember();
        instance
    }

    /// Lets `event` happen to the instance, for the reason `because`. Returns whether anything changed; a refused event
    /// changes nothing.
    pub fn apply(
        &mut self,
        event: &StatusEvent,
        because: &str,
        now: Timestamp,
    ) -> Result<bool, StatusRefusal> {
        let after = next(&self.status.status, event)?;
        if after == self.status.status {
            return Ok(false);
        }
        match event {
            StatusEvent::Resume { .. } => self.generation += 1,
            // What may have outlived its supervisor can be seen only there.
            StatusEvent::CapsuleGone(Gone::Crashed) | StatusEvent::StarterDied { .. } => {}
            StatusEvent::Launched
            | StatusEvent::CapsuleSeen
            | StatusEvent::Discarded(_)
            | StatusEvent::RemovalTakenBack { runs: true } => {}
            // Nothing of the run is left: where it was no longer matters.
            StatusEvent::SetupFailed
            | StatusEvent::CapsuleGone(Gone::Stopped | Gone::HostLost)
            | StatusEvent::LeftKeeping(_)
            | StatusEvent::LeftFinishing(_)
            | StatusEvent::RemovalTakenBack { runs: false }
            | StatusEvent::TakenFromTrash => self.started_on = None,
        }
        self.status = Standing {
            status: after,
            since: now,
            because: because.to_owned(),
            decided_by: event.decided_by(),
            obstacle: None,
            extra: Extra::new(),
        };
        self.remember();
        Ok(true)
    }

    /// Notes that the operator was asked about what is kept, and chose to keep it. Whether anything changed.
    pub fn keep_by_choice(&mut self, now: Timestamp) -> bool {
        let kept = matches!(self.status.status, Status::Restorable(_));
        if !kept || self.status.decided_by == Some(DecidedBy::Operator) {
            return false;
        }
        let standing = &mut self.status;
        (standing.since, standing.decided_by) = (now, Some(DecidedBy::Operator));
        standing.because = "the operator reviewed the work at risk and kept it".to_owned();
        self.remember();
        true
    }

    /// Adds the present status to the history.
    fn remember(&mut self) {
        let Standing { since, because, decided_by, .. } = &self.status;
        self.note(because.clone(), *decided_by, *since);
    }

    /// Adds what happened at `at` in the present status to the history.
    pub(crate) fn note(&mut self, because: String, decided_by: Option<DecidedBy>, at: Timestamp) {
        let to = self.status.status.to_string();
        self.history.push(StatusChange { at, to, because, decided_by, extra: Extra::new() });
        let surplus = self.history.len().saturating_sub(HISTORY);
        self.history.drain(..surplus);
    }

    /// An id for the next session, never given before.
    pub fn new_session_id(&mut self) -> SessionId {
        let seen = self.sessions.iter().map(|s| s.id.0).max().unwrap_or(0);
        self.last_session = self.last_session.max(seen) + 1;
        SessionId(self.last_session)
    }

    /// The sessions that a resume starts: those that were running when it stopped. Where all had ended by themselves it is
    /// the last one, because an instance that was kept was kept for something.
    pub fn sessions_to_resume(&self) -> Vec<&Session> {
        let running: Vec<_> = self.sessions.iter().filter(|session| session.comes_back()).collect();
        let ended_last =
            || self.sessions.iter().max_by_key(|session| session.exit.as_ref().map(|exit| exit.at));
        if running.is_empty() { ended_last().into_iter().collect() } else { running }
    }

    /// Forgets the sessions that a resume does not start, but not what they talked about.
    pub fn close_ended(&mut self) {
        let kept: Vec<SessionId> = self.sessions_to_resume().iter().map(|session| session.id).collect();
        let closed = self.sessions.extract_if(.., |session| !kept.contains(&session.id));
        self.parked.extend(closed.flat_map(|session| session.parked.into_iter().chain(session.conversation)));
    }

    /// Every conversation id that this instance was ever in.
    pub fn claimed(&self) -> impl Iterator<Item = &str> {
        let closed = self.parked.iter().map(|conversation| conversation.id.as_str());
        self.sessions.iter().flat_map(Session::claimed).chain(closed)
    }

    /// The session called `word`: by its id, or by its name if only one has it.
    pub fn session(&self, word: &str) -> Option<&Session> {
        if let Ok(id) = word.parse::<SessionId>()
            && let Some(found) = self.sessions.iter().find(|s| s.id == id)
        {
            return Some(found);
        }
        let mut named = self.sessions.iter().filter(|s| s.name == word);
        named.next().filter(|_| named.next().is_none())
    }
}
