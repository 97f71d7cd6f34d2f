//! What the operator sees and is asked when an instance ends under their eyes.

use std::time::{Duration, Instant};

use abide_client::AttachEnd;
use abide_engine::conversation::way_back;
use abide_engine::end::finish::{self, FinishOutcome};
use abide_engine::end::trash;
use abide_engine::running::daemons;
use abide_engine::{EngineError, reconcile, trees};
use abide_model::decide::ExitChoice;
use abide_model::status::{Ending, Kept};
use abide_model::{Instance, InstanceId, Safe, Status};
use abide_store::ReadError;
use abide_tui::Ask;
use abide_tui::screens::{Subject, session_ended};

use super::come_back;
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

/// How long a keeper may take to end, once its last session has.
const LAST_STEPS: Duration = Duration::from_secs(3);

/// How long another process may take to clean up.
const CLEANING_UP: Duration = Duration::from_secs(120);

/// Says how the attachment ended, and asks about work that is at risk if the instance has ended with it.
///
/// By then it is kept: closing the terminal instead of answering loses nothing.
pub fn tell(id: InstanceId, end: &AttachEnd, context: &Context) -> VerbResult {
    let said = |more: &str| context.printer.line(format!("[{}: {}{more}]", id.display_name(), end.message()));
    if !matches!(end, AttachEnd::SessionEnded { .. }) {
        return said("");
    }
    let kept = settled(id, context)?;
    let last = kept.clone().or_else(|| trash::instance(&context.store, id));
    for daemon in last.iter().flat_map(daemons::ended_as_well) {
        context.printer.line(format!("ended as well: {}", Safe(daemon)))?;
    }
    match kept {
        Some(instance) => match instance.status.status {
            Status::Restorable(Kept::Dirty | Kept::Unpushed | Kept::Unknown) => ask(&instance, context),
            Status::Restorable(_) => said(&format!("; it is kept, `abide resume {id}` brings it back")),
            _ => said(""),
        },
        None => {
            said("; nothing was at risk, and it is cleaned up")?;
            match way_back::way_back(&context.store, id) {
                Some(back) => context.printer.line(back.to_string()),
                None => Ok(()),
            }
        }
    }
}

/// The instance as the end left it; `None` if it is gone. The keeper's own clean-up may be quicker than we are.
pub fn settled(id: InstanceId, context: &Context) -> VerbResult<Option<Instance>> {
    let read = || match context.store.read(id) {
        Ok(instance) => Ok(Some(instance)),
        Err(ReadError::NotFound(_)) => Ok(None),
        Err(error) => Err(CommandError::failed(error)),
    };
    let (deadline, patience) = (Instant::now() + LAST_STEPS, Instant::now() + CLEANING_UP);
    while let Some(instance) = read()? {
        let policy = reconcile::policy(&context.config, &instance);
        match finish::finish(&context.store, id, policy) {
            Ok(FinishOutcome::Removed { .. }) => return Ok(None),
            // We hear of the last session's end a little before its keeper has written it down.
            Ok(FinishOutcome::Running) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5))
            }
            Ok(_) => return read(),
            // The process that holds it finishes the removal; only git can take long then, and its calls have time limits.
            Err(EngineError::Store(abide_store::StoreError::Locked { .. })) if Instant::now() < patience => {}
            Err(error) => match read()? {
                Some(_) => return Err(CommandError::failed(error)),
                None => return Ok(None),
            },
        }
    }
    Ok(None)
}

fn ask(instance: &Instance, context: &Context) -> VerbResult {
    let (id, name) = (instance.id, instance.id.display_name());
    let evidence = trees::evidence(&context.store, instance);
    let days = context.config.load().map_or(14, |settings| settings.trash.keep_days);
    let choice = session_ended(&Ask::here(), &Subject::from(instance), &evidence, days);
    tracing::info!(%id, ?choice, "asked how to end it");
    match choice {
        ExitChoice::Keep | ExitChoice::Unanswered => {
            if choice == ExitChoice::Keep {
                finish::keep(&context.store, instance)?;
            }
            context.printer.line(format!("{name} is kept; `abide resume {id}` brings it back"))
        }
        ExitChoice::Discard => {
            let because = "the operator reviewed the work and discarded it";
            let finished = finish::discard(&context.store, instance, Ending::Discard, because)?;
            tell_left(&finished, context);
            context.printer.line(gone(id))
        }
        ExitChoice::Return => come_back::start_again(instance, None, context),
    }
}

/// Says what a removal left behind elsewhere.
pub fn tell_left(finished: &FinishOutcome, context: &Context) {
    if let FinishOutcome::Removed { left, .. } = finished {
        left.iter().for_each(|left| context.warn(left));
    }
}

/// The message that an instance was removed.
pub fn gone(id: InstanceId) -> String {
    format!("{} is in the trash; `abide trash restore {id}` brings it back", id.display_name())
}
