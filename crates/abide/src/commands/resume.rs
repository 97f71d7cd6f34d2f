//! `abide resume`

use abide_engine::resume::{self, ResumeError};
use abide_engine::{reconcile, target};
use abide_model::{Instance, InstanceId};

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::{hardline, load};

const EXAMPLES: &str = "\
Examples:
  abide resume k7p9            bring it back and attach to it
  abide resume k7p9 --detach   without attaching
  abide resume --all           everything that a crash, a stop or a reboot took down
  abide resume --all --dry-run
                               only say what that would be

The same tabs come back with their scrollback, in the same directory. One after the other is started and looked at;
after three failures in a row the rest is left alone.";

/// Bring kept instances back
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID or a name
    #[arg(required_unless_present = "all")]
    target: Option<String>,
    /// Everything that a crash, a stop or a reboot took down
    #[arg(long, conflicts_with = "target")]
    all: bool,
    /// Only say what would be brought back
    #[arg(long)]
    dry_run: bool,
    /// Do not attach
    #[arg(long, short)]
    detach: bool,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let entries = reconcile::reconcile(&context.store, &context.config).map_err(CommandError::failed)?;
    let Some(word) = &args.target else { return all(&resume::interrupted(&entries), args.dry_run, context) };
    let instance = target::find(&context.store, word).map_err(CommandError::failed)?.instance;
    if args.dry_run {
        return Ok(context.printer.line(described(&instance))?);
    }
    if !args.detach && !hardline::has_terminal() {
        return Err(CommandError::usage("there is no terminal to attach to")
            .hint("--detach resumes it without attaching"));
    }
    let resumed =
        load::with_surroundings(&instance.scope.dir, context, |around| resume::resume(around, instance.id))?;
    if let Some(warning) = resumed.map_err(CommandError::failed)?.warning {
        context.warn(&warning);
    }
    match args.detach {
        true => Ok(context.printer.line(format!("{} is back", instance.id.display_name()))?),
        false => hardline::attach(instance.id, None, false, context),
    }
}

fn described(instance: &Instance) -> String {
    let sessions: Vec<_> =
        instance.sessions_to_resume().iter().map(|session| session.name.as_str()).collect();
    let (name, dir) = (instance.id.display_name(), instance.scope.dir.display());
    format!("{name}  {}  {}  {dir}", instance.status.status, sessions.join(", "))
}

fn all(interrupted: &[&Instance], dry_run: bool, context: &Context) -> Outcome {
    if interrupted.is_empty() {
        return Ok(context.printer.line("Nothing was interrupted.")?);
    }
    if dry_run {
        for instance in interrupted {
            context.printer.line(described(instance))?;
        }
        return Ok(());
    }
    let ids: Vec<InstanceId> = interrupted.iter().map(|instance| instance.id).collect();
    let mut failed = 0;
    let mut told = |id: InstanceId, outcome: Result<(), ResumeError>| {
        let line = match outcome {
            Ok(()) => format!("{} is back", id.display_name()),
            Err(error) => {
                failed += 1;
                format!("{} did not come back: {error}", id.display_name())
            }
        };
        // Nobody may be looking, as at boot; what happened is in the log too.
        let _ = context.printer.line(line);
    };
    let dir = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let left_out =
        load::with_surroundings(&dir, context, |around| resume::resume_all(around, &ids, &mut told))?;
    match (failed, left_out) {
        (0, 0) => Ok(()),
        (n, 0) => {
            Err(CommandError::failed(format!("{n} did not come back")).hint("they are kept as they were"))
        }
        (n, left) => Err(CommandError::failed(format!("{n} did not come back, and {left} were not tried"))
            .hint("see what is wrong with the first ones, then run it again")),
    }
}
