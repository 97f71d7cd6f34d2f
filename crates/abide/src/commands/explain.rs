//! `abide explain`

use abide_engine::start::ISOLATION;
use abide_model::{Instance, Safe};

use crate::context::Context;
use crate::error::{CommandError, Outcome};

const EXAMPLES: &str = "\
Examples:
  abide explain k7p9     why it has the status it has, and how it got there";

/// Say why an instance is what it is
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID or a name
    target: String,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let id = super::find(&args.target, context)?;
    let instance = context.store.read(id).map_err(CommandError::failed)?;
    for line in explanation(&instance) {
        context.printer.line(line)?;
    }
    Ok(())
}

pub fn explanation(instance: &Instance) -> Vec<String> {
    let standing = &instance.status;
    let mut lines = vec![
        format!("{} is {} since {}", instance.id.display_name(), standing.status, standing.since),
        format!("  because {}", Safe(&standing.because)),
        format!(
            "  launched from {}, role {}, place {}",
            instance.scope.dir.display(),
            instance.role,
            instance.recipe.place
        ),
        format!("  started {} times", instance.generation),
    ];
    let isolation = instance.extra.get(ISOLATION).and_then(|text| text.as_str());
    lines.extend(isolation.map(|text| format!("  {}", Safe(text))));
    lines.push("history:".to_owned());
    lines.extend(instance.history.iter().map(|c| format!("  {}  {:30}  {}", c.at, c.to, c.because)));
    lines
}
