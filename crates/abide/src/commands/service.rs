//! `abide service`

use abide_model::placement::{Linger, LingerConsent};
use abide_places::host::{Login, boot_service};

use super::linger;
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

pub const EXAMPLES: &str = "\
Examples:
  abide service install    run `abide resume --all` after every reboot
  abide service remove

This is a systemd user service. With linger it starts at boot. Without linger it starts at your first login, and your \
last logout ends what it resumed. So if linger is off, it asks; `--linger yes` turns it on, `--linger no` does without. \
`abide doctor` shows the result of its last run.

Instances that you stopped are resumed too. The service stores the current PATH, SHELL, ABIDE_HOME and XDG_CONFIG_HOME; \
install it again after you change one of them.";

#[derive(Debug, clap::Subcommand)]
pub enum ServiceVerb {
    /// Install and enable the service
    Install {
        /// Whether to turn on linger if it is off
        #[arg(long, value_name = "YES|NO", value_parser = linger::consent_parser(), hide_possible_values = true)]
        linger: Option<LingerConsent>,
    },
    /// Remove the service
    Remove,
}

pub fn run(verb: ServiceVerb, context: &mut Context) -> VerbResult {
    let (config_home, login) = (context.config_home()?, Login::here());
    match verb {
        ServiceVerb::Install { linger } => {
            if !settle_linger(&login, linger, context)? {
                return context
                    .printer
                    .line("Nothing was installed; `--linger no` installs it without linger.");
            }
            let exe = std::env::current_exe()?;
            let env = |name: &str| std::env::var_os(name);
            let path = boot_service::install(&config_home, &exe, &env, &login)?;
            tracing::info!(path = %path.display(), "boot service installed");
            context.printer.line(format!("{} is installed", path.display()))
        }
        ServiceVerb::Remove => {
            let was_there = boot_service::remove(&config_home, &login)?;
            tracing::info!(was_there, "boot service removed");
            context.printer.line(if was_there {
                "The service is removed."
            } else {
                "The service was not installed."
            })
        }
    }
}

/// Sees to linger, without which what the service brings back ends with the last logout; whether to go on.
fn settle_linger(login: &Login, answer: Option<LingerConsent>, context: &Context) -> VerbResult<bool> {
    let facts = login.look();
    if !facts.systemd || facts.linger == Linger::On {
        return Ok(true);
    }
    let question = "Linger is off, so the service would start at your first login only, and what it brings back would \
                    end with your last logout. Turn linger on?";
    match answer {
        Some(LingerConsent::NotGiven) => {
            context.warn("linger is off: your last logout ends what the service resumes");
            return Ok(true);
        }
        None if !context.confirm(question, "--linger yes")? => return Ok(false),
        Some(LingerConsent::Given) | None => {}
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
