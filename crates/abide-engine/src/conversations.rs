//! Conversations on disk: what agents keep for a directory, whose each one is, and taking one up.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use abide_agents::{Candidate, Chosen, KNOWN, Located};
use abide_config::Settings;
use abide_model::session::Origin;
use abide_model::{Conversation, Extra, Instance, Session, Timestamp};
use abide_store::{Error, Store};
use abide_sys::clock;
use serde::Serialize;

use crate::claims::Claims;
use crate::start::Surroundings;
use crate::{equip, target};

/// What a list of conversations says; a promise to scripts, described in `docs/json.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// The version of this shape.
    pub version: u32,
    /// The conversations, the newest first.
    pub conversations: Vec<Row>,
}

/// One conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The agent that it was held with, as it is started.
    pub agent: String,
    /// The agent's id of it.
    pub id: String,
    /// What the operator said first in it.
    pub title: Option<String>,
    /// The directory it was held in.
    pub dir: String,
    /// When something was last said in it.
    pub last: Timestamp,
    /// How long its transcript is.
    pub bytes: u64,
    /// Whether a session is in it.
    pub claim: Claim,
    /// The session that is in it, or was.
    pub session: Option<String>,
}

/// Whether a session is in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// One is.
    Held,
    /// One was, and has begun another, was closed or removed.
    Left,
    /// None ever was.
    Free,
}

/// What to take up instead of a new conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Take {
    /// This conversation itself.
    Adopt(String),
    /// A copy of this conversation, or of the one that this session is in.
    Fork(String),
}

/// Why a conversation was not taken up.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// There is none.
    #[error("there is no conversation `{0}` of this directory; `abide conversations` lists what there is")]
    NotFound(String),
    /// Several are meant.
    #[error("`{0}` means more than one conversation; write more of the id")]
    Several(String),
    /// The session is in none.
    #[error("{0} is in no conversation yet; say something to it first")]
    NotInOne(String),
    /// The agent can not do that.
    #[error(
        "{0} can not go on with a copy of a conversation; `--adopt` goes on with the conversation itself"
    )]
    CanNotFork(String),
    /// Another session is in it.
    #[error("{by} is in conversation {id}; attach to it, or `abide load --fork {id}` begins a copy of it")]
    Held {
        /// The conversation.
        id: String,
        /// Who is in it.
        by: String,
    },
    /// What is on disk could not be told from what others hold.
    #[error(transparent)]
    Store(#[from] Error),
}

/// A conversation that was found, and how its agent is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The agent's name, as `abide load` takes it.
    pub agent: String,
    id: String,
    transcript: Option<PathBuf>,
    fork: bool,
}

/// An agent of the configuration or of our own knowledge, and where it keeps its conversations now.
struct Place {
    name: String,
    agent: Chosen,
    dir: PathBuf,
}

/// The conversations held in `dir`, or in any directory.
pub fn list(around: &Surroundings<'_>, dir: Option<&Path>) -> Result<Listing, Error> {
    let owners = owners(around.store)?;
    let mut rows = Vec::new();
    for place in places(around.settings, &around.env, &around.home) {
        let found = place.agent.discover(&place.dir, dir, Timestamp(0));
        rows.extend(found.iter().map(|candidate| row(&place, candidate, &owners)));
    }
    rows.sort_by(|a, b| b.last.cmp(&a.last).then_with(|| a.id.cmp(&b.id)));
    Ok(Listing { version: 1, conversations: rows })
}

fn row(place: &Place, candidate: &Candidate, owners: &HashMap<String, (Claim, String)>) -> Row {
    let owner = owners.get(&candidate.id).cloned();
    Row {
        agent: place.name.clone(),
        id: candidate.id.clone(),
        title: candidate.title.clone().or_else(|| place.agent.title(&candidate.path)),
        dir: candidate.cwd.display().to_string(),
        last: candidate.modified,
        bytes: candidate.size,
        claim: owner.as_ref().map_or(Claim::Free, |(claim, _)| *claim),
        session: owner.map(|(_, who)| who),
    }
}

fn places(settings: &Settings, env: &BTreeMap<OsString, OsString>, home: &Path) -> Vec<Place> {
    let place = |name: &str| {
        let described = settings.agents.get(name);
        let command =
            described.and_then(|agent| agent.command.clone()).unwrap_or_else(|| vec![name.to_owned()]);
        let agent = abide_agents::for_session(name, &command, described.map(|d| d.described()).as_ref());
        let chosen = equip::chosen_dir(&*agent, described, env);
        let dir = chosen.unwrap_or_else(|| agent.default_dir(home));
        Place { name: name.to_owned(), agent, dir }
    };
    let mut places: Vec<Place> = KNOWN.iter().map(|agent| place(agent.name())).collect();
    for name in settings.agents.keys() {
        let more = place(name.as_str());
        // Two names for one agent with one directory would list everything twice.
        let same = |known: &Place| known.agent.name() == more.agent.name() && known.dir == more.dir;
        if !places.iter().any(same) {
            places.push(more);
        }
    }
    places
}

/// Which session is, or was, in which conversation.
fn owners(store: &Store) -> Result<HashMap<String, (Claim, String)>, Error> {
    let mut owners = HashMap::new();
    for entry in store.trashed()?.iter().filter_map(|entry| entry.content.as_ref().ok()) {
        note(&mut owners, entry, |_| Claim::Left);
    }
    for instance in store.list()?.iter().filter_map(abide_store::Entry::sound) {
        let in_it = |session: &Session, id: &str| session.conversation.as_ref().is_some_and(|c| c.id == id);
        note(&mut owners, instance, |id| {
            if instance.sessions.iter().any(|s| in_it(s, id)) { Claim::Held } else { Claim::Left }
        });
    }
    Ok(owners)
}

fn note(owners: &mut HashMap<String, (Claim, String)>, instance: &Instance, claim: impl Fn(&str) -> Claim) {
    for id in instance.claimed() {
        let was = instance.sessions.iter().find(|session| session.claimed().any(|own| own == id));
        let who =
            was.map_or_else(|| instance.id.to_string(), |session| format!("{}/{}", instance.id, session.id));
        let held = owners.get(id).is_some_and(|(claim, _)| *claim == Claim::Held);
        if !held {
            owners.insert(id.to_owned(), (claim(id), who));
        }
    }
}

/// Finds what `take` means in `dir`, for `agent` if one was asked for.
pub fn find(
    around: &Surroundings<'_>,
    dir: &Path,
    agent: Option<&str>,
    take: &Take,
) -> Result<Taken, TakeError> {
    let (word, fork) = match take {
        Take::Adopt(word) => (word, false),
        Take::Fork(word) => (word, true),
    };
    let places = places(around.settings, &around.env, &around.home);
    let places: Vec<&Place> =
        places.iter().filter(|place| agent.is_none_or(|name| place.name == name)).collect();
    let taken =
        |place: &Place, id: String, transcript| Taken { agent: place.name.clone(), id, transcript, fork };
    for place in &places {
        if let Located::Found(path) = place.agent.transcript(&place.dir, dir, word) {
            return Ok(taken(place, word.clone(), Some(path)));
        }
    }
    if fork && let Some(found) = of_session(around.store, word)? {
        return Ok(Taken { fork, ..found });
    }
    let of = |place: &&Place| {
        let found = place.agent.discover(&place.dir, Some(dir), Timestamp(0));
        let begins = found.into_iter().filter(|candidate| word.len() >= 4 && candidate.id.starts_with(word));
        begins.map(|candidate| taken(place, candidate.id, Some(candidate.path))).collect::<Vec<_>>()
    };
    let mut found: Vec<Taken> = places.iter().flat_map(of).collect();
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(_), false) => Err(TakeError::Several(word.clone())),
        // An agent whose conversations can not be seen is told the id, and says itself if there is no such one.
        (None, _) => match places.as_slice() {
            [only] if agent.is_some() && can_not_be_seen(only, dir, word) => {
                Ok(taken(only, word.clone(), None))
            }
            _ => Err(TakeError::NotFound(word.clone())),
        },
    }
}

fn can_not_be_seen(place: &Place, dir: &Path, id: &str) -> bool {
    let argv = [place.agent.program().to_owned()];
    let unseen = matches!(place.agent.transcript(&place.dir, dir, id), Located::Unknown(_));
    unseen && place.agent.profile().said.is_none() && place.agent.resume(&argv, id).is_some()
}

/// The conversation of the session that `word` names, or of the one agent in the instance that it names.
fn of_session(store: &Store, word: &str) -> Result<Option<Taken>, TakeError> {
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
    let agent = session.agent.clone().ok_or_else(not_in_one)?;
    Ok(Some(Taken { agent, id: bound.id, transcript: bound.transcript, fork: true }))
}

impl Taken {
    /// Makes sure that nobody is in it who would write to it too, as long as the result is held.
    pub(crate) fn claim(&self, store: &Store) -> Result<Claims, TakeError> {
        let claims = Claims::take(store)?;
        match claims.holder(None, &self.id).filter(|_| !self.fork) {
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
            return Ok((forked.ok_or(TakeError::CanNotFork(self.agent))?, None));
        }
        let adopted = Conversation {
            id: self.id,
            origin: Origin::Adopted,
            bound: clock::now(),
            transcript: self.transcript,
            extra: Extra::new(),
        };
        Ok((argv, Some(adopted)))
    }
}
