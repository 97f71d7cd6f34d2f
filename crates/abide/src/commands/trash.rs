//! `abide trash`

use abide_engine::end::{finish, trash};
use abide_engine::list::SessionRow;
use abide_engine::{EngineError, target, trees};
use abide_model::time::human;
use abide_model::{Safe, Status};
use abide_store::{ResolveError, StoreError, TrashEntry};
use abide_sys::clock;
use serde::Serialize;
use serde_json::json;

use super::explain;
use crate::context::Context;
use crate::error::{CommandError, VerbResult};
use crate::print::{Table, TableTone};

pub const EXAMPLES: &str = "\
Examples:
  abide trash list
  abide trash show k7p9
  abide trash restore k7p9        make it restorable again
  abide trash empty --dry-run     list what would be deleted
  abide trash empty --yes         do not ask";

#[derive(Debug, clap::Subcommand)]
pub enum TrashVerb {
    /// List the trash
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one entry
    Show {
        /// ID, name, or full name of the entry
        target: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Restore an instance
    Restore {
        /// ID, name, or full name of the entry
        target: String,
    },
    /// Delete entries permanently
    Empty {
        /// Only these; default: everything
        targets: Vec<String>,
        /// Only list what would be deleted
        #[arg(long)]
        dry_run: bool,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

/// A removed instance in `list --json`.
#[derive(Serialize)]
struct TrashRow {
    name: String,
    id: String,
    called: Option<String>,
    removed: abide_model::Timestamp,
    dir: Option<String>,
    reason: Option<String>,
    because: Option<String>,
    bytes: u64,
    damaged: Option<String>,
}

pub fn run(verb: TrashVerb, context: &mut Context) -> VerbResult {
    match verb {
        TrashVerb::List { json } => list(json, context),
        TrashVerb::Show { target, json } => show(&target, json, context),
        TrashVerb::Restore { target } => restore(&target, context),
        TrashVerb::Empty { targets, dry_run, yes } => empty(&targets, dry_run, yes, context),
    }
}

fn entries(context: &Context) -> VerbResult<Vec<TrashEntry>> {
    context.store.trashed().map_err(CommandError::failed)
}

fn row(entry: &TrashEntry, context: &Context) -> TrashRow {
    let instance = entry.content.as_ref();
    TrashRow {
        name: entry.name.to_string(),
        id: entry.name.id.to_string(),
        called: instance.ok().and_then(|i| i.name.clone()),
        removed: entry.name.when,
        dir: instance.ok().map(|i| i.scope.dir.display().to_string()),
        reason: instance.ok().and_then(|i| i.status.status.reason().map(str::to_owned)),
        because: instance.ok().map(|i| i.status.because.clone()),
        bytes: context.store.trash_size(&entry.name, None).unwrap_or(0),
        damaged: instance.err().map(ToString::to_string),
    }
}

fn list(json: bool, context: &Context) -> VerbResult {
    let rows: Vec<TrashRow> = entries(context)?.iter().map(|entry| row(entry, context)).collect();
    if json {
        return context.printer.json(&json!({ "version": 1, "trash": rows }));
    }
    if rows.is_empty() {
        return context.printer.line("The trash is empty.");
    }
    context.printer.table(&table(&rows))
}

fn table(rows: &[TrashRow]) -> Table {
    let mut table = Table::new(&["ID", "NAME", "AGE", "SIZE", "WHY", "SCOPE"]);
    for row in rows {
        let why = row.damaged.as_ref().or(row.because.as_ref());
        let tone = if row.damaged.is_some() { TableTone::Bad } else { TableTone::Plain };
        table.row([
            (row.id.as_str(), TableTone::Strong),
            (row.called.as_deref().unwrap_or(""), TableTone::Plain),
            (&human(row.removed.age(clock::now())), TableTone::Faint),
            (&size(row.bytes), TableTone::Plain),
            (why.map_or("", String::as_str), tone),
            (row.dir.as_deref().unwrap_or(""), TableTone::Plain),
        ]);
    }
    table
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

/// The one entry that `target` means.
fn find(target: &str, context: &Context) -> VerbResult<TrashEntry> {
    let nothing = || {
        CommandError::failed(format!("there is no `{target}` in the trash")).hint("see `abide trash list`")
    };
    let name = context.store.resolve_trashed(target).map_err(|error| match error {
        ResolveError::NotFound(_) => nothing(),
        other => CommandError::failed(other),
    })?;
    entries(context)?.into_iter().find(|entry| entry.name == name).ok_or_else(nothing)
}

fn show(target: &str, json: bool, context: &Context) -> VerbResult {
    let entry = find(target, context)?;
    let row = row(&entry, context);
    if json {
        let instance = entry.content.as_ref().ok();
        let history = instance.map(|instance| &instance.history);
        let sessions: Vec<SessionRow> =
            instance.iter().flat_map(|instance| instance.sessions.iter().map(SessionRow::from)).collect();
        let shown = json!({ "version": 1, "entry": row, "sessions": sessions, "history": history });
        return context.printer.json(&shown);
    }
    let called = row.called.map(|called| format!(", called {}", Safe(&called))).unwrap_or_default();
    context.printer.line(format!("{}{called}, removed {}, {}", row.name, row.removed, size(row.bytes)))?;
    match &entry.content {
        Ok(instance) => {
            for line in explain::explanation(instance).into_iter().chain(explain::history(instance)) {
                context.printer.line(line)?;
            }
            Ok(())
        }
        Err(damage) => context.printer.toned_line(TableTone::Bad, format!("damaged: {damage}")),
    }
}

fn restore(target: &str, context: &Context) -> VerbResult {
    let entry = match find(target, context) {
        Ok(entry) => entry,
        Err(nothing) => return take_back(target, context).unwrap_or(Err(nothing)),
    };
    let id = trash::restore(&context.store, &entry.name, &|line| context.warn(line))?;
    let faults = context.store.read(id).map(|instance| trees::faults(&context.store, &instance));
    let faults = faults.unwrap_or_default();
    faults.iter().for_each(|fault| context.warn(fault));
    let name = id.display_name();
    context.printer.line(match faults.len() {
        0 => format!("{name} is back; `abide resume {id}` starts it"),
        _ => format!("{name} is back, but git does not work in it"),
    })
}

/// Takes back the removal of an instance that is on its way to the trash and did not get there; `None` if there is none.
fn take_back(target: &str, context: &Context) -> Option<VerbResult> {
    let instance = target::find(&context.store, target).ok()?.instance;
    if !matches!(instance.status.status, Status::Ending(_)) {
        return None;
    }
    let id = instance.id;
    let kept =
        finish::take_back(&context.store, id, &|line| context.warn(line)).map_err(CommandError::failed);
    let line = format!("{} is kept; its removal is cancelled", id.display_name());
    Some(kept.and_then(|_| context.printer.line(line)))
}

fn empty(targets: &[String], dry_run: bool, yes: bool, context: &Context) -> VerbResult {
    let chosen = match targets {
        [] => entries(context)?,
        targets => targets.iter().map(|target| find(target, context)).collect::<VerbResult<_>>()?,
    };
    if chosen.is_empty() {
        return context.printer.line("The trash is empty.");
    }
    let rows: Vec<TrashRow> = chosen.iter().map(|entry| row(entry, context)).collect();
    if dry_run || !yes {
        context.printer.table(&table(&rows))?;
    }
    if dry_run {
        return Ok(());
    }
    let question = match rows.len() {
        1 => "Delete this permanently?".to_owned(),
        n => format!("Delete these {n} permanently?"),
    };
    if !yes && !context.confirm(&question, "--yes")? {
        return context.printer.line("Nothing was removed.");
    }
    let (mut removed, mut failed) = (0, 0);
    for entry in &chosen {
        match trash::purge(&context.store, &entry.name) {
            Ok(()) => {
                removed += 1;
                tracing::info!(name = %entry.name, "purged from the trash");
            }
            // Another process has restored or removed it meanwhile, which is no reason to leave the others.
            Err(EngineError::Store(StoreError::NotInTrash(_))) => {}
            Err(error) => {
                failed += 1;
                context.warn(&format!("{} is still there: {error}", entry.name));
            }
        }
    }
    context.printer.line(format!("Removed {removed}."))?;
    match failed {
        0 => Ok(()),
        n => Err(CommandError::failed(format!("{n} could not be removed")).hint("see `abide trash list`")),
    }
}
