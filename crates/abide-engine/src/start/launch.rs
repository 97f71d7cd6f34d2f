//! The one start path: whatever brings an instance's processes to life comes through here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use abide_config::{Name, Settings, Workspace};
use abide_model::session::SessionExit;
use abide_model::status::StatusRefusal;
use abide_model::{Instance, InstanceId, Place as PlaceChoice, Session, StatusEvent, Substrate, vars};
use abide_places::host;
use abide_places::host::scope::ScopeOutcome;
use abide_places::place::{Place, StageEvent};
use abide_places::tmux::TmuxServer;
use abide_store::Store;
use abide_sys::clock;
use abide_wire::os_text::OsText;
use abide_wire::session::{META_AGENT, META_SHELL, SpawnSpec, TerminalSize};
use abide_wire::supervisor_lock::InstanceClaim;

use super::{in_capsule, in_container, in_tmux};
use crate::conversation::begin;
use crate::end::failed_start::{self, FailedStart};
use crate::end::trash;
use crate::error::EngineError;
use crate::running::{connect, processes};
use crate::start::environment;
use crate::start::secrets::{self, SecretError};
use crate::trees;

/// What a start needs to know beyond the instance itself.
pub struct LaunchContext<'a> {
    pub store: &'a Store,
    /// The settings of the scope.
    pub settings: &'a Settings,
    /// The workspace that the scope is, if it is one.
    pub workspace: Option<(Name, Workspace)>,
    /// The environment of this launch.
    pub env: BTreeMap<OsString, OsString>,
    /// The operator's home directory.
    pub home: PathBuf,
    /// The `abide` that supervises: this very program.
    pub exe: PathBuf,
    /// The first size of the terminal, until a client attaches.
    pub size: TerminalSize,
    /// Whether resumed agents go on by themselves with a turn that was cut, this once.
    pub continue_turn: bool,
    /// The set-up command that is configured now; none where the configuration cannot be read.
    pub setup: Option<Vec<String>>,
    /// Hears, line by line, of what takes its time.
    pub progress: &'a dyn Fn(&str),
    /// Hears of the stages of a start in another place.
    pub stages: &'a dyn Fn(&StageEvent),
    /// The place that the sessions are started in, where it is not the host. `env`, `home` and `exe` are theirs then.
    pub inside: Option<Inside<'a>>,
}

/// A place that sessions are started in, and what the operator has outside.
#[derive(Clone, Copy)]
pub struct Inside<'a> {
    pub place: &'a dyn Place,
    pub instance: &'a Instance,
    pub operator_env: &'a BTreeMap<OsString, OsString>,
    pub operator_home: &'a Path,
}

impl<'a> LaunchContext<'a> {
    /// The same start, as it is for sessions in another place.
    pub(crate) fn inside<'b>(
        &'b self,
        env: BTreeMap<OsString, OsString>,
        home: PathBuf,
        exe: PathBuf,
        inside: Inside<'b>,
    ) -> LaunchContext<'b>
    where
        'a: 'b,
    {
        LaunchContext {
            store: self.store,
            settings: self.settings,
            workspace: self.workspace.clone(),
            env,
            home,
            exe,
            size: self.size,
            continue_turn: self.continue_turn,
            setup: self.setup.clone(),
            progress: self.progress,
            stages: self.stages,
            inside: Some(inside),
        }
    }
}

/// An instance that runs.
#[derive(Debug)]
pub struct Started {
    /// Why git does not work in its trees, each with what to do.
    pub faults: Vec<String>,
    /// What the operator should know about how it was started, and how long it will run.
    pub warnings: Vec<String>,
    /// The sessions that should run beside the first one and do not.
    pub not_started: Vec<NotStarted>,
}

/// A session that could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStarted {
    pub session: abide_model::SessionId,
    /// What the operator calls it.
    pub name: String,
    pub why: String,
}

impl NotStarted {
    pub(crate) fn new(session: &Session, why: impl ToString) -> Self {
        Self { session: session.id, name: session.name.clone(), why: why.to_string() }
    }
}

impl std::fmt::Display for NotStarted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}) did not start: {}", self.name, self.session, self.why)
    }
}

/// What comes to light while an instance is being launched.
#[derive(Debug, Default)]
pub(crate) struct LaunchReport {
    pub warnings: Vec<String>,
    pub not_started: Vec<NotStarted>,
}

/// Starts the capsule of `instance`, which is being started, with its first session, and stamps it active.
///
/// A start that fails leaves no process, and the instance as the status machine says.
pub fn start(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    claim: InstanceClaim,
) -> Result<Started, EngineError> {
    let started = start_claimed(ctx, instance);
    drop(claim);
    started
}

/// Says that this process starts the instance `id`, for as long as the claim is kept.
pub fn claim(store: &Store, id: InstanceId) -> Result<InstanceClaim, EngineError> {
    InstanceClaim::starting(&connect::instance_dir(store, id)).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            EngineError::ResumeRefused { id, why: StatusRefusal("another process is starting it") }
        }
        _ => EngineError::Other(format!("{} cannot be started: {error}", id.display_name())),
    })
}

fn start_claimed(ctx: &LaunchContext<'_>, instance: &Instance) -> Result<Started, EngineError> {
    match launch(ctx, instance) {
        Ok((outcome, LaunchReport { mut warnings, not_started })) => {
            warnings.extend(outcome.warning().map(str::to_owned));
            Ok(Started { faults: faults(ctx, instance.id), warnings, not_started })
        }
        Err(error) => {
            tracing::warn!(id = %instance.id, "start failed: {error}");
            // What a set-up left half done is worth a look, and can be gone on with.
            let without_work = match error {
                EngineError::Setup { .. } => FailedStart::Keep,
                _ => FailedStart::Remove,
            };
            failed_start::clear_up(ctx.store, instance.id, &error.to_string(), without_work);
            trash::forget_blank(ctx.store, instance);
            Err(error)
        }
    }
}

fn faults(ctx: &LaunchContext<'_>, id: InstanceId) -> Vec<String> {
    ctx.store.read(id).map_or_else(|_| Vec::new(), |instance| trees::faults(ctx.store, &instance))
}

fn launch(ctx: &LaunchContext<'_>, instance: &Instance) -> Result<(ScopeOutcome, LaunchReport), EngineError> {
    // First of all: what an earlier start left of its set-up command would write into the same directories.
    if instance.generation > 1 {
        for left in processes::end_leftovers(&connect::instance_dir(ctx.store, instance.id), instance.id)? {
            (ctx.progress)(&format!("{left} of its last run still ran, and was ended"));
        }
    }
    let instance = &trees::ready(ctx, instance)?;
    let mut report = LaunchReport::default();
    let isolation = launch_in_place(ctx, instance, &mut report)?;
    match isolation {
        ScopeOutcome::FellBack { .. } => tracing::warn!(id = %instance.id, "{isolation}"),
        _ => tracing::info!(id = %instance.id, "{isolation}"),
    }
    let stamped = ctx.store.update(instance.id, |instance| -> Result<(), abide_store::StoreError> {
        // Only a removal that was decided meanwhile refuses this, and that one stands.
        let because = match (instance.recipe.place, instance.recipe.substrate) {
            (PlaceChoice::Docker, _) => "its container runs",
            (PlaceChoice::Host, Substrate::Capsule) => "the capsule runs",
            (PlaceChoice::Host, Substrate::Tmux) => "its tmux session runs",
        };
        let _ = instance.apply(&StatusEvent::Launched, because, clock::now());
        instance.isolation = Some(isolation.to_string());
        for missing in &report.not_started {
            tracing::warn!(id = %instance.id, session = %missing.session, "did not start: {}", missing.why);
            let session = instance.sessions.iter_mut().find(|session| session.id == missing.session);
            session.into_iter().for_each(|session| {
                session.exit = Some(SessionExit::not_started(&missing.why, clock::now()))
            });
        }
        Ok(())
    });
    // It runs all the same, and the next look finds that out. Called a failed start, it would run on unseen.
    if let Err(error) = stamped {
        tracing::warn!(id = %instance.id, "that it runs could not be written down: {error}");
    }
    Ok((isolation, report))
}

/// The environment of what runs in `cwd` as session `id`: the launch's own, and the values that the recipe refers to.
pub(crate) fn env_of(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    id: abide_model::SessionId,
    cwd: &Path,
) -> Result<BTreeMap<OsString, OsString>, SecretError> {
    let mut env = environment::of_session(ctx.env.clone(), instance.id, id, cwd);
    let (operator_env, operator_home) = match &ctx.inside {
        Some(inside) => (inside.operator_env, inside.operator_home),
        None => (&ctx.env, ctx.home.as_path()),
    };
    for (name, reference) in &instance.recipe.env {
        let lookup = |name: &str| operator_env.get(&OsString::from(name)).cloned();
        env.insert(name.into(), secrets::resolve(name, reference, operator_home, lookup)?.reveal());
    }
    Ok(env)
}

/// What `session` is started with.
pub(crate) fn spec(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    session: &Session,
    warnings: &mut Vec<String>,
) -> Result<SpawnSpec, EngineError> {
    let mut env = env_of(ctx, instance, session.id, &session.cwd)?;
    if let Some(agent) = &session.agent {
        env.insert(vars::ABIDE_AGENT.into(), agent.into());
    }
    let mut meta = serde_json::json!({ META_AGENT: session.agent, META_SHELL: [host::shell(&ctx.env)] });
    let argv = match begin::prepare(ctx, instance, session, &mut env)? {
        Some(launch) => {
            warnings.extend(launch.notices);
            meta[launch.watched.0] = launch.watched.1;
            launch.argv
        }
        None => session.argv.clone(),
    };
    Ok(SpawnSpec {
        id: session.id,
        name: session.name.clone(),
        argv: argv.iter().map(OsText::from).collect(),
        env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: session.cwd.as_os_str().into(),
        size: ctx.size,
        umask: None,
        meta,
    })
}

/// Starts the sessions of `instance` where it lives; gives how it was placed.
fn launch_in_place(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    report: &mut LaunchReport,
) -> Result<ScopeOutcome, EngineError> {
    match &instance.recipe.container {
        Some(recipe) => in_container::launch(ctx, instance, recipe, report).map(|()| ScopeOutcome::Container),
        None => launch_on_substrate(ctx, instance, report),
    }
}

/// Starts the sessions of `instance` on what it wishes for, or else in a capsule; gives how it was placed.
fn launch_on_substrate(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    report: &mut LaunchReport,
) -> Result<ScopeOutcome, EngineError> {
    if instance.recipe.substrate == Substrate::Tmux {
        match TmuxServer::check() {
            Ok(()) => return in_tmux::launch(ctx, instance, report),
            Err(why) => {
                report.warnings.push(format!("tmux cannot be used, so the sessions run in a capsule: {why}"));
            }
        }
    }
    in_capsule::launch(ctx, instance, report)
}
