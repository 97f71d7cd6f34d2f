//! What is said, asked and done before the resume of an instance whose directory is not there.

use std::path::Path;

use abide_engine::start::moved::{self, Whereabouts};
use abide_model::{Instance, Status};
use abide_tui::Ask;
use abide_tui::screens::{MissingDirectoryAnswer, Subject, missing_directory};

use super::{eject, explain};
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

/// The instance as it can be resumed, bound to `dir` if that is given; `None` if the operator wants something else, which
/// is done.
pub fn seen_to(instance: Instance, dir: Option<&Path>, context: &Context) -> VerbResult<Option<Instance>> {
    if let Some(dir) = dir {
        return moved_to(&instance, dir, context).map(Some);
    }
    let kept = matches!(instance.status.status, Status::Restorable(_));
    let missing = kept.then(|| moved::missing(&context.store, &instance)).flatten();
    let Some(missing) = missing else { return Ok(Some(instance)) };
    let advice = missing.advice();
    let ask = Ask::here();
    if !ask.can_ask() {
        let error = CommandError::failed(&missing);
        return Err(advice.iter().fold(error, |error, advice| error.hint(advice)));
    }
    let found = match &missing.whereabouts {
        Whereabouts::At(now) => Some(now.as_path()),
        _ => None,
    };
    let subject = Subject::from(&instance);
    let target = instance.id.to_string();
    let answer = missing_directory(&ask, &subject, &missing.to_string(), &advice[0], found);
    match (answer, found) {
        (MissingDirectoryAnswer::ResumeThere, Some(now)) => {
            return moved_to(&instance, now, context).map(Some);
        }
        (MissingDirectoryAnswer::Explain, _) => explain::run(explain::Args { target, json: false }, context)?,
        (MissingDirectoryAnswer::Eject, _) => {
            let args = eject::Args { target, keep: false, clean: false, spare_daemons: false };
            eject::run(args, context)?;
        }
        _ => context.printer.line("Nothing was started.")?,
    }
    Ok(None)
}

fn moved_to(instance: &Instance, dir: &Path, context: &Context) -> VerbResult<Instance> {
    let told = |line: &str| context.warn(line);
    moved::relocate(&context.store, instance.id, dir, &told).map_err(CommandError::failed)
}
