//! The manifest of an instance: everything that is known about it, in one document.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::choice::Policy;
use crate::id::{InstanceId, ProcessIdentity, SessionId};
use crate::liveness::HostIdentity;
use crate::recipe::Recipe;
use crate::session::{Conversation, Session};
use crate::status::{DecidedBy, Event, Refusal, Standing, Status, next};
use crate::time::Timestamp;

/// Fields that this version does not know. They are kept, so that an older abide does not strip a newer one's.
pub type Extra = serde_json::Map<String, serde_json::Value>;

/// The version of the manifest that this abide writes.
pub const MANIFEST_VERSION: u32 = 1;

/// How many changes of status are remembered.
const HISTORY: usize = 64;

/// What the operator launched from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// The workspace's name; `None` for a plain directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    pub dir: PathBuf,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Scope {
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
pub struct Change {
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
    pub scope: Scope,
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
    /// Where the present run was started, as its launcher knew it: what tells a dead run from one that cannot be seen.
    /// Absent once the run is known to be over.
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
    pub history: Vec<Change>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Instance {
    /// An instance that `by` begins to set up at `now`.
    pub fn starting(
        id: InstanceId,
        scope: Scope,
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
            extra: Extra::new(),
        };
        instance.remember();
        instance
    }

    /// Lets `event` happen to the instance, for the reason `because`. Returns whether anything changed; a refused event
    /// changes nothing.
    pub fn apply(&mut self, event: &Event, because: &str, now: Timestamp) -> Result<bool, Refusal> {
        let after = next(&self.status.status, event)?;
        if after == self.status.status {
            return Ok(false);
        }
        match event {
            Event::Resume { .. } => self.generation += 1,
            Event::Launched
            | Event::CapsuleSeen
            | Event::Discarded(_)
            | Event::RemovalTakenBack { runs: true } => {}
            // The run is certainly over: from here on it matters to no one where it was.
            Event::SetupFailed
            | Event::StarterDied { .. }
            | Event::CapsuleGone(_)
            | Event::LeftKeeping(_)
            | Event::LeftFinishing(_)
            | Event::RemovalTakenBack { runs: false }
            | Event::TakenFromTrash => self.started_on = None,
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
        standing.because = "the operator saw what is at risk and chose to keep it".to_owned();
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
        self.history.push(Change { at, to, because, decided_by, extra: Extra::new() });
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::status::{Ending, Gone, Kept};

    fn me() -> ProcessIdentity {
        ProcessIdentity { pid: 1, start: 2, boot: "b".into() }
    }

    fn fresh() -> Instance {
        Instance::starting(
            "k7p9m2xq".parse().unwrap(),
            Scope::directory("/work/shop".into()),
            "default".into(),
            Recipe::on_host("/work/shop".into()),
            me(),
            Timestamp(1000),
        )
    }

    /// A manifest with everything in it, as a newer abide might have written it: one unknown field in every object.
    fn from_the_future() -> Value {
        let at = "2026-11-15T06:00:00.000Z";
        let mut manifest = json!({
            "version": 1, "id": "k7p9m2xq", "name": "shop", "role": "default", "policy": "keep", "generation": 4,
            "created": at, "last_session": 9, "prepared": true,
            "scope": {"workspace": "shop", "dir": "/work/shop"},
            "status": {"state": "restorable", "reason": "host-lost", "since": at, "because": "the boot id changed",
                       "decided_by": "undecided"},
            "recipe": {
                "place": "docker", "substrate": "capsule", "cwd": "/work/shop",
                "image": {"tag": "abide/shop:1", "digest": "sha256:00", "role_commit": "abc", "base": "debian"},
                "mounts": [{"source": "/work/shop", "target": "/work/shop", "isolation": "worktree", "read_only": false,
                            "copy": [".env"], "tree": "shop",
                            "branch": "abide/k7p9m2xq"}],
                "setup": ["make", "deps"], "env": {"TOKEN": "op://dev/api/token", "MODE": "fast"}, "run_flags": ["--init"],
                "configured": {"role": "default", "place": "host", "substrate": "capsule", "isolation": "worktree",
                               "command": ["claude"], "setup": ["make"]},
            },
            "sessions": [{
                "id": "s9", "name": "claude", "agent": "claude", "argv": ["claude"], "cwd": "/work/shop", "generation": 2,
                "created": at, "attached": at, "exit": {"code": 0, "stopped": false, "at": at},
                "conversation": {"id": "u-2", "origin": "minted", "bound": at, "transcript": "/t"},
                "parked": [{"id": "u-1", "origin": "hook", "bound": at}],
                "setup": {"config_dir": "/d", "moved": true, "resume": ["x", "{id}"], "continue_turn": true},
            }],
            "parked": [{"id": "u-0", "origin": "adopted", "bound": at}],
            "history": [{"at": at, "to": "active", "because": "it answered", "decided_by": "operator"}],
        });
        add_unknown_fields(&mut manifest);
        manifest
    }

    fn add_unknown_fields(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.values_mut().for_each(add_unknown_fields);
                // Maps from names to values, and records of a moment, have no fields of ours to add to.
                if !map.contains_key("refs/heads/main")
                    && !map.contains_key("TOKEN")
                    && !map.contains_key("code")
                {
                    map.insert("from_the_future".into(), json!({"nested": [1, null]}));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(add_unknown_fields),
            _ => {}
        }
    }

    #[test]
    fn unknown_fields_survive_a_round_trip_at_every_level() {
        let manifest = from_the_future();
        let instance: Instance = serde_json::from_value(manifest.clone()).unwrap();
        assert_eq!(serde_json::to_value(&instance).unwrap(), manifest);
    }

    #[test]
    fn a_change_of_status_says_when_and_why_and_is_remembered() {
        let mut instance = fresh();
        assert!(instance.apply(&Event::Launched, "the capsule answers", Timestamp(2000)).unwrap());
        assert!(!instance.apply(&Event::CapsuleSeen, "probed", Timestamp(3000)).unwrap());
        assert_eq!(instance.status.since, Timestamp(2000), "seeing it again is not a change");
        instance.apply(&Event::CapsuleGone(Gone::HostLost), "another boot", Timestamp(4000)).unwrap();
        instance.apply(&Event::Resume { by: me() }, "abide load", Timestamp(5000)).unwrap();
        assert_eq!(instance.generation, 2, "a resume begins a new generation");
        let to: Vec<_> = instance.history.iter().map(|c| c.to.as_str()).collect();
        assert_eq!(to, ["starting", "active", "restorable (host-lost)", "starting"]);
    }

    #[test]
    fn what_the_operator_chose_is_told_from_what_was_never_answered() {
        let mut instance = fresh();
        instance.apply(&Event::Launched, "the capsule answers", Timestamp(2000)).unwrap();
        instance.apply(&Event::LeftKeeping(Kept::Dirty), "work is at risk", Timestamp(3000)).unwrap();
        assert_eq!(instance.status.decided_by, Some(DecidedBy::Undecided));
        assert!(instance.keep_by_choice(Timestamp(4000)));
        assert!(!instance.keep_by_choice(Timestamp(5000)), "it is chosen already");
        assert_eq!(instance.status.status, Status::Restorable(Kept::Dirty), "what it holds is the same");
        let decided: Vec<_> = instance.history.iter().map(|change| change.decided_by).collect();
        assert_eq!(decided, [None, None, Some(DecidedBy::Undecided), Some(DecidedBy::Operator)]);
        instance.apply(&Event::Resume { by: me() }, "abide load", Timestamp(6000)).unwrap();
        assert!(!instance.keep_by_choice(Timestamp(7000)), "it is not kept but started");
    }

    #[test]
    fn a_refused_event_changes_nothing() {
        let mut instance = fresh();
        let before = instance.clone();
        assert!(instance.apply(&Event::Discarded(Ending::Clean), "prune", Timestamp(9)).is_err());
        assert_eq!(instance, before);
    }

    #[test]
    fn history_is_bounded() {
        let mut instance = fresh();
        for i in 0..500 {
            instance.apply(&Event::Launched, "up", Timestamp(i)).unwrap();
            instance.apply(&Event::CapsuleGone(Gone::Crashed), "down", Timestamp(i)).unwrap();
            instance.apply(&Event::Resume { by: me() }, "again", Timestamp(i)).unwrap();
        }
        assert_eq!(instance.history.len(), HISTORY);
        assert_eq!(instance.history.last().unwrap().to, "starting");
    }

    #[test]
    fn session_ids_are_never_given_twice() {
        let mut instance: Instance = serde_json::from_value(from_the_future()).unwrap();
        instance.sessions.clear();
        assert_eq!(instance.new_session_id(), SessionId(10));
        assert_eq!(instance.new_session_id(), SessionId(11));
    }

    #[test]
    fn a_session_is_found_by_id_or_by_a_name_that_only_it_has() {
        let mut instance: Instance = serde_json::from_value(from_the_future()).unwrap();
        assert_eq!(instance.session("s9").unwrap().id, SessionId(9));
        assert_eq!(instance.session("claude").unwrap().id, SessionId(9));
        let mut twin = instance.sessions[0].clone();
        twin.id = instance.new_session_id();
        instance.sessions.push(twin);
        assert!(instance.session("claude").is_none(), "a name that two have names neither");
    }

    #[test]
    fn what_ran_comes_back_and_what_had_ended_does_not() {
        let mut instance: Instance = serde_json::from_value(from_the_future()).unwrap();
        let ended = instance.sessions[0].clone();
        let with = |id: u32, stopped: Option<bool>, at: i64| {
            let mut session = Session { id: SessionId(id), ..ended.clone() };
            session.exit = session.exit.map(|exit| crate::session::Exit { at: Timestamp(at), ..exit });
            match stopped {
                Some(stopped) => session.exit.as_mut().unwrap().stopped = stopped,
                None => session.exit = None,
            }
            session
        };
        let ids =
            |instance: &Instance| instance.sessions_to_resume().iter().map(|s| s.id.0).collect::<Vec<_>>();
        instance.sessions = vec![with(1, Some(false), 1), with(2, Some(true), 5), with(3, None, 0)];
        assert_eq!(ids(&instance), [2, 3]);
        instance.sessions = vec![with(1, Some(false), 9), with(2, Some(false), 5)];
        assert_eq!(ids(&instance), [1], "all had ended: the last to end");
        instance.sessions.clear();
        assert!(ids(&instance).is_empty());
    }

    #[test]
    fn a_closed_tab_goes_and_its_conversations_stay_claimed() {
        let mut instance: Instance = serde_json::from_value(from_the_future()).unwrap();
        let mut open = instance.sessions[0].clone();
        (open.id, open.exit, open.conversation, open.parked) =
            (instance.new_session_id(), None, None, vec![]);
        instance.sessions.push(open);
        instance.close_ended();
        assert_eq!(instance.sessions.iter().map(|s| s.id.0).collect::<Vec<_>>(), [10]);
        assert_eq!(instance.claimed().collect::<Vec<_>>(), ["u-0", "u-1", "u-2"]);
    }

    proptest! {
        #[test]
        fn hostile_manifests_are_errors_and_never_panics(text in "\\PC*") {
            let _ = serde_json::from_str::<Instance>(&text);
        }

        #[test]
        fn a_field_of_the_wrong_type_is_an_error(key in 0usize..15) {
            let mut manifest = from_the_future();
            let map = manifest.as_object_mut().unwrap();
            let name = map.keys().nth(key).unwrap().clone();
            map.insert(name.clone(), json!({"wrong": ["type"]}));
            let parsed = serde_json::from_value::<Instance>(manifest);
            prop_assert!(parsed.is_err() || name == "from_the_future", "{} was accepted", name);
        }
    }
}
