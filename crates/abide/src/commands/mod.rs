//! One file per verb: its arguments, and the few lines between the engine and the terminal.

pub mod allow;
pub mod capsule;
pub mod come_back;
pub mod completions;
pub mod config;
pub mod conversations;
pub mod doctor;
pub mod eject;
pub mod ended;
pub mod explain;
pub mod hardline;
pub mod leave;
pub mod linger;
pub mod load;
pub mod ls;
pub mod man;
pub mod missing_directory;
pub mod peek;
pub mod prune;
pub mod resume;
pub mod send;
pub mod service;
pub mod stop;
pub mod trash;
pub mod upgrade;
pub mod wait;
pub mod workspace;

use std::path::PathBuf;
use std::str::FromStr;

use abide_client::AttachMode;
use abide_engine::end::prune::Within;
use abide_engine::running::processes::Leftover;
use abide_engine::start::startup_check::{self, BootFailure};
use abide_engine::substrate::{self, Substrate};
use abide_engine::target::{self, Target};
use abide_model::{Choice, Instance, InstanceId, Safe, SessionId, Status, UnknownChoice};
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::cli::Verb;
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

/// Runs `verb`, or what stands for none.
pub fn run(verb: Option<Verb>, context: &mut Context) -> VerbResult {
    match verb {
        None => ls::overview(context),
        Some(Verb::Load(args)) => load::run(args, context),
        Some(Verb::Hardline(args)) => hardline::run(args, context),
        Some(Verb::Resume(args)) => resume::run(args, context),
        Some(Verb::Conversations(args)) => conversations::run(args, context),
        Some(Verb::Ls(args)) => ls::run(args, context),
        Some(Verb::Send(args)) => send::run(args, context),
        Some(Verb::Peek(args)) => peek::run(args, context),
        Some(Verb::Wait(args)) => wait::run(args, context),
        Some(Verb::Stop(args)) => stop::run(args, context),
        Some(Verb::Eject(args)) => eject::run(args, context),
        Some(Verb::Leave(args)) => leave::run(args, context),
        Some(Verb::Prune(args)) => prune::run(args, context),
        Some(Verb::Trash(verb)) => trash::run(verb, context),
        Some(Verb::Workspace(verb)) => workspace::run(verb, context),
        Some(Verb::Config(verb)) => config::run(verb, context),
        Some(Verb::Doctor(args)) => doctor::run(args, context),
        Some(Verb::Explain(args)) => explain::run(args, context),
        Some(Verb::Allow(args)) => allow::run(args, context),
        Some(Verb::Upgrade(args)) => upgrade::run(args, context),
        Some(Verb::Service(verb)) => service::run(verb, context),
        Some(Verb::Completions(args)) => completions::run(args, context),
        Some(Verb::Man(args)) => man::run(args, context),
    }
}

/// What `word` means, unless it is known not to run.
fn running(word: &str, context: &Context) -> VerbResult<Target> {
    let found = target::find(&context.store, word)?;
    refuse_stopped(&found.instance)?;
    Ok(found)
}

/// Refuses an instance of which nothing runs, and says what to do about it.
fn refuse_stopped(instance: &Instance) -> VerbResult {
    let (id, status) = (instance.id, &instance.status.status);
    let hint = match status {
        Status::Restorable(_) => format!("`abide resume {id}` brings it back"),
        Status::Ending(_) => format!("`abide explain {id}` says why"),
        _ => return Ok(()),
    };
    Err(CommandError::failed(format!("{} does not run: it is {status}", id.display_name())).hint(hint))
}

/// The session that `word` means, and what holds it. An instance with one session needs no more than its name.
fn session_target(word: &str, context: &Context) -> VerbResult<(Box<dyn Substrate>, SessionId)> {
    let found = running(word, context)?;
    let held = substrate::of(&context.store, found.instance.id);
    if let Some(session) = found.session {
        return Ok((held, session));
    }
    let status = held.status()?;
    match &status.sessions[..] {
        [only] => Ok((held, only.id)),
        [] => Err(CommandError::failed(format!("{} has no session", found.instance.id.display_name()))),
        several => {
            let all: Vec<String> = several.iter().map(|s| format!("{word}/{} ({})", s.id, s.name)).collect();
            Err(CommandError::usage(format!("{word} has several sessions"))
                .hint(format!("name one: {}", all.join(", "))))
        }
    }
}

/// Waits for the agents of an instance that was just started to come up, and says why one did not.
fn watch_boot(id: InstanceId, context: &Context) -> VerbResult {
    startup_check::verify(&context.store, id).map_err(|failure| did_not_come_up(&failure))
}

/// Attaches to an instance that was just started. An agent that did not come up takes its screen along; what it said last
/// is told afterwards.
fn attach_started(id: InstanceId, session: Option<SessionId>, context: &Context) -> VerbResult {
    let attached = hardline::attach(id, session, AttachMode::Control, context);
    match startup_check::what_went_wrong(&context.store, id) {
        Some(failure) => Err(did_not_come_up(&failure)),
        None => attached,
    }
}

fn did_not_come_up(failure: &BootFailure) -> CommandError {
    let error = CommandError::failed(failure);
    let (heading, lines) = match (&failure.fatal, failure.last.split_last()) {
        // The error contains the last line already.
        (None, Some((_, before))) => ("output before that", before),
        _ => ("its last output", &failure.last[..]),
    };
    if lines.is_empty() { error } else { error.hint(format!("{heading}:\n  {}", lines.join("\n  "))) }
}

/// The directory that the operator is in.
fn here() -> VerbResult<PathBuf> {
    let gone = |error| CommandError::failed(format!("this directory is gone ({error})")).hint("cd elsewhere");
    std::env::current_dir().map_err(gone)
}

/// How a process that a verb ends, though its instance does not run, is named.
fn ends_leftover(left: &Leftover) -> String {
    format!("ends {}, which still runs of its last run", Safe(left.to_string()))
}

/// Refuses a name that could not be used to find the instance again.
fn check_spelling(name: Option<&str>) -> VerbResult {
    let Some(name) = name else { return Ok(()) };
    let fits = (1..=63).contains(&name.len()) && !name.starts_with(['-', '.']);
    if !fits || !name.bytes().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(&c)) {
        return Err(CommandError::usage(format!("`{}` cannot be a name", Safe(name)))
            .hint("1 to 63 letters, digits, `.`, `_` or `-`, not beginning with `-` or `.`"));
    }
    Ok(())
}

/// What `scope` means: a word is a workspace, and everything else a directory.
fn within(scope: &str) -> VerbResult<Within> {
    if !scope.contains('/') && !scope.starts_with('.') {
        return Ok(Within::Workspace(scope.to_owned()));
    }
    // A directory that is gone may still have instances.
    let dir = std::fs::canonicalize(scope).or_else(|_| std::path::absolute(scope))?;
    Ok(Within::Dir(dir))
}

/// Reads one of a closed set of words, which completions then offer.
fn choice<C>() -> impl TypedValueParser<Value = C>
where
    C: Choice + FromStr<Err = UnknownChoice> + Send + Sync,
{
    PossibleValuesParser::new(C::SPELLINGS).try_map(|word| word.parse::<C>())
}
