//! `abide hardline`

use std::fmt::Display;

use abide_capsule::client::{self, AttachEnd, AttachOptions, ClientError};
use abide_engine::target::{self, Target};
use abide_engine::{reconcile, substrate};
use abide_model::{InstanceId, Status, vars};
use abide_sys::clock;

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::{ended, refuse_stopped};

const EXAMPLES: &str = "\
Examples:
  abide hardline              the instance of this directory
  abide hardline k7p9         the instance whose id begins with k7p9
  abide hardline k7p9/s2      its session s2
  abide attach shop           by name; `attach` is the same verb
  abide hardline shop --read-only

Inside, Ctrl-B d leaves it running and Ctrl-B ? shows all keys.";

/// Attach to a running session
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID, ID/SESSION or a name; default: the instance of this directory
    target: Option<String>,
    /// Watch only: keys are ignored and the size of this terminal does not count
    #[arg(long)]
    read_only: bool,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let found = match args.target.as_ref().and_then(|word| target::find(&context.store, word).ok()) {
        // Somebody waits for their screen; what else there is to settle can wait for the next look.
        Some(found) if runs(&found, context) => found,
        _ => {
            reconcile::reconcile(&context.store, &context.config).map_err(CommandError::failed)?;
            let found = match &args.target {
                Some(word) => target::find(&context.store, word),
                None => target::here(&context.store, &std::env::current_dir()?),
            };
            found.map_err(CommandError::failed)?
        }
    };
    refuse_stopped(&found.instance)?;
    attach(found.instance.id, found.session, args.read_only, context)
}

fn runs(found: &Target, context: &Context) -> bool {
    let active = found.instance.status.status == Status::Active;
    active && substrate::of(&context.store, found.instance.id).lives() == Some(true)
}

/// Refuses, with what to do instead, where nobody sits at a terminal that can be attached.
pub fn need_terminal(instead: impl Display) -> Outcome {
    let why = match client::check() {
        Ok(()) => return Ok(()),
        Err(ClientError::DumbTerminal) => "this terminal can not draw (TERM is `dumb`, or not set)",
        Err(_) => "there is no terminal to attach to",
    };
    Err(CommandError::usage(why).hint(instead))
}

/// Attaches this terminal to an instance until the operator leaves or it ends.
pub fn attach(
    id: InstanceId,
    session: Option<abide_model::SessionId>,
    read_only: bool,
    context: &Context,
) -> Outcome {
    let outer = std::env::var_os(vars::ABIDE_INSTANCE);
    if outer.as_ref().is_some_and(|outer| outer == id.as_str()) {
        // It would show itself in itself, ever smaller.
        return Err(CommandError::failed(format!("this is a session of {} already", id.display_name()))
            .hint("the keys for the next and the previous tab show its other sessions"));
    }
    need_terminal(format!("`abide peek {id}` prints its screen, `abide send {id}` types into it"))?;
    if let Some(outer) = outer {
        tracing::info!(%id, outer = %outer.to_string_lossy(), "attaching from inside another session");
    }
    let prefix = context.config.load().map_or(0, |settings| settings.prefix.byte());
    let options = AttachOptions { session, read_only, prefix };
    let end = substrate::of(&context.store, id).attach(&options).map_err(CommandError::failed)?;
    note_visit(id, context);
    match end {
        AttachEnd::Lost(message) => Err(CommandError::failed(message).hint("`abide ls` shows what is left")),
        // A spectator decides nothing.
        end if read_only => {
            Ok(context.printer.line(format!("[{}: {}]", id.display_name(), end.message()))?)
        }
        end => ended::tell(id, &end, context),
    }
}

/// Remembers that somebody looked. An instance that has just ended has nothing to remember it in.
fn note_visit(id: InstanceId, context: &Context) {
    let _ = context.store.update(id, |instance| -> Result<(), abide_store::Error> {
        for session in &mut instance.sessions {
            session.attached = Some(clock::now());
        }
        Ok(())
    });
}
