//! What is arranged so that a session's activity can be seen: what its mux is told, the hooks of its agent, and what a hook
//! does when it is called.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use abide_agents::activity::{LAUNCH, Launch};
use abide_agents::hooks::{self, Injection, Reporter};
use abide_agents::{Agent, Typed};
use abide_capsule::protocol::Connection;
use abide_capsule::session::SessionId;
use abide_capsule::unit::Unit;
use abide_model::{Instance, Session, vars};
use abide_sys::clock;

pub use abide_agents::activity::watch;

use crate::live;
use crate::start::Surroundings;

/// The most that an agent says to a hook. What a tool printed may be part of it.
const MAX_PAYLOAD: u64 = 4 << 20;

/// How long a hook waits for the mux: the agent waits for the hook.
const HOOK_PATIENCE: Duration = Duration::from_millis(500);

/// How an agent's session is started, as far as watching it needs to know.
pub(crate) struct Running<'a> {
    pub agent: &'a dyn Agent,
    pub config_dir: &'a Path,
    pub conversation: Option<String>,
}

/// Sets the agent's hooks for this launch, and gives what the mux is to be told about the session. Hooks that can not be set
/// are missed, but stop nobody from working.
pub(crate) fn arrange(
    around: &Surroundings<'_>,
    instance: &Instance,
    session: &Session,
    run: Running<'_>,
    argv: &mut Vec<String>,
    env: &mut BTreeMap<OsString, OsString>,
) -> (&'static str, serde_json::Value) {
    let unit = live::unit(around.store, instance.id);
    if let Some(injection) = hooks_of(around, session, &unit, run.agent, argv, env) {
        match write(&injection) {
            Ok(()) => {
                let Injection { argv: more, env: vars, .. } = injection;
                let grammar = &run.agent.profile().grammar;
                *argv = grammar.append(std::mem::take(argv), more.iter().map(String::as_str));
                env.extend(vars.into_iter().map(|(name, value)| (name.into(), value)));
                env.insert(vars::ABIDE_UNIT.into(), unit.path().into());
                env.insert(vars::ABIDE_GENERATION.into(), instance.generation.to_string().into());
            }
            Err(error) => tracing::warn!(instance = %instance.id, session = %session.id, "no hooks: {error}"),
        }
    }
    let launch = Launch {
        agent: run.agent.name().to_owned(),
        config_dir: run.config_dir.to_owned(),
        cwd: session.cwd.clone(),
        conversation: run.conversation,
        started: clock::now(),
    };
    (LAUNCH, serde_json::to_value(launch).unwrap_or_default())
}

fn hooks_of(
    around: &Surroundings<'_>,
    session: &Session,
    unit: &Unit,
    agent: &dyn Agent,
    argv: &[String],
    env: &BTreeMap<OsString, OsString>,
) -> Option<Injection> {
    let hooks = agent.profile().signs.hooks?;
    if agent.typed(argv) == Typed::Command {
        return None;
    }
    let dir = hook_dir(unit, session);
    let injection = hooks(&Reporter { exe: &around.exe, dir: &dir });
    // What the operator gives is the operator's: of two, an agent takes one.
    let given = |option: &String| argv.iter().any(|word| word.split('=').next() == Some(option));
    let set = |(name, _): &(&str, OsString)| env.contains_key(OsStr::new(name));
    if injection.argv.iter().step_by(2).any(given) || injection.env.iter().any(set) {
        tracing::info!(session = %session.id, "no hooks: the operator has set what they would need");
        return None;
    }
    Some(injection)
}

/// Where the files of a session's hooks are: in the unit, with which they go.
fn hook_dir(unit: &Unit, session: &Session) -> PathBuf {
    unit.state_dir().join("hooks").join(session.id.to_string())
}

fn write(injection: &Injection) -> io::Result<()> {
    for (path, contents) in &injection.files {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { continue };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        abide_sys::atomic::write(fs::File::open(dir)?, name, contents.as_bytes(), 0o600)?;
    }
    Ok(())
}

/// What a hook does: passes on what the agent says on `input`. Whatever goes wrong is nothing to the agent.
pub fn report(input: impl Read) {
    let mut payload = Vec::new();
    if input.take(MAX_PAYLOAD).read_to_end(&mut payload).is_err() {
        return;
    }
    let session = env::var(vars::ABIDE_SESSION).ok().and_then(|id| SessionId::new(id).ok());
    let generation = env::var(vars::ABIDE_GENERATION).ok().and_then(|number| number.parse().ok());
    let (Some(session), Some(generation), Some(unit)) = (session, generation, env::var_os(vars::ABIDE_UNIT))
    else {
        return;
    };
    if let Some(report) = hooks::report(&payload, session, generation)
        && let Ok(mut mux) = Connection::connect(&Unit::new(unit), HOOK_PATIENCE)
    {
        // A refusal is in the mux's log.
        let _ = mux.call(&report, HOOK_PATIENCE);
    }
}
