//! `abide prune`

use std::time::Duration;

use abide_engine::end::prune::{self, DiscardedInstance, DoubtfulRegistration, Plan, PruneRequest};
use abide_model::Safe;
use abide_model::evidence::MountEvidence;
use abide_model::time::human;
use abide_sys::clock;
use abide_tui::page::Item;
use abide_tui::screens::evidence_items;
use serde_json::json;

use crate::context::Context;
use crate::error::{CommandError, VerbResult};
use crate::print::TableTone;

const EXAMPLES: &str = "\
Examples:
  abide prune                              complete interrupted removals, list leftovers, ask
  abide prune --dry-run                    only list them
  abide prune --yes                        do not ask
  abide prune --discard-restorable --older-than 30
                                           also kept instances unused for 30 days
  abide prune --discard-restorable --scope shop
                                           also everything kept of the workspace `shop`

Kept instances are only touched with --discard-restorable, which first lists the work in them that exists nowhere else. \
They go to the trash; `abide trash restore` brings them back until they expire there.";

/// Remove leftovers and expired trash
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Only list what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Only what has been kept for more than DAYS days
    #[arg(long, value_name = "DAYS", allow_negative_numbers = true)]
    older_than: Option<u32>,
    /// Only this workspace, or this directory (`.`, `./api`, `/srv/api`) and everything below it
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Also remove kept instances, after listing their work
    #[arg(long)]
    discard_restorable: bool,
    /// Print the list as JSON; needs --dry-run or --yes
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    if args.json && !args.dry_run && !args.yes {
        return Err(
            CommandError::usage("--json cannot ask").hint("add --dry-run, or --yes to remove what is listed")
        );
    }
    let settings = context.config.load()?;
    let request = PruneRequest {
        older_than: args.older_than.map(|days| Duration::from_secs(u64::from(days) * 86_400)),
        scope: args.scope.as_deref().map(super::within).transpose()?,
        restorable: args.discard_restorable,
        dry_run: args.dry_run,
    };
    let plan = prune::plan(&std::env::current_dir()?, &context.store, &context.config, &settings, &request)?;
    if args.json {
        context.printer.json(&as_json(&plan))?;
        return if args.dry_run { Ok(()) } else { carry_out(&plan, context) };
    }
    if plan.left_alone > 0 {
        let line = match plan.left_alone {
            1 => "1 kept instance is left alone; --discard-restorable includes it".to_owned(),
            n => format!("{n} kept instances are left alone; --discard-restorable includes them"),
        };
        context.printer.toned_line(TableTone::Faint, line)?;
    }
    for instance in &plan.stuck {
        let (id, name) = (instance.id, instance.id.display_name());
        let why = instance.status.obstacle.as_deref().unwrap_or("its removal is in progress");
        context
            .printer
            .toned_line(TableTone::Bad, format!("{name}  {}  {}", instance.status.status, Safe(why)))?;
        context.printer.line(format!("    `abide eject {id} --keep` cancels the removal"))?;
    }
    for DoubtfulRegistration { registration, why } in &plan.doubtful {
        let tree = registration.tree.display();
        context.printer.line(format!("{tree}  gone, but stays registered in git: {why}"))?;
        context.printer.line(format!("    {} unregister it for good", registration.by_hand()))?;
    }
    let number = plan.instances.len()
        + plan.trash.len()
        + plan.worktrees.len()
        + plan.orphaned.len()
        + plan.containers.len();
    if number == 0 {
        return context.printer.line("There is nothing to remove.");
    }
    show(&plan, context)?;
    if args.dry_run {
        return Ok(());
    }
    if !args.yes && !context.confirm("Remove all of this?", "--yes")? {
        return context.printer.line("Nothing was removed.");
    }
    carry_out(&plan, context)?;
    context.printer.line(format!("Removed {number}."))
}

fn carry_out(plan: &Plan, context: &Context) -> VerbResult {
    let mut failed = 0;
    prune::carry_out(&context.store, plan, |what, gone| {
        if let Err(error) = gone {
            failed += 1;
            context.warn(&format!("{what} is still there: {error}"));
        }
    });
    match failed {
        0 => Ok(()),
        n => Err(CommandError::failed(format!("{n} could not be removed"))
            .hint("correct what the messages above name, then run `abide prune` again")),
    }
}

fn as_json(plan: &Plan) -> serde_json::Value {
    let instance = |DiscardedInstance { instance, mounts, leftovers }: &DiscardedInstance| {
        json!({
            "id": instance.id,
            "dir": instance.scope.dir,
            "reason": instance.status.status.reason(),
            "since": instance.status.since,
            "mounts": mounts,
            "leftovers": leftovers,
        })
    };
    json!({
        "version": 1,
        "instances": plan.instances.iter().map(instance).collect::<Vec<_>>(),
        "trash": plan
            .trash
            .iter()
            .map(|entry| json!({ "name": entry.decision.to_string(), "because": entry.reason }))
            .collect::<Vec<_>>(),
        "worktrees": plan.worktrees.iter().map(|one| &one.tree).collect::<Vec<_>>(),
        "containers": plan.containers.iter().flat_map(|left| &left.names).collect::<Vec<_>>(),
        "doubtful": plan.doubtful.iter().map(|one| &one.registration.tree).collect::<Vec<_>>(),
        "left_alone": plan.left_alone,
    })
}

fn show(plan: &Plan, context: &Context) -> VerbResult {
    for DiscardedInstance { instance, mounts, leftovers } in &plan.instances {
        let age = human(instance.status.since.age(clock::now()));
        let (name, dir) = (instance.id.display_name(), instance.scope.dir.display());
        let line = format!("{name}  {}, {age}  {dir}  to the trash", instance.status.status);
        context.printer.toned_line(TableTone::Strong, line)?;
        let ended = leftovers.iter().map(super::ends_leftover);
        for line in held(mounts).into_iter().chain(ended) {
            context.printer.line(format!("    {line}"))?;
        }
    }
    for orphan in &plan.orphaned {
        let (name, pid, programs) = (orphan.id.display_name(), orphan.keeper.pid, orphan.programs.join(", "));
        let line = format!(
            "{name}  still runs, but its directory is gone (process {pid}: {programs})  will be ended"
        );
        context.printer.toned_line(TableTone::Strong, line)?;
    }
    for left in &plan.containers {
        let (names, engine) = (left.names.join(", "), left.engine.kind);
        context.printer.line(format!("{names}  left on {engine}  will be removed"))?;
    }
    for entry in &plan.trash {
        context
            .printer
            .line(format!("{}  in the trash  will be deleted: {}", entry.decision, entry.reason))?;
    }
    for worktree in &plan.worktrees {
        let tree = worktree.tree.display();
        context.printer.line(format!("{tree}  gone, but still registered in git  will be unregistered"))?;
    }
    Ok(())
}

/// What mounts hold that exists nowhere else, line by line.
pub fn held(mounts: &[MountEvidence]) -> Vec<String> {
    let row = |item: Item| format!("{}{}", "  ".repeat(item.level), item.line.text());
    evidence_items(mounts).into_iter().map(row).collect()
}
