//! `abide stop`

use abide_engine::conversation::current;
use abide_engine::end::finish::FinishOutcome;
use abide_engine::end::stop;
use abide_engine::running::{daemons, liveness};
use abide_engine::start::resume;
use abide_engine::substrate;
use abide_engine::target::{self, Target};
use abide_model::{Doing, Instance, Liveness, Safe, Session, Status};
use abide_wire::protocol::SessionStatus;

use super::refuse_stopped;
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

const EXAMPLES: &str = "\
Examples:
  abide stop k7p9         end all its processes; the instance is kept
  abide stop k7p9/s2      end one session; the others keep running
  abide stop k7p9 --spare-daemons
                          keep daemons running, such as a tmux server or an ssh agent

Processes outside the sessions that are ended as well are listed.";

/// End an instance's processes, or one session; nothing is removed
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID, ID/SESSION or name
    pub target: String,
    /// Keep daemons running that were started inside, such as a tmux server or an ssh agent
    #[arg(long)]
    pub spare_daemons: bool,
    /// Confirm that nothing of it runs; needed if it was started on another machine or its home is shared
    #[arg(long)]
    pub not_running: bool,
}

/// Says which agents are in the middle of something that this ends.
fn warn_of_work(target: &Target, context: &Context) {
    let Ok(status) = substrate::of(&context.store, target.instance.id).status() else { return };
    let is_meant = |session: &&SessionStatus| target.session.is_none_or(|id| id == session.id);
    for session in status.sessions.iter().filter(is_meant).filter(|session| session.exit.is_none()) {
        let agent = target.instance.sessions.iter().find(|known| known.id == session.id);
        let is_agent = agent.is_some_and(|known| known.agent.is_some());
        let what = match session.activity.as_ref().map(|activity| activity.state) {
            Some(Doing::Working) if is_agent => "is working; its turn is interrupted",
            Some(Doing::NeedsInput) if is_agent => "is waiting for an answer; its question is lost",
            _ => continue,
        };
        let own = target.instance.name.clone();
        let (name, id) = (own.unwrap_or_else(|| target.instance.id.display_name()), session.id);
        context.warn(&format!("{} ({name}/{id}) {what}", session.name));
    }
}

pub fn run(args: Args, context: &Context) -> VerbResult {
    let target = target::find(&context.store, &args.target)?;
    let id = target.instance.id;
    if args.not_running {
        stop::presume_dead(&context.store, id)?;
        return context.printer.line(format!("{} is marked as stopped, and kept", id.display_name()));
    }
    warn_of_work(&target, context);
    if let Some(session) = target.session {
        if args.spare_daemons {
            return Err(CommandError::usage("--spare-daemons goes with a whole instance"));
        }
        refuse_stopped(&target.instance)?;
        let daemons = daemons::beyond_session(&context.store, id, session);
        name(Heading::EndedAsWell, &daemons, context)?;
        current::look_closely(&context.store, &target.instance);
        return substrate::of(&context.store, id).end(&session).map_err(CommandError::failed);
    }
    let liveness = liveness::of(&context.store, &target.instance).decision;
    let was_over =
        liveness == Liveness::Dead && !matches!(target.instance.status.status, Status::Starting { .. });
    see_to_daemons(&target.instance, args.spare_daemons, context)?;
    match stop::stop(&context.store, &context.config, id)? {
        FinishOutcome::Removed { because, .. } => {
            context.printer.line(format!("{} had already ended: {because}", id.display_name()))
        }
        _ => {
            resume::astray_notice(&context.store, id).iter().for_each(|told| context.warn(told));
            let kept = context.store.read(id);
            let sessions = kept.iter().flat_map(|instance| &instance.sessions);
            sessions.filter_map(Session::below_notice).for_each(|told| context.warn(&told));
            let name = id.display_name();
            context.printer.line(match was_over {
                true => format!("{name} was not running; it is kept"),
                false => format!("{name} is stopped and kept"),
            })
        }
    }
}

/// Names what ends with `instance` beyond its sessions, or spares it. What has outlived its keeper and is of a session is
/// ended in either case.
pub fn see_to_daemons(instance: &Instance, spare: bool, context: &Context) -> VerbResult {
    let found = daemons::beyond_sessions(&context.store, instance.id);
    if spare {
        daemons::spare(&context.store, instance, &found.daemons)?;
    }
    name(if spare { Heading::LeftRunning } else { Heading::EndedAsWell }, &found.daemons, context)?;
    name(Heading::EndedAsWell, &found.survivors, context)
}

#[derive(Debug, Clone, Copy)]
enum Heading {
    EndedAsWell,
    LeftRunning,
}

fn name(heading: Heading, processes: &[impl ToString], context: &Context) -> VerbResult {
    let heading = match heading {
        Heading::EndedAsWell => "ended as well",
        Heading::LeftRunning => "left running",
    };
    for process in processes {
        context.printer.line(format!("{heading}: {}", Safe(process.to_string())))?;
    }
    Ok(())
}
