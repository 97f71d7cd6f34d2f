//! The end of a session with work at risk: what there is, seen and acknowledged, and then what to do.

use abide_model::decide::ExitChoice;
use abide_model::evidence::{MountEvidence, Verdict, verdict};

use super::{Subject, count, evidence_items, explained};
use crate::ask::Ask;
use crate::line::{Line, Tone};
use crate::page::Page;

/// What became of showing the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkShown {
    GoOn,
    /// The operator goes back to the agent.
    Return,
    /// The operator leaves, and keeps everything.
    Keep,
    /// The terminal went away before an answer.
    Unanswered,
}

/// Shows what is at risk, if anything is, and asks how to end the session. `keep_days` is how long the trash keeps what
/// is cleaned up. Without an answer everything is kept.
pub fn session_ended(ask: &Ask, subject: &Subject, mounts: &[MountEvidence], keep_days: u32) -> ExitChoice {
    let mut asking = ask.begin();
    if verdict(mounts) != Verdict::Clean {
        match asking.page(&at_risk_page(subject, mounts)) {
            WorkShown::GoOn => {}
            WorkShown::Return => return ExitChoice::Return,
            WorkShown::Keep => return ExitChoice::Keep,
            WorkShown::Unanswered => return ExitChoice::Unanswered,
        }
    }
    asking.page(&exit_page(subject, mounts, keep_days))
}

/// The work itself, to be acknowledged.
pub fn at_risk_page(subject: &Subject, mounts: &[MountEvidence]) -> Page<WorkShown> {
    let note = "This work may exist nowhere else. Review it before you choose.";
    Page {
        about: vec![subject.line(), unfinished(mounts)],
        list: evidence_items(mounts),
        notes: vec![Line::toned(Tone::Dim, note)],
        enter: Some((WorkShown::GoOn, "go on")),
        unanswered: Some(WorkShown::Unanswered),
        ..Page::new("session ended", (WorkShown::Return, "back to agent"), (WorkShown::Keep, "exit and keep"))
    }
}

/// What to do with the instance. Returning is the default: it cannot lose anything.
pub fn exit_page(subject: &Subject, mounts: &[MountEvidence], keep_days: u32) -> Page<ExitChoice> {
    let cleaned = format!("move everything to the trash for {}", count(keep_days as usize, "day", "days"));
    let choices = vec![
        ("Return to agent", "continue working in this session", ExitChoice::Return),
        ("Exit and keep", "keep everything and resume later", ExitChoice::Keep),
        ("Exit and clean up", &cleaned, ExitChoice::Discard),
    ];
    Page {
        about: vec![subject.line(), unfinished(mounts)],
        choices: explained(choices),
        unanswered: Some(ExitChoice::Unanswered),
        ..Page::new(
            "how to end this session",
            (ExitChoice::Return, "back to agent"),
            (ExitChoice::Keep, "exit and keep"),
        )
    }
}

fn unfinished(mounts: &[MountEvidence]) -> Line {
    match mounts.iter().filter(|mount| mount.verdict() != Verdict::Clean).count() {
        0 => Line::toned(Tone::Good, "Nothing is at risk."),
        1 => Line::toned(Tone::Warn, "There is unfinished work in 1 mount."),
        many => Line::toned(Tone::Warn, format!("There is unfinished work in {many} mounts.")),
    }
}
