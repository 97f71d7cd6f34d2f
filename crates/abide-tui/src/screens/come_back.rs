//! Coming back: start new, or resume one of those that are there.

use std::time::Duration;

use abide_model::evidence::{MountEvidence, Verdict, verdict};
use abide_model::time::human;
use abide_model::{Choice, InstanceId, LaunchScope, Status};

use super::{launched_as, scope, summary};
use crate::ask::Ask;
use crate::line::{Line, Tone, table};
use crate::page::{Page, PageChoice};

/// An instance that one can come back to.
#[derive(Debug, Clone)]
pub struct ComeBackCandidate {
    pub id: InstanceId,
    /// What the operator calls it.
    pub name: Option<String>,
    /// Where it is in its life.
    pub status: Status,
    /// What led to that, in words.
    pub because: String,
    pub age: Duration,
    /// What its mounts hold; `None` if that was not examined.
    pub evidence: Option<Vec<MountEvidence>>,
    /// What each of its sessions is called, the first one first.
    pub sessions: Vec<String>,
    /// The agent it runs, or the name of its first session where that is none.
    pub agent: String,
}

/// What is being launched, or come back to.
#[derive(Debug, Clone, Copy)]
pub struct LaunchSubject<'a> {
    pub scope: &'a LaunchScope,
    pub role: &'a str,
    /// The agent or command, where one was asked for.
    pub program: Option<&'a str>,
}

/// Whether a new instance is among the choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartNew {
    /// It is, and it is the default.
    Offered,
    /// Only what is there can be chosen.
    NotOffered,
}

/// What the operator comes back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComeBack {
    New,
    /// The candidate at this place.
    Resume(usize),
    /// Nothing: nothing is started.
    Cancel,
}

/// Asks whether to start new or to resume. Without candidates there is nothing to ask.
pub fn come_back(
    ask: &Ask,
    launch: LaunchSubject<'_>,
    new: StartNew,
    candidates: &[ComeBackCandidate],
) -> ComeBack {
    match candidates {
        [] => ComeBack::New,
        _ => ask.begin().page(&come_back_page(launch, new, candidates)),
    }
}

/// Start new, where that is offered, or resume one of `candidates`.
pub fn come_back_page(
    launch: LaunchSubject<'_>,
    new: StartNew,
    candidates: &[ComeBackCandidate],
) -> Page<ComeBack> {
    let lines = table(&candidates.iter().map(cells).collect::<Vec<_>>(), [26, 10, 8, 12, 0]);
    let resumes = lines.into_iter().zip(candidates).enumerate().map(|(at, (line, candidate))| {
        let detail = detail(candidate);
        PageChoice { detail, hides: true, ..PageChoice::new(line, ComeBack::Resume(at)) }
    });
    let title = match new {
        StartNew::Offered => "resume or start new",
        StartNew::NotOffered => "come back to which",
    };
    let new = (new == StartNew::Offered).then(|| PageChoice {
        detail: vec![Line::toned(Tone::Dim, "A new instance with the current configuration")],
        ..PageChoice::new("Start new", ComeBack::New)
    });
    let launched = launched_as(launch.role, launch.program.unwrap_or_default());
    let cancel = (ComeBack::Cancel, "cancel");
    Page {
        about: vec![
            Line::toned(Tone::Strong, launched)
                .and(Tone::Dim, " · ")
                .and_elastic(Tone::Strong, scope(launch.scope)),
        ],
        choices: new.into_iter().chain(resumes).collect(),
        ..Page::new(title, cancel, cancel)
    }
}

fn cells(candidate: &ComeBackCandidate) -> [Line; 5] {
    let (verb, state, tone) = match candidate.status {
        Status::Active => ("Return to ", "running", Tone::Good),
        _ => ("Resume ", Choice::as_str(candidate.status.state()), Tone::Plain),
    };
    let name = candidate.name.clone().unwrap_or_else(|| candidate.id.display_name());
    let evidence = match &candidate.evidence {
        Some(mounts) => summary(mounts),
        None => Line::toned(Tone::Dim, "not examined"),
    };
    [
        Line::from(verb).and_elastic(Tone::Plain, name),
        Line::elastic(Tone::Plain, &candidate.agent),
        Line::toned(Tone::Dim, age(candidate.age)),
        Line::toned(tone, candidate.status.reason().unwrap_or(state)),
        evidence,
    ]
}

fn age(span: Duration) -> String {
    match human(span).as_str() {
        "now" => "just now".to_owned(),
        span => format!("{span} ago"),
    }
}

fn detail(candidate: &ComeBackCandidate) -> Vec<Line> {
    let name = candidate.name.iter().map(|name| format!("{name}, ")).collect::<String>();
    let (id, status) = (candidate.id.display_name(), &candidate.status);
    let id = Line::toned(Tone::Dim, format!("{name}{id} is {status}: {}", candidate.because));
    let session = |name: &String| Line::toned(Tone::Dim, "· ").and(Tone::Plain, name);
    let evidence =
        candidate.evidence.as_deref().filter(|mounts| verdict(mounts) != Verdict::Clean).map(summary);
    std::iter::once(id).chain(evidence).chain(candidate.sessions.iter().map(session)).collect()
}
