//! From what is remembered of a session to the command line that starts it: gathers the facts, has them decided, and spells
//! the decision.

use std::io;
use std::path::{Path, PathBuf};

use abide_model::conversation::{
    self, Begin, BeginReason, Beginning, BoundConversation, FirstTurn, Located, TranscriptCandidate,
};
use abide_model::{Conversation, Decided, Timestamp};

use crate::agent::Agent;
use crate::files::{is_torn, real};
use crate::mint::mint_uuid;

/// What is remembered of a session that is about to be started.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// What the operator wants to run.
    pub argv: &'a [String],
    pub cwd: &'a Path,
    /// The agent's directory, where it keeps its conversations.
    pub config_dir: &'a Path,
    /// When the session was first started.
    pub created: Timestamp,
    /// Whether it ran before.
    pub started_before: bool,
    pub conversation: Option<&'a Conversation>,
    /// Its transcript, if that is put back before the start where the agent has it no longer.
    pub put_back: Option<&'a Path>,
    /// Whether another session is in that conversation now.
    pub held: bool,
    /// Every id that any other session was ever in.
    pub claimed: &'a [&'a str],
    /// Whether another session whose conversation is not known runs the same agent in the same directory.
    pub rivals: bool,
    /// When something was first entered in the session.
    pub first_turn: FirstTurn,
    /// What the session shows, or last showed.
    pub screen: &'a str,
}

/// How a session is started.
#[derive(Debug)]
pub struct Prepared {
    /// What was decided, and why. `begin.decision.binding()` is to be bound before the start.
    pub begin: Decided<Begin, BeginReason>,
    pub argv: Vec<String>,
    /// The transcript that the agent will go on with, if it was seen.
    pub transcript: Option<PathBuf>,
    /// Whether the end of that transcript is cut off.
    pub torn: bool,
    /// Why the transcript of the bound conversation could not be examined.
    pub unverified: Option<String>,
}

/// Decides how the session is started, and spells it.
pub fn prepare(agent: &dyn Agent, situation: &Situation<'_>) -> io::Result<Prepared> {
    let Situation { argv, cwd, config_dir, created, .. } = *situation;
    let located = |bound: &Conversation| match agent.transcript(config_dir, cwd, &bound.id) {
        Located::Missing if let Some(path) = situation.put_back => Located::Found(path.to_owned()),
        located => located,
    };
    let bound = situation.conversation.map(|bound| (bound, located(bound)));
    // The bound conversation may not be the one it wrote, if that was not seen yet.
    let unseen = |(bound, located): &(&Conversation, Located)| {
        bound.transcript.is_none() && *located == Located::Missing
    };
    let candidates = match situation.started_before && bound.as_ref().is_none_or(unseen) {
        true => agent.discover(config_dir, Some(cwd), created),
        false => Vec::new(),
    };
    let minted = if agent.mints() { Some(mint_uuid()?) } else { None };
    let begin = conversation::begin(&Beginning {
        started_before: situation.started_before,
        created,
        cwd: &real(cwd),
        typed: &agent.typed(argv),
        bound: bound.as_ref().map(|(bound, located)| BoundConversation {
            id: &bound.id,
            located,
            seen: bound.transcript.is_some(),
            held: situation.held,
            out_of_reach: !agent.profile().resumes_anywhere
                && bound.held_in.as_ref().is_some_and(|dir| real(dir) != real(cwd)),
        }),
        minted: minted.as_deref(),
        can_resume: bound.as_ref().map_or(agent.resumes(), |(b, _)| agent.resume(argv, &b.id).is_some()),
        described: agent.is_described(),
        wrapped: is_wrapped(agent, argv),
        candidates: &candidates,
        claimed: situation.claimed,
        rivals: situation.rivals,
        first_turn: situation.first_turn,
        shown: &shown(agent, &candidates, situation.screen),
    });
    // Nothing is decided that the agent cannot do, so that this never falls back.
    let argv = agent.command(argv, &begin.decision).unwrap_or_else(|| argv.to_vec());
    let (transcript, unverified) = match bound {
        Some((_, Located::Found(path))) => (Some(path), None),
        Some((_, Located::Unknown(why))) => (None, Some(why)),
        Some((_, Located::Missing)) | None => (taken(&begin.decision, candidates), None),
    };
    let torn = agent.profile().shared.is_none() && transcript.as_deref().is_some_and(is_torn);
    Ok(Prepared { begin, argv, transcript, torn, unverified })
}

/// What only the configuration describes is the operator's own, whatever it is called.
pub fn is_wrapped(agent: &dyn Agent, argv: &[String]) -> bool {
    argv.first().and_then(|word| word.rsplit('/').next()) != Some(agent.profile().grammar.program)
}

/// The transcript of the candidate that was taken, if one was.
fn taken(begin: &Begin, candidates: Vec<TranscriptCandidate>) -> Option<PathBuf> {
    let Begin::Resume { id } = begin else { return None };
    candidates.into_iter().find(|candidate| candidate.id == *id).map(|candidate| candidate.path)
}

/// How much of the first words of a conversation is looked for on a screen, which may cut the rest.
const WORDS_SHOWN: usize = 48;

/// The candidates whose first words `screen` shows.
pub fn shown(agent: &dyn Agent, candidates: &[TranscriptCandidate], screen: &str) -> Vec<String> {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let screen = plain(screen);
    let is_shown = |candidate: &&TranscriptCandidate| {
        let words = agent.title(&candidate.path).map(|title| plain(&title)).unwrap_or_default();
        let begins: String = words.chars().take(WORDS_SHOWN).collect();
        begins.len() >= 3 && screen.contains(&begins)
    };
    candidates.iter().filter(is_shown).map(|candidate| candidate.id.clone()).collect()
}
