//! `abide wait`

use std::time::Duration;

use abide_engine::substrate::{self, Substrate};
use abide_engine::target;
use abide_model::activity::{Background, is_only_background};
use abide_model::{Instance, InstanceId};
use abide_store::{ResolveError, TrashEntry};
use abide_wire::protocol::{EvidenceReply, Until, WaitOutcome, WaitReply};
use abide_wire::session::{ProcessExit, SessionId};

use super::{ended, session_target};
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

const EXAMPLES: &str = "\
Examples:
  abide wait k7p9 --idle                    until the agent is idle
  abide wait k7p9 --idle --quiet 10         idle means 10 seconds without output
  abide wait k7p9 --idle --ignore-background
                                            even if a server that it started still runs
  abide wait k7p9 --needs-input             until the agent asks something
  abide wait k7p9 --exit --timeout 3600     until the process ends, at most an hour
  abide wait k7p9 --text 'tests passed'     until the screen shows this text

Exits with 0 on success; with 1 after a timeout, if the session ended first, or if the awaited turn ended in an error. \
With --exit, a session that has already ended is a success.";

/// Wait until a session is idle, asks something, ends, or shows a text
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[command(group(clap::ArgGroup::new("until").required(true).args(["idle", "needs_input", "exit", "text"])))]
pub struct Args {
    /// ID, ID/SESSION or name
    target: String,
    /// Until it is idle; a program that does not report its state is idle when it is quiet (see --quiet)
    #[arg(long)]
    idle: bool,
    /// Until it asks for input
    #[arg(long)]
    needs_input: bool,
    /// Until its process ends
    #[arg(long)]
    exit: bool,
    /// Until its screen shows this text
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Count it as idle even if something it started, such as a server, still runs
    #[arg(long, requires = "idle")]
    ignore_background: bool,
    /// Seconds without output that count as idle
    #[arg(long, value_name = "SECONDS", default_value = "2", requires = "idle", value_parser = seconds, allow_negative_numbers = true)]
    quiet: f64,
    /// Seconds to wait at most
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    timeout: Option<f64>,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let background = if args.ignore_background { Background::Ignored } else { Background::Counts };
    let until = match args.text {
        Some(pattern) => Until::Text { pattern },
        None if args.exit => Until::Exit,
        None if args.needs_input => Until::NeedsInput,
        None => Until::Idle { quiet_ms: millis(args.quiet), background },
    };
    let timeout_ms = args.timeout.map(millis);
    let asked = session_target(&args.target, context).and_then(|(held, session)| {
        if args.idle && background == Background::Counts {
            mention_background(held.as_ref(), &session, context);
        }
        held.wait(&session, until, timeout_ms).map_err(CommandError::failed)
    });
    let reply = match asked {
        Err(error) if args.exit => WaitReply {
            outcome: WaitOutcome::Reached,
            exit: Some(ended_before(&args.target, context).ok_or(error)?),
            line: None,
            problem: None,
        },
        asked => asked?,
    };
    if args.exit
        && reply.outcome == WaitOutcome::Reached
        && let Ok(id) = context.store.resolve(target::split(&args.target).0)
    {
        settle(id, context);
    }
    let ended = reply.exit.map(|exit| exit.to_string());
    if let (WaitOutcome::Reached, Some(problem)) = (reply.outcome, &reply.problem) {
        return Err(CommandError::failed(format!("its last turn failed: {problem}")));
    }
    match (reply.outcome, ended) {
        (WaitOutcome::Reached, Some(exit)) => context.printer.line(exit),
        (WaitOutcome::Reached, None) => Ok(reply.line.map_or(Ok(()), |line| context.printer.line(line))?),
        (WaitOutcome::Exited, exit) => Err(CommandError::failed(format!(
            "it ended first ({})",
            exit.unwrap_or_else(|| "unknown".to_owned())
        ))),
        (WaitOutcome::TimedOut, _) => {
            let why = reply.problem.map_or(String::new(), |why| format!(": {why}"));
            Err(CommandError::failed(format!("timed out{why}")).hint("use a longer --timeout"))
        }
    }
}

/// Says so where only what a session has left running is waited for: that may run for ever.
fn mention_background(held: &dyn Substrate, session: &SessionId, context: &Context) {
    let Ok(EvidenceReply { activity, statements }) = held.evidence(session) else { return };
    if is_only_background(activity.state, statements.iter().map(|one| one.says)) {
        context.warn(&format!(
            "it is idle, but something that it started still runs ({}); --ignore-background ignores that",
            activity.because
        ));
    }
}

/// How the session that `word` means ended, if that was before the wait began.
fn ended_before(word: &str, context: &Context) -> Option<ProcessExit> {
    let (name, session) = target::split(word);
    let instance = match context.store.resolve(name) {
        Ok(id) => {
            settle(id, context);
            context.store.read(id).ok().or_else(|| trashed(id.as_str(), context))
        }
        Err(ResolveError::InTrash { .. } | ResolveError::NotFound(_)) => trashed(name, context),
        Err(_) => None,
    }?;
    let session = match (session, instance.sessions.as_slice()) {
        (Some(word), _) => instance.session(word)?,
        (None, [only]) => only,
        _ => return None,
    };
    let exit = session.exit.as_ref()?;
    exit.code.map(ProcessExit::Code).or(exit.signal.map(ProcessExit::Signal))
}

/// What `word` means in the trash. Who uses a name again and again means the last one that had it.
fn trashed(word: &str, context: &Context) -> Option<Instance> {
    let entries = context.store.trashed().ok()?;
    let called = |entry: &&TrashEntry| entry.content.as_ref().is_ok_and(|i| i.name.as_deref() == Some(word));
    let entry = match entries.iter().rev().find(called) {
        Some(entry) => entry,
        None => {
            let name = context.store.resolve_trashed(word).ok()?;
            entries.iter().find(|entry| entry.name == name)?
        }
    };
    entry.content.as_ref().ok().cloned()
}

/// Waits for what the end of the last session leads to. The caller may want to use the name again.
fn settle(id: InstanceId, context: &Context) {
    let status = substrate::of(&context.store, id).status();
    let others = status.is_ok_and(|status| status.sessions.iter().any(|session| session.exit.is_none()));
    if !others && let Err(error) = ended::settled(id, context) {
        tracing::warn!(%id, "after its last session: {error}");
    }
}

/// A number of seconds that can be waited.
fn seconds(text: &str) -> Result<f64, String> {
    let is_time = |seconds: &f64| *seconds >= 0.0;
    text.parse()
        .ok()
        .filter(is_time)
        .ok_or_else(|| "expected a number of seconds, such as 1.5 or 60".to_owned())
}

pub(super) fn millis(seconds: f64) -> u64 {
    Duration::try_from_secs_f64(seconds.max(0.0))
        .map_or(u64::MAX, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
