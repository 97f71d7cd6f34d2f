//! `abide upgrade`

use abide_engine::running::protection;
use abide_engine::{reconcile, substrate};
use abide_model::{InstanceId, Status};
use abide_store::StoreEntry;

use crate::context::Context;
use crate::error::{CommandError, VerbResult};

const EXAMPLES: &str = "\
Examples:
  abide upgrade --all      every running instance
  abide upgrade k7p9       only this one

Sessions are not interrupted. An instance that cannot be upgraded keeps running as it is. An instance that a logout would \
end is moved into a systemd unit if that protects it.";

/// Switch running instances to this version of abide
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID or name
    #[arg(required_unless_present = "all")]
    target: Option<String>,
    /// Upgrade every running instance
    #[arg(long, conflicts_with = "target")]
    all: bool,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let entries = reconcile::reconcile(&context.store, &context.config)?;
    let ids = match args.target {
        Some(word) => vec![super::running(&word, context)?.instance.id],
        None => active(entries),
    };
    let mode = context.config.load().map(|settings| settings.unit).unwrap_or_default();
    let mut refused = 0;
    for id in ids {
        match protection::protect(&context.store, id, mode) {
            Ok(None) => {}
            Ok(Some(unit)) => context.printer.line(format!("{} was moved into {unit}", id.display_name()))?,
            Err(why) => context.warn(&format!("{} was not moved into a unit: {why}", id.display_name())),
        }
        match upgrade(id, context) {
            Ok(true) => context.printer.line(format!(
                "{} now runs on {}",
                id.display_name(),
                env!("CARGO_PKG_VERSION")
            ))?,
            Ok(false) => {
                let line = format!("{} runs in tmux; there is nothing to upgrade", id.display_name());
                context.printer.line(line)?;
            }
            Err(why) => {
                refused += 1;
                context
                    .printer
                    .line(format!("{} keeps running on its old version: {why}", id.display_name()))?;
            }
        }
    }
    match refused {
        0 => Ok(()),
        n => Err(CommandError::failed(format!("{n} could not be upgraded"))
            .hint("their sessions were not affected")),
    }
}

fn active(entries: Vec<StoreEntry>) -> Vec<InstanceId> {
    let running = entries.into_iter().filter_map(|entry| match entry {
        StoreEntry::Sound(instance) if instance.status.status == Status::Active => Some(instance.id),
        _ => None,
    });
    running.collect()
}

fn upgrade(id: InstanceId, context: &Context) -> Result<bool, String> {
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let upgraded = substrate::of(&context.store, id).upgrade(exe).map_err(|e| e.to_string())?;
    tracing::info!(%id, upgraded, "upgrade");
    Ok(upgraded)
}
