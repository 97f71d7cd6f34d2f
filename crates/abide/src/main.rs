//! The `abide` command.

mod cli;
mod commands;
mod context;
mod error;
mod print;
mod process_1;
mod stages;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use error::CommandError;

fn main() -> ExitCode {
    let argv: Vec<_> = std::env::args_os().collect();
    if let Some(code) = commands::capsule::run(&argv) {
        return code;
    }
    if let Some(code) = commands::completions::answer(&argv) {
        return code;
    }
    let matches = match cli::Cli::command().try_get_matches_from(argv) {
        Ok(matches) => matches,
        Err(error) => return not_a_verb(&error),
    };
    let cli = cli::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let context = context::Context::for_verb(matches.subcommand_name().unwrap_or("abide"));
    let outcome = context.and_then(|mut context| commands::run(cli.verb, &mut context));
    let code = outcome.map_or_else(CommandError::report, |()| ExitCode::SUCCESS);
    process_1::stay();
    code
}

/// Prints the help or version that was asked for, or what is wrong with the command line. Help that cannot be written is a
/// failure like any other.
fn not_a_verb(error: &clap::Error) -> ExitCode {
    match error.print().and_then(|()| std::io::stdout().flush()) {
        Ok(()) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
        Err(failure) => CommandError::from(failure).report(),
    }
}
