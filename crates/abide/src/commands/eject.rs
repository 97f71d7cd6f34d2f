//! `abide eject`

use abide_engine::end::{finish, trash};
use abide_engine::running::daemons;
use abide_engine::{reconcile, target, trees};
use abide_model::evidence::{self, Verdict};
use abide_model::status::Ending;
use abide_model::{Instance, Safe};
use abide_tui::Ask;
use abide_tui::screens::{Confirm, Confirmation, confirm, evidence_items};

use super::prune::held;
use super::{ended, stop};
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

const EXAMPLES: &str = "\
Examples:
  abide eject k7p9            end it and remove it; asks first
  abide eject k7p9 --clean    do not ask; it goes to the trash
  abide eject k7p9 --keep     end its processes and keep the rest, like `abide stop`";

/// End an instance and move it to the trash
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID or name
    pub target: String,
    /// Keep everything for a later resume
    #[arg(long, conflicts_with = "clean")]
    pub keep: bool,
    /// Remove it without asking
    #[arg(long)]
    pub clean: bool,
    /// Keep daemons running that were started inside, such as a tmux server or an ssh agent
    #[arg(long)]
    pub spare_daemons: bool,
}

pub fn run(args: Args, context: &Context) -> VerbResult {
    if args.keep {
        let stop = stop::Args { target: args.target, spare_daemons: args.spare_daemons, not_running: false };
        return stop::run(stop, context);
    }
    let found = target::find(&context.store, &args.target)?;
    let id = found.instance.id;
    let settled = reconcile::after_start(&context.store, &context.config, found.instance);
    let Some(instance) = settled? else {
        return context.printer.line(ended::gone(id));
    };
    if found.session.is_some() {
        return Err(CommandError::usage("eject ends a whole instance")
            .hint("`abide stop ID/SESSION` ends one session"));
    }
    if !args.clean && !confirmed(&instance, args.spare_daemons, context)? {
        return context.printer.line("Nothing was ended.");
    }
    stop::see_to_daemons(&instance, args.spare_daemons, context)?;
    for place in trees::linked_elsewhere(&context.store, &instance) {
        context.warn(&format!(
            "the worktree {} belongs to this clone; it works again after `abide trash restore {id}`",
            place.display()
        ));
    }
    let finished = finish::discard(&context.store, &instance, Ending::Discard, "ejected by the operator")?;
    trash::purge_expired(&context.store, &context.config);
    ended::tell_left(&finished, context);
    context.printer.line(ended::gone(id))
}

/// Asks, having shown what would go.
fn confirmed(instance: &Instance, spare_daemons: bool, context: &Context) -> VerbResult<bool> {
    let found = daemons::beyond_sessions(&context.store, instance.id);
    let daemons = found.daemons.iter().filter(|_| !spare_daemons).map(ToString::to_string);
    let names: Vec<String> = daemons.chain(found.survivors.iter().map(ToString::to_string)).collect();
    let beyond = match names.is_empty() {
        true => String::new(),
        false => format!(", including {}", Safe(names.join(", "))),
    };
    let question = format!("End {} and everything that runs in it{beyond}?", instance.id.display_name());
    let evidence = trees::evidence(&context.store, instance);
    if evidence::verdict(&evidence) == Verdict::Clean {
        return context.confirm(&question, "--clean");
    }
    if !context.can_ask() {
        held(&evidence)
            .iter()
            .for_each(|line| context.warn(&format!("{}: {line}", instance.id.display_name())));
        return context.confirm(&question, "--clean");
    }
    let asked = Confirm {
        title: "eject".to_owned(),
        question,
        list: evidence_items(&evidence),
        note: Some("This work may exist nowhere else. It goes to the trash with the instance.".to_owned()),
        yes: "End it and remove all of this".to_owned(),
        no: "Leave it as it is".to_owned(),
    };
    Ok(confirm(&Ask::here(), &asked) == Confirmation::Yes)
}
