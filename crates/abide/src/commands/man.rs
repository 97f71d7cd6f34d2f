//! `abide man`

use std::path::PathBuf;

use clap::{Command, CommandFactory};

use crate::cli::Cli;
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

const EXAMPLES: &str = "\
Examples:
  abide man | man -l -
  abide man --dir ~/.local/share/man/man1";

/// Print the manual page
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Write one page for abide and one per command into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let mut command = without_help(Cli::command());
    command.build();
    match args.dir {
        Some(dir) => {
            let made = std::fs::create_dir_all(&dir).and_then(|()| clap_mangen::generate_to(command, &dir));
            made.map_err(|error| {
                CommandError::failed(format!("cannot write to {}: {error}", dir.display()))
                    .hint("name a directory in which you may write")
            })
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            context.printer.raw(&page)
        }
    }
}

/// `command` without the `help` verbs, which would be half of all pages and say nothing new.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}
