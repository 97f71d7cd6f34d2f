//! `abide ls`

use std::io::IsTerminal;

use abide_engine::list::{self, Listing, Row, SessionRow};
use abide_engine::reconcile;
use abide_model::time::human;
use abide_model::{Choice, Doing, Timestamp};
use abide_sys::clock;
use clap::CommandFactory;

use crate::cli::Cli;
use crate::context::Context;
use crate::error::{CommandError, Outcome};
use crate::print::{Cell, Table, Tone};

const EXAMPLES: &str = "\
Examples:
  abide ls             everything there is; `abide` alone does the same
  abide ls --json      the same for a program; docs/json.md describes the shape";

/// List instances and their sessions
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let listing = listing(context)?;
    if args.json {
        return Ok(context.printer.json(&listing)?);
    }
    show(&listing, context)
}

/// What `abide` without a verb shows: the instances, and to a person what can be done with them, or with abide at all.
pub fn overview(context: &mut Context) -> Outcome {
    let listing = listing(context)?;
    if !std::io::stdout().is_terminal() {
        return show(&listing, context);
    }
    if is_empty(&listing) {
        return Ok(Cli::command().print_help()?);
    }
    show(&listing, context)?;
    let help = "`abide hardline ID` attaches, `abide load` starts another, `abide --help` names every verb";
    Ok(context.printer.toned_line(Tone::Faint, help)?)
}

fn show(listing: &Listing, context: &Context) -> Outcome {
    if is_empty(listing) {
        return Ok(context.printer.line("Nothing here yet. `abide load` starts an agent.")?);
    }
    Ok(context.printer.table(&table(listing))?)
}

/// Everything there is, as it is now.
pub fn listing(context: &Context) -> Outcome<Listing> {
    let entries = reconcile::reconcile(&context.store, &context.config).map_err(CommandError::failed)?;
    let mut listing = list::listing(entries);
    list::add_live(&mut listing, &context.store);
    Ok(listing)
}

fn is_empty(listing: &Listing) -> bool {
    listing.instances.is_empty() && listing.damaged.is_empty()
}

fn table(listing: &Listing) -> Table {
    let now = clock::now();
    let mut table = Table::new(&["ID", "NAME", "STATUS", "SINCE", "SESSIONS", "SCOPE"]);
    for row in &listing.instances {
        table.row([
            (&row.id, Tone::Strong).into(),
            (row.name.as_deref().unwrap_or_default(), Tone::Plain).into(),
            (status(row), tone(&row.state)).into(),
            (human(row.since.age(now)), Tone::Faint).into(),
            sessions(row, now),
            (row.workspace.as_ref().unwrap_or(&row.dir), Tone::Plain).into(),
        ]);
    }
    for damaged in &listing.damaged {
        table.row([
            (damaged.name.clone(), Tone::Strong),
            (String::new(), Tone::Plain),
            ("damaged".to_owned(), Tone::Bad),
            (String::new(), Tone::Plain),
            (String::new(), Tone::Plain),
            (damaged.reason.clone(), Tone::Plain),
        ]);
    }
    table
}

fn status(row: &Row) -> String {
    match &row.reason {
        Some(reason) => format!("{} ({reason})", row.state),
        None => row.state.clone(),
    }
}

fn tone(state: &str) -> Tone {
    match state {
        "active" => Tone::Good,
        "starting" | "restorable" => Tone::Notice,
        _ => Tone::Faint,
    }
}

fn sessions(row: &Row, now: Timestamp) -> Cell {
    // Where nothing runs, that they have ended needs no word.
    let ended = |session: &SessionRow| session.exit.as_ref().filter(|_| row.state == "active").cloned();
    let described = |session: &SessionRow| match ended(session) {
        Some(exit) => format!("{} ({exit})", name(session)),
        None => described(session, now),
    };
    Cell::list(row.sessions.iter().map(described))
}

fn name(session: &SessionRow) -> &str {
    session.label.as_deref().unwrap_or(&session.name)
}

/// A session and what it is doing, where that is known.
fn described(session: &SessionRow, now: Timestamp) -> String {
    let name = name(session);
    match (session.activity, session.activity_since) {
        (None | Some(Doing::Unknown), _) | (_, None) => name.to_owned(),
        (Some(doing), Some(since)) => {
            format!("{name} ({} {})", doing.as_str().replace('_', " "), human(since.age(now)))
        }
    }
}
