//! What `abide ls` shows. The serialised form of [`InstanceList`] is a promise to scripts, described in `docs/json.md`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use abide_model::session::{AgentBelow, Astray};
use abide_model::session_end::Cut;
use abide_model::{
    DecidedBy, Doing, Instance, InstanceId, InstanceState, Liveness, Pid, Place, Session, Status, Timestamp,
};
use abide_store::{Store, StoreEntry};
use abide_sys::clock;
use abide_sys::pieces::{QUICK, in_pieces};
use abide_wire::exit_record::ExitRecord;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::last_seen::LastSeenAll;
use abide_wire::protocol::StatusReply;
use serde::Serialize;

use crate::conversation::current::{self, LookDepth};
use crate::end::{finish, session_end};
use crate::running::processes::{Leftover, SessionProcesses};
use crate::running::protection::Judge;
use crate::running::{connect, keepers, liveness};
use crate::substrate::Survey;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstanceList {
    /// The version of this shape.
    pub version: u32,
    /// The instances that can be read, oldest first.
    pub instances: Vec<InstanceRow>,
    /// The ones that cannot, with the reason.
    pub damaged: Vec<Damaged>,
    /// Capsules that run although the directory of their instance is gone.
    pub orphaned: Vec<Orphaned>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstanceRow {
    pub id: String,
    /// What the operator calls it.
    pub name: Option<String>,
    /// The workspace it was launched from, if it was one.
    pub workspace: Option<String>,
    /// The directory it was launched from.
    pub dir: String,
    pub role: String,
    pub place: Place,
    pub state: InstanceState,
    /// The reason that goes with the state, where there is one.
    pub reason: Option<String>,
    /// Since when it is in that state.
    pub since: Timestamp,
    /// What led to it.
    pub because: String,
    /// What is in the way of its removal, where that was decided and cannot be carried out.
    pub obstacle: Option<String>,
    /// Whose decision it is, where it needed one: `operator`, `policy` or `undecided`.
    pub decided_by: Option<DecidedBy>,
    /// Whether it runs, for what is starting or active.
    pub liveness: Option<Liveness>,
    /// Why that is believed, or not known.
    pub liveness_because: Option<String>,
    /// When it was made.
    pub created: Timestamp,
    /// How often it was started.
    pub generation: u64,
    /// What ends it while it runs, where the next logout or the end of a service does, and what protects it.
    pub exposed: Option<String>,
    /// The processes of its last run that can be seen and still run, though it does not.
    pub leftovers: Vec<Leftover>,
    /// Its sessions, in the order of their tabs.
    pub sessions: Vec<SessionRow>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SessionRow {
    /// Its id within the instance.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// The agent it runs; `null` for a shell or another command.
    pub agent: Option<String>,
    /// The id of the conversation it is in.
    pub conversation: Option<String>,
    /// The conversations it was in before, the latest first.
    pub earlier_conversations: Vec<String>,
    /// Another conversation that its agent was last seen in.
    pub astray: Option<Astray>,
    /// The agent that was last seen to run below it, where it is a plain command, and the conversation of that.
    pub below: Option<AgentBelow>,
    /// What was left open when its agent last ended: `turn_cut`, `question_pending` or `api_error`.
    pub interruption: Option<Cut>,
    /// The question or the error.
    pub interruption_detail: Option<String>,
    /// When it was first started.
    pub created: Option<Timestamp>,
    /// When a client was last attached to it.
    pub attached: Option<Timestamp>,
    /// How it ended, if it has: `exit 0`, `signal 9`.
    pub exit: Option<String>,
    /// Its process, while it runs.
    pub pid: Option<Pid>,
    /// Its terminal's title, while it runs.
    pub title: Option<String>,
    /// What it is doing, while it runs.
    pub activity: Option<Doing>,
    pub activity_since: Option<Timestamp>,
    pub activity_because: Option<String>,
    /// Whether it is a shell that waits for a command.
    #[serde(skip)]
    pub is_waiting_shell: bool,
    /// What it asks the operator.
    pub question: Option<String>,
    /// For how many milliseconds it has said nothing, while it runs.
    pub quiet_ms: Option<u64>,
}

/// An instance that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damaged {
    /// The name of its directory.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A capsule that runs although the directory of its instance is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Orphaned {
    /// The id of the instance.
    pub id: String,
    pub pid: Pid,
    /// The programs that run in it.
    pub programs: Vec<String>,
}

/// The listing of what the store holds.
pub fn listing(entries: &[StoreEntry]) -> InstanceList {
    let rows_of = |entries: &[StoreEntry]| -> Vec<InstanceRow> {
        entries.iter().filter_map(StoreEntry::sound).map(InstanceRow::from).collect()
    };
    let damaged = entries.iter().filter_map(|entry| match entry {
        StoreEntry::Sound(_) => None,
        StoreEntry::Damaged { name, reason } => {
            Some(Damaged { name: name.clone(), reason: reason.to_string() })
        }
    });
    InstanceList {
        version: 1,
        instances: in_pieces(entries, QUICK, rows_of).into_iter().flatten().collect(),
        damaged: damaged.collect(),
        orphaned: Vec::new(),
    }
}

impl From<&Instance> for InstanceRow {
    fn from(instance: &Instance) -> Self {
        Self {
            id: instance.id.to_string(),
            name: instance.name.clone(),
            workspace: instance.scope.workspace.clone(),
            dir: instance.scope.dir.display().to_string(),
            role: instance.role.clone(),
            place: instance.recipe.place,
            state: instance.status.status.state(),
            reason: instance.status.status.reason().map(str::to_owned),
            since: instance.status.since,
            because: instance.status.because.clone(),
            obstacle: instance.status.obstacle.clone(),
            decided_by: instance.status.decided_by,
            liveness: None,
            liveness_because: None,
            created: instance.created,
            generation: instance.generation,
            exposed: None,
            leftovers: Vec::new(),
            sessions: instance.sessions.iter().map(SessionRow::from).collect(),
        }
    }
}

impl From<&Session> for SessionRow {
    fn from(session: &Session) -> Self {
        Self {
            id: session.id.to_string(),
            name: session.name.clone(),
            agent: session.agent.clone(),
            conversation: session.conversation.as_ref().map(|c| c.id.clone()),
            earlier_conversations: session
                .claimed()
                .skip(usize::from(session.conversation.is_some()))
                .map(str::to_owned)
                .collect(),
            astray: session.astray.clone(),
            below: session.below.clone(),
            interruption: session.interruption.as_ref().map(|left| left.cut),
            interruption_detail: session.interruption.as_ref().and_then(|left| left.detail.clone()),
            created: Some(session.created),
            attached: session.attached,
            exit: session.exit.as_ref().map(ToString::to_string),
            ..Self::default()
        }
    }
}

/// Adds what is known of sessions that run. What does not answer in time is shown as it is written down: a list must not
/// wait for a capsule that hangs.
pub fn add_live(listing: &mut InstanceList, store: &Store) {
    let (next, survey) = (AtomicUsize::new(0), Survey::default());
    let rows: Vec<Mutex<&mut InstanceRow>> = listing.instances.iter_mut().map(Mutex::new).collect();
    let work = || {
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut row = row.lock().unwrap_or_else(PoisonError::into_inner);
            let is_unsettled = matches!(row.state, InstanceState::Starting | InstanceState::Active);
            let judged = is_unsettled.then(|| judge(&mut row, store, &survey)).flatten();
            if let (Some(Liveness::Alive), InstanceState::Active, Some(instance)) =
                (row.liveness, row.state, judged)
            {
                let id = instance.id;
                match survey.of(store, &instance).status() {
                    Ok(status) => {
                        follow_conversations(&mut row, store, id, &status);
                        merge(&mut row, status);
                        note_recorded(&mut row, &connect::instance_dir(store, id));
                        forget_interruptions(&mut row, &connect::instance_dir(store, id));
                    }
                    Err(error) => tracing::warn!(%id, "no status: {error}"),
                }
            }
        }
    };
    std::thread::scope(|scope| {
        // Waiting for answers is what takes the time, so a few at once help even on one core.
        for _ in 0..rows.len().min(8) {
            scope.spawn(work);
        }
    });
    let orphaned = keepers::orphaned(store).into_iter();
    listing.orphaned = orphaned
        .map(|one| Orphaned { id: one.id.to_string(), pid: one.keeper.pid, programs: one.programs })
        .collect();
}

/// Adds whether it runs, where it should, and gives the instance.
fn judge(row: &mut InstanceRow, store: &Store, survey: &Survey) -> Option<Instance> {
    let instance = store.read(row.id.parse().ok()?).ok()?;
    let judged = match &instance.status.status {
        Status::Active => liveness::surveyed(store, &instance, survey),
        Status::Starting { by, .. } => liveness::of_starter(store, &instance, by),
        _ => return None,
    };
    row.liveness = Some(judged.decision);
    row.liveness_because = Some(judged.reason.into_owned());
    Some(instance)
}

/// Adds what ends the instances that run, where a logout or a service would.
pub fn add_exposure(listing: &mut InstanceList, store: &Store, judge: &Judge) {
    for row in listing.instances.iter_mut().filter(|row| row.state == InstanceState::Active) {
        let found = row.id.parse().ok().and_then(|id| judge.judge(store, id));
        row.exposed = found.and_then(|found| found.danger().map(ToString::to_string));
    }
}

/// Adds what still runs of instances that do not.
pub fn add_leftovers(listing: &mut InstanceList, store: &Store) {
    let does_not_run = |row: &&mut InstanceRow| {
        row.state == InstanceState::Restorable || row.liveness == Some(Liveness::Dead)
    };
    let mut dead = listing.instances.iter_mut().filter(does_not_run).peekable();
    if dead.peek().is_none() {
        return;
    }
    let processes = SessionProcesses::look();
    let seen: BTreeSet<String> = processes.instances().map(|id| id.to_string()).collect();
    for row in dead.filter(|row| seen.contains(&row.id)) {
        if let Ok(id) = row.id.parse() {
            row.leftovers = processes.leftovers(id, &connect::instance_dir(store, id));
        }
    }
}

/// Which conversations agents are in is learned as they run.
fn follow_conversations(row: &mut InstanceRow, store: &Store, id: InstanceId, status: &StatusReply) {
    let Ok(instance) = store.read(id) else { return };
    let now = current::follow(store, instance, Some(status), LookDepth::Brief);
    for session in &now.sessions {
        if let Some(row) = row.sessions.iter_mut().find(|row| row.id == session.id.to_string()) {
            row.conversation = session.conversation.as_ref().map(|bound| bound.id.clone());
            row.earlier_conversations = SessionRow::from(session).earlier_conversations;
            row.astray = session.astray.clone();
            row.below = session.below.clone();
        }
    }
}

fn merge(row: &mut InstanceRow, status: StatusReply) {
    for live in status.sessions {
        let known = row.sessions.iter().position(|s| s.id == live.id.to_string());
        // One that was started by key or over the socket is not in the manifest.
        let index = known.unwrap_or_else(|| {
            row.sessions.push(SessionRow { id: live.id.to_string(), ..SessionRow::default() });
            row.sessions.len() - 1
        });
        let session = &mut row.sessions[index];
        session.name = live.name;
        session.pid = Some(live.pid);
        session.title = Some(live.title);
        session.quiet_ms = Some(live.quiet_ms);
        if let Some(activity) = live.activity {
            let ago = i64::try_from(activity.for_ms).unwrap_or(i64::MAX);
            session.activity = Some(activity.state);
            session.activity_since = Some(Timestamp(clock::now().0.saturating_sub(ago)));
            session.activity_because = Some(activity.because);
            session.question = activity.question;
            session.is_waiting_shell = activity.is_waiting_shell;
        }
        let exit = live.exit.map(|exit| finish::exit_of(exit, clock::now()).to_string());
        // What its record says is of an earlier start, or of one that was given up too soon.
        session.exit = exit;
    }
}

/// What was left open by an earlier run counts until the agent has worked again.
fn forget_interruptions(row: &mut InstanceRow, instance_dir: &InstanceDir) {
    let generation = row.generation;
    let left = row.sessions.iter_mut().filter(|session| session.interruption.is_some());
    for session in left {
        let seen = session.id.parse().ok().map(|id| LastSeenAll::read(instance_dir, generation).of(&id));
        if seen.is_some_and(|seen| seen.worked) {
            (session.interruption, session.interruption_detail) = (None, None);
        }
    }
}

/// What the keeper recorded and no live process reports: sessions that have ended beside others, and when those that were
/// started from inside began.
fn note_recorded(row: &mut InstanceRow, instance_dir: &InstanceDir) {
    let generation = row.generation;
    let record =
        ExitRecord::read(instance_dir).ok().flatten().filter(|record| record.generation == generation);
    for recorded in record.iter().flat_map(|record| &record.sessions) {
        let id = recorded.id.to_string();
        let known = row.sessions.iter().position(|session| session.id == id);
        let at = known.unwrap_or_else(|| {
            row.sessions.push(SessionRow { id, name: recorded.name.clone(), ..SessionRow::default() });
            row.sessions.len() - 1
        });
        let session = &mut row.sessions[at];
        session.created = session.created.or(recorded.started_ms.map(finish::moment));
        if session.pid.is_none() && session.exit.is_none() {
            session.exit = session_end::exit_of(recorded).map(|exit| exit.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use abide_model::{LaunchScope, Recipe};
    use abide_sys::process;

    use super::*;

    #[test]
    fn an_end_is_spelled_alike_whatever_its_source() {
        let (id, dir) = ("k7p9m2xq".parse().unwrap(), "/srv".into());
        let (scope, recipe) = (LaunchScope::directory("/srv".into()), Recipe::on_host(dir));
        let instance = Instance::starting(id, scope, "default".into(), recipe, process::this(), clock::now());
        let mut row = InstanceRow::from(&instance);
        let live = serde_json::json!({
            "generation": 1, "version": "", "keeper_pid": 1, "mux_pid": 2, "attached": 0,
            "sessions": [{
                "id": "s1", "name": "sh", "program": "sh", "pid": 3,
                "size": {"cols": 80, "rows": 24}, "exit": {"code": 3},
            }],
        });
        merge(&mut row, serde_json::from_value(live).unwrap());
        assert_eq!(row.sessions[0].exit.as_deref(), Some("exit 3"));
    }
}
