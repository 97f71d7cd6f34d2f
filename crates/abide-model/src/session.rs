//! One PTY process inside an instance, and the conversation it is in.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::choice::choices;
use crate::id::SessionId;
use crate::instance::Extra;
use crate::program::SHELL;
use crate::session_end::Interruption;
use crate::time::Timestamp;

choices! {
    /// How a conversation id came to be known, most trustworthy first.
    Origin, "origin of a conversation" {
        Minted = "minted": "abide chose the id and the agent accepted it",
        Hook = "hook": "the agent reported it",
        OpenFile = "open-file": "the agent holds its transcript open",
        Inferred = "inferred": "it was inferred from the file that the agent wrote while it was working",
        Discovered = "discovered": "it was inferred from the transcripts on disk: it began after the session's first turn, or its text is on the screen",
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
    /// The directory it was held in, where that is another one than the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_in: Option<PathBuf>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A conversation that a session's agent was seen in, though the session is bound to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Astray {
    /// The agent's id of it.
    pub id: String,
    /// Why the session is not bound to it.
    pub reason: AstrayReason,
    /// The session that is bound to it, if one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// When it was first seen in it.
    pub since: Timestamp,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

choices! {
    /// Why a session is not bound to the conversation that its agent is in.
    AstrayReason, "reason" {
        Held = "held": "it belongs to another session",
        CameUpElsewhere = "came-up-elsewhere": "it should have resumed another one",
    }
}

impl Astray {
    /// What the operator should know, of a session called `name` that is bound to `bound`.
    pub fn notice(&self, name: &str, bound: Option<&str>) -> String {
        let own = match bound {
            Some(bound) => format!("a resume goes to {bound}"),
            None => "a resume starts a new one".to_owned(),
        };
        match (self.reason, &self.held_by) {
            (AstrayReason::CameUpElsewhere, _) => format!(
                "{name} should have resumed {}, but is in conversation {}; {own}, and `abide load --adopt {}` continues the other",
                bound.unwrap_or("a conversation"),
                self.id,
                self.id,
            ),
            (AstrayReason::Held, holder) => format!(
                "{name} is in conversation {}, which belongs to {}: both write to it, and only one branch can be resumed; {own}",
                self.id,
                holder.as_deref().unwrap_or("another session"),
            ),
        }
    }
}

/// A known agent that runs below a plain command, with a conversation that no resume of the session comes back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentBelow {
    pub agent: String,
    /// Its id of the conversation.
    pub id: String,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionExit {
    /// Its exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether it was ended together with its capsule, and not by itself: such a session comes back with the instance.
    #[serde(default)]
    pub stopped: bool,
    pub at: Timestamp,
    /// Why it never came up, if it ended right after its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Why it is kept: neither it nor its operator wanted it to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

impl std::fmt::Display for SessionExit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit {code}"),
            (None, Some(signal)) => write!(f, "signal {signal}"),
            (None, None) if self.why.is_some() => f.write_str("did not start"),
            (None, None) => f.write_str("ended"),
        }
    }
}

impl SessionExit {
    /// Of a session that could not be started beside the others. The next resume tries it again.
    pub fn not_started(why: &str, at: Timestamp) -> Self {
        Self {
            code: None,
            signal: None,
            stopped: true,
            at,
            why: Some(why.to_owned()),
            cut: None,
            extra: Extra::default(),
        }
    }
}

/// How a session's agent was set up at its first start. Replayed at every later one, whatever the configuration says by
/// then: an agent that is given another directory does not find its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Where the agent keeps its conversations.
    pub config_dir: PathBuf,
    /// Whether that was chosen, by the configuration or the environment, and must be passed to the agent.
    #[serde(default)]
    pub moved: bool,
    /// How it deals with conversations, for an agent that abide does not know.
    #[serde(flatten)]
    pub described: Described,
    /// Whether a resumed agent continues an interrupted turn.
    #[serde(default)]
    pub continue_turn: bool,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How an agent that abide does not know deals with conversations, as the configuration describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// The agent that abide knows and that its command ends in; then nothing else here counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// The command that resumes `{id}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume: Option<Vec<String>>,
    /// The command that begins a copy of `{id}`, as `{new}` if it takes an id for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Vec<String>>,
    /// The arguments that give a new conversation its `{id}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_args: Option<Vec<String>>,
    /// The variable that says which conversation, a new one or one that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_env: Option<String>,
    /// Where transcripts are: a pattern with `{id}` in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcripts: Option<String>,
    /// What it says when it cannot go on, by what that means.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fatal: BTreeMap<String, Vec<String>>,
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
    pub cwd: PathBuf,
    /// How often it was started. Events and answers of an earlier process do not count for a later one.
    #[serde(default)]
    pub generation: u64,
    /// How its agent was set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// Another conversation that its agent was seen in, which the session is not bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub astray: Option<Astray>,
    /// The agent that was seen below it, where it is a plain command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<AgentBelow>,
    /// Whether this run was started to resume its conversation, and its agent was not seen in it yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resume_unconfirmed: bool,
    /// Conversations it was in before. An id is parked here, never erased.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parked: Vec<Conversation>,
    /// When it was first started.
    pub created: Timestamp,
    /// When a client was last attached to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached: Option<Timestamp>,
    /// How its process ended, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<SessionExit>,
    /// What was left open when its agent last ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<Interruption>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Session {
    /// A session that is started for the first time.
    pub fn new(id: SessionId, name: String, argv: Vec<String>, cwd: PathBuf, created: Timestamp) -> Self {
        Self {
            id,
            name,
            agent: None,
            argv,
            cwd,
            generation: 1,
            setup: None,
            conversation: None,
            astray: None,
            below: None,
            resume_unconfirmed: false,
            parked: Vec::new(),
            created,
            attached: None,
            exit: None,
            interruption: None,
            extra: Extra::new(),
        }
    }

    /// Puts the session into `conversation`, parking the one it was in. Returns whether anything changed.
    pub fn bind(&mut self, conversation: Conversation) -> bool {
        match self.conversation.take() {
            Some(same) if same.id == conversation.id => {
                // What is known of the transcript stays known.
                let transcript = conversation.transcript.or_else(|| same.transcript.clone());
                let changed = transcript != same.transcript;
                let held_in = conversation.held_in.or_else(|| same.held_in.clone());
                self.conversation = Some(Conversation { transcript, held_in, ..same });
                return changed;
            }
            Some(other) => self.parked.push(other),
            None => {}
        }
        self.parked.retain(|c| c.id != conversation.id);
        self.conversation = Some(conversation);
        true
    }

    /// What the operator should know of the conversation that its agent was last seen in, if it is not the session's own.
    pub fn astray_notice(&self) -> Option<String> {
        let bound = self.conversation.as_ref().map(|bound| bound.id.as_str());
        self.astray.as_ref().map(|astray| astray.notice(&self.name, bound))
    }

    /// What the operator should know of the agent that runs below it, if it is a plain command.
    pub fn below_notice(&self) -> Option<String> {
        let AgentBelow { agent, id, .. } = self.below.as_ref()?;
        let command = match self.argv.first() {
            Some(command) if self.name != SHELL => format!("abide load --as {agent} {command} --adopt {id}"),
            _ => format!("abide load {agent} --adopt {id}"),
        };
        Some(format!(
            "{} ran {agent} in conversation {id}, which is not resumed automatically; `{command}` continues it",
            self.name
        ))
    }

    /// Whether the session comes back with its instance: it never ended, or not of its own accord.
    pub fn comes_back(&self) -> bool {
        self.exit.as_ref().is_none_or(|exit| exit.stopped)
    }

    /// Why the session is not over although its process is, if that is so: its agent failed to come back, or neither it nor
    /// its operator wanted it to end.
    pub fn cut_short(&self) -> Option<String> {
        let exit = self.exit.as_ref()?;
        let failed = exit.why.clone().filter(|_| self.generation > 1);
        failed.or_else(|| Some(format!("{}: {}", self.name, exit.cut.as_ref()?)))
    }

    /// Whether anything was said in its conversation, as far as is known.
    pub fn has_spoken(&self) -> bool {
        let begun = |bound: &Conversation| bound.transcript.is_some() || bound.origin != Origin::Minted;
        self.conversation.as_ref().is_some_and(begun)
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
            held_in: None,
            extra: Extra::default(),
        }
    }

    fn session() -> Session {
        let argv = vec!["claude".into()];
        let session = Session::new(SessionId(1), "claude".into(), argv, "/".into(), Timestamp(0));
        Session { agent: Some("claude".into()), ..session }
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
