//! What an agent needs around it to find its conversations: taken down at a session's first start, and replayed at every later
//! one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use abide_agents::{Agent, Chosen};
use abide_config::Agent as Described;
use abide_model::session::Setup;
use abide_model::{Extra, Session};
use abide_sys::atomic::{self, Durability};

use crate::error::EngineError;
use crate::start::launch::LaunchContext;

/// The agent that `session` runs, as it was set up at its first start; `None` if it runs none, or was never started.
pub(crate) fn agent_of(session: &Session) -> Option<(Chosen, &Setup)> {
    let setup = session.setup.as_ref()?;
    let agent = abide_agents::for_session(session.agent.as_deref()?, &session.argv, Some(&setup.described));
    Some((agent, setup))
}

/// How the session's agent would be set up if it were started for the first time now.
pub(crate) fn setup_today(
    ctx: &LaunchContext<'_>,
    session: &Session,
    name: &str,
    described: Option<&Described>,
    env: &BTreeMap<OsString, OsString>,
) -> Setup {
    let continue_turn = described.and_then(|agent| agent.continue_turn).unwrap_or(false);
    let how = described.map(Described::described).unwrap_or_default();
    let agent = abide_agents::for_session(name, &session.argv, Some(&how));
    let chosen = chosen_dir(&*agent, described, env);
    Setup {
        moved: chosen.is_some(),
        config_dir: chosen.unwrap_or_else(|| agent.default_dir(&ctx.home)),
        described: how,
        continue_turn,
        extra: Extra::new(),
    }
}

/// The directory that the agent keeps its conversations in, if the configuration or the environment chooses one. One that
/// that the agent does not accept is not where its conversations are.
pub(crate) fn chosen_dir(
    agent: &dyn Agent,
    described: Option<&Described>,
    env: &BTreeMap<OsString, OsString>,
) -> Option<PathBuf> {
    let configured = described.and_then(|agent| agent.config_dir.clone());
    let usable = configured.filter(|dir| agent.config_env(dir).is_ok());
    usable.or_else(|| agent.moved_to(&|name| env.get(OsStr::new(name)).cloned()))
}

/// Refuses a directory that the agent `name`, run as `argv`, does not accept.
pub(crate) fn check(name: &str, argv: &[String], described: &Described) -> Result<(), EngineError> {
    let Some(dir) = &described.config_dir else { return Ok(()) };
    let agent = abide_agents::for_session(name, argv, Some(&described.described()));
    agent.config_env(dir).map(drop).map_err(EngineError::Other)
}

/// Makes the agent look where it looked at first. An agent that is given its own default directory may behave differently from one
/// that is given none, so the default is not passed.
pub(crate) fn replay(agent: &dyn Agent, setup: &Setup, env: &mut BTreeMap<OsString, OsString>) {
    for (variable, _) in agent.profile().moved_by {
        let usable =
            agent.config_env(&setup.config_dir).ok().filter(|(name, _)| setup.moved && name == variable);
        match usable {
            Some((_, dir)) => drop(env.insert(variable.into(), dir)),
            None if !setup.moved => drop(env.remove(OsStr::new(variable))),
            None => {}
        }
    }
}

/// Where the configuration has changed since the session was first started.
pub(crate) fn differences(setup: &Setup, described: Option<&Described>) -> impl Iterator<Item = String> {
    let dir = described.and_then(|agent| agent.config_dir.as_ref()).filter(|dir| **dir != setup.config_dir);
    let dir = dir.map(|dir| {
        let then = setup.config_dir.display();
        format!(
            "config_dir is {} now; this session keeps {then}, where its conversation is stored",
            dir.display()
        )
    });
    let now = described.map(Described::described).filter(|now| *now != setup.described);
    let now = now.map(|_| {
        "the settings for its conversations have changed; this session keeps the old ones".to_owned()
    });
    dir.into_iter().chain(now)
}

/// Has the agent go on with a turn that was cut, where it can.
pub(crate) fn continue_turn(agent: &dyn Agent, env: &mut BTreeMap<OsString, OsString>) -> Option<String> {
    match agent.profile().continues {
        Some((name, value)) => {
            env.insert(name.into(), value.into());
            None
        }
        None => Some(format!("{} cannot continue an interrupted turn; it starts idle", agent.name())),
    }
}

/// Writes a private file (mode 0600), with the directories above it.
pub(crate) fn put(path: &Path, contents: &str) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap_or(path))?;
    atomic::write_path(path, contents.as_bytes(), 0o600, Durability::Synced)
}
