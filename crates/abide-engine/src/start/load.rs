//! `abide load`: choosing what to run, and making an instance for it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use abide_config::{Name, Role, Settings};
use abide_model::program::{self, AGENTS, Program, ProgramFacts};
use abide_model::{
    Decided, EnvRef, Extra, Instance, InstanceId, Isolation, LaunchScope, Place, Policy, Recipe, Session,
    Substrate, vars,
};
use abide_places::container_recipe::{ContainerInputs, ContainerPlan, container_recipe};
use abide_store::{ResolveError, Store};
use abide_sys::{clock, host, process};

use crate::conversation::adopt::{self, Take};
use crate::conversation::agent_environment;
use crate::doctor::Machine;
use crate::error::EngineError;
use crate::running::containers;
use crate::start::launch::{self, LaunchContext};
use crate::start::{differences, moved};
use crate::trees::{self, Wish};

/// What the operator asked for.
#[derive(Debug, Clone)]
pub struct LoadRequest {
    /// An agent, `shell`, or any command.
    pub program: Option<String>,
    /// The known agent that the command ends in.
    pub runs_as: Option<String>,
    pub args: Vec<String>,
    /// What to call the instance.
    pub name: Option<String>,
    /// The policy of this launch.
    pub policy: Option<Policy>,
    /// The directory it is launched from, without links.
    pub dir: PathBuf,
    /// The role that the settings name.
    pub role: Role,
    /// The directory of the role's file.
    pub role_dir: PathBuf,
    /// Where it is to live.
    pub place: Place,
    /// What holds its sessions.
    pub substrate: Substrate,
    /// What to take up instead of a new conversation.
    pub take: Option<Take>,
    /// What is wanted of the directory it is launched from.
    pub wish: Wish,
}

#[derive(Debug)]
pub struct Loaded {
    pub id: InstanceId,
    /// What runs in it, and why that.
    pub program: Decided<Program>,
    /// What the operator should know about how it was started, and how long it will run.
    pub warnings: Vec<String>,
}

/// Starts a new instance.
pub fn load(ctx: &LaunchContext<'_>, request: &LoadRequest) -> Result<Loaded, EngineError> {
    let (asked, runs_as) = (request.program.as_deref(), request.runs_as.as_deref());
    let take = |take| adopt::find(ctx, &request.dir, runs_as.or(asked), take);
    let taken = request.take.as_ref().map(take).transpose()?;
    let program = match &taken {
        Some(taken) if runs_as.is_none() => {
            Decided::new(Program::Agent(taken.agent.clone()), "it was held with this agent")
        }
        _ => choose(ctx, asked, runs_as),
    };
    check(ctx, request, &program.decision)?;
    let argv = argv(&program.decision, ctx.settings, &ctx.env, &request.args);
    let container = container(ctx, request, &program.decision)?;
    let request = &match container {
        Some(_) => LoadRequest { wish: wish_in_container(ctx, request)?, ..request.clone() },
        None => request.clone(),
    };
    match &container {
        // What an image has shows when it is started.
        Some(plan) => containers::require_engine(ctx.store, &plan.recipe)?,
        None => check_path(ctx, &program.decision, &argv)?,
    }
    if let Some(name) = program.decision.agent()
        && let Some(described) = ctx.settings.agents.get(name)
    {
        agent_environment::check(name, &argv, described)?;
    }
    // Held until the new instance says what it is in, so that another start at the same time finds it taken.
    let claims = taken.as_ref().map(|taken| taken.claim(ctx.store, ctx.settings)).transpose()?;
    // So is the name, by the same lock.
    let naming = match (&request.name, &claims) {
        (Some(_), None) => Some(ctx.store.lock_claims()?),
        _ => None,
    };
    request.name.as_deref().map_or(Ok(()), |name| check_free(ctx.store, name))?;
    let (argv, adopted) = match taken {
        Some(taken) => taken.by(argv, ctx.settings)?,
        None => (named_latest(ctx, &program.decision, argv, &request.dir), None),
    };
    let instance = ctx.store.create(|id| {
        let mut instance = instance(ctx, id, request, &program.decision, argv);
        if let Some(plan) = container {
            in_container(&mut instance.recipe, plan);
            // The plan may have brought a set-up command.
            instance.prepared = trees::is_ready_at_once(&instance);
        }
        instance.sessions.iter_mut().for_each(|session| session.conversation = adopted.clone());
        instance
    })?;
    drop((claims, naming));
    let isolated = instance.recipe.mounts.iter().filter(|mount| mount.isolation != Isolation::Shared);
    for mount in isolated.filter(|mount| !request.dir.starts_with(&mount.source)) {
        let (source, tree) = (mount.source.display(), mount.target.display());
        (ctx.progress)(&format!(
            "the {} of {source} is {tree}; {source} itself is not isolated",
            mount.isolation
        ));
    }
    tracing::info!(id = %instance.id, "load: {} because {}", program.decision.name(), program.reason);
    let claim = launch::claim(ctx.store, instance.id)?;
    let started = launch::start(ctx, &instance, claim)?;
    Ok(Loaded { id: instance.id, program, warnings: started.warnings })
}

/// Has `recipe` be one of a container that is made by `plan`.
fn in_container(recipe: &mut Recipe, plan: ContainerPlan) {
    recipe.place = Place::Docker;
    recipe.container = Some(plan.recipe);
    recipe.mounts.extend(plan.mounts);
    for (name, reference) in plan.env {
        recipe.env.entry(name).or_insert(reference);
    }
    if recipe.setup.is_empty() {
        recipe.setup = plan.setup;
    }
}

/// Refuses a name that means another instance already.
fn check_free(store: &Store, name: &str) -> Result<(), EngineError> {
    match store.resolve(name) {
        Err(ResolveError::NotFound(_) | ResolveError::InTrash { .. } | ResolveError::TooShort(_)) => Ok(()),
        Ok(id) => Err(EngineError::Other(format!(
            "`{name}` means {} already; choose another name, or attach to it with `abide hardline {name}`",
            id.display_name()
        ))),
        Err(other) => Err(other.into()),
    }
}

/// The command line with the latest conversation named where it means that one.
fn named_latest(ctx: &LaunchContext<'_>, program: &Program, argv: Vec<String>, dir: &Path) -> Vec<String> {
    let Some(name) = program.agent() else { return argv };
    let (argv, notice) = adopt::name_latest(ctx, name, argv, dir);
    notice.iter().for_each(|notice| (ctx.progress)(notice));
    argv
}

/// Refuses what a session would not have where it runs: better no session than one without what it was to have.
fn check(ctx: &LaunchContext<'_>, request: &LoadRequest, program: &Program) -> Result<(), EngineError> {
    if request.place == Place::Host {
        check_mounts_of_host(ctx)?;
    } else if request.substrate != Substrate::Capsule {
        return Err(EngineError::Other(format!(
            "`substrate = \"{}\"` is for the host only; in a container, use the capsule",
            request.substrate
        )));
    }
    check_role(ctx, request, program)
}

/// Refuses mounts that the host cannot make.
fn check_mounts_of_host(ctx: &LaunchContext<'_>) -> Result<(), EngineError> {
    let mounts = || ctx.workspace.iter().flat_map(|(_, workspace)| &workspace.mounts);
    if let Some(mount) = mounts().find(|mount| mount.target_path() != mount.source) {
        return Err(EngineError::Other(format!(
            "on the host, {} cannot appear at {}; remove `target` from the workspace",
            mount.source.display(),
            mount.target_path().display()
        )));
    }
    if let Some(mount) = mounts().find(|mount| mount.read_only) {
        return Err(EngineError::Other(format!(
            "on the host, {} cannot be made read-only; remove `read_only` from the workspace, or use a `clone`, which leaves its source alone",
            mount.source.display()
        )));
    }
    Ok(())
}

/// How the container of the instance is made, where it is to have one.
fn container(
    ctx: &LaunchContext<'_>,
    request: &LoadRequest,
    program: &Program,
) -> Result<Option<ContainerPlan>, EngineError> {
    if request.place != Place::Docker {
        return Ok(None);
    }
    let agents: Vec<&str> = program.agent().into_iter().collect();
    let plan = container_recipe(&ContainerInputs {
        settings: ctx.settings,
        workspace: ctx.workspace.as_ref().map(|(_, workspace)| workspace),
        role: &request.role,
        role_dir: &request.role_dir,
        agents: &agents,
        project: &request.dir,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
    })?;
    Ok(Some(plan))
}

/// How the directory of a launch is given to a container: as a clone of its own if it is in a repository.
fn wish_in_container(ctx: &LaunchContext<'_>, request: &LoadRequest) -> Result<Wish, EngineError> {
    let isolation = match request.wish.isolation {
        Some(isolation) => isolation,
        None if request.dir.ancestors().any(|dir| dir.join(".git").exists()) => Isolation::Clone,
        None => Isolation::Shared,
    };
    let configured = ctx.workspace.iter().flat_map(|(_, workspace)| &workspace.mounts);
    if configured.map(|mount| mount.isolation).chain([isolation]).any(|mode| mode == Isolation::Worktree) {
        return Err(EngineError::Other(
            "a worktree needs the host's own repository, which a container does not see; \
             use `--isolation clone`, or `isolation = \"clone\"` in the workspace"
                .to_owned(),
        ));
    }
    let home = ctx.store.layout().home();
    if isolation == Isolation::Shared && (home.starts_with(&request.dir) || request.dir.starts_with(home)) {
        return Err(EngineError::Other(format!(
            "{} cannot be shared with a container: abide's own state is in {}; start from another directory, \
             or use `--place host`",
            request.dir.display(),
            home.display()
        )));
    }
    Ok(Wish { isolation: Some(isolation), ..request.wish.clone() })
}

/// Refuses a program that is certainly not there, before anything is made for it.
fn check_path(ctx: &LaunchContext<'_>, program: &Program, argv: &[String]) -> Result<(), EngineError> {
    let own = env_of(ctx.settings, program).contains_key(vars::PATH);
    let (Some(name), Some(path)) = (argv.first(), ctx.env.get(OsStr::new(vars::PATH))) else {
        return Ok(());
    };
    // Whatever depends on the directory, or on a PATH of its own, shows when it is started.
    if own || name.contains('/') || std::env::split_paths(path).any(|dir| dir.is_relative()) {
        return Ok(());
    }
    match (Machine { path: path.clone(), ..Machine::here() }).find(name) {
        Some(_) => Ok(()),
        None => Err(EngineError::Other(format!(
            "cannot start {name}: it is not on PATH; install it, or use its full path"
        ))),
    }
}

fn check_role(ctx: &LaunchContext<'_>, request: &LoadRequest, program: &Program) -> Result<(), EngineError> {
    let role = &request.role;
    let name = &ctx.settings.role;
    if let Some(agent) = program.agent()
        && !role.agents.is_empty()
        && !role.agents.iter().any(|supported| supported.as_str() == agent)
    {
        let supported: Vec<&str> = role.agents.iter().map(Name::as_str).collect();
        let supported = supported.join(", ");
        return Err(EngineError::Other(format!(
            "the role {name} is not for {agent}; it is for: {supported}"
        )));
    }
    let env = env_of(ctx.settings, program);
    let has = |variable: &String| env.contains_key(variable) || ctx.env.contains_key(OsStr::new(variable));
    if let Some(variable) = role.env.iter().find(|variable| !has(variable)) {
        return Err(EngineError::Other(format!(
            "the role {name} needs {variable}; `abide config set env.{variable} REFERENCE` sets where its value comes from"
        )));
    }
    if role.image.is_some() && request.place == Place::Host {
        (ctx.progress)(&format!("the role {name} names an image, which is ignored on the host"));
    }
    Ok(())
}

/// The variables that `program` is given, and where their values come from.
pub(crate) fn env_of(settings: &Settings, program: &Program) -> BTreeMap<String, EnvRef> {
    let own = program.agent().and_then(|agent| settings.agents.get(agent)).map(|described| &described.env);
    let all = settings.env.iter().chain(own.into_iter().flatten());
    all.map(|(name, reference)| (name.to_string(), reference.clone())).collect()
}

/// What runs where `requested` was asked for, or nothing; `runs_as` is the agent that the operator says it runs.
pub fn choose(ctx: &LaunchContext<'_>, requested: Option<&str>, runs_as: Option<&str>) -> Decided<Program> {
    let path = ctx.env.get(OsStr::new(vars::PATH)).cloned().unwrap_or_default();
    let machine = Machine { path, ..Machine::here() };
    let described: Vec<&str> = ctx.settings.agents.keys().map(Name::as_str).collect();
    let configured = ctx.settings.agent.as_ref().map(Name::as_str);
    // Looking for each in each directory of PATH takes longer than all else here, so only where the answer depends on it.
    let is_open = requested.or(configured).is_none();
    let mut agents = AGENTS.iter().copied().filter(|_| is_open);
    let installed: Vec<&str> = agents.find(|name| machine.find(name).is_some()).into_iter().collect();
    program::choose(&ProgramFacts {
        requested,
        runs_as,
        configured,
        described: &described,
        installed: &installed,
    })
}

/// The command line of `program`, as the settings and the operator want it.
pub(crate) fn argv(
    program: &Program,
    settings: &Settings,
    env: &BTreeMap<OsString, OsString>,
    extra: &[String],
) -> Vec<String> {
    let mut argv = match program {
        Program::Shell => vec![abide_places::host::shell(env)],
        Program::Command(word) => vec![word.clone()],
        Program::Agent(name) => {
            let described = settings.agents.get(name.as_str());
            let command = described.and_then(|agent| agent.command.clone());
            let mut argv = command.unwrap_or_else(|| vec![name.clone()]);
            argv.extend(described.and_then(|agent| agent.args.clone()).unwrap_or_default());
            argv
        }
        Program::Wrapper { command, agent } => {
            let described = settings.agents.get(agent.as_str());
            let args = described.and_then(|agent| agent.args.clone()).unwrap_or_default();
            std::iter::once(command.clone()).chain(args).collect()
        }
    };
    argv.extend_from_slice(extra);
    argv
}

fn instance(
    ctx: &LaunchContext<'_>,
    id: InstanceId,
    request: &LoadRequest,
    program: &Program,
    argv: Vec<String>,
) -> Instance {
    let (now, settings) = (clock::now(), ctx.settings);
    let (name, configured) = match &ctx.workspace {
        Some((name, workspace)) => (Some(name.to_string()), workspace.mounts.as_slice()),
        None => (None, &[][..]),
    };
    let scope = LaunchScope { workspace: name, dir: request.dir.clone(), extra: Extra::new() };
    let mut recipe = Recipe::on_host(request.dir.clone());
    let instance_dir = ctx.store.layout().instance_dir(id);
    recipe.mounts = trees::plan(&request.dir, configured, &request.wish, &instance_dir);
    let own = ctx.workspace.as_ref().and_then(|(_, workspace)| workspace.setup.clone());
    recipe.setup = own.or_else(|| request.role.setup.clone()).unwrap_or_default();
    recipe.substrate = request.substrate;
    recipe.env = env_of(settings, program);
    recipe.configured = Some(differences::configured(ctx, &request.dir, &request.role, program));
    let mut instance = Instance::starting(id, scope, settings.role.to_string(), recipe, process::this(), now);
    instance.started_on = Some(host::here().clone());
    instance.name = request.name.clone();
    instance.policy = request.policy;
    instance.dir_identity = moved::identity(&request.dir);
    // Where nothing has to be made or run first, it is ready as it is written down now.
    instance.prepared = trees::is_ready_at_once(&instance);
    let id = instance.new_session_id();
    let mut session = Session::new(id, program.name(), argv, request.dir.clone(), now);
    session.agent = program.agent().map(str::to_owned);
    instance.sessions.push(session);
    instance
}
