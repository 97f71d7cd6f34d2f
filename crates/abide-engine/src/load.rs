//! `abide load`: choosing what to run, and making an instance for it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use abide_config::{Name, Settings};
use abide_model::program::{self, AGENTS, Program, Wanted};
use abide_model::{Decided, Extra, Instance, InstanceId, Policy, Recipe, Scope, Session, Substrate, vars};
use abide_sys::{clock, process};

use crate::conversations::{self, Take};
use crate::doctor::Machine;
use crate::start::{self, StartError, Surroundings};
use crate::trees::{self, Wish};

/// What the operator asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// An agent, `shell`, or any command.
    pub program: Option<String>,
    /// Arguments for it.
    pub args: Vec<String>,
    /// What to call the instance.
    pub name: Option<String>,
    /// The policy of this launch.
    pub policy: Option<Policy>,
    /// The directory it is launched from, without links.
    pub dir: PathBuf,
    /// The role.
    pub role: String,
    /// What holds its sessions.
    pub substrate: Substrate,
    /// What to take up instead of a new conversation.
    pub take: Option<Take>,
    /// What is wanted of the directory it is launched from.
    pub wish: Wish,
    /// The command that is run once its directories are made.
    pub setup: Vec<String>,
}

/// What was started.
#[derive(Debug)]
pub struct Loaded {
    /// The instance.
    pub id: InstanceId,
    /// What runs in it, and why that.
    pub program: Decided<Program>,
    /// What the operator should know about how it was started, and how long it will run.
    pub warnings: Vec<String>,
}

/// Starts a new instance.
pub fn load(around: &Surroundings<'_>, request: &Request) -> Result<Loaded, StartError> {
    let take = |take| conversations::find(around, &request.dir, request.program.as_deref(), take);
    let taken = request.take.as_ref().map(take).transpose()?;
    let program = match &taken {
        Some(taken) => Decided::new(Program::Agent(taken.agent.clone()), "it was held with this agent"),
        None => choose(around, request.program.as_deref()),
    };
    let argv = argv(&program.decision, around.settings, &around.env, &request.args);
    // Held until the new instance says what it is in, so that another start at the same time finds it taken.
    let claims = taken.as_ref().map(|taken| taken.claim(around.store)).transpose()?;
    let (argv, adopted) = match taken {
        Some(taken) => taken.by(argv, around.settings)?,
        None => (argv, None),
    };
    let unit = around.store.create(|id| {
        let mut instance = instance(around, id, request, &program.decision, argv);
        instance.sessions.iter_mut().for_each(|session| session.conversation = adopted.clone());
        instance
    })?;
    drop(claims);
    tracing::info!(id = %unit.instance.id, "load: {} because {}", program.decision.name(), program.reason);
    let started = start::start(around, &unit.instance)?;
    Ok(Loaded { id: unit.instance.id, program, warnings: started.warnings })
}

/// What runs where `requested` was asked for, or nothing.
pub fn choose(around: &Surroundings<'_>, requested: Option<&str>) -> Decided<Program> {
    let path = around.env.get(OsStr::new(vars::PATH)).cloned().unwrap_or_default();
    let machine = Machine { path, ..Machine::here() };
    let described: Vec<&str> = around.settings.agents.keys().map(Name::as_str).collect();
    let installed: Vec<&str> = AGENTS.iter().copied().filter(|name| machine.find(name).is_some()).collect();
    program::choose(&Wanted {
        requested,
        configured: around.settings.agent.as_ref().map(Name::as_str),
        described: &described,
        installed: &installed,
    })
}

/// The command line of `program`, as the settings and the operator want it.
fn argv(
    program: &Program,
    settings: &Settings,
    env: &BTreeMap<OsString, OsString>,
    extra: &[String],
) -> Vec<String> {
    let mut argv = match program {
        Program::Shell => vec![shell(env)],
        Program::Command(word) => vec![word.clone()],
        Program::Agent(name) => {
            let described = settings.agents.get(name.as_str());
            let command = described.and_then(|agent| agent.command.clone());
            let mut argv = command.unwrap_or_else(|| vec![name.clone()]);
            argv.extend(described.and_then(|agent| agent.args.clone()).unwrap_or_default());
            argv
        }
    };
    argv.extend_from_slice(extra);
    argv
}

/// The operator's shell.
pub fn shell(env: &BTreeMap<OsString, OsString>) -> String {
    let set = env.get(OsStr::new(vars::SHELL)).map(|shell| shell.to_string_lossy().into_owned());
    set.filter(|shell| shell.starts_with('/')).unwrap_or_else(|| "/bin/sh".to_owned())
}

fn instance(
    around: &Surroundings<'_>,
    id: InstanceId,
    request: &Request,
    program: &Program,
    argv: Vec<String>,
) -> Instance {
    let (now, settings) = (clock::now(), around.settings);
    let (name, configured) = match &around.workspace {
        Some((name, workspace)) => (Some(name.to_string()), workspace.mounts.as_slice()),
        None => (None, &[][..]),
    };
    let scope = Scope { workspace: name, dir: request.dir.clone(), extra: Extra::new() };
    let mut recipe = Recipe::on_host(request.dir.clone());
    let unit = around.store.layout().unit(id);
    recipe.mounts = trees::plan(&request.dir, configured, &request.wish, unit.dir());
    recipe.setup = request.setup.clone();
    recipe.substrate = request.substrate;
    recipe.env = settings.env.iter().map(|(name, reference)| (name.to_string(), reference.clone())).collect();
    if let Program::Agent(agent) = program {
        let own = settings.agents.get(agent.as_str()).into_iter().flat_map(|described| &described.env);
        recipe.env.extend(own.map(|(name, reference)| (name.to_string(), reference.clone())));
    }
    let mut instance = Instance::starting(id, scope, request.role.clone(), recipe, process::this(), now);
    instance.name = request.name.clone();
    instance.policy = request.policy;
    let session = Session {
        id: instance.new_session_id(),
        name: program.name(),
        agent: match program {
            Program::Agent(name) => Some(name.clone()),
            Program::Shell | Program::Command(_) => None,
        },
        argv,
        cwd: request.dir.clone(),
        generation: 1,
        setup: None,
        label: None,
        conversation: None,
        parked: Vec::new(),
        created: now,
        attached: None,
        exit: None,
        extra: Extra::new(),
    };
    instance.sessions.push(session);
    instance
}
