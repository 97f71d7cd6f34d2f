//! `abide send`

use abide_capsule::protocol::{Input, Send};
use abide_engine::live;

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::session_target;

const EXAMPLES: &str = "\
Examples:
  abide send k7p9 'run the tests'               types it, and presses Enter
  abide send k7p9 --no-enter 'half a line'
  abide send k7p9/s2 --key C-c                  presses a key
  abide send k7p9 --key Up --key Enter";

/// Type into a session
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID, ID/SESSION or a name
    target: String,
    /// The text to type
    #[arg(required_unless_present = "key")]
    text: Option<String>,
    /// A key to press after the text: Enter, Tab, Escape, Up, C-c, …
    #[arg(long, value_name = "KEY")]
    key: Vec<String>,
    /// Do not press Enter after the text
    #[arg(long)]
    no_enter: bool,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let (unit, session) = session_target(&args.target, context)?;
    let mut input = Vec::new();
    if let Some(text) = args.text {
        input.push(Input::Text(text));
        if !args.no_enter && args.key.is_empty() {
            input.push(Input::Key("enter".to_owned()));
        }
    }
    input.extend(args.key.into_iter().map(Input::Key));
    let mut capsule = live::connect(&unit).map_err(CommandError::failed)?;
    capsule.call(&Send { session, input }, live::PATIENCE).map_err(CommandError::failed)?;
    Ok(())
}
