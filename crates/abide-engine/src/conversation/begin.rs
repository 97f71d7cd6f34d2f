//! Which conversation each session is started in: gathers what the decision needs, and binds what was decided.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use abide_agents::{Agent, Begin, Prepared, Situation, Typed};
use abide_model::conversation::BeginReason;
use abide_model::session::Setup;
use abide_model::{Conversation, Extra, Instance, Session};
use abide_store::Store;
use abide_sys::clock;

use crate::activity;
use crate::conversation::adopt::TakeError;
use crate::conversation::claims::Claims;
use crate::conversation::holders::{HeldBy, LiveHolders};
use crate::conversation::transcript_vault::{RestoredTranscript, Vault};
use crate::conversation::{agent_environment, agent_help, session_traces};
use crate::error::EngineError;
use crate::running::connect;
use crate::start::launch::LaunchContext;

/// How an agent's session is started.
pub(crate) struct PreparedLaunch {
    pub argv: Vec<String>,
    /// What the operator should know about it.
    pub notices: Vec<String>,
    /// What the mux has to know about the agent.
    pub watched: (&'static str, serde_json::Value),
}

/// How `session` is started; `None` if it runs no agent. `env` gets the agent's directory, if one was chosen.
pub(crate) fn prepare(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    session: &Session,
    env: &mut BTreeMap<OsString, OsString>,
) -> Result<Option<PreparedLaunch>, EngineError> {
    let Some(name) = &session.agent else {
        log(instance, session, None, BeginReason::NoAgent, "");
        return Ok(None);
    };
    let described = ctx.settings.agents.get(name.as_str());
    let setup = setup(ctx, session, name, env);
    let agent = &*abide_agents::for_session(name, &session.argv, Some(&setup.described));
    agent_environment::replay(agent, &setup, env);
    let start = SessionStart { ctx, instance, session, agent, setup: &setup };
    let mut notices: Vec<String> =
        agent_environment::differences(&setup, described).chain(start.restore(env)).collect();
    let prepared = start.decide()?;
    notices.extend(notice(&session.name, EarlierRuns::before(session.generation), &prepared));
    if let Begin::Resume { id } = &prepared.begin.decision {
        start.keep(id, &prepared);
        if setup.continue_turn || ctx.continue_turn {
            notices.extend(agent_environment::continue_turn(agent, env));
        }
    }
    let conversation = prepared.begin.decision.binding().map(|(id, _)| id.to_owned());
    if let Some((variable, id)) = agent.id_env().zip(conversation.as_ref()) {
        env.insert(variable.into(), id.into());
    }
    let help = &agent_help::of(ctx, agent, &prepared.argv, env, &session.cwd);
    let mut argv = agent.adjust_for(help, prepared.argv);
    let rules = described.map(activity::rules_of).unwrap_or_default();
    let hooks = described.and_then(|described| described.hooks);
    let run = activity::AgentStart { agent, config_dir: &setup.config_dir, conversation, help, rules, hooks };
    let watched = activity::arrange(ctx, instance, session, run, &mut argv, env);
    Ok(Some(PreparedLaunch { argv, notices, watched }))
}

/// How the session's agent is set up: as at its first start.
fn setup(
    ctx: &LaunchContext<'_>,
    session: &Session,
    name: &str,
    env: &BTreeMap<OsString, OsString>,
) -> Setup {
    let today = || agent_environment::setup_today(ctx, session, name, ctx.settings.agents.get(name), env);
    session.setup.clone().unwrap_or_else(today)
}

/// What a resume of an instance would do.
#[derive(Debug, Default)]
pub struct ResumeForecast {
    /// The sessions that would come back, by name, and how those that run an agent would begin.
    pub sessions: Vec<(String, Option<Begin>)>,
    /// The notices for the operator.
    pub notices: Vec<String>,
}

/// What a resume of `instance` would do now, by the decisions that the resume itself takes. Nothing is changed.
pub fn forecast(ctx: &LaunchContext<'_>, instance: &Instance) -> Result<ResumeForecast, EngineError> {
    refuse_open(ctx.store, instance)?;
    let mut claims = Claims::take(ctx.store)?;
    let mut forecast = ResumeForecast::default();
    for session in instance.sessions_to_resume() {
        let session = &Session { generation: session.generation + 1, ..session.clone() };
        let Some(name) = &session.agent else {
            forecast.sessions.push((session.name.clone(), None));
            continue;
        };
        let setup = &setup(ctx, session, name, &ctx.env);
        let agent = &*abide_agents::for_session(name, &session.argv, Some(&setup.described));
        let start = SessionStart { ctx, instance, session, agent, setup };
        let prepared = match start.beginning(Some(&claims), start.lost_and_kept().as_deref()) {
            Ok(prepared) => prepared,
            Err(error) if forecast.sessions.is_empty() => return Err(error),
            Err(error) => {
                forecast.notices.push(format!("{} would not start: {error}", session.name));
                continue;
            }
        };
        if let Some(bound) = binding(&prepared) {
            claims.suppose((instance.id, session.id), bound);
        }
        forecast.notices.extend(notice(&session.name, EarlierRuns::Some, &prepared));
        forecast.sessions.push((session.name.clone(), Some(prepared.begin.decision)));
    }
    Ok(forecast)
}

/// Refuses to bring `instance` back while a process that is not its own is in a conversation of its sessions.
pub(crate) fn refuse_open(store: &Store, instance: &Instance) -> Result<(), EngineError> {
    let bound = |session: &&Session| session.conversation.is_some() && session.agent.is_some();
    let sessions: Vec<&Session> = instance.sessions_to_resume().into_iter().filter(bound).collect();
    if sessions.is_empty() {
        return Ok(());
    }
    let claims = Claims::take(store)?;
    for session in sessions {
        let Some((agent, setup)) = agent_environment::agent_of(session) else { continue };
        let Some(bound) = &session.conversation else { continue };
        let live = LiveHolders::of(&*agent, &setup.config_dir);
        if let Some(by) = live.holder(&bound.id, Some(instance.id), &claims) {
            return Err(TakeError::Held { id: bound.id.clone(), by }.into());
        }
    }
    Ok(())
}

/// The line that every start writes.
fn log(instance: &Instance, session: &Session, resumed: Option<&str>, reason: BeginReason, why: &str) {
    let resumed = resumed.map_or_else(|| "none".to_owned(), |id| format!("id={id}"));
    tracing::info!(instance = %instance.id, session = %session.id, why, "resume: {resumed} reason={reason}");
}

/// A session of an agent that is about to be started.
struct SessionStart<'a> {
    ctx: &'a LaunchContext<'a>,
    instance: &'a Instance,
    session: &'a Session,
    agent: &'a dyn Agent,
    setup: &'a Setup,
}

impl SessionStart<'_> {
    fn vault<'a>(&'a self, id: &'a str) -> Option<Vault<'a>> {
        let instance_dir = connect::instance_dir(self.ctx.store, self.instance.id);
        Vault::of(instance_dir.path(), self.session.id, self.agent, &self.setup.config_dir, id)
    }

    /// Puts back what the agent has lost of the conversation; what the operator should know of it.
    fn restore(&self, env: &BTreeMap<OsString, OsString>) -> Vec<String> {
        let Session { id, name, conversation, cwd, .. } = self.session;
        let Some(bound) = conversation else { return Vec::new() };
        let Some(vault) = self.vault(&bound.id) else { return Vec::new() };
        match vault.restore(cwd, env) {
            Ok(restored) => {
                let notices = put_back(name, &restored);
                notices.iter().for_each(|notice| tracing::warn!(session = %id, id = bound.id, "{notice}"));
                notices
            }
            Err(error) => {
                tracing::error!(session = %id, id = bound.id, "the transcript cannot be put back: {error}");
                vec![format!("the transcript of {name} is gone and cannot be restored: {error}")]
            }
        }
    }

    /// The transcript of the conversation, if there is a copy that `restore` puts in its place.
    fn lost_and_kept(&self) -> Option<PathBuf> {
        let bound = self.session.conversation.as_ref()?;
        self.vault(&bound.id).filter(Vault::holds_copy).and(bound.transcript.clone())
    }

    /// Decides how the session is started, and records it under the lock for such decisions.
    fn decide(&self) -> Result<Prepared, EngineError> {
        let session = self.session;
        // A new conversation belongs to no session, and the usual first start should not have to read those of all others.
        let is_new = session.generation <= 1
            && session.conversation.is_none()
            && self.agent.typed(&session.argv) == Typed::Nothing;
        let claims = if is_new { None } else { Some(Claims::take(self.ctx.store)?) };
        let prepared = self.beginning(claims.as_ref(), None)?;
        self.bind(&prepared)?;
        Ok(prepared)
    }

    /// How the session begins, as things are now. `claims` may be left out of a session that certainly begins a new
    /// conversation; `put_back` is its transcript, if that will be put back where it is missing.
    fn beginning(&self, claims: Option<&Claims>, put_back: Option<&Path>) -> Result<Prepared, EngineError> {
        let Self { ctx, instance, session, agent, setup } = *self;
        let started_before = session.generation > 1;
        let bound = session.conversation.as_ref();
        let own = (instance.id, session.id);
        let taken = |bound: &Conversation| claims?.holder_since(Some(own), &bound.id, bound.bound);
        let searching = started_before && bound.is_none_or(|bound| bound.transcript.is_none());
        let (claimed, rivals) = match claims {
            Some(claims) if searching => {
                (claims.ever(ctx.store, own)?, claims.rivals(own, agent.name(), &session.cwd))
            }
            _ => (Vec::new(), false),
        };
        let instance_dir = connect::instance_dir(ctx.store, instance.id);
        let screen =
            if searching { session_traces::screen(ctx.store, instance.id, session) } else { String::new() };
        let situation = Situation {
            argv: &session.argv,
            cwd: &session.cwd,
            config_dir: &setup.config_dir,
            created: session.created,
            started_before,
            conversation: bound,
            put_back,
            held: bound.and_then(taken).is_some(),
            claimed: &claimed.iter().map(String::as_str).collect::<Vec<_>>(),
            rivals,
            first_turn: session_traces::first_turn(&instance_dir, session, agent),
            screen: &screen,
        };
        let prepared = abide_agents::prepare(agent, &situation)?;
        if let Some(claims) = claims {
            self.refuse_held(&prepared.begin.decision, claims)?;
        }
        Ok(prepared)
    }

    /// Refuses to join a conversation that another session or a process is in.
    fn refuse_held(&self, begin: &Begin, claims: &Claims) -> Result<(), TakeError> {
        let own = (self.instance.id, self.session.id);
        let (id, bound) = match begin {
            Begin::AsTyped { id: Some(id) } => (id, claims.holder(Some(own), id).map(HeldBy::Session)),
            Begin::Resume { id } => (id, None),
            _ => return Ok(()),
        };
        let live =
            || LiveHolders::of(self.agent, &self.setup.config_dir).holder(id, Some(self.instance.id), claims);
        match bound.or_else(live) {
            Some(by) => Err(TakeError::Held { id: id.clone(), by }),
            None => Ok(()),
        }
    }

    /// Written down before the agent starts: a crash right after must not lose the id.
    fn bind(&self, prepared: &Prepared) -> Result<(), EngineError> {
        let (instance, session) = (self.instance.id, self.session.id);
        let resumed = match &prepared.begin.decision {
            Begin::Resume { id } => Some(id.as_str()),
            _ => None,
        };
        let why = prepared.unverified.as_deref().unwrap_or_default();
        log(self.instance, self.session, resumed, prepared.begin.reason, why);
        let bound = binding(prepared);
        self.ctx.store.update(instance, |now| -> Result<(), EngineError> {
            if let Some(own) = now.sessions.iter_mut().find(|own| own.id == session) {
                own.setup.get_or_insert_with(|| self.setup.clone());
                own.astray = None;
                own.resume_unconfirmed = resumed.is_some();
                if let Some(bound) = bound {
                    own.bind(bound);
                }
            }
            Ok(())
        })
    }

    /// Takes the copies that come before a resume.
    fn keep(&self, id: &str, prepared: &Prepared) {
        let Some((transcript, vault)) = prepared.transcript.as_ref().zip(self.vault(id)) else { return };
        if let Err(error) = vault.keep(transcript) {
            tracing::warn!(session = %self.session.id, "no copy was taken: {error}");
        }
    }
}

/// The conversation that a session is in once it is started so.
fn binding(prepared: &Prepared) -> Option<Conversation> {
    prepared.begin.decision.binding().map(|(id, origin)| Conversation {
        id: id.to_owned(),
        origin,
        bound: clock::now(),
        transcript: prepared.transcript.clone(),
        held_in: None,
        extra: Extra::new(),
    })
}

/// What the operator should know of what was put back of the conversation of `name`.
fn put_back(name: &str, restored: &RestoredTranscript) -> Vec<String> {
    let mut notices = Vec::new();
    match restored.beside.first() {
        Some(beside) => notices.push(format!(
            "the transcript of {name} was damaged and was restored from abide's copy; the damaged file is {}",
            beside.display()
        )),
        None if restored.missing => {
            notices.push(format!("the transcript of {name} was missing and was restored from abide's copy"));
        }
        None => {}
    }
    let other = |copy: &PathBuf| {
        format!(
            "the transcript of {name} differs from abide's copy and is shorter; to restore the copy, copy {} over it",
            copy.display()
        )
    };
    notices.extend(restored.other.first().map(other));
    notices
}

/// Whether a session has run before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EarlierRuns {
    Some,
    None,
}

impl EarlierRuns {
    fn before(generation: u64) -> Self {
        if generation > 1 { Self::Some } else { Self::None }
    }
}

/// What the operator should know about how the session `name` was started.
fn notice(name: &str, earlier: EarlierRuns, prepared: &Prepared) -> Option<String> {
    let choose = "`abide conversations` lists them, `abide load --adopt ID` continues one";
    match prepared.begin.reason {
        _ if prepared.torn => {
            Some(format!("the last record of {name}'s transcript is incomplete; {name} continues without it"))
        }
        BeginReason::Ambiguous => Some(format!(
            "more than one conversation could belong to {name}, so it starts a new one; {choose}"
        )),
        BeginReason::Held => {
            Some(format!("another session uses {name}'s conversation now, so it starts a new one; {choose}"))
        }
        BeginReason::TranscriptGone => {
            Some(format!("the transcript of {name}'s conversation is gone, so it starts a new one; {choose}"))
        }
        BeginReason::HeldElsewhere => Some(format!(
            "{name} can only continue a conversation in its original directory, so it starts a new one; {choose}"
        )),
        BeginReason::CannotResume => {
            Some(format!("{name} has no option to resume a conversation, so it starts a new one"))
        }
        BeginReason::NotDescribed if earlier == EarlierRuns::Some => Some(format!(
            "abide does not know how {name} resumes a conversation, so it starts a new one; set `agents.{name}.resume` and `agents.{name}.id` in the configuration"
        )),
        _ => None,
    }
}
