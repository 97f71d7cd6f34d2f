//! `abide leave`

use std::collections::BTreeMap;

use abide_engine::EngineError;
use abide_engine::list::{InstanceList, InstanceRow, SessionRow};
use abide_model::leaving::{Parting, Returns, part};
use abide_model::{Doing, InstanceState, Liveness, Timestamp};
use abide_sys::{clock, process};
use abide_tui::Ask;
use abide_tui::screens::{LeavingDecision, Live, leaving, plan};

use crate::context::Context;
use crate::error::{CommandError, VerbResult};

use super::{ls, stop};

const EXAMPLES: &str = "\
Examples:
  abide leave                 show what is running and ask what to do with it
  abide leave --apply         close what is idle and can be resumed, keep the rest running
  abide leave --close-all     close everything; interrupts agents that are working
  abide leave --leave-all     keep everything running

An instance is closed only if all its sessions are idle. It is kept: `abide resume` brings back its conversations, and \
its shells with their scrollback.";

/// Finish for today: close what is idle, keep working agents running
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Close what is idle, keep the rest running
    #[arg(long)]
    apply: bool,
    /// Close everything, including working agents
    #[arg(long, conflicts_with = "apply")]
    close_all: bool,
    /// Keep everything running
    #[arg(long, conflicts_with_all = ["apply", "close_all"])]
    leave_all: bool,
}

pub fn run(args: Args, context: &mut Context) -> VerbResult {
    let listing = ls::listing(None, context)?;
    let unknown = name_unknown(&listing, context);
    let mut live = live_in(&listing);
    if live.is_empty() && unknown == 0 {
        return context.printer.line("Nothing is running.");
    }
    let partings: Vec<Parting> = match (args.apply, args.close_all, args.leave_all) {
        (true, ..) => plan(&live),
        (_, true, _) => vec![Parting::Close; live.len()],
        (_, _, true) => vec![Parting::Detach; live.len()],
        _ if !context.can_ask() => {
            return Err(CommandError::needs_answer("there is no terminal to ask on")
                .hint("--apply, --close-all or --leave-all answers"));
        }
        _ => match answer(&mut live, context)? {
            LeavingDecision::Stay => return Ok(()),
            LeavingDecision::Leave(partings) => partings,
        },
    };
    let instances: BTreeMap<_, _> = live.iter().map(|session| &session.instance).zip(partings).collect();
    let (closing, staying): (Vec<_>, Vec<_>) =
        instances.into_iter().partition(|(_, parting)| *parting == Parting::Close);
    for (id, _) in closing {
        let stop = stop::Args { target: id.clone(), spare_daemons: false, not_running: false };
        stop::run(stop, context)?;
    }
    match staying.len() {
        0 => {}
        1 => context.printer.line("1 instance keeps running.")?,
        n => context.printer.line(format!("{n} instances keep running."))?,
    }
    match unknown {
        n if n > 0 && args.close_all => Err(CommandError::failed(format!("{n} may still run"))
            .hint("the messages above say what to do about each")),
        _ => Ok(()),
    }
}

/// Says of which instances it is not known whether they run, and what to do; how many those are.
fn name_unknown(listing: &InstanceList, context: &Context) -> usize {
    let is_unknown = |row: &&InstanceRow| row.liveness == Some(Liveness::Unknown);
    let unknown: Vec<&InstanceRow> = listing.instances.iter().filter(is_unknown).collect();
    for row in &unknown {
        let why = row.liveness_because.clone().unwrap_or_default();
        if let Ok(id) = row.id.parse() {
            context.warn(&EngineError::LivenessUnknown { id, why }.to_string());
        }
    }
    unknown.len()
}

/// Asks what becomes of the sessions. An answer counts for what was shown: where that is no longer so, it is shown again.
fn answer(shown: &mut Vec<Live>, context: &Context) -> VerbResult<LeavingDecision> {
    loop {
        let answer = leaving(&Ask::here(), shown);
        if answer == LeavingDecision::Stay {
            return Ok(answer);
        }
        let now = live_in(&ls::listing(None, context)?);
        let parting = |live: &Live| (live.name.clone(), part(live.doing, live.returns).decision);
        let are_same = shown.iter().map(parting).eq(now.iter().map(parting));
        *shown = now;
        if are_same {
            return Ok(answer);
        }
        context.warn("the running sessions have changed since the question; nothing was done yet");
    }
}

/// The sessions that live, as they are now.
fn live_in(listing: &InstanceList) -> Vec<Live> {
    running(listing).iter().map(|(instance, session)| row(instance, session)).collect()
}

/// The sessions that run, each with its instance.
fn running(listing: &InstanceList) -> Vec<(&InstanceRow, &SessionRow)> {
    let active = listing.instances.iter().filter(|row| row.state == InstanceState::Active);
    let sessions = active.flat_map(|row| row.sessions.iter().map(move |session| (row, session)));
    sessions.filter(|(_, session)| session.pid.is_some() && session.exit.is_none()).collect()
}

fn row(instance: &InstanceRow, session: &SessionRow) -> Live {
    let age = |since: Timestamp| since.age(clock::now());
    let called = instance.name.clone().unwrap_or_else(|| format!("ab-{}", instance.id));
    Live {
        instance: instance.id.clone(),
        name: format!("{called}/{}", session.id),
        agent: session.agent.clone().unwrap_or_else(|| session.name.clone()),
        doing: session.activity.unwrap_or(Doing::Unknown),
        since: session.activity_since.map(age),
        about: session
            .question
            .clone()
            .or_else(|| session.title.clone())
            .map(|about| about.trim().to_owned())
            .filter(|about| !about.is_empty()),
        returns: returns(session),
    }
}

fn returns(session: &SessionRow) -> Returns {
    let waits = session.is_waiting_shell;
    // A shell that waits may have jobs in the background, and stopped ones that hold what is not saved.
    let alone = || session.pid.is_some_and(|pid| process::descendants(pid, |_| false).is_empty());
    match session.conversation {
        Some(_) => Returns::Conversation,
        None if waits && alone() => Returns::Scrollback,
        None => Returns::Anew,
    }
}

#[cfg(test)]
mod tests {
    use abide_model::{Instance, LaunchScope, Recipe};

    use super::*;

    #[test]
    fn a_title_is_shown_without_the_blanks_around_it() {
        let (id, recipe) = ("k7p9m2xq".parse().unwrap(), Recipe::on_host("/srv".into()));
        let scope = LaunchScope::directory("/srv".into());
        let instance = Instance::starting(id, scope, "default".into(), recipe, process::this(), clock::now());
        for (title, about) in [("◇  Ready (shop)      ", Some("◇  Ready (shop)")), ("   ", None)] {
            let session = SessionRow { title: Some(title.to_owned()), ..SessionRow::default() };
            assert_eq!(row(&InstanceRow::from(&instance), &session).about.as_deref(), about);
        }
    }
}
