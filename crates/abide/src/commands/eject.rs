//! `abide eject`

use abide_engine::{finish, target};

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::stop;

const EXAMPLES: &str = "\
Examples:
  abide eject k7p9            end it and remove it; asks first
  abide eject k7p9 --keep     end its processes and keep the rest, as `abide stop`
  abide eject k7p9 --clean    remove it without asking; it goes to the trash first";

/// End an instance for good
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID or a name
    target: String,
    /// Keep everything for a later resume
    #[arg(long, conflicts_with = "clean")]
    keep: bool,
    /// Remove it without asking
    #[arg(long)]
    clean: bool,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    if args.keep {
        return stop::run(stop::Args { target: args.target }, context);
    }
    let found = target::find(&context.store, &args.target).map_err(CommandError::failed)?;
    let id = found.instance.id;
    if found.session.is_some() {
        return Err(CommandError::usage("eject ends a whole instance")
            .hint("`abide stop ID/SESSION` ends one session"));
    }
    let question = format!("End {} and everything that runs in it?", id.display_name());
    if !args.clean && !context.confirm(&question, "--clean")? {
        return Ok(context.printer.line("Nothing was ended.")?);
    }
    finish::discard(&context.store, id, "ejected by the operator").map_err(CommandError::failed)?;
    Ok(context
        .printer
        .line(format!("{} is gone; `abide trash restore {id}` brings it back", id.display_name()))?)
}
