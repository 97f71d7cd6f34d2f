//! `abide send`

use std::time::Duration;

use abide_engine::substrate::Substrate;
use abide_engine::target;
use abide_model::{Session, SessionId};
use abide_term::input::keys;
use abide_wire::protocol::{Input, Until, WaitOutcome};

use super::{session_target, wait};
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

const EXAMPLES: &str = "\
Examples:
  abide send k7p9 'run the tests'               type this, then press Enter
  abide send k7p9 --no-enter 'half a line'
  abide send k7p9/s2 --key C-c                  press a key
  abide send k7p9 --key Up --key Enter";

/// Type into a session
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID, ID/SESSION or name
    target: String,
    /// The text to type
    #[arg(required_unless_present = "key", allow_hyphen_values = true)]
    text: Option<String>,
    /// A key to press after the text: Enter, Tab, Escape, Up, C-c, …
    #[arg(long, value_name = "KEY")]
    key: Vec<String>,
    /// Do not press Enter after the text
    #[arg(long)]
    no_enter: bool,
    /// Seconds to wait for an agent that is still starting; 0 types at once
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    within: f64,
}

/// Some agents take an Enter that comes with a paste for part of it, so that what was pasted is not sent off unread. It is
/// pressed when the agent has shown the text, and was quiet for this long.
const AFTER_A_PASTE: Duration = Duration::from_millis(150);

/// How long an agent may take to show a text before Enter is pressed all the same: not everything that is typed is shown.
const TO_SHOW_IT: Duration = Duration::from_secs(3);

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let mut keys = args.key;
    if args.text.is_some() && keys.is_empty() && !args.no_enter {
        keys.push("enter".to_owned());
    }
    // Before anything is typed: half of what was asked for is worse than nothing.
    if let Some(wrong) = keys.iter().find(|key| keys::key_bytes(key, false).is_none()) {
        return Err(CommandError::usage(format!("`{wrong}` is not the name of a key"))
            .hint("Enter, Tab, Escape, Up, PageDown, F5, C-c, M-x …"));
    }
    let (held, session) = session_target(&args.target, context)?;
    if args.within > 0.0 {
        await_ready(&*held, &session, args.within)?;
    }
    let mut input: Vec<Input> = args.text.into_iter().map(Input::Text).collect();
    if !input.is_empty() && !keys.is_empty() && runs_an_agent(&args.target, context) {
        held.send(&session, std::mem::take(&mut input))?;
        let until = Until::Echoed { quiet_ms: wait::millis(AFTER_A_PASTE.as_secs_f64()) };
        let _ = held.wait(&session, until, Some(wait::millis(TO_SHOW_IT.as_secs_f64())));
        std::thread::sleep(AFTER_A_PASTE);
    }
    input.extend(keys.into_iter().map(Input::Key));
    held.send(&session, input).map_err(CommandError::failed)
}

/// Waits until the session takes input. What is typed before that would be lost.
fn await_ready(held: &dyn Substrate, session: &SessionId, within: f64) -> VerbResult {
    let reply = held.wait(session, Until::Ready, Some(wait::millis(within)))?;
    match reply.outcome {
        WaitOutcome::Reached => Ok(()),
        WaitOutcome::Exited => Err(CommandError::failed("it ended before it accepted any input")),
        WaitOutcome::TimedOut => {
            Err(CommandError::failed("it is still starting and does not accept input yet; nothing was typed")
                .hint("--within gives it longer, --within 0 types all the same"))
        }
    }
}

fn runs_an_agent(word: &str, context: &Context) -> bool {
    let Ok(found) = target::find(&context.store, word) else { return false };
    let meant = |session: &&Session| found.session.is_none_or(|id| id == session.id);
    found.instance.sessions.iter().filter(meant).any(|session| session.agent.is_some())
}
