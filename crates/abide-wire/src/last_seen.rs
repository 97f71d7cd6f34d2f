//! What each session was last seen doing, recorded as it changes: a mux or keeper that was killed cannot be asked.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use abide_model::Doing;
use abide_sys::atomic::{self, Durability};
use abide_sys::{clock, untrusted};
use serde::{Deserialize, Serialize};

use crate::instance_dir::InstanceDir;
use crate::session::SessionId;

/// How long what was noted may wait to be written down. By then the answer to a key is on the screen.
const WRITE_AFTER: Duration = Duration::from_millis(50);

/// What one session was last seen doing, and what was typed into it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastSeen {
    pub doing: Doing,
    /// Whether a source that knows its program said so.
    pub told: bool,
    /// What it asked, or what went wrong.
    pub detail: Option<String>,
    /// When it was seen to begin that, in milliseconds since 1970.
    pub at_ms: i64,
    /// Whether it was seen at work in this run.
    pub worked: bool,
    /// Whether anything was typed into it.
    pub typed: bool,
    /// When an interrupt or the end of input was last typed into it.
    pub interrupted_ms: Option<i64>,
}

/// What the sessions of one run were last seen doing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastSeenAll {
    /// Which run of the instance it is about.
    pub generation: u64,
    #[serde(default)]
    sessions: BTreeMap<String, LastSeen>,
    /// When something was first noted that is not written down yet.
    #[serde(skip)]
    unwritten_since: Option<Instant>,
}

impl LastSeenAll {
    /// What is written down about run `generation`; nothing if that is about another run or cannot be read.
    pub fn read(instance_dir: &InstanceDir, generation: u64) -> Self {
        let read = untrusted::read(&instance_dir.last_seen()).ok();
        let read = read.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let empty = Self { generation, ..Self::default() };
        read.filter(|all| all.generation == generation).unwrap_or(empty)
    }

    /// What is known of `session`.
    pub fn of(&self, session: &SessionId) -> LastSeen {
        self.sessions.get(&session.to_string()).cloned().unwrap_or_default()
    }

    /// Changes what is known of `session`, and writes it down if that is news. It need not survive a power cut: what is
    /// missing is not known.
    pub fn note(
        &mut self,
        instance_dir: &InstanceDir,
        session: &SessionId,
        change: impl FnOnce(&mut LastSeen),
    ) {
        self.note_unwritten(session, change);
        self.write_down(instance_dir);
    }

    /// The same, to be written down later: the answer to a key does not wait for a file.
    pub fn note_unwritten(&mut self, session: &SessionId, change: impl FnOnce(&mut LastSeen)) {
        let seen = self.sessions.entry(session.to_string()).or_default();
        let before = seen.clone();
        change(seen);
        if *seen != before {
            self.unwritten_since.get_or_insert_with(Instant::now);
        }
    }

    /// When to write down what was noted, if anything was.
    pub fn write_at(&self) -> Option<Instant> {
        self.unwritten_since.map(|since| since + WRITE_AFTER)
    }

    /// Writes down what was noted since the last time.
    pub fn write_down(&mut self, instance_dir: &InstanceDir) {
        if self.unwritten_since.take().is_some()
            && let Err(error) = self.write(instance_dir)
        {
            tracing::warn!("what the sessions do could not be written down: {error}");
        }
    }

    fn write(&self, instance_dir: &InstanceDir) -> io::Result<()> {
        let text = serde_json::to_vec(self)?;
        atomic::write_path(&instance_dir.last_seen(), &text, 0o600, Durability::Unsynced)
    }
}

impl LastSeen {
    /// Takes note of what was typed.
    pub fn typed(&mut self, bytes: &[u8]) {
        /// An interrupt and the end of input, as keys and as terminals with other keyboards send them.
        const ENDS: [&[u8]; 6] =
            [b"\x03", b"\x04", b"\x1b[99;5u", b"\x1b[100;5u", b"\x1b[27;5;99~", b"\x1b[27;5;100~"];
        self.typed = true;
        if ENDS.iter().any(|end| bytes.windows(end.len()).any(|part| part == *end)) {
            self.interrupted_ms = Some(clock::now().0);
        }
    }
}
