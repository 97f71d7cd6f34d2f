//! `abide hardline`

use std::fmt::Display;

use abide_client as client;
use abide_client::{AttachEnd, AttachMode, AttachOptions, ClientError};
use abide_engine::end::finish;
use abide_engine::running::liveness;
use abide_engine::target::{self, Target};
use abide_engine::{reconcile, substrate};
use abide_model::{Instance, InstanceId, LaunchScope, Liveness, SessionId, Status, offer, vars};
use abide_store::StoreEntry;
use abide_tui::Ask;
use abide_tui::screens::{LaunchSubject, StartNew};

use super::come_back::{self, Acknowledge};
use super::{ended, refuse_stopped};
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

const EXAMPLES: &str = "\
Examples:
  abide hardline                   the instance of this directory
  abide hardline k7p9              the instance whose id starts with k7p9
  abide hardline k7p9/s2           its session s2
  abide hardline shop              the instance named `shop`, or one of the workspace `shop`
  abide hardline shop --read-only
  abide hardline review --resume   resume it first if it is not running
  abide attach review              `attach` is an alias

Running instances come first. If none runs, abide offers to resume a kept one; if several match, it asks which.

While attached, Ctrl-B d detaches (the session keeps running) and Ctrl-B ? lists all keys.";

/// Attach to a running session
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID, ID/SESSION, name or workspace; default: the instance of this directory or its workspace
    target: Option<String>,
    /// If the instance is kept, resume it without asking
    #[arg(long)]
    resume: bool,
    /// Only watch: ignore keys and do not resize the session
    #[arg(long)]
    read_only: bool,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let found = match args.target.as_ref().and_then(|word| target::find(&context.store, word).ok()) {
        // The operator is waiting for the screen; other instances can be settled by the next command.
        Some(found) if runs(&found, context) => found,
        _ => {
            let entries = reconcile::reconcile(&context.store, &context.config)?;
            match meant(args.target.as_deref(), context)? {
                Meant::Target(found) => *found,
                Meant::Scope(scope) => match among(&scope, &entries, &args, context)? {
                    Some(instance) => Target { instance, session: None },
                    None => return Ok(()),
                },
            }
        }
    };
    if let Status::Restorable(_) = found.instance.status.status {
        return bring_back(&found, &args, context);
    }
    refuse_stopped(&found.instance)?;
    let mode = if args.read_only { AttachMode::ReadOnly } else { AttachMode::Control };
    attach(found.instance.id, found.session, mode, context)
}

/// What the operator wants to be attached to.
enum Meant {
    /// One instance, or one of its sessions.
    Target(Box<Target>),
    /// Whatever there is of a scope.
    Scope(LaunchScope),
}

/// What `word` means: an instance first, then a workspace; without one, the scope of this directory.
fn meant(word: Option<&str>, context: &Context) -> VerbResult<Meant> {
    let Some(word) = word else {
        let dir = super::here()?;
        let workspace = context.config.workspace_for(&dir).unwrap_or_else(|error| {
            context.warn(&error.to_string());
            None
        });
        let workspace = workspace.map(|(name, _)| name.to_string());
        return Ok(Meant::Scope(LaunchScope { workspace, ..LaunchScope::directory(dir) }));
    };
    let unknown = match target::find(&context.store, word) {
        Ok(found) => return Ok(Meant::Target(Box::new(found))),
        Err(error) => error,
    };
    match word.parse().ok().and_then(|name| context.config.workspace(&name).ok()) {
        Some(workspace) => {
            let workspace_scope = LaunchScope::directory(workspace.dir);
            Ok(Meant::Scope(LaunchScope { workspace: Some(word.to_owned()), ..workspace_scope }))
        }
        None => Err(CommandError::failed(unknown)),
    }
}

/// The instance of `scope` to attach to: the one that runs, else the one that is kept. Several are asked about, and `None`
/// means that the operator was, and that it is dealt with.
fn among(
    scope: &LaunchScope,
    entries: &[StoreEntry],
    args: &Args,
    context: &Context,
) -> VerbResult<Option<Instance>> {
    let of_it = |i: &&Instance| offer::belongs(i, scope) || i.scope.dir == scope.dir;
    let all = || entries.iter().filter_map(StoreEntry::sound).filter(of_it);
    let is_up = |i: &&Instance| matches!(i.status.status, Status::Active | Status::Starting { .. });
    let running: Vec<&Instance> = all().filter(is_up).collect();
    let kept: Vec<&Instance> = all().filter(|i| matches!(i.status.status, Status::Restorable(_))).collect();
    let mut choices = if running.is_empty() { kept } else { running };
    match &choices[..] {
        [] => Err(CommandError::failed(format!("nothing runs or is kept for {}", called(scope)))
            .hint("`abide load` starts an instance, `abide ls` lists all")),
        [only] if is_up(only) || args.resume => Ok(Some((*only).clone())),
        _ if Ask::here().can_ask() => {
            choices.sort_by_key(|instance| std::cmp::Reverse(instance.status.since));
            let role = choices[0].role.as_str();
            let launch = LaunchSubject { scope, role, program: None };
            come_back::offer(launch, StartNew::NotOffered, &choices, context)?;
            Ok(None)
        }
        several => {
            let all: Vec<String> =
                several.iter().map(|i| format!("{} ({})", i.id, i.status.status)).collect();
            Err(CommandError::usage(format!("several instances belong to {}", called(scope)))
                .hint(format!("name one: {}", all.join(", "))))
        }
    }
}

fn called(scope: &LaunchScope) -> String {
    match &scope.workspace {
        Some(name) => format!("the workspace {name}"),
        None => "this directory".to_owned(),
    }
}

/// Starts a kept instance again and attaches to it, if the operator wants that or a flag says so.
fn bring_back(found: &Target, args: &Args, context: &Context) -> VerbResult {
    let instance = &found.instance;
    if args.read_only {
        return refuse_stopped(instance);
    }
    if args.resume {
        need_terminal(format!("`abide resume {} --detach` brings it back without attaching", instance.id))?;
        return match come_back::acknowledged(instance, Acknowledge::Ask, context)? {
            true => come_back::start_again(instance, found.session, context),
            false => context.printer.line("Nothing was started."),
        };
    }
    if !Ask::here().can_ask() {
        return refuse_stopped(instance);
    }
    let launch = LaunchSubject { scope: &instance.scope, role: &instance.role, program: None };
    come_back::offer(launch, StartNew::NotOffered, &[instance], context).map(drop)
}

fn runs(found: &Target, context: &Context) -> bool {
    let active = found.instance.status.status == Status::Active;
    active && liveness::of(&context.store, &found.instance).decision == Liveness::Alive
}

/// Refuses, with what to do instead, if there is no terminal to attach.
pub fn need_terminal(instead: impl Display) -> VerbResult {
    let why = match client::check() {
        Ok(()) => return Ok(()),
        Err(ClientError::DumbTerminal) => "this terminal cannot draw (TERM is `dumb`, or not set)",
        Err(_) => "there is no terminal to attach to",
    };
    Err(CommandError::usage(why).hint(instead))
}

/// Attaches this terminal to an instance until the operator leaves or it ends.
pub fn attach(id: InstanceId, session: Option<SessionId>, mode: AttachMode, context: &Context) -> VerbResult {
    let outer = std::env::var_os(vars::ABIDE_INSTANCE);
    if outer.as_ref().is_some_and(|outer| outer == id.as_str()) {
        // It would show itself in itself, ever smaller.
        return Err(CommandError::failed(format!(
            "this terminal is already in a session of {}",
            id.display_name()
        ))
        .hint("use the keys for the next and previous tab to see its other sessions"));
    }
    need_terminal(format!("`abide peek {id}` prints its screen, `abide send {id}` types into it"))?;
    if let Some(outer) = outer {
        tracing::info!(%id, outer = %outer.to_string_lossy(), "attaching from inside another session");
    }
    let (prefix, truecolor) = context.config.load().map_or_else(
        |_| Default::default(),
        |settings| (settings.prefix.byte(), settings.terminal.truecolor),
    );
    let options = AttachOptions { session, mode, prefix, truecolor };
    // Which takes the disk longer than drawing the screen.
    let on_shown = |shown: Option<SessionId>| note_visit(id, shown, context);
    let end = substrate::of(&context.store, id).attach(&options, &on_shown)?;
    if let AttachEnd::Detached(_) = end {
        // It may be another one by now.
        note_visit(id, None, context);
    }
    match end {
        AttachEnd::Lost(message) => {
            Err(CommandError::failed(message).hint("`abide ls` shows what is still running"))
        }
        AttachEnd::TerminalGone => Ok(()),
        // A spectator decides nothing.
        end if mode == AttachMode::ReadOnly => {
            context.printer.line(format!("[{}: {}]", id.display_name(), end.message()))
        }
        end => ended::tell(id, &end, context),
    }
}

/// Remembers which session the operator looks at: `session`, or the one that the instance shows. What it cannot be
/// remembered in, as an instance that has just ended, needs no memory.
fn note_visit(id: InstanceId, session: Option<SessionId>, context: &Context) {
    let shown = || {
        let status = substrate::of(&context.store, id).status().ok()?;
        status.focused.or_else(|| status.sessions.first().map(|first| first.id))
    };
    if let Some(session) = session.or_else(shown)
        && let Err(error) = finish::note_visit(&context.store, id, session)
    {
        tracing::debug!(%id, "the visit is not noted: {error}");
    }
}
