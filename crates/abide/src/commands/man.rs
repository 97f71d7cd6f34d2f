//! `abide man`

use std::path::PathBuf;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::context::Context;
use crate::error::Outcome;

const EXAMPLES: &str = "\
Examples:
  abide man | man -l -
  abide man --dir ~/.local/share/man/man1";

/// Print the manual page
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Write a page for abide and one for each verb into this directory instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let mut command = Cli::command();
    command.build();
    match args.dir {
        Some(dir) => Ok(clap_mangen::generate_to(command, dir)?),
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            Ok(context.printer.raw(&page)?)
        }
    }
}
