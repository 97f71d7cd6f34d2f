//! `abide completions`

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::context::Context;
use crate::error::Outcome;

const EXAMPLES: &str = "\
Examples:
  abide completions bash > ~/.local/share/bash-completion/completions/abide
  abide completions zsh > ~/.zfunc/_abide
  abide completions fish > ~/.config/fish/completions/abide.fish";

/// Print a shell's completion script
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The shell
    shell: Shell,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "abide", &mut script);
    Ok(context.printer.raw(&script)?)
}
