//! What `abide load` offers where there is something to come back to.

use abide_engine::{reconcile, trees};
use abide_model::evidence::MountEvidence;
use abide_model::{Instance, Scope, Status};
use abide_store::Entry;
use abide_sys::clock;
use abide_tui::Ask;
use abide_tui::screens::{Candidate, ComeBack, Preserved, Subject, come_back, preserved};

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::{ended, hardline};

/// How many are looked into before the question; more of them would keep the operator waiting.
const EXAMINED: usize = 8;

/// What the operator wants instead of a new instance.
pub enum Answer {
    /// A new instance it is.
    New,
    /// It was dealt with.
    Done,
}

/// Offers to come back to what runs or is kept of `scope` in `role`, running `program` if one was asked for. Where nobody
/// can be asked, the answer is a new instance.
pub fn offer(scope: &Scope, role: &str, program: Option<&str>, context: &Context) -> Outcome<Answer> {
    let ask = Ask::here();
    if !ask.can_ask() {
        return Ok(Answer::New);
    }
    let entries = reconcile::reconcile(&context.store, &context.config).map_err(CommandError::failed)?;
    let mut fitting: Vec<&Instance> =
        entries.iter().filter_map(Entry::sound).filter(|i| fits(i, scope, role, program)).collect();
    fitting.sort_by_key(|instance| std::cmp::Reverse(instance.status.since));
    let examined = &fitting[..fitting.len().min(EXAMINED)];
    let mut evidence = trees::evidence_of_all(&context.store, examined).into_iter();
    let candidates: Vec<Candidate> = fitting.iter().map(|i| candidate(i, evidence.next())).collect();
    loop {
        let chosen = match come_back(&ask, scope, &candidates) {
            ComeBack::New => return Ok(Answer::New),
            ComeBack::Cancel => return Ok(Answer::Done),
            ComeBack::Resume(at) => fitting[at],
        };
        if chosen.status.status == Status::Active {
            return hardline::attach(chosen.id, None, false, context).map(|()| Answer::Done);
        }
        let evidence = trees::evidence(&context.store, chosen);
        if !evidence.is_empty() {
            let host = trees::host_repo(&context.store, chosen);
            match preserved(&ask, &Subject::from(chosen), &evidence, &host) {
                Preserved::Resume => {}
                Preserved::New => return Ok(Answer::New),
                Preserved::Back => continue,
                Preserved::Cancel => return Ok(Answer::Done),
            }
        }
        return ended::come_back(chosen, context).map(|()| Answer::Done);
    }
}

fn fits(instance: &Instance, scope: &Scope, role: &str, program: Option<&str>) -> bool {
    let here = match &scope.workspace {
        Some(_) => instance.scope.workspace == scope.workspace,
        None => instance.scope.workspace.is_none() && instance.scope.dir == scope.dir,
    };
    let alive = matches!(instance.status.status, Status::Active | Status::Restorable(_));
    let runs = program
        .is_none_or(|program| instance.sessions.first().is_some_and(|session| session.name == program));
    here && alive && runs && instance.role == role
}

fn candidate(instance: &Instance, evidence: Option<Vec<MountEvidence>>) -> Candidate {
    Candidate {
        id: instance.id,
        name: instance.name.clone(),
        status: instance.status.status.clone(),
        because: instance.status.because.clone(),
        age: instance.status.since.age(clock::now()),
        evidence,
        sessions: instance
            .sessions
            .iter()
            .map(|session| (session.name.clone(), session.label.clone()))
            .collect(),
    }
}
