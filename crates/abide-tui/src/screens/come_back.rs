//! Coming back: start new or resume, and what a preserved tree holds before it is used again.

use std::time::Duration;

pub use abide_model::evidence::HostRepo;
use abide_model::evidence::{MountEvidence, Verdict, verdict};
use abide_model::time::human;
use abide_model::{InstanceId, Scope, Status};

use super::{Subject, evidence_items, explained, scope, summary};
use crate::ask::Ask;
use crate::line::{Line, Tone, table};
use crate::page::{Choice, Page};

/// An instance that one can come back to.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its id.
    pub id: InstanceId,
    /// What the operator calls it.
    pub name: Option<String>,
    /// Where it is in its life.
    pub status: Status,
    /// What led to that, in words.
    pub because: String,
    /// For how long.
    pub age: Duration,
    /// What its mounts hold; `None` if nobody has looked.
    pub evidence: Option<Vec<MountEvidence>>,
    /// Each session's agent or name, and the title of its conversation where it has one.
    pub sessions: Vec<(String, Option<String>)>,
}

/// What the operator comes back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComeBack {
    /// A new instance.
    New,
    /// The candidate at this place.
    Resume(usize),
    /// Nothing: nothing is started.
    Cancel,
}

/// Asks whether to start new or to resume. Without candidates there is nothing to ask.
pub fn come_back(ask: &Ask, launched: &Scope, candidates: &[Candidate]) -> ComeBack {
    match candidates {
        [] => ComeBack::New,
        _ => ask.begin().page(&come_back_page(launched, candidates)),
    }
}

/// Start new, or resume one of `candidates`.
pub fn come_back_page(launched: &Scope, candidates: &[Candidate]) -> Page<ComeBack> {
    let lines = table(&candidates.iter().map(cells).collect::<Vec<_>>(), [26, 8, 12, 0]);
    let resumes = lines.into_iter().zip(candidates).enumerate().map(|(at, (line, candidate))| {
        let detail = detail(candidate);
        Choice { detail, hides: true, ..Choice::new(line, ComeBack::Resume(at)) }
    });
    let new = Choice {
        detail: vec![Line::toned(Tone::Dim, "A new instance, from the current configuration.")],
        ..Choice::new("Start new", ComeBack::New)
    };
    let cancel = (ComeBack::Cancel, "cancel");
    Page {
        about: vec![Line::elastic(Tone::Strong, scope(launched))],
        choices: std::iter::once(new).chain(resumes).collect(),
        ..Page::new("resume or start new", cancel, cancel)
    }
}

fn cells(candidate: &Candidate) -> [Line; 4] {
    let (verb, state, tone) = match candidate.status {
        Status::Active => ("Return to ", "running", Tone::Good),
        _ => ("Resume ", candidate.status.state(), Tone::Plain),
    };
    let name = candidate.name.clone().unwrap_or_else(|| candidate.id.display_name());
    let evidence = match &candidate.evidence {
        Some(mounts) => summary(mounts),
        None => Line::toned(Tone::Dim, "not examined"),
    };
    [
        Line::from(verb).and_elastic(Tone::Plain, name),
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

fn detail(candidate: &Candidate) -> Vec<Line> {
    let name = candidate.name.iter().map(|name| format!("{name}, ")).collect::<String>();
    let (id, status) = (candidate.id.display_name(), &candidate.status);
    let id = Line::toned(Tone::Dim, format!("{name}{id} is {status}: {}", candidate.because));
    let session = |(agent, title): &(String, Option<String>)| {
        let line = Line::toned(Tone::Dim, "· ").and(Tone::Plain, agent);
        match title {
            Some(title) => line.and(Tone::Dim, format!("  “{title}”")),
            None => line,
        }
    };
    let evidence =
        candidate.evidence.as_deref().filter(|mounts| verdict(mounts) != Verdict::Clean).map(summary);
    std::iter::once(id).chain(evidence).chain(candidate.sessions.iter().map(session)).collect()
}

/// What to do with a preserved tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preserved {
    /// Use it again.
    Resume,
    /// Leave it alone, and start new.
    New,
    /// Choose again.
    Back,
    /// Nothing: nothing is started.
    Cancel,
}

/// Shows what a preserved tree holds, and asks whether to use it again.
pub fn preserved(ask: &Ask, subject: &Subject, mounts: &[MountEvidence], host: &HostRepo) -> Preserved {
    ask.begin().page(&preserved_page(subject, mounts, host))
}

/// What the tree holds, what the host's repository did since, and what can be done: where the two have diverged, the
/// tree can only be left alone.
pub fn preserved_page(subject: &Subject, mounts: &[MountEvidence], host: &HostRepo) -> Page<Preserved> {
    let (tone, said, how) = match host {
        HostRepo::Unchanged => (Tone::Good, "The host repository has not changed since.", &[][..]),
        HostRepo::Moved(how) => {
            (Tone::Warn, "The host repository has moved on since; nothing is pulled:", &how[..])
        }
        HostRepo::Diverged(how) => {
            (Tone::Bad, "The host repository has diverged since, so this can not be resumed:", &how[..])
        }
        HostRepo::Unknown(why) => {
            (Tone::Warn, "Whether the host repository has changed since is not known:", &why[..])
        }
    };
    let how = how.iter().map(|how| Line::toned(Tone::Dim, "· ").and(Tone::Plain, how));
    let notes = std::iter::once(Line::toned(tone, said)).chain(how).collect();
    let mut rows = vec![
        ("Resume", "use this tree as it is", Preserved::Resume),
        ("Start new", "leave this one alone for later", Preserved::New),
        ("Go back", "choose another", Preserved::Back),
    ];
    if matches!(host, HostRepo::Diverged(_)) {
        rows = vec![rows[2], rows[1]];
    }
    let title = format!("resume {}", subject.id.display_name());
    Page {
        about: vec![subject.line()],
        list: evidence_items(mounts),
        notes,
        choices: explained(rows),
        ..Page::new(title, (Preserved::Back, "go back"), (Preserved::Cancel, "cancel"))
    }
}
