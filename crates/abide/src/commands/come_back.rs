//! Coming back to what is there: the offer of `abide load` and `abide hardline`, and what is shown before a kept tree is used.

use abide_client::AttachMode;
use abide_config::Role;
use abide_engine::start::{differences, resume};
use abide_engine::trees;
use abide_model::evidence::MountEvidence;
use abide_model::offer::LaunchWish;
use abide_model::{Difference, Instance, SessionId, Status};
use abide_store::StoreEntry;
use abide_sys::clock;
use abide_tui::Ask;
use abide_tui::screens::{
    AskedBy, ComeBack, ComeBackCandidate, HostRepo, LaunchSubject, Preserved, PreservedTree, StartNew,
    Subject, come_back, preserved, preserved_notes,
};

use super::{hardline, load, missing_directory, prune};
use crate::context::Context;
use crate::error::{CommandError, VerbResult};

/// How many are looked into before the question; more of them would keep the operator waiting.
const EXAMINED: usize = 8;

/// What the operator wants instead of a new instance.
pub enum ComeBackAnswer {
    /// A new instance it is.
    New,
    /// It was dealt with.
    Done,
}

/// The instances among `entries` that a launch means, the youngest first.
pub fn candidates<'a>(
    entries: &'a [StoreEntry],
    launch: LaunchSubject<'_>,
    wish: &LaunchWish,
) -> Vec<&'a Instance> {
    let fits = |instance: &&Instance| wish.fits(instance, launch.scope, launch.role);
    let mut fitting: Vec<&Instance> = entries.iter().filter_map(StoreEntry::sound).filter(fits).collect();
    fitting.sort_by_key(|instance| std::cmp::Reverse(instance.status.since));
    fitting
}

/// Offers to come back to one of `fitting`. Where no operator can be asked, the answer is a new instance.
pub fn offer(
    launch: LaunchSubject<'_>,
    new: StartNew,
    fitting: &[&Instance],
    context: &Context,
) -> VerbResult<ComeBackAnswer> {
    let ask = Ask::here();
    if !ask.can_ask() {
        return Ok(ComeBackAnswer::New);
    }
    let examined = &fitting[..fitting.len().min(EXAMINED)];
    let mut evidence = trees::evidence_of_all(&context.store, examined).into_iter();
    let candidates: Vec<ComeBackCandidate> = fitting.iter().map(|i| candidate(i, evidence.next())).collect();
    let asked_by = match new {
        StartNew::Offered => AskedBy::Load,
        StartNew::NotOffered => AskedBy::Resume,
    };
    loop {
        let chosen = match come_back(&ask, launch, new, &candidates) {
            ComeBack::New => return Ok(ComeBackAnswer::New),
            ComeBack::Cancel => return Ok(ComeBackAnswer::Done),
            ComeBack::Resume(at) => fitting[at],
        };
        if chosen.status.status != Status::Active {
            let tree = preserved_tree(chosen, context)?;
            if tree.mounts.is_empty() {
                tell_differences(&tree.differences, context);
            } else {
                match preserved(&ask, &tree, asked_by) {
                    Preserved::Resume => {}
                    Preserved::New => return Ok(ComeBackAnswer::New),
                    Preserved::Back => continue,
                    Preserved::Cancel => return Ok(ComeBackAnswer::Done),
                }
            }
            return start_again(chosen, None, context).map(|()| ComeBackAnswer::Done);
        }
        return hardline::attach(chosen.id, None, AttachMode::Control, context)
            .map(|()| ComeBackAnswer::Done);
    }
}

fn candidate(instance: &Instance, evidence: Option<Vec<MountEvidence>>) -> ComeBackCandidate {
    let first = instance.sessions.first();
    ComeBackCandidate {
        id: instance.id,
        name: instance.name.clone(),
        status: instance.status.status.clone(),
        because: instance.status.because.clone(),
        age: instance.status.since.age(clock::now()),
        evidence,
        sessions: instance.sessions.iter().map(|session| session.name.clone()).collect(),
        agent: first
            .map(|session| session.agent.as_ref().unwrap_or(&session.name).clone())
            .unwrap_or_default(),
    }
}

/// How the state of a kept tree is acknowledged before it is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledge {
    /// The operator is asked; without a terminal it is printed, and only a tree whose repository diverged is refused.
    Ask,
    /// A flag has done so.
    Given,
}

/// Shows what the trees of a kept instance hold, what the host did meanwhile, and what has changed in the configuration;
/// whether it is to be resumed.
pub fn acknowledged(instance: &Instance, how: Acknowledge, context: &Context) -> VerbResult<bool> {
    if !matches!(instance.status.status, Status::Restorable(_)) {
        return Ok(true);
    }
    let tree = preserved_tree(instance, context)?;
    if tree.mounts.is_empty() {
        tell_differences(&tree.differences, context);
        return Ok(true);
    }
    let ask = Ask::here();
    if how == Acknowledge::Ask && ask.can_ask() {
        return Ok(preserved(&ask, &tree, AskedBy::Resume) == Preserved::Resume);
    }
    let notes = preserved_notes(&tree).into_iter().map(|note| note.text());
    for line in prune::held(&tree.mounts).into_iter().chain(notes) {
        context.warn(&format!("{}: {line}", instance.id.display_name()));
    }
    if how == Acknowledge::Ask && matches!(tree.host, HostRepo::Diverged(_)) {
        let name = instance.id.display_name();
        return Err(CommandError::needs_answer(format!(
            "{name} is not resumed: its repository has diverged"
        ))
        .hint("--yes resumes it all the same"));
    }
    Ok(true)
}

fn preserved_tree(instance: &Instance, context: &Context) -> VerbResult<PreservedTree> {
    let mounts = trees::evidence(&context.store, instance);
    let host = match mounts.is_empty() {
        true => HostRepo::Unchanged,
        false => trees::host_repo(&context.store, instance),
    };
    let differences = load::in_launch_context(&instance.scope.dir, context, |ctx| {
        let role = context.config.role(&ctx.settings.role).unwrap_or_else(|_| Role::built_in());
        differences::since_launch(ctx, instance, &role)
    })?;
    Ok(PreservedTree { subject: Subject::from(instance), mounts, host, differences })
}

fn tell_differences(differences: &[Difference], context: &Context) {
    if !differences.is_empty() {
        context.warn("it resumes with the settings it was launched with; these have changed since:");
    }
    for difference in differences {
        context.warn(&format!("  {difference}"));
    }
}

/// Starts an instance again that is kept, and attaches to it, or to one of its sessions.
pub fn start_again(instance: &Instance, session: Option<SessionId>, context: &Context) -> VerbResult {
    let Some(instance) = &missing_directory::seen_to(instance.clone(), None, context)? else {
        return Ok(());
    };
    let resumed =
        load::in_launch_context(&instance.scope.dir, context, |ctx| resume::resume(ctx, instance.id))?;
    for warning in resumed?.warnings {
        context.warn(&warning);
    }
    super::attach_started(instance.id, session, context)
}
