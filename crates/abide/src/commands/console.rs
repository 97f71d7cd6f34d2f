//! `abide console`

use crate::context::Context;
use crate::error::Outcome;

use super::not_there_yet;

const EXAMPLES: &str = "\
Examples:
  abide console
  abide            the same, on a terminal";

/// Open the console: all instances and sessions on one screen
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {}

pub fn run(_: Args, _: &mut Context) -> Outcome {
    Err(not_there_yet("console").hint("`abide ls` lists the instances"))
}
