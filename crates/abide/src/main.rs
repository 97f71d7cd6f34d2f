//! The `abide` command.

mod cli;
mod commands;
mod context;
mod error;
mod print;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let argv: Vec<_> = std::env::args_os().collect();
    if let Some(code) = commands::capsule::run(&argv) {
        return code;
    }
    let cli = cli::Cli::parse_from(argv);
    let outcome = context::Context::new(&cli).and_then(|mut context| commands::run(cli.verb, &mut context));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
