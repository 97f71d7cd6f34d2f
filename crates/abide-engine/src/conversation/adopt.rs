//! Taking up a conversation that is there, instead of beginning a new one.

use std::path::{Path, PathBuf};

use abide_agents::{Located, TranscriptCandidate, Typed};
use abide_config::Settings;
use abide_model::session::Origin;
use abide_model::{Conversation, Extra, Session, Timestamp};
use abide_store::{Store, StoreError};
use abide_sys::clock;

use crate::conversation::agent_environment;
use crate::conversation::claims::Claims;
use crate::conversation::holders::{HeldBy, LiveHolders};
use crate::conversation::list::{self, AgentPlace, KnownConversation};
use crate::start::launch::LaunchContext;
use crate::target;

/// What to take up instead of a new conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    Adopt(String),
    /// A copy of this conversation, or of the one that this session is in.
    Fork(String),
}

/// Why a conversation was not taken up.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    #[error("there is no conversation `{0}` in this directory; `abide conversations` lists them")]
    NotFound(String),
    #[error("`{0}` matches more than one conversation; type more of the id")]
    Several(String),
    /// The session is in none.
    #[error("{0} has no conversation yet; send it a message first")]
    NotInOne(String),
    /// The agent cannot do that.
    #[error("{0} cannot copy a conversation; `--adopt` continues the conversation itself")]
    CannotFork(String),
    /// The agent finds a conversation only where it was held.
    #[error(
        "{agent} can only continue a conversation in its original directory, and {id} belongs to {}; {}", dir.display(), way_there(dir)
    )]
    HeldElsewhere { agent: String, id: String, dir: PathBuf },
    /// Another session or process is in it.
    #[error("conversation {id} is in use by {by}; {}, or start a copy with `abide load --fork {id}`", by.way_out())]
    Held { id: String, by: HeldBy },
    /// The transcripts on disk could not be matched with the sessions that use them.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn way_there(dir: &Path) -> &'static str {
    match dir.exists() {
        true => "start it there",
        false => "if an instance had that directory, `abide trash list` shows whether it can be restored",
    }
}

/// A conversation that was found, and how its agent is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedConversation {
    /// The agent's name, as `abide load` takes it.
    pub agent: String,
    id: String,
    transcript: Option<PathBuf>,
    held_in: Option<PathBuf>,
    config_dir: PathBuf,
    fork: bool,
}

/// Finds what `take` means in `dir`, for `agent` if one was asked for.
pub fn find(
    ctx: &LaunchContext<'_>,
    dir: &Path,
    agent: Option<&str>,
    take: &Take,
) -> Result<AdoptedConversation, TakeError> {
    let (word, fork) = match take {
        Take::Adopt(word) => (word, false),
        Take::Fork(word) => (word, true),
    };
    let asked_for = |place: &AgentPlace| agent.is_none_or(|name| place.name == name);
    let (settings, env, home) = (ctx.settings, &ctx.env, &ctx.home);
    let places = match agent {
        Some(name) => list::place(settings, env, home, name).into_iter().collect(),
        None => list::places(settings, env, home),
    };
    for place in &places {
        if let Located::Found(path) = place.agent.transcript(&place.dir, dir, word) {
            return Ok(taken(place, word.clone(), Some(path), None, fork));
        }
    }
    if fork && let Some(found) = of_session(ctx.store, word)? {
        return Ok(found);
    }
    let mut recorded = list::recorded_places(ctx.store, Some(dir))?;
    recorded.retain(|(place, _)| asked_for(place));
    let means = |known: &KnownConversation<'_>| {
        let id = &known.candidate.id;
        id == word || (word.len() >= 4 && id.starts_with(word))
    };
    let mut found = list::known(&places, &recorded, Some(dir));
    found.retain(means);
    match (found.pop(), found.is_empty()) {
        (Some(KnownConversation { place, candidate }), true) => of_disk(place, candidate, dir, fork),
        (Some(_), false) => Err(TakeError::Several(word.clone())),
        // An agent whose conversations cannot be seen is given the id, and says itself if there is no such one.
        (None, _) => match places.as_slice() {
            [only] if agent.is_some() && cannot_be_seen(only, dir, word) => {
                Ok(taken(only, word.clone(), None, None, fork))
            }
            _ => Err(TakeError::NotFound(word.clone())),
        },
    }
}

fn taken(
    place: &AgentPlace,
    id: String,
    transcript: Option<PathBuf>,
    held_in: Option<PathBuf>,
    fork: bool,
) -> AdoptedConversation {
    AdoptedConversation {
        agent: place.name.clone(),
        id,
        transcript,
        held_in,
        config_dir: place.dir.clone(),
        fork,
    }
}

/// A conversation that is on disk, for a session in `dir`.
fn of_disk(
    place: &AgentPlace,
    candidate: TranscriptCandidate,
    dir: &Path,
    fork: bool,
) -> Result<AdoptedConversation, TakeError> {
    let TranscriptCandidate { id, path, cwd, .. } = candidate;
    let elsewhere = Some(cwd).filter(|cwd| cwd != dir);
    match elsewhere {
        Some(held_in) if !place.agent.profile().resumes_anywhere => {
            Err(TakeError::HeldElsewhere { agent: place.name.clone(), id, dir: held_in })
        }
        held_in => Ok(taken(place, id, Some(path), held_in, fork)),
    }
}

fn cannot_be_seen(place: &AgentPlace, dir: &Path, id: &str) -> bool {
    let argv = [place.agent.program().to_owned()];
    let unseen = matches!(place.agent.transcript(&place.dir, dir, id), Located::Unknown(_));
    unseen && place.agent.profile().said.is_none() && place.agent.resume(&argv, id).is_some()
}

/// The conversation of the session that `word` names, or of the one agent in the instance that it names.
fn of_session(store: &Store, word: &str) -> Result<Option<AdoptedConversation>, TakeError> {
    let Ok(found) = target::find(store, word) else { return Ok(None) };
    let meant = |session: &&Session| match found.session {
        Some(id) => session.id == id,
        None => session.agent.is_some(),
    };
    let mut sessions = found.instance.sessions.iter().filter(meant);
    let not_in_one = || TakeError::NotInOne(word.to_owned());
    let session = sessions.next().ok_or_else(not_in_one)?;
    if sessions.next().is_some() {
        return Err(TakeError::Several(word.to_owned()));
    }
    let bound = session.conversation.clone().ok_or_else(not_in_one)?;
    let (agent, setup) = agent_environment::agent_of(session).ok_or_else(not_in_one)?;
    // There is an id before anything was said, and nothing to copy.
    if agent.transcript(&setup.config_dir, &session.cwd, &bound.id) == Located::Missing {
        return Err(not_in_one());
    }
    Ok(Some(AdoptedConversation {
        agent: session.agent.clone().ok_or_else(not_in_one)?,
        id: bound.id,
        transcript: bound.transcript,
        held_in: None,
        config_dir: setup.config_dir.clone(),
        fork: true,
    }))
}

impl AdoptedConversation {
    /// Makes sure that nothing is in it that would write to it too, as long as the result is held.
    pub(crate) fn claim(&self, store: &Store, settings: &Settings) -> Result<Claims, TakeError> {
        let claims = Claims::take(store)?;
        let described = settings.agents.get(self.agent.as_str());
        let command = described.and_then(|agent| agent.command.clone());
        let argv = command.unwrap_or_else(|| vec![self.agent.clone()]);
        let agent = abide_agents::for_session(&self.agent, &argv, described.map(|d| d.described()).as_ref());
        let live = || LiveHolders::of(&*agent, &self.config_dir).holder(&self.id, None, &claims);
        let holder = || claims.holder(None, &self.id).map(HeldBy::Session).or_else(live);
        match if self.fork { None } else { holder() } {
            Some(by) => Err(TakeError::Held { id: self.id.clone(), by }),
            None => Ok(claims),
        }
    }

    /// The command line that takes it up, where that is more than `argv`, and what the session is in from the beginning.
    pub fn by(
        self,
        argv: Vec<String>,
        settings: &Settings,
    ) -> Result<(Vec<String>, Option<Conversation>), TakeError> {
        if self.fork {
            let described = settings.agents.get(self.agent.as_str()).map(|agent| agent.described());
            let agent = abide_agents::for_session(&self.agent, &argv, described.as_ref());
            let minted = if agent.mints() { abide_agents::mint_uuid().ok() } else { None };
            let forked = agent.fork(&argv, &self.id, minted.as_deref());
            return Ok((forked.ok_or(TakeError::CannotFork(self.agent))?, None));
        }
        let adopted = Conversation {
            id: self.id,
            origin: Origin::Adopted,
            bound: clock::now(),
            transcript: self.transcript,
            held_in: self.held_in,
            extra: Extra::new(),
        };
        Ok((argv, Some(adopted)))
    }
}

/// `argv` of the agent `name` with the latest conversation of `dir` named where it means the latest one, and what the
/// operator should know about that. Which one is the latest changes while others work in the directory, and may be one
/// that another process is in.
pub(crate) fn name_latest(
    ctx: &LaunchContext<'_>,
    name: &str,
    argv: Vec<String>,
    dir: &Path,
) -> (Vec<String>, Option<String>) {
    let described = ctx.settings.agents.get(name);
    let agent = abide_agents::for_session(name, &argv, described.map(|d| d.described()).as_ref());
    let can_be_seen = agent.profile().said.is_some() || agent.profile().shared.is_some();
    if agent.typed(&argv) != Typed::Latest || !can_be_seen {
        return (argv, None);
    }
    let config_dir = agent_environment::chosen_dir(&*agent, described, &ctx.env);
    let config_dir = config_dir.unwrap_or_else(|| agent.default_dir(&ctx.home));
    let latest = agent.discover(&config_dir, Some(dir), Timestamp(0)).into_iter().next();
    let none = || format!("there is no conversation in this directory to continue; {name} starts a new one");
    let notice = if latest.is_none() { Some(none()) } else { None };
    (agent.latest_named(&argv, latest.as_ref().map(|latest| latest.id.as_str())), notice)
}
