//! `abide explain`

mod container;

use std::time::Duration;

use abide_engine::conversation::begin::{self, ResumeForecast};
use abide_engine::conversation::current::{self, LookDepth};
use abide_engine::end::finish;
use abide_engine::running::processes::SessionProcesses;
use abide_engine::running::protection::Judge;
use abide_engine::running::{connect, daemons, liveness};
use abide_engine::start::launch::LaunchContext;
use abide_engine::start::moved;
use abide_engine::target::{self, Target};
use abide_engine::{list, reconcile, substrate, trees};
use abide_model::conversation::Begin;
use abide_model::decide::{self, EndFacts, Leave, Stopped};
use abide_model::instance::StatusChange;
use abide_model::time::human;
use abide_model::{Choice, Doing, Instance, InstanceId, Liveness, Policy, Safe, Session, Status, evidence};
use abide_store::StoreEntry;
use abide_sys::host;
use abide_wire::exit_record::ExitRecord;
use abide_wire::protocol::{EvidenceReply, SessionStatus};
use serde_json::json;

use super::load;
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

const EXAMPLES: &str = "\
Examples:
  abide explain k7p9          its status, the reason for it, and its history
  abide explain k7p9/s2       the same, with the activity of session s2 only
  abide explain k7p9 --json   for programs; docs/json.md describes the format";

/// Explain the status of an instance
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID, ID/SESSION or name
    pub target: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: Args, context: &Context) -> VerbResult {
    reconcile::reconcile(&context.store, &context.config)?;
    let Target { instance, session } = target::find(&context.store, &args.target)?;
    let id = instance.id;
    let live = substrate::of(&context.store, id).status().ok();
    let instance = current::follow(&context.store, instance, live.as_ref(), LookDepth::Close);
    let instance = finish::as_it_is(&context.store, instance);
    if args.json {
        return print_json(&instance, context);
    }
    let running = live.iter().flat_map(|status| &status.sessions);
    let meant = running.filter(|running| session.is_none_or(|session| session == running.id));
    let doing = meant.flat_map(|session| doing(context, id, session));
    let awake = live.as_ref().and_then(|status| status.awake.as_ref());
    let awake = awake.map(|what| {
        format!("  it keeps this machine awake ({what}); the setting `keep_awake` controls this")
    });
    let exposure = exposure(id, context).into_iter().chain(awake);
    let left = ended_as_well(&instance).into_iter().chain(leftovers(&instance, context));
    let outlook = supervisor(&instance, context).into_iter().chain(exposure).chain(left);
    let outlook = outlook.chain(container::lines(&instance, &context.store));
    let outlook = outlook.chain(self::outlook(&instance, context));
    let known = explanation(&instance).into_iter().chain(outlook).chain(doing);
    let lines: Vec<String> = known.chain(history(&instance)).collect();
    for line in lines {
        context.printer.line(line)?;
    }
    Ok(())
}

/// The row of `abide ls`, what its trees hold, how it came to be what it is, and what would become of it, in words.
fn print_json(instance: &Instance, context: &Context) -> VerbResult {
    let mut listing = list::listing(&[StoreEntry::Sound(Box::new(instance.clone()))]);
    list::add_live(&mut listing, &context.store);
    list::add_leftovers(&mut listing, &context.store);
    context.printer.json(&json!({
        "version": 1,
        "instance": listing.instances.first(),
        "mounts": trees::evidence(&context.store, instance),
        "container": container::as_json(instance, &context.store),
        "outlook": outlook(instance, context),
        "history": instance.history,
    }))
}

/// The process that holds everything, if there is one, and what is known of it.
fn supervisor(instance: &Instance, context: &Context) -> Option<String> {
    let judged = liveness::of(&context.store, instance);
    // Process numbers of a container mean nothing here.
    if instance.recipe.container.is_some() && judged.decision == Liveness::Alive {
        return None;
    }
    let record = ExitRecord::read(&connect::instance_dir(&context.store, instance.id)).ok().flatten();
    match (judged.decision, record) {
        (Liveness::Alive, Some(record)) => {
            let start = instance.started_on.as_ref();
            let elsewhere = start.is_some_and(|start| !host::here().shares_processes_with(start));
            let whose = match elsewhere {
                true => " (process numbers belong to its PID namespace, not to this one)",
                false => "",
            };
            let held = format!("  held by process {}{whose}", record.keeper.pid);
            let in_tmux = "in tmux: terminal notifications are not seen; title and screen are read on demand";
            Some(if record.tmux.is_some() { format!("{held}, {in_tmux}") } else { held })
        }
        (Liveness::Alive, None) => Some(format!("  alive: {}", judged.reason)),
        (Liveness::Unknown, _) => {
            liveness::require_known(instance.id, &judged).err().map(|why| format!("  {why}"))
        }
        (Liveness::Dead, _) if instance.status.status == Status::Active => {
            Some(format!("  nothing of it runs: {}", judged.reason))
        }
        (Liveness::Dead, _) => None,
    }
}

/// What ends it before the machine does, as things are now.
fn exposure(id: InstanceId, context: &Context) -> Option<String> {
    let mode = context.config.load().map(|settings| settings.unit).unwrap_or_default();
    let found = Judge::here(mode).judge(&context.store, id)?;
    let safe = || "it survives a logout".to_owned();
    Some(format!("  {}", found.exposure.map_or_else(safe, |exposure| exposure.to_string())))
}

/// What still runs of an instance that does not.
fn leftovers(instance: &Instance, context: &Context) -> Option<String> {
    let left = matches!(instance.status.status, Status::Restorable(_)).then(SessionProcesses::look)?;
    let left = left.leftovers(instance.id, &connect::instance_dir(&context.store, instance.id));
    let names: Vec<String> = left.iter().map(ToString::to_string).collect();
    (!names.is_empty()).then(|| {
        let names = Safe(names.join(", "));
        format!("  still running since its last run: {names}; a stop, a resume or an eject ends them")
    })
}

/// What its last run ended beyond its sessions.
fn ended_as_well(instance: &Instance) -> Option<String> {
    let names = daemons::ended_as_well(instance);
    (!names.is_empty()).then(|| format!("  ended with its last run: {}", Safe(names.join(", "))))
}

/// What its trees hold, what would happen to it at its end, and what a resume would do.
fn outlook(instance: &Instance, context: &Context) -> Vec<String> {
    let evidence = trees::evidence(&context.store, instance);
    let mut lines = super::prune::held(&evidence);
    let policy = instance.policy.or_else(|| reconcile::policy(&context.config, instance));
    let (stopped, verdict) = (Stopped::LastSessionEnded, evidence::verdict(&evidence));
    let decided = decide::leave(&EndFacts { policy: policy.unwrap_or(Policy::Keep), stopped, verdict });
    let end = match decided.decision {
        Leave::Finish(_) => "it would be moved to the trash".to_owned(),
        Leave::Keep(kept) => format!("it would be kept as {kept}"),
    };
    match &instance.status.status {
        Status::Active if liveness::of(&context.store, instance).decision == Liveness::Unknown => {}
        Status::Active => {
            lines.push(format!("if its last session ended now, {end}: {}", decided.reason));
            lines.push("no resume needed: `abide hardline` reconnects".to_owned());
        }
        Status::Restorable(_) if let Some(missing) = moved::missing(&context.store, instance) => {
            lines.push(missing.to_string());
            lines.extend(missing.advice().into_iter().take(1));
        }
        Status::Restorable(_) => {
            lines.extend(resumption(instance, context));
            let faults = trees::faults(&context.store, instance);
            lines.extend(faults.iter().map(|fault| format!("before that: {fault}")));
        }
        _ => {}
    }
    lines
}

/// What a resume would do, by its own decisions.
fn resumption(instance: &Instance, context: &Context) -> Vec<String> {
    let forecast = |ctx: &mut LaunchContext<'_>| begin::forecast(ctx, instance).map_err(CommandError::failed);
    match load::in_launch_context(&instance.scope.dir, context, forecast).and_then(|forecast| forecast) {
        Ok(ResumeForecast { sessions, notices }) => {
            let coming: Vec<String> =
                sessions.iter().map(|(name, begin)| coming(name, begin.as_ref())).collect();
            let resume = match coming.is_empty() {
                true => "it has no session that a resume could start".to_owned(),
                false => format!(
                    "a resume starts the {} again, with {}",
                    instance.recipe.substrate,
                    coming.join(", ")
                ),
            };
            std::iter::once(resume).chain(notices).collect()
        }
        Err(error) => vec![format!("a resume would fail: {error}")],
    }
}

/// How the session `name` would come back.
fn coming(name: &str, begin: Option<&Begin>) -> String {
    match begin {
        None | Some(Begin::AsTyped { id: None }) => name.to_owned(),
        Some(Begin::Fresh { .. }) => format!("{name} in a new conversation"),
        Some(Begin::Restart { id, .. }) => format!("{name} in conversation {id}, started over"),
        Some(Begin::Resume { id } | Begin::AsTyped { id: Some(id) }) => {
            format!("{name} in conversation {id}")
        }
    }
}

/// What a running session is doing, and what every source says about it.
fn doing(context: &Context, id: InstanceId, session: &SessionStatus) -> Vec<String> {
    let asked = substrate::of(&context.store, id).evidence(&session.id);
    let Ok(EvidenceReply { activity, statements }) = asked else { return Vec::new() };
    let age = |ms: u64| human(Duration::from_millis(ms));
    let mut lines = vec![
        format!(
            "{} ({}, process {}) {} ({})",
            session.id,
            Safe(&session.name),
            session.pid,
            in_words(activity.state),
            age(activity.for_ms)
        ),
        format!("  because {}", Safe(&activity.because)),
    ];
    lines.extend(activity.question.map(|question| format!("  it asks: {}", Safe(question))));
    lines.extend(statements.iter().map(|one| {
        format!("  {:10}  {:11}  {:>4}  {}", one.source, one.says, age(one.for_ms), Safe(&one.detail))
    }));
    lines
}

/// What a session is doing, as the rest of a sentence.
fn in_words(doing: Doing) -> String {
    match doing {
        Doing::NeedsInput => "needs input".to_owned(),
        Doing::Failed | Doing::Exited => format!("has {}", doing.as_str()),
        Doing::Unknown => "is in an unknown state".to_owned(),
        Doing::Starting | Doing::Working | Doing::Idle => format!("is {}", doing.as_str()),
    }
}

/// What is known of the conversation that a session is in.
fn conversation_of(session: &Session) -> Vec<String> {
    let mut lines = match &session.conversation {
        None => vec![format!("{} ({}) has no known conversation yet", session.id, session.name)],
        Some(bound) => vec![
            format!(
                "{} ({}) has been in conversation {} since {}",
                session.id, session.name, bound.id, bound.bound
            ),
            format!("  because {}", bound.origin.meaning()),
        ],
    };
    lines.extend(session.astray_notice().map(|notice| format!("  but {}", Safe(notice))));
    let transcript = session.conversation.as_ref().and_then(|bound| bound.transcript.as_ref());
    lines.extend(transcript.map(|path| format!("  its transcript is {}", path.display())));
    let setup = session.setup.as_ref().filter(|_| transcript.is_none());
    lines
        .extend(setup.map(|setup| format!("  its transcript is expected in {}", setup.config_dir.display())));
    let parked: Vec<&str> = session.parked.iter().map(|parked| parked.id.as_str()).collect();
    if !parked.is_empty() {
        lines.push(format!("  earlier conversations: {}", parked.join(", ")));
    }
    lines.extend(
        session.interruption.iter().map(|left| format!("  when it last ended, {}", Safe(left.to_string()))),
    );
    lines.extend(
        session.exit.as_ref().and_then(|exit| exit.why.as_ref()).map(|why| format!("  {}", Safe(why))),
    );
    lines
}

pub fn explanation(instance: &Instance) -> Vec<String> {
    let standing = &instance.status;
    let mut lines = vec![
        format!("{} has been {} since {}", instance.id.display_name(), standing.status, standing.since),
        format!("  because {}", Safe(&standing.because)),
    ];
    lines.extend(standing.decided_by.map(|by| format!("  decided by: {by} ({})", by.meaning())));
    lines.extend([
        format!(
            "  launched from {}, role {}, place {}",
            instance.scope.dir.display(),
            instance.role,
            instance.recipe.place
        ),
        match instance.generation {
            1 => "  started once".to_owned(),
            n => format!("  started {n} times"),
        },
    ]);
    if let Some(obstacle) = &standing.obstacle {
        let again = format!(
            "  abide retries automatically; `abide eject {} --keep` cancels the removal",
            instance.id
        );
        lines.extend([format!("  it is still there: {}", Safe(obstacle)), again]);
    }
    lines.extend(instance.isolation.as_ref().map(|text| format!("  {}", Safe(text))));
    lines
        .extend(instance.sessions.iter().filter(|session| session.agent.is_some()).flat_map(conversation_of));
    lines.extend(
        instance
            .sessions
            .iter()
            .filter_map(Session::below_notice)
            .map(|notice| format!("  {}", Safe(notice))),
    );
    lines
}

/// How it came to be what it is.
pub fn history(instance: &Instance) -> Vec<String> {
    let by = |change: &StatusChange| change.decided_by.map(|by| format!(" [{by}]")).unwrap_or_default();
    let changes =
        instance.history.iter().map(|c| format!("  {}  {:30}  {}{}", c.at, c.to, Safe(&c.because), by(c)));
    std::iter::once("history:".to_owned()).chain(changes).collect()
}
