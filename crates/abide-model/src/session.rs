//! One PTY process inside an instance, and the conversation it is in.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::choice::choices;
use crate::id::SessionId;
use crate::instance::Extra;
use crate::time::Timestamp;

choices! {
    /// How a conversation id came to be known, most trustworthy first.
    Origin, "origin of a conversation" {
        Minted = "minted": "abide made the id and the agent took it",
        Hook = "hook": "the agent reported it",
        OpenFile = "open-file": "the agent holds its transcript open",
        Discovered = "discovered": "it was the one matching transcript on disk",
        Adopted = "adopted": "the operator named it",
    }
}

/// The agent's own chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// The agent's own id for it.
    pub id: String,
    /// How the id came to be known.
    pub origin: Origin,
    /// When it was bound to the session.
    pub bound: Timestamp,
    /// Where the agent writes it, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<PathBuf>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Its exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether it was ended together with its capsule, and not by itself: such a session comes back with the instance.
    #[serde(default)]
    pub stopped: bool,
    /// When.
    pub at: Timestamp,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) => f.write_str("ended"),
        }
    }
}

/// One session, as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id within the instance.
    pub id: SessionId,
    /// What the operator calls it.
    pub name: String,
    /// The agent it runs; `None` for a shell or any other command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What was started, without anything that only a resume adds.
    pub argv: Vec<String>,
    /// Where.
    pub cwd: PathBuf,
    /// How often it was started. Events and answers of an earlier process do not count for a later one.
    #[serde(default)]
    pub generation: u64,
    /// A note of the operator's: `review`, `tests`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The conversation it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// Conversations it was in before. An id is parked here, never erased.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parked: Vec<Conversation>,
    /// When it was first started.
    pub created: Timestamp,
    /// When somebody last looked at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Timestamp>,
    /// How its process ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Session {
    /// Puts the session into `conversation`, parking the one it was in. Returns whether anything changed.
    pub fn bind(&mut self, conversation: Conversation) -> bool {
        match self.conversation.take() {
            Some(same) if same.id == conversation.id => {
                // What is known of the transcript stays known.
                let transcript = conversation.transcript.or_else(|| same.transcript.clone());
                let changed = transcript != same.transcript;
                self.conversation = Some(Conversation { transcript, ..same });
                return changed;
            }
            Some(other) => self.parked.push(other),
            None => {}
        }
        self.parked.retain(|c| c.id != conversation.id);
        self.conversation = Some(conversation);
        true
    }

    /// Whether the session comes back with its instance: it never ended, or not of its own accord.
    pub fn comes_back(&self) -> bool {
        self.exit.as_ref().is_none_or(|exit| exit.stopped)
    }

    /// Every conversation id this session was ever in, the current one first.
    pub fn claimed(&self) -> impl Iterator<Item = &str> {
        self.conversation.iter().chain(self.parked.iter().rev()).map(|c| c.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn conversation(id: &str) -> Conversation {
        Conversation {
            id: id.to_owned(),
            origin: Origin::Hook,
            bound: Timestamp(0),
            transcript: None,
            extra: Extra::default(),
        }
    }

    fn session() -> Session {
        Session {
            id: SessionId(1),
            name: "claude".into(),
            agent: Some("claude".into()),
            argv: vec!["claude".into()],
            cwd: "/".into(),
            generation: 1,
            label: None,
            conversation: None,
            parked: Vec::new(),
            created: Timestamp(0),
            attached: None,
            exit: None,
            extra: Extra::default(),
        }
    }

    #[test]
    fn a_new_id_parks_the_old_one() {
        let mut session = session();
        assert!(session.bind(conversation("a")));
        assert!(session.bind(conversation("b")));
        assert!(!session.bind(conversation("b")), "binding the same again changes nothing");
        assert_eq!(session.claimed().collect::<Vec<_>>(), ["b", "a"]);
    }

    #[test]
    fn a_rebind_does_not_forget_where_the_transcript_is() {
        let mut session = session();
        session.bind(Conversation { transcript: Some("/t.jsonl".into()), ..conversation("a") });
        assert!(!session.bind(conversation("a")));
        assert_eq!(session.conversation.unwrap().transcript, Some("/t.jsonl".into()));
    }

    proptest! {
        #[test]
        fn no_sequence_of_bindings_ever_loses_an_id(ids in proptest::collection::vec("[a-e]", 1..20)) {
            let mut session = session();
            for id in &ids {
                session.bind(conversation(id));
                prop_assert_eq!(&session.conversation.as_ref().unwrap().id, id);
            }
            let mut claimed: Vec<_> = session.claimed().map(str::to_owned).collect();
            let mut expected = ids;
            for list in [&mut claimed, &mut expected] {
                list.sort();
            }
            expected.dedup();
            prop_assert_eq!(claimed, expected, "each id exactly once");
        }
    }
}
