//! Which conversation a session is started in.
//!
//! One decision serves the first start, a restart, error recovery and a restore. It only ever says what to bind in
//! addition: nothing here forgets an id, so a look-up that failed can cost a resume and never a conversation.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use crate::choice::{Choice, choices};
use crate::decide::Decided;
use crate::session::{AstrayReason, Origin};
use crate::time::Timestamp;

choices! {
    /// Why a session is started the way it is, as logs spell it: `resume: id=… reason=…`.
    BeginReason, "reason" {
        DataPresent = "conversation_data_present": "the bound conversation's transcript is where the agent will look",
        Unverified = "transcript_unverified": "the transcript cannot be examined; the agent gets the exact id and reports if it is wrong",
        Fresh = "fresh_session": "the session never ran and no conversation was named",
        NoTranscriptYet = "no_transcript_yet": "the session ran, but nothing was said in it",
        TranscriptGone = "transcript_gone": "the transcript is gone",
        Discovered = "jsonl_discovery": "the session had no id, and what it wrote was found on disk",
        Ambiguous = "ambiguous": "the session had no id, and several transcripts could be its own",
        Held = "held_by_another_session": "another session is in this conversation now; two processes in one would tear its transcript apart",
        CannotResume = "agent_cannot_resume": "there is a conversation, but the agent has no option to continue it",
        AsTyped = "as_typed": "the operator's own arguments say which conversation",
        NoAgent = "no_agent": "what the operator runs is no agent that is known",
        NotDescribed = "conversations_not_described": "the configuration calls it an agent, and says nothing of its conversations",
        HeldElsewhere = "held_in_another_directory": "the conversation was held in another directory, and the agent continues it only there",
        NoConversation = "no_conversation": "what the operator runs holds no conversation, such as a login",
    }
}

/// What was found where an agent keeps the transcript of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Located {
    /// It is there, not empty, and not of another directory.
    Found(PathBuf),
    /// It is certainly not there, or empty: the agent would not find the conversation.
    Missing,
    /// It could not be found out, and why.
    Unknown(String),
}

/// A transcript on disk that could be a session's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptCandidate {
    /// The agent's id of the conversation.
    pub id: String,
    pub path: PathBuf,
    /// The directory recorded in it, without links.
    pub cwd: PathBuf,
    /// When it was last written to.
    pub modified: Timestamp,
    /// When it was begun, where that is known.
    pub begun: Option<Timestamp>,
    /// How long it is, in bytes.
    pub size: u64,
    /// What it is called, where the agent gives it a name apart from what was said in it.
    pub title: Option<String>,
}

/// What the operator's own arguments say about the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    Nothing,
    /// They choose one; the id if they name it, `None` for a picker or a fork.
    Conversation(Option<String>),
    /// They mean the latest one, whichever that is. Which one that is changes while others work, so it is named before
    /// the first start, and never asked for again.
    Latest,
    /// They run a command of the agent that is no conversation.
    Command,
}

/// The conversation that a session is bound to.
#[derive(Debug, Clone, Copy)]
pub struct BoundConversation<'a> {
    pub id: &'a str,
    /// Where its transcript is.
    pub located: &'a Located,
    /// Whether its transcript was ever seen.
    pub seen: bool,
    /// Whether another session is in it now.
    pub held: bool,
    /// Whether it was held in another directory, and the agent goes on with it only there.
    pub out_of_reach: bool,
}

/// What is known when a session is about to be started.
#[derive(Debug, Clone, Copy)]
pub struct Beginning<'a> {
    /// Whether it ran before.
    pub started_before: bool,
    /// When it was first started.
    pub created: Timestamp,
    /// The directory it runs in, without links.
    pub cwd: &'a Path,
    /// What the operator's arguments say.
    pub typed: &'a Typed,
    /// The conversation it is in.
    pub bound: Option<BoundConversation<'a>>,
    /// An id made for this start; `None` if the agent takes none.
    pub minted: Option<&'a str>,
    /// Whether the agent has an option to resume an id.
    pub can_resume: bool,
    /// Whether anything is known of where its conversations are, or of their ids.
    pub described: bool,
    /// Whether it runs a command of the operator's own. Such a wrapper may not have passed an id on, so that what
    /// successive runs of the session wrote is distinguished by time alone.
    pub wrapped: bool,
    pub candidates: &'a [TranscriptCandidate],
    /// Every id that any other session was ever in.
    pub claimed: &'a [&'a str],
    /// Whether another session whose conversation is not known runs the same agent in the same directory: what lies
    /// there may be its.
    pub rivals: bool,
    /// When something was first entered in the session.
    pub first_turn: FirstTurn,
    /// The candidates whose first words are on the session's screen.
    pub shown: &'a [String],
}

impl<'a> Beginning<'a> {
    fn discovery(&self) -> Discovery<'a> {
        let Self { created, cwd, candidates, claimed, rivals, wrapped, first_turn, shown, .. } = *self;
        Discovery { created, cwd, candidates, claimed, rivals, wrapped, first_turn, shown }
    }
}

/// When something was first entered in a session. An agent writes nothing before that, so a transcript that was begun
/// earlier is not its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstTurn {
    At(Timestamp),
    NotYet,
    /// That was not observed.
    Unknown,
}

/// How much earlier than it happened the file system may say that a file was made.
const CLOCK_GRAIN: i64 = 100;

/// What is known when a session's transcript is looked for among those of its directory.
#[derive(Debug, Clone, Copy)]
pub struct Discovery<'a> {
    /// When the session was first started.
    pub created: Timestamp,
    /// The directory it runs in, without links.
    pub cwd: &'a Path,
    pub candidates: &'a [TranscriptCandidate],
    /// Every id that any other session was ever in.
    pub claimed: &'a [&'a str],
    /// Whether another session whose conversation is not known runs the same agent in the same directory.
    pub rivals: bool,
    /// Whether it runs a command of the operator's own.
    pub wrapped: bool,
    /// When something was first entered in it.
    pub first_turn: FirstTurn,
    /// The candidates whose first words are on its screen.
    pub shown: &'a [String],
}

impl<'a> Discovery<'a> {
    fn is_shown(&self, candidate: &TranscriptCandidate) -> bool {
        self.shown.contains(&candidate.id)
    }

    /// Whether the transcript can be the session's own.
    fn may_be_own(&self, candidate: &TranscriptCandidate) -> bool {
        let since_a_turn = match self.first_turn {
            FirstTurn::NotYet => false,
            FirstTurn::Unknown => self.is_shown(candidate),
            FirstTurn::At(turn) => {
                let begun = candidate.begun.unwrap_or(candidate.modified);
                begun.0 + CLOCK_GRAIN >= turn.0 || self.is_shown(candidate)
            }
        };
        candidate.cwd == self.cwd
            && candidate.modified >= self.created
            && since_a_turn
            && !self.claimed.contains(&candidate.id.as_str())
    }

    /// The session's own transcript, if it can be identified; the newest of several that it wrote.
    pub fn own(&self) -> Decided<Option<&'a TranscriptCandidate>, BeginReason> {
        let mut own: Vec<&TranscriptCandidate> =
            self.candidates.iter().filter(|one| self.may_be_own(one)).collect();
        if own.iter().any(|one| self.is_shown(one)) {
            own.retain(|one| self.is_shown(one));
        }
        own.sort_by_key(|candidate| Reverse(candidate.modified));
        let found = match own.as_slice() {
            [] => return Decided::new(None, BeginReason::NoTranscriptYet),
            [only] if !self.rivals || self.is_shown(only) => only,
            [newest, next, ..]
                if !self.rivals
                    && (self.wrapped || self.is_shown(newest))
                    && newest.modified > next.modified =>
            {
                newest
            }
            _ => return Decided::new(None, BeginReason::Ambiguous),
        };
        Decided::new(Some(found), BeginReason::Discovered)
    }
}

/// What becomes of the first message in a session's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstMessage {
    Said,
    /// It may have been said before, and would run again unseen.
    LeftOut,
}

impl FirstMessage {
    fn left_out_if(was_said: bool) -> Self {
        if was_said { Self::LeftOut } else { Self::Said }
    }
}

/// How to start a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// In a new conversation.
    Fresh {
        /// The id it is given, if the agent takes one.
        minted: Option<String>,
        first_message: FirstMessage,
    },
    /// In an existing conversation.
    Resume { id: String },
    /// In the conversation it was given, with the same id again, because there is nothing to resume: nothing was said yet,
    /// or it is gone.
    Restart { id: String, first_message: FirstMessage },
    /// Exactly as the operator's arguments say.
    AsTyped {
        /// The conversation they name.
        id: Option<String>,
    },
}

impl Begin {
    /// The conversation that the session is in once it is started so, and how that is known. Binding one that is bound
    /// already changes nothing.
    pub fn binding(&self) -> Option<(&str, Origin)> {
        match self {
            Self::Fresh { minted, .. } => minted.as_deref().map(|id| (id, Origin::Minted)),
            Self::Resume { id } => Some((id, Origin::Discovered)),
            Self::Restart { id, .. } => Some((id, Origin::Minted)),
            Self::AsTyped { id } => id.as_deref().map(|id| (id, Origin::Adopted)),
        }
    }
}

/// Decides in which conversation a session is started.
pub fn begin(facts: &Beginning<'_>) -> Decided<Begin, BeginReason> {
    match (facts.typed, facts.bound) {
        (Typed::Command, _) => Decided::new(Begin::AsTyped { id: None }, BeginReason::NoConversation),
        (_, Some(bound)) => go_on(facts, bound),
        (_, None) if !facts.described && *facts.typed == Typed::Nothing => {
            fresh(facts, BeginReason::NotDescribed)
        }
        (_, None) if facts.started_before => search(facts),
        (_, None) => anew(facts, BeginReason::Fresh),
    }
}

fn go_on(facts: &Beginning<'_>, bound: BoundConversation<'_>) -> Decided<Begin, BeginReason> {
    let id = bound.id.to_owned();
    let named_it = matches!(facts.typed, Typed::Conversation(Some(typed)) if typed == bound.id);
    match bound.located {
        _ if bound.held => fresh(facts, BeginReason::Held),
        _ if bound.out_of_reach => fresh(facts, BeginReason::HeldElsewhere),
        Located::Found(_) | Located::Unknown(_) if !facts.can_resume => {
            fresh(facts, BeginReason::CannotResume)
        }
        Located::Found(_) => Decided::new(Begin::Resume { id }, BeginReason::DataPresent),
        Located::Unknown(_) => Decided::new(Begin::Resume { id }, BeginReason::Unverified),
        // Nothing was said yet in what the operator asked for, such as a fork: it is asked for once more.
        Located::Missing if named_it && !bound.seen => {
            Decided::new(Begin::AsTyped { id: Some(id) }, BeginReason::AsTyped)
        }
        // A wrapper may not have passed the id on that was made for it.
        Located::Missing
            if facts.wrapped
                && !bound.seen
                && facts.discovery().own().reason != BeginReason::NoTranscriptYet =>
        {
            search(facts)
        }
        Located::Missing => {
            let reason = if bound.seen { BeginReason::TranscriptGone } else { BeginReason::NoTranscriptYet };
            match facts.minted {
                Some(_) => Decided::new(
                    Begin::Restart { id, first_message: FirstMessage::left_out_if(bound.seen) },
                    reason,
                ),
                None => fresh(facts, reason),
            }
        }
    }
}

/// A session that ran, and whose conversation's id was never learned.
fn search(facts: &Beginning<'_>) -> Decided<Begin, BeginReason> {
    let Decided { decision, reason } = facts.discovery().own();
    match decision {
        None if reason == BeginReason::NoTranscriptYet => anew(facts, BeginReason::NoTranscriptYet),
        _ if !facts.can_resume => fresh(facts, BeginReason::CannotResume),
        None => fresh(facts, BeginReason::Ambiguous),
        Some(own) => Decided::new(Begin::Resume { id: own.id.clone() }, BeginReason::Discovered),
    }
}

/// Nothing is known to go on with: what the operator typed counts, if it says anything.
fn anew(facts: &Beginning<'_>, reason: BeginReason) -> Decided<Begin, BeginReason> {
    match facts.typed {
        Typed::Conversation(id) => Decided::new(Begin::AsTyped { id: id.clone() }, BeginReason::AsTyped),
        Typed::Latest if !facts.started_before => {
            Decided::new(Begin::AsTyped { id: None }, BeginReason::AsTyped)
        }
        Typed::Nothing | Typed::Command | Typed::Latest => fresh(facts, reason),
    }
}

fn fresh(facts: &Beginning<'_>, reason: BeginReason) -> Decided<Begin, BeginReason> {
    let minted = facts.minted.map(str::to_owned);
    Decided::new(
        Begin::Fresh { minted, first_message: FirstMessage::left_out_if(facts.started_before) },
        reason,
    )
}

/// A conversation that a session was seen in, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// The agent's id of it.
    pub id: String,
    /// How it was seen.
    pub origin: Origin,
    /// Its transcript, where that is known.
    pub transcript: Option<PathBuf>,
    /// The session that is in it now, if that is another one.
    pub held_by: Option<String>,
}

/// What a session that has been running is to be bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Follow {
    /// What it is bound to already, if anything.
    Stay,
    /// This one; the one before is parked.
    Bind(Sighting),
    /// What it was bound to already: nothing says which of several it is in.
    Refuse(Sighting),
    /// What it was bound to already, although its agent is in this one, and why.
    Astray(Sighting, AstrayReason),
}

/// Whether it is known where a run came up that was started to resume a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is, or there was nothing to resume: an agent that is elsewhere now went there later.
    Settled,
    /// It is not: the first sighting says where it came up.
    Awaited,
}

/// Decides which conversation a running session is in. `sightings` come in the order of trust, the best first, and of the
/// same kind the newest first; `bound` is what it is bound to.
pub fn follow(bound: Option<&str>, arrival: Arrival, sightings: Vec<Sighting>) -> Decided<Follow> {
    // What lies on disk says nothing against a conversation that is known.
    let counts = |seen: &Sighting| bound.is_none() || seen.origin != Origin::Discovered;
    let mut counting = sightings.into_iter().filter(counts);
    match (counting.next(), counting.next()) {
        (None, _) => Decided::new(Follow::Stay, "nothing was seen"),
        (Some(best), _) if Some(best.id.as_str()) == bound => {
            Decided::new(Follow::Stay, "it is where it was")
        }
        (Some(best), _) if best.held_by.is_some() => {
            let holder = best.held_by.clone().unwrap_or_default();
            Decided::new(Follow::Astray(best, AstrayReason::Held), format!("{holder} is in it"))
        }
        (Some(best), _) if bound.is_some() && arrival == Arrival::Awaited => {
            let reason = AstrayReason::CameUpElsewhere;
            Decided::new(Follow::Astray(best, reason), reason.meaning())
        }
        (Some(best), Some(next)) if best.origin == Origin::Discovered && next.origin == best.origin => {
            Decided::new(Follow::Refuse(best), BeginReason::Ambiguous.as_str())
        }
        (Some(best), _) => {
            let seen = match best.origin {
                Origin::Hook => "the agent reported it",
                Origin::OpenFile => "the agent has it open",
                Origin::Inferred => "it was inferred from the file that the agent wrote while it was working",
                _ => BeginReason::Discovered.as_str(),
            };
            Decided::new(Follow::Bind(best), seen)
        }
    }
}

#[cfg(test)]
mod tests;
