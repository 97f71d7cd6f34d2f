//! `abide conversations`

use abide_engine::conversation::list::{self, ConversationClaim, ConversationList, ConversationRow};
use abide_model::time::human;
use abide_sys::clock;

use super::load;
use crate::context::Context;
use crate::error::VerbResult;
use crate::print::{Table, TableTone};

const EXAMPLES: &str = "\
Examples:
  abide conversations             conversations in this directory
  abide conversations --all       conversations in every directory
  abide load --adopt 0199a7c2     continue one that is free
  abide load --fork 0199a7c2      continue a copy, if the agent supports it";

/// List the conversations that agents keep on disk
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// List every directory
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let dir = super::here()?;
    let wanted = (!args.all).then_some(dir.as_path());
    let listing = load::in_launch_context(&dir, context, |ctx| list::list(ctx, wanted))?;
    let listing = listing?;
    if args.json {
        return context.printer.json(&listing);
    }
    if listing.conversations.is_empty() {
        return context.printer.line("No conversations in this directory.");
    }
    context.printer.table(&table(&listing, args.all))
}

fn table(listing: &ConversationList, with_dir: bool) -> Table {
    let now = clock::now();
    let about = if with_dir { "DIRECTORY" } else { "ABOUT" };
    let mut table = Table::new(&["AGENT", "ID", "LAST", "SESSION", about]);
    for row in &listing.conversations {
        let (session, tone) = holder(row);
        let about = if with_dir { &row.dir } else { row.title.as_ref().unwrap_or(&row.id) };
        table.row([
            (row.agent.clone(), TableTone::Plain),
            (row.id.clone(), TableTone::Strong),
            (human(row.last.age(now)), TableTone::Faint),
            (session, tone),
            (about.clone(), TableTone::Plain),
        ]);
    }
    table
}

/// What is in a conversation, or was.
fn holder(row: &ConversationRow) -> (String, TableTone) {
    let (mut text, tone) = match (row.claim, &row.session, row.process) {
        (ConversationClaim::Held, Some(session), _) => (session.clone(), TableTone::Good),
        (ConversationClaim::Held, None, Some(pid)) => (format!("process {pid}"), TableTone::Good),
        (ConversationClaim::Left, Some(session), _) => (format!("was {session}"), TableTone::Faint),
        _ => ("free".to_owned(), TableTone::Plain),
    };
    for session in &row.astray {
        text = format!("{text}, also {session}");
    }
    (text, tone)
}
