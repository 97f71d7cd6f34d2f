//! `abide service`

use abide_places::host::Login;
use abide_places::host::boot_service;

use crate::context::Context;
use crate::error::{CommandError, VerbResult};

const EXAMPLES: &str = "\
Examples:
  abide service install    after a reboot, `abide resume --all` runs by itself
  abide service remove

It is a systemd user service. With linger it starts at boot; without, at your first login, and what it brings back ends
with your last logout. So it asks where linger is off: `--linger yes` turns it on, `--linger no` does without.
`abide doctor` shows how its last run went.
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
    Install {
        /// Whether to turn on linger where it is off, or to do without
        #[arg(long, value_name = "YES|NO", value_parser = clap::builder::BoolishValueParser::new(), hide_possible_values = true)]
        linger: Option<bool>,
    },
    /// Take it away
    Remove,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let (config_home, login) = (context.config_home()?, Login::here());
    match args.verb {
        Verb::Install { linger } => {
            if !settle_linger(&login, linger, context)? {
                return Ok(context
                    .printer
                    .line("Nothing was installed; `--linger no` installs it without linger.")?);
            }
            let exe = std::env::current_exe()?;
            let env = |name: &str| std::env::var_os(name);
            let path =
                boot_service::install(&config_home, &exe, &env, &login).map_err(CommandError::failed)?;
            tracing::info!(path = %path.display(), "boot service installed");
            Ok(context.printer.line(format!("{} is in place", path.display()))?)
        }
        Verb::Remove => {
            let was_there = boot_service::remove(&config_home, &login).map_err(CommandError::failed)?;
            tracing::info!(was_there, "boot service removed");
            Ok(context.printer.line(if was_there { "It is gone." } else { "It was not there." })?)
        }
    }
}

/// Sees to linger, without which what the service brings back ends with the last logout; whether to go on.
fn settle_linger(login: &Login, answer: Option<bool>, context: &Context) -> VerbResult<bool> {
    let facts = login.look();
    if !facts.systemd || facts.linger {
        return Ok(true);
    }
    let question = "Linger is off, so the service would start at your first login only, and what it brings back would \
                    end with your last logout. Turn linger on?";
    match answer {
        Some(false) => {
            context.warn("linger is off: what the service brings back ends with your last logout");
            return Ok(true);
        }
        None if !context.confirm(question, "--linger yes")? => return Ok(false),
        Some(true) | None => {}
    }
    let user = &facts.user;
    login.enable_linger().map_err(|why| {
        CommandError::failed(format!(
            "linger could not be turned on for {user} ({why}); nothing was installed"
        ))
        .hint(format!("`sudo loginctl enable-linger {user}` turns it on, `--linger no` does without"))
    })?;
    context.printer.line(format!("Linger is on for {user}."))?;
    Ok(true)
}
