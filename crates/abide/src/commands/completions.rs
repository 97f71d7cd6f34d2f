//! `abide completions`, and what a shell with such a script is answered.

use std::ffi::OsString;
use std::process::ExitCode;

use abide_model::{Instance, sanitised, vars};
use clap::{Command, CommandFactory};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

use crate::cli::Cli;
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

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

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let shells = Shells::builtins();
    let shell =
        shells.completer(&args.shell.to_string()).ok_or_else(|| CommandError::usage("no such shell"))?;
    let mut script = Vec::new();
    shell.write_registration(vars::ABIDE_COMPLETE, "abide", "abide", "abide", &mut script)?;
    context.printer.raw(&script)
}

/// Answers a completion script that asks what the words of `argv` can go on with; none if no script asks.
pub fn answer(argv: &[OsString]) -> Option<ExitCode> {
    std::env::var_os(vars::ABIDE_COMPLETE)?;
    let here = std::env::current_dir().ok();
    let env = CompleteEnv::with_factory(command).var(vars::ABIDE_COMPLETE);
    match env.try_complete(argv, here.as_deref()) {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// The command line, with what there is to choose from on this machine.
fn command() -> Command {
    Cli::command().mut_subcommands(|verb| match verb.get_name() {
        "trash" => verb.mut_subcommands(|verb| with_candidates(verb, trashed)),
        "workspace" => verb.mut_subcommands(|verb| with_candidates(verb, workspaces)),
        // Of a verb and its visible alias only the first by the alphabet would be offered.
        "hardline" => with_candidates(verb.visible_alias(None).alias("attach"), || {
            instances().into_iter().chain(workspaces()).collect()
        }),
        _ => with_candidates(verb, instances),
    })
}

fn with_candidates(verb: Command, candidates: fn() -> Vec<CompletionCandidate>) -> Command {
    verb.mut_args(|arg| {
        match arg.is_positional() && matches!(arg.get_id().as_str(), "target" | "targets" | "name") {
            true => arg.add(ArgValueCandidates::new(candidates)),
            false => arg,
        }
    })
}

/// Names and ids, read as they are: a shell that waits for them must not wait for what a look would settle.
fn instances() -> Vec<CompletionCandidate> {
    let entries = here().and_then(|context| context.store.list().ok()).unwrap_or_default();
    let all: Vec<&Instance> = entries.iter().filter_map(|entry| entry.sound()).collect();
    let described =
        |instance: &Instance| format!("{}, {}", instance.status.status, instance.scope.dir.display());
    let named = all.iter().filter_map(|one| Some((one.name.clone()?, described(one))));
    let ids = all.iter().map(|one| (one.id.to_string(), described(one)));
    named.chain(ids).filter_map(candidate).collect()
}

fn trashed() -> Vec<CompletionCandidate> {
    let entries = here().and_then(|context| context.store.trash_names().ok()).unwrap_or_default();
    entries
        .into_iter()
        .filter_map(|name| candidate((name.id.to_string(), "in the trash".to_owned())))
        .collect()
}

fn workspaces() -> Vec<CompletionCandidate> {
    let known = here().and_then(|context| context.config.workspaces().ok()).unwrap_or_default();
    known.into_iter().filter_map(|(name, _)| candidate((name, "workspace".to_owned()))).collect()
}

fn here() -> Option<Context> {
    Context::for_verb("completions").ok()
}

/// None for a word that would do something to the terminal.
fn candidate((word, help): (String, String)) -> Option<CompletionCandidate> {
    let is_plain = sanitised(&word) == word;
    is_plain.then(|| CompletionCandidate::new(&word).help(Some(sanitised(&help).into_owned().into())))
}
