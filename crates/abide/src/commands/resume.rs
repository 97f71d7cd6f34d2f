//! `abide resume`

use std::path::PathBuf;

use abide_engine::running::connect;
use abide_engine::running::processes::SessionProcesses;
use abide_engine::start::launch::Started;
use abide_engine::start::moved;
use abide_engine::start::resume::{self, Resumption};
use abide_engine::{EngineError, reconcile, target};
use abide_model::Instance;
use abide_model::brake::{Account, Brake};

use super::come_back::{self, Acknowledge};
use super::{hardline, load, missing_directory};
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

const EXAMPLES: &str = "\
Examples:
  abide resume k7p9                  resume it and attach
  abide resume k7p9 --detach         resume it without attaching
  abide resume --all                 resume everything that a crash, a stop or a reboot ended
  abide resume --all --dry-run       only list those
  abide resume k7p9 --dir ~/new/dir  resume it after its directory was moved
  abide resume k7p9 --continue-turn  have the agent finish an interrupted turn

All tabs come back with their scrollback, in the same directory.

If an instance has worktrees or clones, abide first shows their uncommitted and unpushed work and any changes to their \
repository, and asks you to confirm; --yes confirms. Without a terminal it prints them and continues, unless the \
repository has diverged: that needs --yes. --all never asks.

--all resumes one instance after the other and checks that each comes up. After three failures in a row of an agent with \
the same account, or two because it is not logged in, it skips the rest of that account. Shells and other agents are not \
affected.";

/// Resume kept instances
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID or name
    #[arg(required_unless_present = "all")]
    target: Option<String>,
    /// Resume everything that a crash, a stop or a reboot ended
    #[arg(long, conflicts_with = "target")]
    all: bool,
    /// Only list what would be resumed
    #[arg(long)]
    dry_run: bool,
    /// Resume without attaching
    #[arg(long, short)]
    detach: bool,
    /// The new path of its directory, if that was moved; refused for agents that can only resume at the old path
    #[arg(long, value_name = "DIR", conflicts_with = "all")]
    dir: Option<PathBuf>,
    /// Do not ask for confirmation; resume even if a repository has diverged
    #[arg(long, short)]
    yes: bool,
    /// Have agents finish an interrupted turn, if they support it; tools may run twice
    #[arg(long)]
    continue_turn: bool,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let entries = reconcile::reconcile(&context.store, &context.config)?;
    let Some(word) = &args.target else { return all(&resume::interrupted(&entries), &args, context) };
    let instance = target::find(&context.store, word)?.instance;
    if args.dry_run {
        return dry_run(&[&instance], context);
    }
    if !args.detach {
        hardline::need_terminal("--detach resumes it without attaching")?;
    }
    let was = instance.clone();
    let Some(instance) = missing_directory::seen_to(instance, args.dir.as_deref(), context)? else {
        return Ok(());
    };
    let back = bring_back(&args, &instance, context);
    if back.is_err() && instance.scope.dir != was.scope.dir {
        reconcile::reconcile(&context.store, &context.config)?;
        moved::take_back(&context.store, &was)?;
    }
    back
}

fn bring_back(args: &Args, instance: &Instance, context: &Context) -> VerbResult {
    let how = if args.yes { Acknowledge::Given } else { Acknowledge::Ask };
    if !come_back::acknowledged(instance, how, context)? {
        return context.printer.line("Nothing was started.");
    }
    let started = load::in_launch_context(&instance.scope.dir, context, |ctx| {
        ctx.continue_turn = args.continue_turn;
        resume::resume(ctx, instance.id)
    })?;
    let started = started?;
    let missing = started.not_started.iter().map(ToString::to_string);
    let warnings = started.warnings.iter().chain(&started.faults).cloned();
    warnings.chain(missing).for_each(|warning| context.warn(&warning));
    let name = called(instance);
    if !args.detach {
        super::attach_started(instance.id, None, context)?;
        return complete(&name, &started);
    }
    super::watch_boot(instance.id, context)?;
    resume::astray_notice(&context.store, instance.id).iter().for_each(|told| context.warn(told));
    context.printer.line(came_back(&name, &started))?;
    complete(&name, &started)
}

/// The message that an instance runs again.
fn came_back(name: &str, started: &Started) -> String {
    match started.faults.len() {
        0 => format!("{name} is back"),
        _ => format!("{name} runs, but git does not work in it"),
    }
}

/// Fails where a session is missing from what came back.
fn complete(name: &str, started: &Started) -> VerbResult {
    let missing: Vec<&str> = started.not_started.iter().map(|missing| missing.name.as_str()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(CommandError::failed(format!("{name} came back without {}", missing.join(", "))).hint(
        "`abide stop` and then `abide resume` tries again; the conversation and the scrollback are kept",
    ))
}

/// The id of an instance, and its name if it has one.
fn called(instance: &Instance) -> String {
    let id = instance.id.display_name();
    instance.name.as_ref().map_or(id.clone(), |name| format!("{id} ({name})"))
}

fn described(instance: &Instance) -> String {
    let sessions: Vec<_> =
        instance.sessions_to_resume().iter().map(|session| session.name.as_str()).collect();
    let (name, dir) = (called(instance), instance.scope.dir.display());
    format!("{name}  {}  {}  {dir}", instance.status.status, sessions.join(", "))
}

/// Says what would be brought back, and what would be ended for that.
fn dry_run(instances: &[&Instance], context: &Context) -> VerbResult {
    let processes = SessionProcesses::look();
    for instance in instances {
        context.printer.line(described(instance))?;
        for left in processes.leftovers(instance.id, &connect::instance_dir(&context.store, instance.id)) {
            context.printer.line(format!("    {}", super::ends_leftover(&left)))?;
        }
    }
    Ok(())
}

fn all(interrupted: &[&Instance], args: &Args, context: &Context) -> VerbResult {
    if interrupted.is_empty() {
        return context.printer.line("Nothing was interrupted.");
    }
    if args.dry_run {
        return dry_run(interrupted, context);
    }
    let mut brake = Brake::default();
    let (mut failed, mut untried, mut incomplete) = (0, 0, 0);
    for instance in interrupted {
        let name = called(instance);
        let held = brake.holds(&Account::all_of(instance));
        if held.decision {
            untried += 1;
            let _ = context.printer.line(format!("{name} was skipped: {}", held.reason));
            continue;
        }
        let resumed = load::in_launch_context(&instance.scope.dir, context, |ctx| {
            ctx.continue_turn = args.continue_turn;
            resume::resume_watched(ctx, instance.id)
        });
        // Whatever is in the way of one is no reason to leave the others where they are.
        let resumed = resumed.unwrap_or_else(|error| Err(EngineError::Other(error.to_string())));
        let (accounts, result) = resume::result_for(instance, &resumed);
        brake.note(&accounts, result);
        failed += usize::from(resumed.is_err());
        let is_incomplete =
            |back: &Resumption| matches!(back, Resumption::Back(s) if !s.not_started.is_empty());
        incomplete += usize::from(resumed.as_ref().is_ok_and(is_incomplete));
        // At boot there is no terminal, so the log has this too.
        let _ = context.printer.line(told(&name, resumed, context));
    }
    match (failed, untried) {
        (0, 0) if incomplete > 0 => {
            Err(CommandError::failed(format!("{incomplete} came back without all of their sessions"))
                .hint("`abide ls` marks the sessions that did not start"))
        }
        (0, 0) => Ok(()),
        (n, 0) => {
            Err(CommandError::failed(format!("{n} did not come back")).hint("they are kept as they were"))
        }
        (n, left) => Err(CommandError::failed(format!("{n} did not come back, and {left} were skipped"))
            .hint("fix the failures above, then run it again")),
    }
}

/// The line about an instance that was to be brought back.
fn told(name: &str, resumed: Result<Resumption, EngineError>, context: &Context) -> String {
    match resumed {
        Ok(Resumption::Back(started)) => {
            let warnings = started.warnings.iter().chain(&started.faults);
            warnings.for_each(|warning| context.warn(&format!("{name}: {warning}")));
            started.not_started.iter().for_each(|missing| context.warn(&format!("{name}: {missing}")));
            came_back(name, &started)
        }
        Ok(Resumption::RunsAlready) => format!("{name} runs already"),
        Err(error) => format!("{name} did not come back: {error}"),
    }
}
