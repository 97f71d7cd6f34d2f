//! `abide load`

use std::collections::BTreeMap;
use std::path::Path;

use abide_config::{ConfigError, Name, Settings, Workspace};
use abide_engine::conversation::adopt::Take;
use abide_engine::end::trash;
use abide_engine::reconcile;
use abide_engine::start::launch::LaunchContext;
use abide_engine::start::load::{self, LoadRequest};
use abide_engine::trees::{self, Wish};
use abide_model::offer::LaunchWish;
use abide_model::placement::LingerConsent;
use abide_model::program::AGENTS;
use abide_model::{
    Instance, Isolation, LaunchScope, Place, Policy, Safe, Status, StatusBar, Substrate, vars,
};
use abide_tui::Ask;
use abide_tui::screens::{LaunchSubject, StartNew};
use abide_wire::session::TerminalSize;
use clap::builder::PossibleValuesParser;

use super::come_back::{self, ComeBackAnswer};
use super::{hardline, linger};
use crate::context::Context;
use crate::error::{CommandError, VerbResult};
use crate::stages;

const EXAMPLES: &str = "\
Examples:
  abide load                          the default agent, in this directory
  abide load codex                    codex, in this directory
  abide load shell                    your shell
  abide load htop                     any command
  abide load --isolation worktree     in a git worktree of this directory, on its own branch
  abide load --adopt 0199a7c2         continue a conversation from `abide conversations`
  abide load --fork k7p9              continue a copy of the conversation in k7p9
  abide load --as claude ./w.sh       a wrapper script around claude, tracked and resumed like it
  abide load claude --detach --name review -- --model opus
                                      start without attaching; pass `--model opus` to claude

While attached, Ctrl-B d detaches (the agent keeps running) and Ctrl-B ? lists all keys.";

/// Start an agent in this directory, and attach to it
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// An agent, `shell`, or any command; default: the configured agent, or the first one found on PATH
    program: Option<String>,
    /// Treat the command as a wrapper around this agent: track and resume it like the agent
    #[arg(long = "as", value_name = "AGENT", requires = "program", value_parser = PossibleValuesParser::new(AGENTS), hide_possible_values = true)]
    runs_as: Option<String>,
    /// Start without attaching
    #[arg(long, short)]
    detach: bool,
    /// Name of the instance
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    name: Option<String>,
    /// Continue this conversation; the first characters of its id are enough
    #[arg(long, value_name = "ID", conflicts_with = "fork")]
    adopt: Option<String>,
    /// Continue a copy of a conversation, named by its id or by an instance or session that is in it
    #[arg(long, value_name = "ID")]
    fork: Option<String>,
    /// What runs the sessions: `capsule` (abide itself) or `tmux` (a separate tmux server); default: as configured
    #[arg(long, value_name = "SUBSTRATE", value_parser = super::choice::<Substrate>(), hide_possible_values = true)]
    substrate: Option<Substrate>,
    /// Where the instance runs; default: as configured
    #[arg(long, value_name = "PLACE", value_parser = super::choice::<Place>(), hide_possible_values = true)]
    place: Option<Place>,
    /// Whether abide may turn on linger, which sessions need to survive your logout; the answer is remembered
    #[arg(long, value_name = "YES|NO", value_parser = linger::consent_parser(), hide_possible_values = true)]
    linger: Option<LingerConsent>,
    /// Work in this directory itself (`shared`), in a `worktree` or in a `clone`; default: as the workspace says
    #[arg(long, value_name = "MODE", value_parser = super::choice::<Isolation>(), hide_possible_values = true)]
    isolation: Option<Isolation>,
    /// Start the worktree or clone at this commit or branch; default: HEAD
    #[arg(long, value_name = "REV", conflicts_with = "branch")]
    base: Option<String>,
    /// Work on this existing branch instead of a new one
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
    /// Start a new instance without offering existing ones that match
    #[arg(long)]
    new: bool,
    /// Keep the instance when its last session ends, regardless of the policy
    #[arg(long, conflicts_with = "clean")]
    keep: bool,
    /// Clean up when its last session ends, regardless of the policy
    #[arg(long)]
    clean: bool,
    /// Arguments for the agent or command
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<String>,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    if !args.detach {
        hardline::need_terminal("--detach starts it without attaching")?;
    }
    let dir = super::here()?;
    if dir.to_str().is_none() {
        return Err(CommandError::failed(format!(
            "{} is not valid UTF-8, so an instance in it could not be recorded",
            dir.display()
        ))
        .hint("rename the directory, or start in a parent directory"));
    }
    let policy = match (args.keep, args.clean) {
        (true, _) => Some(Policy::Keep),
        (_, true) => Some(Policy::Clean),
        _ => None,
    };
    super::check_spelling(args.name.as_deref())?;
    linger::settle(args.linger, context)?;
    trash::purge_expired(&context.store, &context.config);
    let detach = args.detach;
    let workspace = context.config.workspace_for(&dir).map_err(|error| match error {
        ConfigError::Refused(why) => CommandError::failed(why),
        mistakes => CommandError::failed(mistakes)
            .hint("it may be the workspace of this directory; correct it, or move it away"),
    })?;
    let wish = Wish { isolation: args.isolation, base: args.base.clone(), branch: args.branch.clone() };
    check_trees(&dir, workspace.as_ref(), &wish)?;
    let loaded = with_launch_context(workspace, context, |ctx| {
        if args.may_mean_another() && comes_back(ctx, &dir, args.wish(policy, ctx), args.detach, context)? {
            return Ok(None);
        }
        let role = context.config.role(&ctx.settings.role)?;
        let request = LoadRequest {
            program: args.program,
            runs_as: args.runs_as,
            args: args.args,
            name: args.name,
            policy,
            dir: dir.clone(),
            role,
            role_dir: context.config.role_dir(&ctx.settings.role),
            place: args.place.unwrap_or(ctx.settings.place),
            substrate: args.substrate.unwrap_or(ctx.settings.substrate),
            take: args.adopt.map(Take::Adopt).or(args.fork.map(Take::Fork)),
            wish,
        };
        load::load(ctx, &request).map(Some).map_err(CommandError::failed)
    })?;
    let Some(loaded) = loaded? else { return Ok(()) };
    for warning in &loaded.warnings {
        context.warn(warning);
    }
    if detach {
        super::watch_boot(loaded.id, context)?;
        let name = loaded.program.decision.name();
        return context.printer.line(format!("{}  {}", loaded.id.display_name(), Safe(name)));
    }
    super::attach_started(loaded.id, None, context)
}

impl Args {
    /// Whether an instance that is there may be meant: nothing says that a new one is wanted, or another conversation.
    fn may_mean_another(&self) -> bool {
        !self.new && self.adopt.is_none() && self.fork.is_none()
    }

    /// What is said about the instance that is wanted.
    fn wish(&self, policy: Option<Policy>, ctx: &LaunchContext<'_>) -> LaunchWish {
        let program = self.program.as_deref();
        LaunchWish {
            program: program
                .map(|program| load::choose(ctx, Some(program), self.runs_as.as_deref()).decision.name()),
            args: self.args.clone(),
            name: self.name.clone(),
            policy,
            isolation: self.isolation,
            base: self.base.clone(),
            branch: self.branch.clone(),
            substrate: self.substrate,
            place: self.place,
        }
    }
}

/// Refuses trees that cannot be made, with a word on who asks for them.
fn check_trees(dir: &Path, workspace: Option<&(Name, Workspace)>, wish: &Wish) -> VerbResult {
    let configured = workspace.map_or(&[][..], |(_, workspace)| &workspace.mounts);
    let planned = trees::plan(dir, configured, wish, Path::new(""));
    let mut trees = planned.iter().filter(|mount| mount.tree.is_some());
    let missing = trees.clone().find(|mount| !mount.source.is_dir());
    if let (Some(mount), Some((name, _))) = (missing, workspace) {
        let source = mount.source.display();
        return Err(CommandError::failed(format!(
            "workspace {name} needs a {} of {source}, which does not exist",
            mount.isolation
        ))
        .hint(format!(
            "create that directory, or remove the mount: `abide workspace edit {name} --unmount {source}`"
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
    ctx: &LaunchContext<'_>,
    dir: &Path,
    wish: LaunchWish,
    detach: bool,
    context: &Context,
) -> VerbResult<bool> {
    let workspace = ctx.workspace.as_ref().map(|(name, _)| name.to_string());
    let scope = LaunchScope { workspace, ..LaunchScope::directory(dir.to_owned()) };
    let role = ctx.settings.role.as_str();
    let launch = LaunchSubject { scope: &scope, role, program: wish.program.as_deref() };
    if detach || !Ask::here().can_ask() {
        // A name that is taken is refused below, with a word on what to do.
        let entries = context.store.list()?;
        for kept in come_back::candidates(&entries, launch, &wish) {
            if wish.name.is_none() && matches!(kept.status.status, Status::Restorable(_)) {
                context.warn(&kept_here(kept));
            }
        }
        return Ok(false);
    }
    let entries = reconcile::reconcile(&context.store, &context.config)?;
    let fitting = come_back::candidates(&entries, launch, &wish);
    let answer = come_back::offer(launch, StartNew::Offered, &fitting, context)?;
    Ok(matches!(answer, ComeBackAnswer::Done))
}

/// The notice, where no question can be asked, that something is kept here already.
fn kept_here(instance: &Instance) -> String {
    let (id, name) = (instance.id, instance.id.display_name());
    format!(
        "{name} is kept for this directory ({}); `abide resume {id}` brings it back",
        instance.status.status
    )
}

/// Gathers what a start from `dir` needs, and starts. What is there already says itself how it runs, so a workspace that
/// cannot be read is no reason to leave it.
pub fn in_launch_context<T>(
    dir: &Path,
    context: &Context,
    start: impl FnOnce(&mut LaunchContext<'_>) -> T,
) -> VerbResult<T> {
    let (workspace, is_known) = match context.config.workspace_for(dir) {
        Ok(workspace) => (workspace, true),
        Err(error) => {
            context.warn(&error.to_string());
            (None, false)
        }
    };
    with_launch_context(workspace, context, |ctx| {
        ctx.setup = ctx.setup.take().filter(|_| is_known);
        start(ctx)
    })
}

fn with_launch_context<T>(
    workspace: Option<(Name, Workspace)>,
    context: &Context,
    start: impl FnOnce(&mut LaunchContext<'_>) -> T,
) -> VerbResult<T> {
    let mut settings = context.config.load()?;
    if let Some((_, workspace)) = &workspace {
        settings = settings.overridden_by(workspace);
    }
    let own = workspace.as_ref().and_then(|(_, workspace)| workspace.setup.clone());
    let role = context.config.role(&settings.role).ok();
    let setup = own.or_else(|| role.as_ref().and_then(|role| role.setup.clone()));
    let setup = setup.or_else(|| role.is_some().then(Vec::new));
    let mut env: BTreeMap<_, _> = std::env::vars_os().collect();
    // What runs in a session finds its files by it, and it may have been looked up.
    env.insert(vars::HOME.into(), context.home.clone().into());
    Ok(start(&mut LaunchContext {
        store: &context.open_store()?,
        settings: &settings,
        workspace,
        home: context.home.clone(),
        env,
        exe: std::env::current_exe()?,
        size: terminal_size().map(|size| without_bar(size, &settings)).unwrap_or_default(),
        continue_turn: false,
        setup,
        progress: &|line| context.warn(line),
        stages: &stages::show,
        inside: None,
    }))
}

/// What the status bar leaves of a terminal: a session that starts with all of it would be resized at once.
fn without_bar(size: TerminalSize, settings: &Settings) -> TerminalSize {
    let has_bar = settings.substrate == Substrate::Capsule && settings.status_bar != StatusBar::Off;
    TerminalSize { rows: size.rows.saturating_sub(u16::from(has_bar)).max(1), ..size }
}

fn terminal_size() -> Option<TerminalSize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(TerminalSize { cols: size.ws_col, rows: size.ws_row })
}
