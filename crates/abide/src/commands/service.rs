//! `abide service`

use abide_places::boot;

use crate::context::Context;
use crate::error::{CommandError, Outcome};

const EXAMPLES: &str = "\
Examples:
  abide service install    after a reboot, `abide resume --all` runs by itself
  abide service remove

It is a systemd user service. It starts at boot where linger is on, else at your first login; `abide doctor` tells.
What was stopped on purpose comes back as well. PATH, SHELL, ABIDE_HOME and XDG_CONFIG_HOME are written into the service
as they are when it is installed, and no other variable; after a change of them, install it again.";

/// Bring interrupted instances back when the machine starts
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Put the service in place and enable it
    Install,
    /// Take it away
    Remove,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let config_home = context.config_home()?;
    match args.verb {
        Verb::Install => {
            let exe = std::env::current_exe()?;
            let env = |name: &str| std::env::var_os(name);
            let path = boot::install(&config_home, &exe, &env).map_err(CommandError::failed)?;
            tracing::info!(path = %path.display(), "boot service installed");
            Ok(context.printer.line(format!("{} is in place", path.display()))?)
        }
        Verb::Remove => {
            let was_there = boot::remove(&config_home).map_err(CommandError::failed)?;
            tracing::info!(was_there, "boot service removed");
            Ok(context.printer.line(if was_there { "It is gone." } else { "It was not there." })?)
        }
    }
}
