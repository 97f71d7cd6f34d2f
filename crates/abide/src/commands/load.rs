//! `abide load`

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use abide_capsule::session::Size;
use abide_config::{ConfigError, Name, Workspace};
use abide_engine::conversations::Take;
use abide_engine::load::{self, Request};
use abide_engine::start::Surroundings;
use abide_engine::trees::{self, Wish};
use abide_model::{Isolation, Place, Policy, Safe, Scope, Substrate, vars};

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::come_back::{self, Answer};
use super::{hardline, linger};

const EXAMPLES: &str = "\
Examples:
  abide load                           the default agent, in this directory
  abide load codex                     codex, in this directory
  abide load shell                     your shell
  abide load htop                      any command
  abide load --isolation worktree      in a git worktree of this directory, on a branch of its own
  abide load --adopt 0199a7c2          go on with a conversation that `abide conversations` lists
  abide load --fork k7p9               go on with a copy of what the agent in k7p9 knows
  abide load claude --detach --name review -- --model opus
                                       start it without attaching; what follows `--` goes to the agent

Inside, Ctrl-B d leaves it running and Ctrl-B ? shows all keys.";

/// Start an agent in this directory, and attach to it
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The agent, `shell`, or any command; default: the configured one, or the first found on PATH
    program: Option<String>,
    /// Do not attach
    #[arg(long, short)]
    detach: bool,
    /// What to call the instance
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Go on with this conversation; the beginning of its id is enough
    #[arg(long, value_name = "ID", conflicts_with = "fork")]
    adopt: Option<String>,
    /// Go on with a copy of this conversation, or of the one that this instance or session is in
    #[arg(long, value_name = "ID")]
    fork: Option<String>,
    /// What holds the sessions: `capsule`, or `tmux` for a tmux server of abide's own; default: as configured
    #[arg(long, value_name = "SUBSTRATE")]
    substrate: Option<Substrate>,
    /// Where it lives; default: as configured
    #[arg(long, value_name = "PLACE")]
    place: Option<Place>,
    /// Whether abide may turn on linger for you, which sessions need to survive your logout; remembered
    #[arg(long, value_name = "YES|NO", value_parser = clap::builder::BoolishValueParser::new(), hide_possible_values = true)]
    linger: Option<bool>,
    /// How this directory is given: `shared`, or a `worktree` or `clone` of its own; default: as the workspace says
    #[arg(long, value_name = "MODE")]
    isolation: Option<Isolation>,
    /// Begin the worktree or clone at this commit or branch; default: HEAD
    #[arg(long, value_name = "REV", conflicts_with = "branch")]
    base: Option<String>,
    /// Work on this existing branch, instead of one of its own
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
    /// Start a new instance, and do not offer to come back to one that is there
    #[arg(long)]
    new: bool,
    /// Keep the instance when its last session ends, whatever the policy says
    #[arg(long, conflicts_with = "clean")]
    keep: bool,
    /// Clean up when its last session ends, whatever the policy says
    #[arg(long)]
    clean: bool,
    /// Further arguments for the agent or command
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<String>,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    if !args.detach {
        hardline::need_terminal("--detach starts it without attaching")?;
    }
    let dir = super::here()?;
    let policy = match (args.keep, args.clean) {
        (true, _) => Some(Policy::Keep),
        (_, true) => Some(Policy::Clean),
        _ => None,
    };
    super::check_name(args.name.as_deref(), &context.store)?;
    linger::settle(args.linger, context)?;
    let detach = args.detach;
    let workspace = context.config.workspace_for(&dir).map_err(|error| match error {
        ConfigError::Refused(why) => CommandError::failed(why),
        mistakes => CommandError::failed(mistakes)
            .hint("it may be the workspace of this directory: correct it, or move it away"),
    })?;
    let wish = Wish { isolation: args.isolation, base: args.base.clone(), branch: args.branch.clone() };
    check_trees(&dir, workspace.as_ref(), &wish)?;
    let loaded = surrounded(workspace, context, |around| {
        if !args.describes_a_new_one() && comes_back(around, &dir, args.program.as_deref(), context)? {
            return Ok(None);
        }
        let role = context.config.role(&around.settings.role).map_err(CommandError::failed)?;
        let request = Request {
            program: args.program,
            args: args.args,
            name: args.name,
            policy,
            dir: dir.clone(),
            role,
            place: args.place.unwrap_or(around.settings.place),
            substrate: args.substrate.unwrap_or(around.settings.substrate),
            take: args.adopt.map(Take::Adopt).or(args.fork.map(Take::Fork)),
            wish,
        };
        load::load(around, &request).map(Some).map_err(CommandError::failed)
    })?;
    let Some(loaded) = loaded? else { return Ok(()) };
    for warning in &loaded.warnings {
        context.warn(warning);
    }
    if detach {
        super::watch_boot(loaded.id, context)?;
        let name = loaded.program.decision.name();
        return Ok(context.printer.line(format!("{}  {}", loaded.id.display_name(), Safe(name)))?);
    }
    super::attach_started(loaded.id, context)
}

impl Args {
    /// Whether more is said of the instance than which agent it runs: then no other is meant.
    fn describes_a_new_one(&self) -> bool {
        let said = [&self.name, &self.adopt, &self.fork, &self.base, &self.branch];
        let flags = [self.new, self.detach, self.keep, self.clean, self.isolation.is_some()];
        said.iter().any(|said| said.is_some()) || flags.contains(&true) || !self.args.is_empty()
    }
}

/// Refuses trees that can not be made, with a word on who asks for them.
fn check_trees(dir: &Path, workspace: Option<&(Name, Workspace)>, wish: &Wish) -> Outcome {
    let configured = workspace.map_or(&[][..], |(_, workspace)| &workspace.mounts);
    let planned = trees::plan(dir, configured, wish, Path::new(""));
    let mut trees = planned.iter().filter(|mount| mount.tree.is_some());
    let missing = trees.clone().find(|mount| !mount.source.is_dir());
    if let (Some(mount), Some((name, _))) = (missing, workspace) {
        let source = mount.source.display();
        return Err(CommandError::failed(format!(
            "workspace {name} asks for a {} of {source}, which is not there",
            mount.isolation
        ))
        .hint(format!(
            "make that directory, or take it out: `abide workspace edit {name} --unmount {source}`"
        )));
    }
    let begins = (&wish.base, &wish.branch);
    if begins != (&None, &None) && !trees.any(|mount| (&mount.base, &mount.branch) == begins) {
        return Err(CommandError::usage(
            "--base and --branch are for a worktree or clone, and this directory is shared",
        )
        .hint("add --isolation worktree, or --isolation clone"));
    }
    Ok(())
}

/// Whether the operator came back to an instance that is there, or wants nothing at all.
fn comes_back(
    around: &Surroundings<'_>,
    dir: &Path,
    program: Option<&str>,
    context: &Context,
) -> Outcome<bool> {
    let workspace = around.workspace.as_ref().map(|(name, _)| name.to_string());
    let scope = Scope { workspace, ..Scope::directory(dir.to_owned()) };
    let program = program.map(|program| load::choose(around, Some(program)).decision.name());
    let answer = come_back::offer(&scope, around.settings.role.as_str(), program.as_deref(), context)?;
    Ok(matches!(answer, Answer::Done))
}

/// Gathers what a start from `dir` needs, and starts. What is there already says itself how it runs, so a workspace that can
/// not be read is no reason to leave it.
pub fn with_surroundings<T>(
    dir: &Path,
    context: &Context,
    start: impl FnOnce(&mut Surroundings<'_>) -> T,
) -> Outcome<T> {
    let workspace = context.config.workspace_for(dir).unwrap_or_else(|error| {
        context.warn(&error.to_string());
        None
    });
    surrounded(workspace, context, start)
}

fn surrounded<T>(
    workspace: Option<(Name, Workspace)>,
    context: &Context,
    start: impl FnOnce(&mut Surroundings<'_>) -> T,
) -> Outcome<T> {
    let mut settings = context.config.load().map_err(CommandError::failed)?;
    if let Some((_, workspace)) = &workspace {
        settings = settings.overridden_by(workspace);
    }
    let env: BTreeMap<_, _> = std::env::vars_os().collect();
    Ok(start(&mut Surroundings {
        store: &context.open_store()?,
        settings: &settings,
        workspace,
        home: env.get(OsStr::new(vars::HOME)).map(Into::into).unwrap_or_default(),
        env,
        exe: std::env::current_exe()?,
        size: terminal_size().unwrap_or_default(),
        continue_turn: false,
        told: &|line| context.warn(line),
    }))
}

fn terminal_size() -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(Size { cols: size.ws_col, rows: size.ws_row })
}
