//! Which conversation each running session is in by now: agents begin new ones by themselves, and some say which one it is
//! only after the start. Whatever is bound here is also kept in the vault.

use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use abide_agents::{Agent, FirstTurn, Located};
use abide_model::conversation::{self, Arrival, Discovery, Follow, Sighting};
use abide_model::session::{Astray, AstrayReason, Origin, Setup};
use abide_model::watching::INFERRED;
use abide_model::{Conversation, Decided, Extra, Instance, Pid, Session};
use abide_store::{Store, StoreError};
use abide_sys::{clock, untrusted};
use abide_wire::protocol::StatusReply;
use serde::Deserialize;

use crate::conversation::agent_environment::agent_of;
use crate::conversation::claims::{Claims, Who};
use crate::conversation::transcript_vault::Vault;
use crate::conversation::{agents_below, session_traces};
use crate::running::{connect, processes};
use crate::substrate;

/// How much of the agents' own reports is read: far more than one run of them writes between two looks.
const MAX_REPORTS: u64 = 256 * 1024;

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookDepth {
    /// For every listing: what is known already is not searched for again.
    Brief,
    /// While something can be asked that cannot be asked later.
    Close,
}

/// What an agent said of itself, one line per report.
#[derive(Deserialize)]
struct LoggedHookReport {
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
pub fn follow(
    store: &Store,
    mut instance: Instance,
    live: Option<&StatusReply>,
    look: LookDepth,
) -> Instance {
    if let Some(live) = live {
        instance = agents_below::note(store, instance, live);
    }
    let reports = reports(store, &instance);
    for index in 0..instance.sessions.len() {
        let session = &instance.sessions[index];
        let Some((agent, setup)) = agent_of(session) else { continue };
        let own = own_reports(session, &*agent, &reports);
        let sightings = sightings(session, &*agent, setup, &own, live, look);
        let arrival = arrival(&instance, session, &own);
        let followed = match is_news(session, &sightings) {
            true => bind(store, &instance, (session, &*agent, setup), arrival, sightings),
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

/// Examines the instance while its processes run: when it has come up, and before it ends.
pub fn look_closely(store: &Store, instance: &Instance) {
    let live = substrate::of(store, instance.id).status().ok();
    follow(store, instance.clone(), live.as_ref(), LookDepth::Close);
}

/// What agents reported in this run of the instance, the newest first.
fn reports(store: &Store, instance: &Instance) -> Vec<LoggedHookReport> {
    let path = connect::instance_dir(store, instance.id).conversations();
    let read = || -> std::io::Result<Vec<LoggedHookReport>> {
        let mut file = untrusted::open(&path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(MAX_REPORTS)))?;
        let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
        // The first line may be cut, and one that another version wrote is not ours to understand.
        Ok(lines.filter_map(|line| serde_json::from_slice(&line).ok()).collect())
    };
    let mut reports = read().unwrap_or_default();
    // What a process of an earlier run reported may no longer be true.
    reports.retain(|report| report.generation == instance.generation);
    reports.reverse();
    reports
}

/// What the session's own agent reported, the newest first.
fn own_reports<'a>(
    session: &Session,
    agent: &dyn Agent,
    reports: &'a [LoggedHookReport],
) -> Vec<&'a LoggedHookReport> {
    // One that the agent could not be resumed by is no id, whatever a hook made of it.
    let is_id = agent.profile().grammar.is_id;
    let own =
        |report: &&LoggedHookReport| report.session == session.id.to_string() && is_id(&report.conversation);
    reports.iter().filter(own).collect()
}

/// For how long after a start an agent that reports nothing is taken to be where it came up.
const COMING_UP: Duration = Duration::from_secs(10);

/// Whether it is known where this run of the session came up, if it was started to resume a conversation.
fn arrival(instance: &Instance, session: &Session, reports: &[&LoggedHookReport]) -> Arrival {
    let Some(wanted) = session.conversation.as_ref().filter(|_| session.resume_unconfirmed) else {
        return Arrival::Settled;
    };
    let first = reports.iter().rfind(|report| report.event != INFERRED);
    let came_up_elsewhere = |astray: &Astray| astray.reason == AstrayReason::CameUpElsewhere;
    let is_awaited = match first {
        Some(report) => report.conversation != wanted.id,
        None if session.astray.as_ref().is_some_and(came_up_elsewhere) => true,
        None => instance.status.since.age(clock::now()) < COMING_UP,
    };
    if is_awaited { Arrival::Awaited } else { Arrival::Settled }
}

/// Where the session was seen, by the best source first.
fn sightings(
    session: &Session,
    agent: &dyn Agent,
    setup: &Setup,
    reports: &[&LoggedHookReport],
    live: Option<&StatusReply>,
    look: LookDepth,
) -> Vec<Sighting> {
    let seen = |id: &str, origin, transcript: Option<PathBuf>| Sighting {
        id: id.to_owned(),
        origin,
        transcript,
        held_by: None,
    };
    let origin =
        |report: &LoggedHookReport| if report.event == INFERRED { Origin::Inferred } else { Origin::Hook };
    let reported = reports.first().map(|r| seen(&r.conversation, origin(r), r.transcript.clone()));
    let mut sightings: Vec<Sighting> = reported.into_iter().collect();
    let close = look == LookDepth::Close || session.conversation.is_none();
    let running = live.into_iter().flat_map(|status| &status.sessions);
    if let Some(process) = running.into_iter().find(|s| s.id == session.id && s.exit.is_none()) {
        let open = open(agent, setup, process.pid, close);
        sightings.extend(open.map(|id| seen(&id, Origin::OpenFile, None)));
    }
    sightings
}

/// The one conversation that the process, or the nearest of its descendants that has any, has open. An agent may run
/// another one as a tool, whose conversation is not the session's.
fn open(agent: &dyn Agent, setup: &Setup, pid: Pid, with_descendants: bool) -> Option<String> {
    let ids = |pids: &[Pid]| {
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
        Some(best) => {
            Some(best.id.as_str()) != bound || session.astray.is_some() || session.resume_unconfirmed
        }
        // What lies on disk may say more, of a session of which nothing is known.
        None => bound.is_none(),
    }
}

fn bind(
    store: &Store,
    instance: &Instance,
    (session, agent, setup): (&Session, &dyn Agent, &Setup),
    arrival: Arrival,
    mut sightings: Vec<Sighting>,
) -> Result<Option<Instance>, StoreError> {
    let own = (instance.id, session.id);
    let claims = Claims::take(store)?;
    if sightings.is_empty() {
        sightings.extend(discovered(store, &claims, own, (session, agent, setup))?);
    }
    for seen in &mut sightings {
        seen.held_by = claims.holder(Some(own), &seen.id);
    }
    let bound = session.conversation.as_ref().map(|bound| bound.id.as_str());
    let is_back = bound.is_some() && sightings.first().map(|seen| seen.id.as_str()) == bound;
    let Decided { decision, reason } = conversation::follow(bound, arrival, sightings);
    let refused = |id: &str| {
        tracing::warn!(instance = %own.0, session = %own.1, id, "binding: refused reason={reason}");
    };
    let seen = match decision {
        Follow::Stay if is_back => return write(store, instance, session, is_where_it_belongs).map(Some),
        Follow::Stay => return Ok(None),
        Follow::Refuse(seen) => {
            refused(&seen.id);
            return Ok(None);
        }
        Follow::Astray(seen, reason) => {
            let astray = astray(session, seen, reason);
            if session.astray.as_ref() == Some(&astray) {
                return Ok(None);
            }
            refused(&astray.id);
            return write(store, instance, session, |own| own.astray = Some(astray)).map(Some);
        }
        Follow::Bind(seen) => seen,
    };
    tracing::info!(instance = %own.0, session = %own.1, parked = bound, "binding: id={} reason={reason}", seen.id);
    // What an agent says of its files is not trusted: the agent is another program.
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
    let put = |own: &mut Session| {
        own.bind(bound);
        is_where_it_belongs(own);
    };
    write(store, instance, session, put).map(Some)
}

/// Notes that the agent is in the conversation that its session is bound to.
fn is_where_it_belongs(session: &mut Session) {
    session.astray = None;
    session.resume_unconfirmed = false;
}

/// What is noted of a session whose agent was seen elsewhere: since when is kept while it stays there.
fn astray(session: &Session, seen: Sighting, reason: AstrayReason) -> Astray {
    let before = session.astray.as_ref().filter(|before| before.id == seen.id);
    let since = before.map_or_else(clock::now, |before| before.since);
    Astray { id: seen.id, reason, held_by: seen.held_by, since, extra: Extra::new() }
}

/// The session's own transcript, by what lies on disk and what the session left.
fn discovered(
    store: &Store,
    claims: &Claims,
    own: Who,
    (session, agent, setup): (&Session, &dyn Agent, &Setup),
) -> Result<Option<Sighting>, StoreError> {
    let candidates = agent.discover(&setup.config_dir, Some(&session.cwd), session.created);
    if candidates.is_empty() {
        return Ok(None);
    }
    let instance_dir = connect::instance_dir(store, own.0);
    let first_turn = session_traces::first_turn(&instance_dir, session, agent);
    if first_turn == FirstTurn::NotYet {
        return Ok(None);
    }
    let shown = abide_agents::shown(agent, &candidates, &session_traces::screen(store, own.0, session));
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
    put: impl FnOnce(&mut Session),
) -> Result<Instance, StoreError> {
    store.update(instance.id, |now| {
        // Another run has begun meanwhile, and what was seen was not that one.
        if now.generation == instance.generation
            && let Some(own) = now.sessions.iter_mut().find(|own| own.id == session.id)
        {
            put(own);
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
    let instance_dir = connect::instance_dir(store, instance.id);
    let vault = Vault::of(instance_dir.path(), session.id, &*agent, &setup.config_dir, &bound.id)?;
    if let Err(error) = vault.keep(&transcript) {
        tracing::warn!(instance = %instance.id, session = %session.id, "no copy was taken: {error}");
    }
    let bound = Conversation { transcript: Some(transcript), ..bound.clone() };
    let put = |own: &mut Session| {
        own.bind(bound);
    };
    let written = is_news.then(|| write(store, instance, session, put))?;
    written.inspect_err(|error| tracing::warn!(instance = %instance.id, "its transcript: {error}")).ok()
}
