//! `abide leave`

use std::collections::BTreeMap;

use abide_engine::list::{Listing, SessionRow};
use abide_model::leaving::{Parting, part};
use abide_model::{Doing, Timestamp};
use abide_sys::clock;
use abide_tui::Ask;
use abide_tui::screens::{Leaving, Live, leaving};

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::{ls, stop};

const EXAMPLES: &str = "\
Examples:
  abide leave                 show what runs and ask what becomes of each
  abide leave --apply         close what is idle and can be resumed, let the rest run on
  abide leave --close-all     close everything; a working agent's turn is cut
  abide leave --leave-all     let everything run on; nothing is done

An instance is closed if all its sessions are to be: it is kept, and `abide resume` brings it back with its conversations.";

/// Leave for today: close what is idle, let what works run on
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Close what is idle, let the rest run on
    #[arg(long)]
    apply: bool,
    /// Close everything, working agents too
    #[arg(long, conflicts_with = "apply")]
    close_all: bool,
    /// Let everything run on
    #[arg(long, conflicts_with_all = ["apply", "close_all"])]
    leave_all: bool,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    let listing = ls::listing(context)?;
    let sessions = running(&listing);
    let live: Vec<Live> = sessions.iter().map(|(id, session)| row(id, session)).collect();
    if live.is_empty() {
        return Ok(context.printer.line("Nothing runs.")?);
    }
    let planned = || live.iter().map(|session| part(session.doing, session.resumes).decision).collect();
    let partings: Vec<Parting> = match (args.apply, args.close_all, args.leave_all) {
        (true, ..) => planned(),
        (_, true, _) => vec![Parting::Close; live.len()],
        (_, _, true) => vec![Parting::Detach; live.len()],
        _ if !context.can_ask() => {
            return Err(CommandError::needs_answer("there is no terminal to ask on")
                .hint("--apply, --close-all or --leave-all answers"));
        }
        _ => match leaving(&Ask::here(), &live) {
            Leaving::Stay => return Ok(()),
            Leaving::Leave(partings) => partings,
        },
    };
    let mut whole: BTreeMap<&str, bool> = BTreeMap::new();
    for ((id, _), parting) in sessions.iter().zip(partings) {
        *whole.entry(id).or_insert(true) &= parting == Parting::Close;
    }
    let (closing, staying): (Vec<_>, Vec<_>) = whole.into_iter().partition(|(_, closes)| *closes);
    for (id, _) in &closing {
        stop::run(stop::Args { target: (*id).to_owned() }, context)?;
    }
    match staying.len() {
        0 => Ok(()),
        1 => Ok(context.printer.line("1 instance keeps running.")?),
        n => Ok(context.printer.line(format!("{n} instances keep running."))?),
    }
}

/// The sessions that run, each with its instance.
fn running(listing: &Listing) -> Vec<(&str, &SessionRow)> {
    let active = listing.instances.iter().filter(|row| row.state == "active");
    let sessions = active.flat_map(|row| row.sessions.iter().map(|session| (row.id.as_str(), session)));
    sessions.filter(|(_, session)| session.pid.is_some() && session.exit.is_none()).collect()
}

fn row(id: &str, session: &SessionRow) -> Live {
    let age = |since: Timestamp| since.age(clock::now());
    Live {
        name: format!("ab-{id}/{}", session.id),
        agent: session.agent.clone().unwrap_or_else(|| session.name.clone()),
        doing: session.activity.unwrap_or(Doing::Unknown),
        since: session.activity_since.map(age),
        about: session.question.clone().or_else(|| session.title.clone()).filter(|about| !about.is_empty()),
        resumes: session.conversation.is_some(),
    }
}
