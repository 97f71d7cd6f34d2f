//! Leaving while sessions live: what each of them does, and what will become of it.

use std::time::Duration;

use abide_model::leaving::{Parting, Returns, part, part_all};
use abide_model::time::human;
use abide_model::{Choice as _, Doing};

use super::{count, explained};
use crate::ask::{Ask, Asking};
use crate::line::{Line, Tone, table};
use crate::page::{Item, Page, PageChoice};

/// A session that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// The id of its instance: the sessions of one go together.
    pub instance: String,
    /// What it is called, e.g. `ab-k3f9x2m1/s2`.
    pub name: String,
    /// What runs in it.
    pub agent: String,
    pub doing: Doing,
    /// For how long, if that is known.
    pub since: Option<Duration>,
    /// What it works on or asks, if it says.
    pub about: Option<String>,
    /// What comes back of it after it was closed.
    pub returns: Returns,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeavingDecision {
    Stay,
    /// To leave, and what becomes of each session, in their order.
    Leave(Vec<Parting>),
}

/// An answer on the way there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeavingStep {
    /// Leave as it is shown.
    Apply,
    CloseAll,
    /// Detach from every session.
    LeaveAll,
    /// Choose for each session.
    OneByOne,
    /// Change what becomes of this one.
    Toggle(usize),
    /// Back to where this page was opened from.
    Back,
}

/// Asks what shall become of `sessions`. Without any there is nothing to ask; without an answer, all keep running.
pub fn leaving(ask: &Ask, sessions: &[Live]) -> LeavingDecision {
    if sessions.is_empty() {
        return LeavingDecision::Leave(Vec::new());
    }
    let mut asking = ask.begin();
    let all = |parting| LeavingDecision::Leave(vec![parting; sessions.len()]);
    loop {
        let mut plan = plan(sessions);
        match asking.page(&leaving_page(sessions)) {
            LeavingStep::Apply => return LeavingDecision::Leave(plan),
            LeavingStep::CloseAll => match asking.page(&close_all_page(sessions)) {
                LeavingStep::CloseAll => return all(Parting::Close),
                LeavingStep::LeaveAll => return all(Parting::Detach),
                _ => {}
            },
            LeavingStep::OneByOne => match one_by_one(&mut asking, sessions, &mut plan) {
                LeavingStep::Apply => return LeavingDecision::Leave(plan),
                LeavingStep::LeaveAll => return all(Parting::Detach),
                _ => {}
            },
            LeavingStep::LeaveAll => return all(Parting::Detach),
            LeavingStep::Toggle(_) | LeavingStep::Back => return LeavingDecision::Stay,
        }
    }
}

fn one_by_one(asking: &mut Asking, sessions: &[Live], plan: &mut [Parting]) -> LeavingStep {
    let mut marked = 0;
    loop {
        match asking.page(&one_by_one_page(sessions, plan, marked)) {
            LeavingStep::Toggle(at) => {
                let other = plan[at].other();
                let together = |live: &Live| live.instance == sessions[at].instance;
                let changed = plan.iter_mut().zip(sessions).filter(|(_, live)| together(live));
                changed.for_each(|(parting, _)| *parting = other);
                marked = at;
            }
            step => return step,
        }
    }
}

/// What becomes of each of `sessions` unless the operator says otherwise.
pub fn plan(sessions: &[Live]) -> Vec<Parting> {
    let facts = sessions.iter().map(|live| (live.instance.as_str(), live.doing, live.returns));
    part_all(&facts.collect::<Vec<_>>())
}

fn default(live: &Live) -> Parting {
    part(live.doing, live.returns).decision
}

/// What to bear in mind where an instance has several of `sessions`.
fn together(sessions: &[Live]) -> Option<Line> {
    let beside =
        |(at, live): (usize, &Live)| sessions[..at].iter().any(|other| other.instance == live.instance);
    let any = sessions.iter().enumerate().any(beside);
    any.then(|| Line::toned(Tone::Dim, "All sessions of an instance keep running or close together."))
}

/// The sessions, what will become of each, and the ways to leave.
pub fn leaving_page(sessions: &[Live]) -> Page<LeavingStep> {
    let plan = plan(sessions);
    let mut rows = vec![
        ("Apply", "apply the plan above", LeavingStep::Apply),
        ("Close all", "end every session; working agents may lose their turn", LeavingStep::CloseAll),
        ("Leave all", "every session keeps running", LeavingStep::LeaveAll),
    ];
    if sessions.len() > 1 {
        rows.push(("Select", "choose one by one", LeavingStep::OneByOne));
    }
    let mut choices = explained(rows);
    for (choice, key) in choices.iter_mut().zip(['a', 'c', 'l', 's']) {
        choice.key = Some(key);
    }
    Page {
        about: vec![Line::from(&format!("Still running: {}.", count(sessions.len(), "session", "sessions")))],
        list: session_items(sessions, &plan),
        notes: together(sessions).into_iter().collect(),
        choices,
        ..page("leaving", "stay")
    }
}

/// One row for each session, to be changed.
pub fn one_by_one_page(sessions: &[Live], plan: &[Parting], marked: usize) -> Page<LeavingStep> {
    let lines = session_lines(sessions, plan).into_iter().zip(sessions).enumerate();
    let choices = lines.map(|(at, (line, live))| PageChoice {
        detail: about(live),
        ..PageChoice::new(line, LeavingStep::Toggle(at))
    });
    Page {
        about: vec![Line::from("What should happen to each session?")],
        notes: together(sessions).into_iter().collect(),
        choices: choices.collect(),
        marked,
        enter: Some((LeavingStep::Apply, "apply")),
        ..page("leaving, one by one", "go back")
    }
}

/// The warning before everything is closed.
pub fn close_all_page(sessions: &[Live]) -> Page<LeavingStep> {
    let at_risk = |live: &&Live| live.doing != Doing::Exited && default(live) == Parting::Detach;
    let risky: Vec<_> = sessions.iter().filter(at_risk).cloned().collect();
    let plan = vec![Parting::Close; risky.len()];
    let mut notes = Vec::new();
    if !risky.is_empty() {
        let warning = "Closing an agent during its turn may corrupt the turn and lose its work in progress.";
        notes.push(Line::toned(Tone::Bad, warning));
    }
    let close = match sessions.len() {
        1 => "Yes, close it".to_owned(),
        many => format!("Yes, close all {many}"),
    };
    Page {
        about: vec![Line::from("Close every session?")],
        list: session_items(&risky, &plan),
        notes,
        choices: vec![
            PageChoice { key: Some('n'), ..PageChoice::new("No, go back", LeavingStep::Back) },
            PageChoice { key: Some('y'), ..PageChoice::new(&close, LeavingStep::CloseAll) },
        ],
        ..page("closing everything", "go back")
    }
}

/// Esc goes back by one page; whatever else ends the question leaves every session running.
fn page(title: &str, esc: &'static str) -> Page<LeavingStep> {
    Page::new(title, (LeavingStep::Back, esc), (LeavingStep::LeaveAll, "leave all running"))
}

fn session_items(sessions: &[Live], plan: &[Parting]) -> Vec<Item> {
    let with_about = |(line, live)| {
        let about = about(live).into_iter().map(|line| Item { level: 1, line });
        std::iter::once(Item { level: 0, line }).chain(about)
    };
    session_lines(sessions, plan).into_iter().zip(sessions).flat_map(with_about).collect()
}

fn about(live: &Live) -> Vec<Line> {
    live.about.iter().map(|text| Line::toned(Tone::Dim, format!("“{text}”"))).collect()
}

fn session_lines(sessions: &[Live], plan: &[Parting]) -> Vec<Line> {
    let rows = sessions.iter().zip(plan).map(|(live, parting)| {
        let since = live.since.map(|span| format!(" {}", human(span))).unwrap_or_default();
        [
            Line::elastic(Tone::Strong, &live.name),
            Line::elastic(Tone::Plain, &live.agent),
            Line::toned(tone(live.doing), live.doing.as_str().replace('_', " ")).and(Tone::Dim, since),
            outcome(*parting, live),
        ]
    });
    table(&rows.collect::<Vec<_>>(), [20, 12, 16, 0])
}

fn outcome(parting: Parting, live: &Live) -> Line {
    let (tone, word, what) = match parting {
        Parting::Detach => (Tone::Good, "detach", "keeps running"),
        Parting::Close => match (live.returns, default(live)) {
            (Returns::Conversation, Parting::Close) => (Tone::Plain, "close", "resumes next time"),
            (Returns::Conversation, Parting::Detach) => (Tone::Bad, "close", "may lose its turn"),
            (Returns::Scrollback, _) => (Tone::Plain, "close", "keeps its scrollback"),
            (Returns::Anew, _) => (Tone::Bad, "close", "begins anew"),
        },
    };
    Line::toned(Tone::Dim, "→ ").and(tone, word).and(Tone::Dim, format!(", {what}"))
}

fn tone(doing: Doing) -> Tone {
    match doing {
        Doing::Working => Tone::Good,
        Doing::NeedsInput | Doing::Failed => Tone::Warn,
        Doing::Starting | Doing::Idle | Doing::Exited | Doing::Unknown => Tone::Dim,
    }
}
