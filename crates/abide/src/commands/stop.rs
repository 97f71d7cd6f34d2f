//! `abide stop`

use abide_engine::finish::Outcome as Finished;
use abide_engine::{follow, stop, substrate, target};

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::refuse_stopped;

const EXAMPLES: &str = "\
Examples:
  abide stop k7p9         end all its processes; the instance is kept
  abide stop k7p9/s2      end one session; the others run on";

/// End an instance's processes, or one session; nothing is removed
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID, ID/SESSION or a name
    pub target: String,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let target = target::find(&context.store, &args.target).map_err(CommandError::failed)?;
    let id = target.instance.id;
    if let Some(session) = target.session {
        refuse_stopped(&target.instance)?;
        follow::look_closely(&context.store, &target.instance);
        return substrate::of(&context.store, id).end(&session).map_err(CommandError::failed);
    }
    match stop::stop(&context.store, &context.config, id).map_err(CommandError::failed)? {
        Finished::Removed(why) => {
            Ok(context.printer.line(format!("{} had ended: {why}", id.display_name()))?)
        }
        _ => Ok(context.printer.line(format!("{} is stopped and kept", id.display_name()))?),
    }
}
