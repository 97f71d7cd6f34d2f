//! Conversations on disk: what agents keep for a directory, whose each one is, and taking one up.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use abide_agents::{Chosen, KNOWN, TranscriptCandidate};
use abide_config::Settings;
use abide_model::{Conversation, Instance, Pid, Session, Timestamp};
use abide_store::{Store, StoreError};
use serde::Serialize;

use crate::conversation::agent_environment;
use crate::conversation::claims::Claims;
use crate::conversation::holders::{HeldBy, LiveHolders};
use crate::start::launch::LaunchContext;
use crate::start::moved;

/// What a list of conversations says; a promise to scripts, described in `docs/json.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversationList {
    /// The version of this shape.
    pub version: u32,
    /// The conversations, the newest first.
    pub conversations: Vec<ConversationRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversationRow {
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
    pub claim: ConversationClaim,
    pub session: Option<String>,
    /// The process that is in it, if that is known and no session is bound to it.
    pub process: Option<Pid>,
    /// Sessions that were seen in it, though they are bound to another one.
    pub astray: Vec<String>,
}

/// Whether a session is in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationClaim {
    /// One is, or a process outside abide.
    Held,
    /// One was, and has begun another, was closed or removed.
    Left,
    Free,
}

/// An agent of the configuration or of our own knowledge, and where it keeps its conversations now.
pub(crate) struct AgentPlace {
    pub name: String,
    pub agent: Chosen,
    pub dir: PathBuf,
}

/// A conversation that is on disk, and the agent that it was held with.
pub(crate) struct KnownConversation<'a> {
    pub place: &'a AgentPlace,
    pub candidate: TranscriptCandidate,
}

/// The conversations held in `dir`, or in any directory. What was held in a tree of an instance, or before the directory
/// was moved, belongs to the directory that the instance was launched from.
pub fn list(ctx: &LaunchContext<'_>, dir: Option<&Path>) -> Result<ConversationList, StoreError> {
    let places = places(ctx.settings, &ctx.env, &ctx.home);
    let recorded = recorded_places(ctx.store, dir)?;
    let claims = Claims::take(ctx.store)?;
    let owners = owners(ctx.store)?;
    let known = known(&places, &recorded, dir);
    let mut holders: HashMap<(String, PathBuf), LiveHolders> = HashMap::new();
    for KnownConversation { place, .. } in &known {
        let key = (place.agent.name().to_owned(), place.dir.clone());
        holders.entry(key).or_insert_with(|| LiveHolders::of(&*place.agent, &place.dir));
    }
    let row = |known: &KnownConversation<'_>| {
        let key = (known.place.agent.name().to_owned(), known.place.dir.clone());
        let live = holders.get(&key).and_then(|holders| holders.holder(&known.candidate.id, None, &claims));
        let owner = owners.get(&known.candidate.id).cloned();
        ConversationRow { astray: claims.astray_in(&known.candidate.id), ..row(known, owner, live) }
    };
    let mut rows: Vec<ConversationRow> = known.iter().map(row).collect();
    rows.sort_by(|a, b| b.last.cmp(&a.last).then_with(|| a.id.cmp(&b.id)));
    Ok(ConversationList { version: 1, conversations: rows })
}

fn row(
    known: &KnownConversation<'_>,
    owner: Option<(ConversationClaim, String)>,
    live: Option<HeldBy>,
) -> ConversationRow {
    let KnownConversation { place, candidate } = known;
    let bound = owner.as_ref().is_some_and(|(claim, _)| *claim == ConversationClaim::Held);
    let (process, within) = match live {
        Some(HeldBy::Process { pid, within, .. }) if !bound => (Some(pid), within),
        _ => (None, None),
    };
    let claim = match (&owner, process) {
        (_, Some(_)) => ConversationClaim::Held,
        (Some((claim, _)), None) => *claim,
        (None, None) => ConversationClaim::Free,
    };
    let within = within.map(|name| name.trim_start_matches("ab-").to_owned());
    ConversationRow {
        agent: place.name.clone(),
        id: candidate.id.clone(),
        title: candidate.title.clone().or_else(|| place.agent.title(&candidate.path)),
        dir: candidate.cwd.display().to_string(),
        last: candidate.modified,
        bytes: candidate.size,
        claim,
        session: within.or(owner.filter(|_| process.is_none()).map(|(_, who)| who)),
        process,
        astray: Vec::new(),
    }
}

/// Every conversation of `dir`, or of any directory, once: agents whose files overlap have it several times.
pub(crate) fn known<'a>(
    places: &'a [AgentPlace],
    recorded: &'a [(AgentPlace, Session)],
    dir: Option<&Path>,
) -> Vec<KnownConversation<'a>> {
    let mut known: Vec<KnownConversation<'a>> = Vec::new();
    let mut add = |place: &'a AgentPlace, candidate: TranscriptCandidate| {
        let same = |other: &KnownConversation<'_>| {
            other.candidate.id == candidate.id && other.candidate.path == candidate.path
        };
        if !known.iter().any(same) {
            known.push(KnownConversation { place, candidate });
        }
    };
    // The agent that a session was held with is better known than the one whose files it lies among.
    for (place, session) in recorded {
        let held = session.conversation.iter().chain(&session.parked);
        held.filter_map(|held| on_disk(place, session, held)).for_each(|candidate| add(place, candidate));
    }
    for place in places {
        place.agent.discover(&place.dir, dir, Timestamp(0)).into_iter().for_each(|one| add(place, one));
    }
    known
}

/// The transcript of a conversation that a session is or was in, if it is where it was.
fn on_disk(place: &AgentPlace, session: &Session, held: &Conversation) -> Option<TranscriptCandidate> {
    let cwd = held.held_in.as_ref().unwrap_or(&session.cwd);
    if place.agent.profile().shared.is_some() {
        let found = place.agent.discover(&place.dir, Some(cwd), Timestamp(0));
        return found.into_iter().find(|candidate| candidate.id == held.id);
    }
    let path = held.transcript.clone()?;
    let meta = fs::metadata(&path).ok().filter(|meta| meta.len() > 0)?;
    let modified = Timestamp(meta.mtime() * 1000 + meta.mtime_nsec() / 1_000_000);
    let (id, size) = (held.id.clone(), meta.len());
    Some(TranscriptCandidate { id, path, cwd: cwd.clone(), modified, begun: None, size, title: None })
}

/// The agents of the sessions that were launched from `dir`, whether it was moved since or not, and whether their instances
/// are in the trash or not.
pub(crate) fn recorded_places(
    store: &Store,
    dir: Option<&Path>,
) -> Result<Vec<(AgentPlace, Session)>, StoreError> {
    let Some(dir) = dir else { return Ok(Vec::new()) };
    let now = moved::identity(dir);
    let belongs = |instance: &Instance| {
        let moved = || now.is_some() && instance.dir_identity == now && !instance.scope.dir.exists();
        let source = || instance.recipe.mounts.iter().any(|mount| mount.source == dir);
        instance.scope.dir == dir || source() || moved()
    };
    let trashed = store.trashed()?.into_iter().filter_map(|entry| entry.content.ok());
    let listed = store.list()?.into_iter().filter_map(|entry| entry.sound().cloned());
    let sessions = listed.chain(trashed).filter(belongs).flat_map(|instance| instance.sessions);
    let place = |session: Session| {
        let name = session.agent.clone()?;
        let (agent, setup) = agent_environment::agent_of(&session)?;
        Some((AgentPlace { name, agent, dir: setup.config_dir.clone() }, session))
    };
    Ok(sessions.filter_map(place).collect())
}

/// Where the agent `name` keeps its conversations; `None` if there is no such agent.
pub(crate) fn place(
    settings: &Settings,
    env: &BTreeMap<OsString, OsString>,
    home: &Path,
    name: &str,
) -> Option<AgentPlace> {
    let described = settings.agents.get(name);
    if described.is_none() && abide_agents::agent(name).is_none() {
        return None;
    }
    let command = described.and_then(|agent| agent.command.clone()).unwrap_or_else(|| vec![name.to_owned()]);
    let agent = abide_agents::for_session(name, &command, described.map(|d| d.described()).as_ref());
    let chosen = agent_environment::chosen_dir(&*agent, described, env);
    let dir = chosen.unwrap_or_else(|| agent.default_dir(home));
    Some(AgentPlace { name: name.to_owned(), agent, dir })
}

pub(crate) fn places(
    settings: &Settings,
    env: &BTreeMap<OsString, OsString>,
    home: &Path,
) -> Vec<AgentPlace> {
    let place = |name: &str| place(settings, env, home, name);
    let mut places: Vec<AgentPlace> = KNOWN.iter().filter_map(|agent| place(agent.name())).collect();
    for more in settings.agents.keys().filter_map(|name| place(name.as_str())) {
        // Two names for one agent with one directory would list everything twice.
        let same = |known: &AgentPlace| known.agent.name() == more.agent.name() && known.dir == more.dir;
        if !places.iter().any(same) {
            places.push(more);
        }
    }
    places
}

/// Which session is, or was, in which conversation.
fn owners(store: &Store) -> Result<HashMap<String, (ConversationClaim, String)>, StoreError> {
    let mut owners = HashMap::new();
    for entry in store.trashed()?.iter().filter_map(|entry| entry.content.as_ref().ok()) {
        note(&mut owners, entry, |_| ConversationClaim::Left);
    }
    for instance in store.list()?.iter().filter_map(abide_store::StoreEntry::sound) {
        let in_it = |session: &Session, id: &str| session.conversation.as_ref().is_some_and(|c| c.id == id);
        note(&mut owners, instance, |id| {
            if instance.sessions.iter().any(|s| in_it(s, id)) {
                ConversationClaim::Held
            } else {
                ConversationClaim::Left
            }
        });
    }
    Ok(owners)
}

fn note(
    owners: &mut HashMap<String, (ConversationClaim, String)>,
    instance: &Instance,
    claim: impl Fn(&str) -> ConversationClaim,
) {
    for id in instance.claimed() {
        let was = instance.sessions.iter().find(|session| session.claimed().any(|own| own == id));
        let who =
            was.map_or_else(|| instance.id.to_string(), |session| format!("{}/{}", instance.id, session.id));
        let held = owners.get(id).is_some_and(|(claim, _)| *claim == ConversationClaim::Held);
        if !held {
            owners.insert(id.to_owned(), (claim(id), who));
        }
    }
}
