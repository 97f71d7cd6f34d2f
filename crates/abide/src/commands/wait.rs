//! `abide wait`

use std::time::Duration;

use abide_capsule::protocol::{Until, Wait, WaitOutcome};
use abide_engine::live;

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::session_target;

const EXAMPLES: &str = "\
Examples:
  abide wait k7p9 --idle                    until it has been quiet for two seconds
  abide wait k7p9 --idle --quiet 10         for ten
  abide wait k7p9 --exit --timeout 3600     until it ends, an hour at most
  abide wait k7p9 --text 'tests passed'     until that is on its screen

Exits with 0 when it has happened, with 1 when the time was up or the session ended first.";

/// Wait until a session is quiet, has ended, or shows a text
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
#[command(group(clap::ArgGroup::new("until").required(true).args(["idle", "exit", "text"])))]
pub struct Args {
    /// ID, ID/SESSION or a name
    target: String,
    /// Until it says nothing for a while
    #[arg(long)]
    idle: bool,
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
    let (unit, session) = session_target(&args.target, context)?;
    let until = match args.text {
        Some(pattern) => Until::Text { pattern },
        None if args.exit => Until::Exit,
        None => Until::Idle { quiet_ms: millis(args.quiet) },
    };
    let timeout_ms = args.timeout.map(millis);
    // The capsule keeps the time; we only have to outlast it.
    let patience = timeout_ms.map_or(Duration::MAX, |ms| Duration::from_millis(ms) + live::PATIENCE);
    let mut capsule = live::connect(&unit).map_err(CommandError::failed)?;
    let reply = capsule.call(&Wait { session, until, timeout_ms }, patience).map_err(CommandError::failed)?;
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
