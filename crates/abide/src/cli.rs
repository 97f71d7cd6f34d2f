//! The command line: verbs and their flags. Each verb's own arguments stand in its file under `commands/`.

use clap::{Parser, Subcommand};

use crate::commands;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed; nothing was changed unless the message says so
  2  the command line can not be meant
  3  an answer was needed and nobody could be asked; the message names the flag that answers

Environment:
  ABIDE_HOME       where state is kept (default: ~/.abide)
  XDG_CONFIG_HOME  where configuration is kept (default: ~/.config)
  ABIDE_LOG        what goes to the log: warn, debug, info,abide_store=debug, …
  NO_COLOR         no colours
  ABIDE_PLAIN      questions as numbered lines instead of dialogs

`abide VERB --help` explains a verb and shows examples.";

/// Keeps AI coding agents running, and brings them back.
///
/// Agents started with abide survive closed terminals, SSH logout, crashes and reboots. Without a verb, abide lists the
/// instances.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

/// What abide can be told to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Load(commands::load::Args),
    #[command(visible_alias = "attach")]
    Hardline(commands::hardline::Args),
    Resume(commands::resume::Args),
    Conversations(commands::conversations::Args),
    #[command(visible_aliases = ["ps", "status"])]
    Ls(commands::ls::Args),
    Send(commands::send::Args),
    Peek(commands::peek::Args),
    Wait(commands::wait::Args),
    Stop(commands::stop::Args),
    Eject(commands::eject::Args),
    Leave(commands::leave::Args),
    Prune(commands::prune::Args),
    Trash(commands::trash::Args),
    Workspace(commands::workspace::Args),
    Config(commands::config::Args),
    Doctor(commands::doctor::Args),
    Explain(commands::explain::Args),
    Upgrade(commands::upgrade::Args),
    Service(commands::service::Args),
    Completions(commands::completions::Args),
    Man(commands::man::Args),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_explains_itself_and_shows_an_example() {
        for verb in Cli::command().get_subcommands() {
            let name = verb.get_name();
            assert!(verb.get_about().is_some(), "`{name}` has no help");
            let long = verb.clone().render_long_help().to_string();
            assert!(long.contains("Examples:"), "`abide {name} --help` shows no example");
            for arg in verb.get_arguments().filter(|a| a.get_id() != "help") {
                assert!(arg.get_help().is_some(), "`{name} {}` has no help", arg.get_id());
            }
        }
    }
}
