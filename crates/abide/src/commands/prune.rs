//! `abide prune`

use crate::context::Context;
use crate::error::Outcome;

use super::not_there_yet;

const EXAMPLES: &str = "\
Examples:
  abide prune --dry-run    what would go
  abide prune --yes        remove it without asking";

/// Remove what is finished: nothing that can be resumed, nothing that holds work
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Only say what would go
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub fn run(args: Args, _: &mut Context) -> Outcome {
    let Args { dry_run: _, yes: _ } = args;
    Err(not_there_yet("prune"))
}
