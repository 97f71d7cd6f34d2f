//! Which conversation each running session is in by now: agents begin new ones by themselves, and some say which one it is
//! only after the start. Whatever is bound here is also kept in the vault.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;

use abide_agents::{Agent, FirstTurn, Located};
use abide_capsule::mux::INFERRED;
use abide_capsule::protocol::StatusReply;
use abide_model::conversation::{self, Discovery, Follow, Sighting};
use abide_model::session::{Origin, Setup};
use abide_model::{Conversation, Decided, Extra, Instance, Session};
use abide_store::{Error, Store};
use abide_sys::clock;
use serde::Deserialize;

use crate::claims::{Claims, Who};
use crate::equip::agent_of;
use crate::vault::Vault;
use crate::{live, processes, traces};

/// How much of the agents' own reports is read: far more than one run of them writes between two looks.
const MAX_REPORTS: u64 = 256 * 1024;

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// As often as anybody lists: what is known already is not searched for again.
    Brief,
    /// While something can be asked that can not be asked later.
    Close,
}

/// What an agent said of itself, one line per report.
#[derive(Deserialize)]
struct Report {
    generation: u64,
    session: String,
    conversation: String,
    #[serde(default)]
    transcript: Option<PathBuf>,
    #[serde(default)]
    event: String,
}

/// Finds out which conversations the sessions of `instance` are in, writes down what is new, and keeps copies. `live` is
/// what its capsule says, if that runs. Gives the instance as it is now.
pub fn follow(store: &Store, mut instance: Instance, live: Option<&StatusReply>, look: Look) -> Instance {
    let reports = reports(store, &instance);
    for index in 0..instance.sessions.len() {
        let session = &instance.sessions[index];
        let Some((agent, setup)) = agent_of(session) else { continue };
        let sightings = sightings(session, &*agent, setup, &reports, live, look);
        let followed = match is_news(session, &sightings) {
            true => bind(store, &instance, session, &*agent, setup, sightings),
            false => Ok(None),
        };
        match followed {
            Ok(Some(changed)) => instance = changed,
            Ok(None) => {}
            Err(error) => tracing::warn!(instance = %instance.id, "its conversations: {error}"),
        }
        if let Some(changed) = keep(store, &instance, index) {
            instance = changed;
        }
    }
    instance
}

/// Looks closely at the instance while there is somebody to look at: when it has come up, and before it ends.
pub fn look_closely(store: &Store, instance: &Instance) {
    if instance.sessions.iter().any(|session| session.agent.is_some()) {
        let live = live::status(&live::unit(store, instance.id)).ok();
        follow(store, instance.clone(), live.as_ref(), Look::Close);
    }
}

/// What agents reported in this run of the instance, the newest first.
fn reports(store: &Store, instance: &Instance) -> Vec<Report> {
    let path = live::unit(store, instance.id).conversations();
    let read = || -> std::io::Result<Vec<Report>> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(MAX_REPORTS)))?;
        let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
        // The first line may be cut, and one that another version wrote is not ours to understand.
        Ok(lines.filter_map(|line| serde_json::from_slice(&line).ok()).collect())
    };
    let mut reports = read().unwrap_or_default();
    // Of an earlier run's process nobody knows what it would say now.
    reports.retain(|report| report.generation == instance.generation);
    reports.reverse();
    reports
}

/// Where the session was seen, by the best source first.
fn sightings(
    session: &Session,
    agent: &dyn Agent,
    setup: &Setup,
    reports: &[Report],
    live: Option<&StatusReply>,
    look: Look,
) -> Vec<Sighting> {
    let seen = |id: &str, origin, transcript: Option<PathBuf>| Sighting {
        id: id.to_owned(),
        origin,
        transcript,
        held_by: None,
    };
    // One that the agent could not be resumed by is no id, whatever a hook made of it.
    let is_id = agent.profile().grammar.is_id;
    let own = |report: &&Report| report.session == session.id.to_string() && is_id(&report.conversation);
    let reported = reports.iter().find(own);
    let origin = |report: &Report| if report.event == INFERRED { Origin::Inferred } else { Origin::Hook };
    let reported = reported.map(|r| seen(&r.conversation, origin(r), r.transcript.clone()));
    let mut sightings: Vec<Sighting> = reported.into_iter().collect();
    let close = look == Look::Close || session.conversation.is_none();
    let running = live.into_iter().flat_map(|status| &status.sessions);
    if let Some(process) = running.into_iter().find(|s| s.id == session.id && s.exit.is_none()) {
        let open = open(agent, setup, process.pid, close);
        sightings.extend(open.map(|id| seen(&id, Origin::OpenFile, None)));
    }
    sightings
}

/// The one conversation that the process, or the nearest of its descendants that has any, has open. An agent may run
/// another one as a tool, whose conversation is not the session's.
fn open(agent: &dyn Agent, setup: &Setup, pid: i32, with_descendants: bool) -> Option<String> {
    let ids = |pids: &[i32]| {
        let mut ids: Vec<_> = pids.iter().flat_map(|pid| agent.open_in(&setup.config_dir, *pid)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    let mut own = ids(&[pid]);
    if own.is_empty() && with_descendants {
        let below = processes::generations(pid);
        own = below.iter().skip(1).map(|pids| ids(pids)).find(|ids| !ids.is_empty()).unwrap_or_default();
    }
    own.pop().filter(|_| own.is_empty())
}

/// Whether anything was seen that is not bound already.
fn is_news(session: &Session, sightings: &[Sighting]) -> bool {
    let bound = session.conversation.as_ref().map(|bound| bound.id.as_str());
    match sightings.first() {
        Some(best) => Some(best.id.as_str()) != bound || session.astray.is_some(),
        // What lies on disk may say more, of a session of which nothing is known.
        None => bound.is_none(),
    }
}

fn bind(
    store: &Store,
    instance: &Instance,
    session: &Session,
    agent: &dyn Agent,
    setup: &Setup,
    mut sightings: Vec<Sighting>,
) -> Result<Option<Instance>, Error> {
    let own = (instance.id, session.id);
    let claims = Claims::take(store)?;
    if sightings.is_empty() {
        sightings.extend(discovered(store, &claims, own, (session, agent, setup))?);
    }
    for seen in &mut sightings {
        seen.held_by = claims.holder(Some(own), &seen.id);
    }
    let bound = session.conversation.as_ref().map(|bound| bound.id.as_str());
    let Decided { decision, reason } = conversation::follow(bound, sightings);
    let seen = match decision {
        Follow::Stay => return Ok(None),
        Follow::Refuse(seen) => {
            tracing::warn!(instance = %own.0, session = %own.1, id = seen.id, "binding: refused reason={reason}");
            return Ok(None);
        }
        Follow::Bind(seen) => seen,
    };
    tracing::info!(instance = %own.0, session = %own.1, parked = bound, "binding: id={} reason={reason}", seen.id);
    // What an agent says of its files is taken for what it is: a word of somebody else's.
    let transcript = match agent.transcript(&setup.config_dir, &session.cwd, &seen.id) {
        Located::Found(path) => Some(path),
        _ => seen.transcript.filter(|path| seen.origin == Origin::Discovered && path.exists()),
    };
    let bound = Conversation {
        id: seen.id,
        origin: seen.origin,
        bound: clock::now(),
        transcript,
        held_in: None,
        extra: Extra::new(),
    };
    write(store, instance, session, bound).map(Some)
}

/// The session's own transcript, by what lies on disk and what the session left.
fn discovered(
    store: &Store,
    claims: &Claims,
    own: Who,
    (session, agent, setup): (&Session, &dyn Agent, &Setup),
) -> Result<Option<Sighting>, Error> {
    let candidates = agent.discover(&setup.config_dir, Some(&session.cwd), session.created);
    if candidates.is_empty() {
        return Ok(None);
    }
    let unit = live::unit(store, own.0);
    let first_turn = traces::first_turn(&unit, session, agent);
    if first_turn == FirstTurn::NotYet {
        return Ok(None);
    }
    let shown = abide_agents::shown(agent, &candidates, &traces::screen(&unit, session));
    let claimed = claims.ever(store, own)?;
    let claimed: Vec<&str> = claimed.iter().map(String::as_str).chain(session.claimed()).collect();
    let cwd = std::fs::canonicalize(&session.cwd).unwrap_or_else(|_| session.cwd.clone());
    let Decided { decision, reason } = Discovery {
        created: session.created,
        cwd: &cwd,
        candidates: &candidates,
        claimed: &claimed,
        rivals: claims.rivals(own, agent.name(), &session.cwd),
        wrapped: abide_agents::is_wrapped(agent, &session.argv),
        first_turn,
        shown: &shown,
    }
    .own();
    if decision.is_none() {
        tracing::info!(instance = %own.0, session = %own.1, "binding: none reason={reason}");
    }
    Ok(decision.map(|one| Sighting {
        id: one.id.clone(),
        origin: Origin::Discovered,
        transcript: Some(one.path.clone()),
        held_by: None,
    }))
}

fn write(
    store: &Store,
    instance: &Instance,
    session: &Session,
    bound: Conversation,
) -> Result<Instance, Error> {
    store.update(instance.id, |now| {
        // Another run has begun meanwhile, and what was seen was not that one.
        if now.generation == instance.generation
            && let Some(own) = now.sessions.iter_mut().find(|own| own.id == session.id)
        {
            own.bind(bound);
        }
        Ok(now.clone())
    })
}

/// Keeps what the session's conversation consists of by now; the instance, if that has become known only now.
fn keep(store: &Store, instance: &Instance, index: usize) -> Option<Instance> {
    let session = instance.sessions.get(index)?;
    let (agent, setup) = agent_of(session)?;
    let bound = session.conversation.as_ref()?;
    let (transcript, is_news) = match &bound.transcript {
        Some(path) => (path.clone(), false),
        None => match agent.transcript(&setup.config_dir, &session.cwd, &bound.id) {
            Located::Found(path) => (path, true),
            _ => return None,
        },
    };
    let unit = live::unit(store, instance.id);
    let vault = Vault::of(unit.path(), session.id, &*agent, &setup.config_dir, &bound.id)?;
    if let Err(error) = vault.keep(&transcript) {
        tracing::warn!(instance = %instance.id, session = %session.id, "no copy was taken: {error}");
    }
    let bound = Conversation { transcript: Some(transcript), ..bound.clone() };
    let written = is_news.then(|| write(store, instance, session, bound))?;
    written.inspect_err(|error| tracing::warn!(instance = %instance.id, "its transcript: {error}")).ok()
}
