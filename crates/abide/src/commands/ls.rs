//! `abide ls`

use std::io::IsTerminal;
use std::mem::ManuallyDrop;

use abide_config::Name;
use abide_engine::EngineError;
use abide_engine::end::prune::Within;
use abide_engine::list::{self, InstanceList, InstanceRow, SessionRow};
use abide_engine::reconcile::{SettledElsewhere, reconcile_beside};
use abide_engine::running::protection::Judge;
use abide_model::session::AstrayReason;
use abide_model::time::human;
use abide_model::{Choice, Doing, InstanceState, Liveness, Place, Safe, Timestamp};
use abide_sys::clock;
use abide_sys::pieces::{QUICK, in_pieces};
use clap::CommandFactory;

use crate::cli::Cli;
use crate::context::Context;
use crate::error::VerbResult;
use crate::print::{Table, TableCell, TableTone};

const EXAMPLES: &str = "\
Examples:
  abide ls             everything; the same as `abide` alone
  abide ls .           instances launched in this directory or below
  abide ls shop        instances of the workspace `shop`
  abide ls --json      for programs; docs/json.md describes the format";

// What thousands of rows are made from takes long to free piece by piece, and the process is about to end: it is never
// dropped here.

/// List instances and their sessions
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Only this workspace, or this directory (`.`, `./api`, `/srv/api`) and everything below it
    #[arg(value_name = "SCOPE")]
    within: Option<String>,
    /// The same, as a flag
    #[arg(long, value_name = "SCOPE", conflicts_with = "within")]
    scope: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let within = args.within.or(args.scope).map(|scope| super::within(&scope)).transpose()?;
    let listing = ManuallyDrop::new(listing(within.as_ref(), context)?);
    if args.json {
        return context.printer.json(&*listing);
    }
    if is_empty(&listing) && within.is_some() {
        return context.printer.line("No instances there. `abide ls` lists all.");
    }
    show(&listing, context)
}

/// What `abide` without a verb shows: the instances, and to a person what can be done with them, or with abide at all.
pub fn overview(context: &mut Context) -> VerbResult {
    let listing = listing(None, context)?;
    if !std::io::stdout().is_terminal() {
        return show(&listing, context);
    }
    if is_empty(&listing) {
        return Ok(Cli::command().print_help()?);
    }
    show(&listing, context)?;
    let help = "`abide hardline ID` attaches, `abide load` starts another, `abide --help` lists all commands";
    context.printer.toned_line(TableTone::Faint, help)
}

fn show(listing: &InstanceList, context: &Context) -> VerbResult {
    if is_empty(listing) {
        return context.printer.line("No instances yet. `abide load` starts an agent.");
    }
    if !listing.instances.is_empty() || !listing.damaged.is_empty() {
        context.printer.table(&ManuallyDrop::new(table(listing)))?;
    }
    for row in &listing.instances {
        if let Some(exposed) = &row.exposed {
            context.printer.toned_line(TableTone::Notice, format!("{}: {exposed}", row.id))?;
        }
        if let Some(obstacle) = &row.obstacle {
            let (id, obstacle) = (&row.id, Safe(obstacle));
            let line =
                format!("{id} is still there: {obstacle}; `abide eject {id} --keep` cancels the removal");
            context.printer.toned_line(TableTone::Bad, line)?;
        }
    }
    for note in notes(listing) {
        context.printer.toned_line(TableTone::Notice, note)?;
    }
    Ok(())
}

/// What is not as it seems, and what to do about it.
fn notes(listing: &InstanceList) -> Vec<String> {
    let unknown = listing.instances.iter().filter(|row| row.liveness == Some(Liveness::Unknown));
    let unknown = unknown.filter_map(|row| {
        let why = row.liveness_because.clone().unwrap_or_default();
        Some(EngineError::LivenessUnknown { id: row.id.parse().ok()?, why }.to_string())
    });
    let orphaned = listing.orphaned.iter().map(|one| {
        let (id, pid, programs) = (&one.id, one.pid, one.programs.join(", "));
        format!(
            "ab-{id} still runs, but its directory is gone (process {pid}: {programs}); `abide prune` ends it"
        )
    });
    unknown.chain(orphaned).collect()
}

/// Everything there is, as it is now, or only what is `within`. A damaged one may belong anywhere, so it is always shown.
pub fn listing(within: Option<&Within>, context: &Context) -> VerbResult<InstanceList> {
    let entries = reconcile_beside(&context.store, &context.config, SettledElsewhere::Leave);
    let mut entries = ManuallyDrop::new(entries?);
    if entries.is_empty() {
        context.store.check_home()?;
    }
    if let Some(within) = within {
        entries.retain(|entry| entry.sound().is_none_or(|instance| within.holds(instance)));
    }
    let mut listing = list::listing(&entries);
    list::add_live(&mut listing, &context.store);
    list::add_leftovers(&mut listing, &context.store);
    let mode = context.config.load().map(|settings| settings.unit).unwrap_or_default();
    list::add_exposure(&mut listing, &context.store, &Judge::here(mode));
    Ok(listing)
}

fn is_empty(listing: &InstanceList) -> bool {
    listing.instances.is_empty() && listing.damaged.is_empty() && listing.orphaned.is_empty()
}

fn table(listing: &InstanceList) -> Table {
    let now = clock::now();
    // Most operators have one role and one place, and then they say nothing.
    let roles = listing.instances.iter().any(|row| row.role != Name::default_role().as_str());
    let places = listing.instances.iter().any(|row| row.place != Place::Host);
    let header = ["ID", "NAME", "STATUS", "SINCE", "ROLE", "PLACE", "SESSIONS", "SCOPE"];
    let shown = |column: &&str| match *column {
        "ROLE" => roles,
        "PLACE" => places,
        _ => true,
    };
    let mut table = Table::new(&header.into_iter().filter(|column| shown(column)).collect::<Vec<_>>());
    let mut add = |cells: [TableCell; 8]| {
        let cells = header.into_iter().zip(cells).filter(|(column, _)| shown(column));
        table.row(cells.map(|(_, cell)| cell));
    };
    let cells_of = |rows: &[InstanceRow]| rows.iter().map(|row| cells(row, now)).collect::<Vec<_>>();
    in_pieces(&listing.instances, QUICK, cells_of).into_iter().flatten().for_each(&mut add);
    for damaged in &listing.damaged {
        let empty = || TableCell::from(("", TableTone::Plain));
        add([
            (&damaged.name, TableTone::Strong).into(),
            empty(),
            ("damaged", TableTone::Bad).into(),
            empty(),
            empty(),
            empty(),
            empty(),
            (&damaged.reason, TableTone::Plain).into(),
        ]);
    }
    table
}

fn cells(row: &InstanceRow, now: Timestamp) -> [TableCell; 8] {
    [
        (&row.id, TableTone::Strong).into(),
        (row.name.as_deref().unwrap_or_default(), TableTone::Plain).into(),
        (status(row), tone(row.state)).into(),
        (human(row.since.age(now)), TableTone::Faint).into(),
        (&row.role, TableTone::Plain).into(),
        (row.place.as_str(), TableTone::Plain).into(),
        sessions(row, now),
        (row.workspace.as_ref().unwrap_or(&row.dir), TableTone::Plain).into(),
    ]
}

fn status(row: &InstanceRow) -> String {
    let alive = match row.liveness {
        Some(Liveness::Dead) => Some("not running".to_owned()),
        Some(Liveness::Unknown) => Some("unknown".to_owned()),
        Some(Liveness::Alive) | None => None,
    };
    let left = match row.leftovers.len() {
        0 => None,
        1 => Some("a process left".to_owned()),
        n => Some(format!("{n} processes left")),
    };
    let details: Vec<String> = row.reason.iter().cloned().chain(alive).chain(left).collect();
    if details.is_empty() { row.state.to_string() } else { format!("{} ({})", row.state, details.join("; ")) }
}

fn tone(state: InstanceState) -> TableTone {
    match state {
        InstanceState::Active => TableTone::Good,
        InstanceState::Starting | InstanceState::Restorable => TableTone::Notice,
        InstanceState::Ending | InstanceState::Damaged => TableTone::Faint,
    }
}

fn sessions(row: &InstanceRow, now: Timestamp) -> TableCell {
    // Where nothing runs, that they have ended needs no word.
    let ended =
        |session: &SessionRow| session.exit.as_ref().filter(|_| row.state == InstanceState::Active).cloned();
    let described = |session: &SessionRow| match ended(session) {
        Some(exit) => format!("{} ({exit})", name(session)),
        None => described(session, now),
    };
    TableCell::list(row.sessions.iter().map(described))
}

fn name(session: &SessionRow) -> &str {
    &session.name
}

/// The longest question or error that a list shows.
const MAX_ABOUT: usize = 60;

/// What the operator should know of a session beside what it is doing: what it asks, what went wrong, what was left open.
fn about(session: &SessionRow) -> Option<String> {
    let asks = session.question.clone().filter(|_| session.activity == Some(Doing::NeedsInput));
    let failed = session.activity_because.clone().filter(|_| session.activity == Some(Doing::Failed));
    let left = session.interruption.map(|cut| match &session.interruption_detail {
        Some(detail) => format!("{}: {detail}", cut.meaning()),
        None => cut.meaning().to_owned(),
    });
    let astray = session.astray.as_ref().map(|astray| match astray.reason {
        AstrayReason::Held => "in another session's conversation; `abide explain`".to_owned(),
        AstrayReason::CameUpElsewhere => "not in the conversation it resumed; `abide explain`".to_owned(),
    });
    let about = asks.or(failed).or(astray).or(left)?;
    let short: String = about.chars().take(MAX_ABOUT).collect();
    Some(if short == about { about } else { format!("{short}…") })
}

/// A session and what it is doing, where that is known.
fn described(session: &SessionRow, now: Timestamp) -> String {
    let name = name(session);
    let doing = match (session.activity, session.activity_since) {
        (None | Some(Doing::Unknown), _) | (_, None) => None,
        (Some(doing), Some(since)) => {
            Some(format!("{} {}", doing.as_str().replace('_', " "), human(since.age(now))))
        }
    };
    let about = about(session);
    match (doing, about) {
        (None, None) => name.to_owned(),
        (Some(doing), None) => format!("{name} ({doing})"),
        (None, Some(about)) => format!("{name} ({about})"),
        (Some(doing), Some(about)) => format!("{name} ({doing}: {about})"),
    }
}
