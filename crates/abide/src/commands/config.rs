//! `abide config`

use abide_config::{Origin, SettingEntry};
use abide_engine::substrate;
use abide_model::{InstanceId, Status};
use abide_store::StoreEntry as StoredEntry;
use serde_json::json;

use crate::context::Context;
use crate::error::{CommandError, VerbResult};
use crate::print::{Table, TableTone};

pub const EXAMPLES: &str = "\
Examples:
  abide config list                            every setting with its value
  abide config get trash.keep_days
  abide config set policy keep
  abide config set agents.claude.args '[\"--model\", \"opus\"]'
  abide config unset policy                    back to the default
  abide config path                            where the file is
  abide config reference                       what every setting means";

#[derive(Debug, clap::Subcommand)]
pub enum ConfigVerb {
    /// List every setting with its value and where that comes from
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the value of a setting
    Get {
        /// The setting, e.g. `trash.keep_days`
        key: String,
    },
    /// Change a setting; comments and order in the file are preserved
    Set {
        /// The setting
        key: String,
        /// Its new value
        value: String,
    },
    /// Remove a setting from the file
    Unset {
        /// The setting
        key: String,
    },
    /// Print the path of the settings file
    Path,
    /// Describe every setting of every file
    Reference,
}

pub fn run(verb: ConfigVerb, context: &mut Context) -> VerbResult {
    let config = &context.config;
    match verb {
        ConfigVerb::List { json } => list(json, context),
        ConfigVerb::Get { key } => {
            let entry = config.get(&key)?;
            match entry.value {
                Some(value) => context.printer.line(value),
                None => Err(CommandError::failed(format!("{key} is not set and has no default"))
                    .hint(format!("`abide config set {key} VALUE` sets it"))),
            }
        }
        ConfigVerb::Set { key, value } => {
            config.set(&key, &value)?;
            tracing::info!(key = key.as_str(), "setting changed");
            tell_running(&key, context)
        }
        ConfigVerb::Unset { key } => {
            let was_set = config.unset(&key)?;
            tracing::info!(key = key.as_str(), was_set, "setting removed");
            if was_set {
                tell_running(&key, context)
            } else {
                context.printer.line(format!("{key} was not set"))
            }
        }
        ConfigVerb::Path => context.printer.line(config.settings_file().display().to_string()),
        ConfigVerb::Reference => context.printer.raw(abide_config::reference().as_bytes()),
    }
}

/// Settings that running instances take over at once, those that count for clients that attach from then on, and those
/// that count from the next start on. All others are read when they are needed.
const AT_ATTACHING: &str = "terminal.truecolor";
const LIVE: [&str; 3] = ["prefix", "status_bar", "terminal."];
const AT_START: [&str; 7] = ["scrollback", "journal", "substrate", "unit", "place", "env.", "agents."];

/// Has running instances take over a changed setting, or says when they will.
fn tell_running(key: &str, context: &Context) -> VerbResult {
    let concerns = |keys: &[&str]| {
        keys.iter().any(|known| key == *known || known.ends_with('.') && key.starts_with(known))
    };
    let entries = context.store.list()?;
    let running: Vec<InstanceId> = entries.into_iter().filter_map(active).collect();
    if running.is_empty() {
        return Ok(());
    }
    if concerns(&AT_START) {
        let line =
            "Running instances keep the old value until they are restarted (`abide stop`, `abide resume`).";
        return context.printer.line(line);
    }
    if key == AT_ATTACHING {
        return context.printer.line("It takes effect at the next `abide hardline`.");
    }
    if !concerns(&LIVE) {
        return Ok(());
    }
    let settings = context.config.load()?;
    let mut changed = 0;
    for id in running {
        match substrate::of(&context.store, id).configure(&settings) {
            Ok(changes) => changed += usize::from(changes),
            Err(why) => context.warn(&format!(
                "{} keeps the old value until it is resumed or upgraded: {why}",
                id.display_name()
            )),
        }
    }
    match changed {
        0 => Ok(()),
        1 => context.printer.line("1 running instance uses it from now on."),
        n => context.printer.line(format!("{n} running instances use it now.")),
    }
}

fn active(entry: StoredEntry) -> Option<InstanceId> {
    match entry {
        StoredEntry::Sound(instance) if instance.status.status == Status::Active => Some(instance.id),
        _ => None,
    }
}

fn list(json: bool, context: &Context) -> VerbResult {
    let entries = context.config.list()?;
    if json {
        return context.printer.json(&json!({ "version": 1, "settings": entries }));
    }
    let mut table = Table::new(&["SETTING", "FROM", "VALUE"]);
    for SettingEntry { key, value, origin } in &entries {
        let (from, tone) = match origin {
            Origin::File => ("file", TableTone::Strong),
            Origin::Default => ("default", TableTone::Faint),
        };
        let value = value.as_deref().unwrap_or("-");
        table.row([(key.as_str(), TableTone::Plain), (from, TableTone::Faint), (value, tone)]);
    }
    context.printer.table(&table)
}
