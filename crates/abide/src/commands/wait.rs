//! `abide wait`

use std::time::Duration;

use abide_capsule::protocol::{Until, WaitOutcome};

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::session_target;

const EXAMPLES: &str = "\
Examples:
  abide wait k7p9 --idle                    until it does not work any more
  abide wait k7p9 --idle --quiet 10         or, if it does not say, until it was quiet for ten seconds
  abide wait k7p9 --needs-input             until it asks for something
  abide wait k7p9 --exit --timeout 3600     until it ends, an hour at most
  abide wait k7p9 --text 'tests passed'     until that is on its screen

Exits with 0 when it has happened, with 1 when the time was up or the session ended first.";

/// Wait until a session is idle, asks something, has ended, or shows a text
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[command(group(clap::ArgGroup::new("until").required(true).args(["idle", "needs_input", "exit", "text"])))]
pub struct Args {
    /// ID, ID/SESSION or a name
    target: String,
    /// Until it does not work any more; where nothing tells, until it was quiet for a while
    #[arg(long)]
    idle: bool,
    /// Until it waits for the operator's decision
    #[arg(long)]
    needs_input: bool,
    /// Until its process has ended
    #[arg(long)]
    exit: bool,
    /// Until this text is on its screen
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// How long it has to be quiet, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", requires = "idle")]
    quiet: f64,
    /// How long to wait at most, in seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let (held, session) = session_target(&args.target, context)?;
    let until = match args.text {
        Some(pattern) => Until::Text { pattern },
        None if args.exit => Until::Exit,
        None if args.needs_input => Until::NeedsInput,
        None => Until::Idle { quiet_ms: millis(args.quiet) },
    };
    let timeout_ms = args.timeout.map(millis);
    let reply = held.wait(&session, until, timeout_ms).map_err(CommandError::failed)?;
    let ended = reply.exit.map(|exit| exit.to_string());
    match (reply.outcome, ended) {
        (WaitOutcome::Reached, Some(exit)) => Ok(context.printer.line(exit)?),
        (WaitOutcome::Reached, None) => Ok(reply.line.map_or(Ok(()), |line| context.printer.line(line))?),
        (WaitOutcome::Exited, exit) => Err(CommandError::failed(format!(
            "it ended first ({})",
            exit.unwrap_or_else(|| "unknown".to_owned())
        ))),
        (WaitOutcome::TimedOut, _) => {
            Err(CommandError::failed("the time was up").hint("--timeout gives it longer"))
        }
    }
}

fn millis(seconds: f64) -> u64 {
    Duration::try_from_secs_f64(seconds.max(0.0))
        .map_or(u64::MAX, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
