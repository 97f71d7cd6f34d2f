//! What is arranged so that a session's activity can be seen: what its mux is given, the hooks of its agent, and what a hook
//! does when it is called.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_agents::activity::{AgentLaunch, LAUNCH};
use abide_agents::hooks::{self, Injection, Reporter};
use abide_agents::{Agent, Typed};
use abide_config::Agent as Described;
use abide_model::activity::Says;
use abide_model::{Instance, Session, vars};
use abide_places::tmux::pane_process::Heard;
use abide_store::Store;
use abide_sys::clock;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::Connection;

pub use abide_agents::activity::watch;

use crate::conversation::agent_environment;
use crate::conversation::current::{self, LookDepth};
use crate::running::connect;
use crate::start::launch::LaunchContext;

/// The most that an agent says to a hook. What a tool printed may be part of it.
const MAX_PAYLOAD: u64 = 4 << 20;

/// How long a hook waits for the mux: the agent waits for the hook.
const HOOK_PATIENCE: Duration = Duration::from_millis(500);

/// How an agent's session is started, as far as watching it needs to know.
pub(crate) struct AgentStart<'a> {
    pub agent: &'a dyn Agent,
    pub config_dir: &'a Path,
    pub conversation: Option<String>,
    /// What it says to `--help`, if it was asked.
    pub help: &'a str,
    /// What the operator says about its titles and screens.
    pub rules: serde_json::Value,
    /// Whether the operator wants its hooks set.
    pub hooks: Option<bool>,
}

/// What the configuration says about an agent's titles and screens, in the form of the rules that abide has itself.
pub(crate) fn rules_of(described: &Described) -> serde_json::Value {
    serde_json::json!({ "title": described.title, "screen": described.screen })
}

/// Sets the agent's hooks for this launch, and returns what the mux has to know about the session. A failure to set hooks
/// is not fatal.
pub(crate) fn arrange(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    session: &Session,
    run: AgentStart<'_>,
    argv: &mut Vec<String>,
    env: &mut BTreeMap<OsString, OsString>,
) -> (&'static str, serde_json::Value) {
    let instance_dir = connect::instance_dir(ctx.store, instance.id);
    if let Some(injection) = hooks_of(ctx, session, &instance_dir, &run, argv, env) {
        match injection.files.iter().try_for_each(|(path, contents)| agent_environment::put(path, contents)) {
            Ok(()) => {
                let Injection { argv: more, env: vars, .. } = injection;
                let grammar = &run.agent.profile().grammar;
                *argv = grammar.append(std::mem::take(argv), more.iter().map(String::as_str));
                env.extend(vars.into_iter().map(|(name, value)| (name.into(), value)));
                env.insert(vars::ABIDE_EXE.into(), ctx.exe.clone().into());
                env.insert(vars::ABIDE_INSTANCE_DIR.into(), instance_dir.path().into());
                env.insert(vars::ABIDE_GENERATION.into(), instance.generation.to_string().into());
            }
            Err(error) => tracing::warn!(instance = %instance.id, session = %session.id, "no hooks: {error}"),
        }
    }
    let launch = AgentLaunch {
        agent: run.agent.name().to_owned(),
        config_dir: run.config_dir.to_owned(),
        cwd: session.cwd.clone(),
        conversation: run.conversation,
        started: clock::now(),
        rules: run.rules,
    };
    (LAUNCH, serde_json::to_value(launch).unwrap_or_default())
}

fn hooks_of(
    ctx: &LaunchContext<'_>,
    session: &Session,
    instance_dir: &InstanceDir,
    run: &AgentStart<'_>,
    argv: &[String],
    env: &BTreeMap<OsString, OsString>,
) -> Option<Injection> {
    let signs = run.agent.profile().signs;
    let hooks = signs.hooks.filter(|_| run.hooks.unwrap_or(!signs.needs_consent))?;
    if run.agent.typed(argv) == Typed::Command {
        return None;
    }
    let dir = hook_dir(instance_dir, session);
    let injection = hooks(&Reporter { exe: &ctx.exe, dir: &dir, argv, help: run.help });
    // What the operator gives is the operator's: of two, an agent takes one.
    let given = |option: &&str| argv.iter().any(|word| word.split('=').next() == Some(option));
    let set = |(name, _): &(&str, OsString)| env.contains_key(OsStr::new(name));
    if injection.once.iter().any(given) || injection.env.iter().any(set) {
        tracing::info!(session = %session.id, "no hooks: the operator has set what they would need");
        return None;
    }
    Some(injection)
}

/// Where the files of a session's hooks are: in the instance directory, with which they go.
fn hook_dir(instance_dir: &InstanceDir, session: &Session) -> PathBuf {
    instance_dir.state_dir().join("hooks").join(session.id.to_string())
}

/// What a hook does: passes on what the agent says on `input`. Whatever goes wrong is nothing to the agent.
pub fn report(input: impl Read) {
    let mut payload = Vec::new();
    if input.take(MAX_PAYLOAD).read_to_end(&mut payload).is_err() {
        return;
    }
    let session = env::var(vars::ABIDE_SESSION).ok().and_then(|id| id.parse().ok());
    let generation = env::var(vars::ABIDE_GENERATION).ok().and_then(|number| number.parse().ok());
    let (Some(session), Some(generation), Some(instance_dir)) =
        (session, generation, env::var_os(vars::ABIDE_INSTANCE_DIR))
    else {
        return;
    };
    let Some(report) = hooks::report(&payload, session, generation) else { return };
    let instance_dir = InstanceDir::new(instance_dir);
    let heard = match Connection::connect(&instance_dir, HOOK_PATIENCE) {
        // A refusal is in the mux's log.
        Ok(mut mux) => mux.call(&report, HOOK_PATIENCE).is_ok(),
        Err(_) => Heard::note(&instance_dir, &report).is_ok(),
    };
    if heard && hooks::meaning(&report).is_some_and(|statement| statement.says == Says::Idle) {
        keep(&instance_dir);
    }
}

/// Keeps what was said by the end of a turn, while the agent has nothing to write and no crash has come between.
fn keep(instance_dir: &InstanceDir) {
    let home = instance_dir.path().ancestors().nth(2);
    let id = instance_dir.path().file_name().and_then(|name| name.to_str()?.parse().ok());
    let (Some(home), Some(id)) = (home, id) else { return };
    let store = Store::at(home.to_owned());
    if let Ok(instance) = store.read(id) {
        current::follow(&store, instance, None, LookDepth::Brief);
    }
}
