//! `abide stop`

use abide_capsule::session::SessionId;
use abide_engine::finish::{self, Outcome as Finished};
use abide_engine::{follow, reconcile, substrate, target};

use crate::context::Context;
use crate::error::{CommandError, Outcome};

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
    let held = substrate::of(&context.store, id);
    follow::look_closely(&context.store, &target.instance);
    if let Some(session) = target.session {
        let session = SessionId::new(session.to_string()).map_err(CommandError::failed)?;
        return held.end(&session).map_err(CommandError::failed);
    }
    if !held.stop("abide stop") {
        return Err(CommandError::failed(format!("{} does not stop", id.display_name()))
            .hint(format!("its processes: `abide explain {id}`")));
    }
    let policy = reconcile::policy(&context.config, &target.instance);
    match finish::finish(&context.store, id, policy).map_err(CommandError::failed)? {
        Finished::Removed(why) => {
            Ok(context.printer.line(format!("{} had ended: {why}", id.display_name()))?)
        }
        _ => Ok(context.printer.line(format!("{} is stopped and kept", id.display_name()))?),
    }
}
