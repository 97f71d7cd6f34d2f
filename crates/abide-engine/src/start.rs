//! The one start path: whatever brings an instance's processes to life comes through here.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use abide_capsule::keeper::{Config, LaunchError, Launching};
use abide_capsule::mux::{MuxOptions, Prefix, StatusBar};
use abide_capsule::protocol::Spawn;
use abide_capsule::session::{InvalidSessionId, SessionId, Size, SpawnSpec};
use abide_capsule::text::OsText;
use abide_config::{Journal, Settings};
use abide_model::{Event, Instance, InstanceId, Permission, Session};
use abide_places::unit::{self, Outcome};
use abide_store::Store;
use abide_sys::clock;

use crate::secrets::{self, SecretError};
use crate::{conversation, environment, finish, live};

/// Why an instance did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A value that its environment needs can not be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The capsule or the program in it did not start.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// What was started could not be written down; it was ended again.
    #[error(transparent)]
    Store(#[from] abide_store::Error),
    /// The manifest holds a session that no capsule can have.
    #[error(transparent)]
    Session(#[from] InvalidSessionId),
    /// The system gave no random number for an id.
    #[error("no id for the conversation could be made: {0}")]
    Mint(#[from] std::io::Error),
    /// The manifest holds no session to start.
    #[error("{} has no session to start", .0.display_name())]
    NoSession(InstanceId),
}

/// What a start needs to know beyond the instance itself.
pub struct Surroundings<'a> {
    /// Where instances are.
    pub store: &'a Store,
    /// The settings of the scope.
    pub settings: &'a Settings,
    /// The workspace that the scope is, if it is one.
    pub workspace: Option<String>,
    /// The environment of this launch.
    pub env: BTreeMap<OsString, OsString>,
    /// The operator's home directory.
    pub home: PathBuf,
    /// The `abide` that supervises: this very program.
    pub exe: PathBuf,
    /// The first size of the terminal, until somebody attaches.
    pub size: Size,
}

/// The field of the manifest that says whether the capsule has a unit of its own, and if not, why.
pub const ISOLATION: &str = "isolation";

/// An instance that runs.
#[derive(Debug)]
pub struct Started {
    /// What the operator should know about how long it will.
    pub warning: Option<String>,
}

/// Starts the capsule of `instance`, which is being started, with its first session, and stamps it active.
///
/// A start that fails leaves no process, and the instance as the status machine says.
pub fn start(around: &Surroundings<'_>, instance: &Instance) -> Result<Started, StartError> {
    match launch(around, instance) {
        Ok(outcome) => Ok(Started { warning: outcome.warning().map(str::to_owned) }),
        Err(error) => {
            tracing::warn!(id = %instance.id, "start failed: {error}");
            finish::start_failed(around.store, instance.id, &error.to_string());
            Err(error)
        }
    }
}

fn launch(around: &Surroundings<'_>, instance: &Instance) -> Result<Outcome, StartError> {
    let first = instance.sessions.first().ok_or(StartError::NoSession(instance.id))?;
    let spec = spec(around, instance, first)?;
    let unit = live::unit(around.store, instance.id);
    let config = keeper_config(around, instance, unit.path());
    let argv = [around.exe.as_os_str(), "capsule".as_ref(), "keeper".as_ref()].map(OsText::from);
    let launching = Launching::begin(&argv, config, &unit.keeper_log())?;
    let isolation = isolate(around, instance.id, &launching);
    let launched = launching.start(spec)?;
    tracing::info!(id = %instance.id, keeper = launched.keeper.pid, session = launched.session_pid, "started");
    start_others(around, instance);
    around.store.update(instance.id, |instance| -> Result<(), abide_store::Error> {
        // Only a removal that was decided meanwhile refuses this, and that one stands.
        let _ = instance.apply(&Event::Launched, "the capsule runs", clock::now());
        instance.extra.insert(ISOLATION.to_owned(), isolation.to_string().into());
        Ok(())
    })?;
    Ok(isolation)
}

/// Moves the keeper out of the login before anything runs in it: whatever it starts is then where it is.
fn isolate(around: &Surroundings<'_>, id: InstanceId, launching: &Launching) -> Outcome {
    let keeper = launching.keeper().pid;
    let outcome = unit::place(keeper, id, around.settings.unit, around.settings.linger);
    match outcome {
        Outcome::FellBack { .. } => tracing::warn!(%id, "{outcome}"),
        _ => tracing::info!(%id, "{outcome}"),
    }
    outcome
}

/// Starts the sessions after the first. One that does not start must not take the others down; it is told in the log, and
/// the instance is there to start it again from.
fn start_others(around: &Surroundings<'_>, instance: &Instance) {
    let Some((_, others)) = instance.sessions.split_first().filter(|(_, others)| !others.is_empty()) else {
        return;
    };
    let started = live::connect(&live::unit(around.store, instance.id)).map_err(|e| e.to_string()).map(
        |mut capsule| {
            for session in others {
                let asked = spec(around, instance, session).map_err(|e| e.to_string()).and_then(|spec| {
                    let spawn = Spawn { spec: Box::new(spec), focus: false };
                    capsule.call(&spawn, live::PATIENCE).map_err(|e| e.to_string())
                });
                if let Err(why) = asked {
                    tracing::warn!(id = %instance.id, session = %session.id, "did not start: {why}");
                }
            }
        },
    );
    if let Err(why) = started {
        tracing::warn!(id = %instance.id, "only the first session was started: {why}");
    }
}

fn spec(around: &Surroundings<'_>, instance: &Instance, session: &Session) -> Result<SpawnSpec, StartError> {
    let outer = around.env.clone();
    let mut env = environment::of_session(outer, instance.id, session.id, &session.cwd);
    for (name, reference) in &instance.recipe.env {
        let lookup = |name: &str| around.env.get(&OsString::from(name)).cloned();
        env.insert(name.into(), secrets::resolve(name, reference, &around.home, lookup)?.reveal());
    }
    let argv = match conversation::prepare(around, instance, session, &mut env)? {
        Some(prepared) => prepared.argv,
        None => session.argv.clone(),
    };
    Ok(SpawnSpec {
        id: SessionId::new(session.id.to_string())?,
        name: session.name.clone(),
        argv: argv.iter().map(OsText::from).collect(),
        env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: session.cwd.as_os_str().into(),
        size: around.size,
        umask: None,
        meta: serde_json::json!({ "agent": session.agent, "shell": [crate::load::shell(&around.env)] }),
    })
}

fn keeper_config(around: &Surroundings<'_>, instance: &Instance, unit: &Path) -> Config {
    let own = |words: &[&str]| -> Vec<OsText> {
        std::iter::once(around.exe.as_os_str().into()).chain(words.iter().map(Into::into)).collect()
    };
    let mut config = Config::new(unit.as_os_str(), instance.generation, own(&["capsule", "mux"]));
    config.on_exit = own(&["capsule", "finish", instance.id.as_str()]);
    config.options = serde_json::to_value(mux_options(around.settings, instance)).unwrap_or_default();
    config
}

fn mux_options(settings: &Settings, instance: &Instance) -> MuxOptions {
    let allowed = |permission: Permission| permission == Permission::Allow;
    MuxOptions {
        name: instance.name.clone().unwrap_or_else(|| instance.id.display_name()),
        scrollback: usize::try_from(settings.scrollback).unwrap_or(usize::MAX),
        journal_bytes: match settings.journal {
            Journal::Off => 0,
            Journal::Newest(size) => size.bytes(),
        },
        prefix: Prefix::try_from(settings.prefix.to_string()).unwrap_or_default(),
        status_bar: match settings.status_bar {
            abide_model::StatusBar::Bottom => StatusBar::Bottom,
            abide_model::StatusBar::Top => StatusBar::Top,
            abide_model::StatusBar::Off => StatusBar::Off,
        },
        clipboard: allowed(settings.terminal.clipboard),
        links: allowed(settings.terminal.links),
        notifications: allowed(settings.terminal.notifications),
    }
}
