//! `abide peek`

use abide_capsule::protocol::Format;

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::session_target;

const EXAMPLES: &str = "\
Examples:
  abide peek k7p9               what is on its screen
  abide peek k7p9 --scrollback  with everything that scrolled off
  abide peek k7p9 --colour      with its colours
  abide peek k7p9 --json        cell by cell";

/// Print a session's screen without attaching
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID, ID/SESSION or a name
    target: String,
    /// With the lines that scrolled off
    #[arg(long)]
    scrollback: bool,
    /// With colours and attributes
    #[arg(long, conflicts_with = "json")]
    colour: bool,
    /// Print JSON, cell by cell
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let (held, session) = session_target(&args.target, context)?;
    let format = match (args.json, args.colour) {
        (true, _) => Format::Cells,
        (_, true) => Format::Ansi,
        _ => Format::Text,
    };
    let snapshot = held.screen(&session, format, args.scrollback).map_err(CommandError::failed)?;
    if args.json {
        return Ok(context.printer.json(&snapshot)?);
    }
    let mut text = snapshot.lines.join("\n");
    text.push('\n');
    // With colours the lines hold the escape sequences of our own renderer, and no others.
    if args.colour { Ok(context.printer.raw(text.as_bytes())?) } else { Ok(context.printer.text(&text)?) }
}
