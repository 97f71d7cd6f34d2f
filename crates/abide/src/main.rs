//! The `abide` command.

mod cli;
mod commands;
mod context;
mod error;
mod print;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

fn main() -> ExitCode {
    let argv: Vec<_> = std::env::args_os().collect();
    if let Some(code) = commands::capsule::run(&argv) {
        return code;
    }
    let matches = cli::Cli::command().get_matches_from(argv);
    let cli = cli::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let context = context::Context::for_verb(matches.subcommand_name().unwrap_or("abide"));
    let outcome = context.and_then(|mut context| commands::run(cli.verb, &mut context));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
