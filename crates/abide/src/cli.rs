//! The command line: verbs and their flags. Each verb's own arguments stand in its file under `commands/`.

use clap::{Parser, Subcommand};

use crate::commands;

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  failure; nothing was changed unless the message says so
  2  usage error
  3  a question could not be asked (no terminal); the message names the flag that answers it

Environment:
  ABIDE_HOME       directory for state (default: ~/.abide)
  XDG_CONFIG_HOME  directory for configuration (default: ~/.config)
  ABIDE_LOG        log filter: warn, debug, info,abide_store=debug, …
  NO_COLOR         turn colours off
  ABIDE_PLAIN      ask questions as numbered lines instead of dialogs

`abide COMMAND --help` explains a command and shows examples.";

/// Keeps AI coding agents running, and brings them back.
///
/// Agents started with abide survive closed terminals, SSH logouts, crashes and reboots. Without a command, abide lists the
/// instances.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    #[command(visible_alias = "run")]
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
    #[command(visible_alias = "rm")]
    Eject(commands::eject::Args),
    Leave(commands::leave::Args),
    Prune(commands::prune::Args),
    /// List, restore or delete removed instances
    #[command(subcommand, after_long_help = commands::trash::EXAMPLES)]
    Trash(commands::trash::TrashVerb),
    /// Name directories and give them settings
    #[command(subcommand, after_long_help = commands::workspace::EXAMPLES)]
    Workspace(commands::workspace::WorkspaceVerb),
    /// Read and change settings
    #[command(subcommand, after_long_help = commands::config::EXAMPLES)]
    Config(commands::config::ConfigVerb),
    Doctor(commands::doctor::Args),
    Explain(commands::explain::Args),
    Allow(commands::allow::Args),
    Upgrade(commands::upgrade::Args),
    /// Resume interrupted instances when the machine starts
    #[command(subcommand, after_long_help = commands::service::EXAMPLES)]
    Service(commands::service::ServiceVerb),
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

    /// Compares the help of `command` and of the commands below it with the snapshots in tests/cli/help.
    fn compare_help(command: &clap::Command, name: &str) {
        let help = command.clone().term_width(100).render_long_help().to_string();
        insta::with_settings!({
            snapshot_path => "../../../tests/cli/help",
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, { insta::assert_snapshot!(name, help) });
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            compare_help(below, &format!("{name}-{}", below.get_name()));
        }
    }

    #[test]
    fn the_help_of_every_command_is_the_one_that_was_reviewed() {
        let mut cli = Cli::command();
        cli.build();
        compare_help(&cli, "abide");
    }

    #[test]
    fn the_usual_words_are_aliases_that_the_help_names() {
        for (alias, command) in [("run", "load"), ("attach", "hardline"), ("rm", "eject")] {
            let cli = Cli::command();
            let found = cli.find_subcommand(alias).map(clap::Command::get_name);
            assert_eq!(found, Some(command), "`abide {alias}`");
            let visible: Vec<_> =
                cli.find_subcommand(command).into_iter().flat_map(|c| c.get_visible_aliases()).collect();
            assert!(visible.contains(&alias), "the help of {command} names {visible:?}");
        }
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
