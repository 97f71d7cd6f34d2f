//! What the end of a session's process means: that it is over, or that it was cut short and must be kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::activity::{Doing, Says};
use crate::choice::choices;
use crate::decide::Decided;
use crate::session::SessionExit;

choices! {
    /// In the middle of what an agent's process ended.
    Cut, "interruption" {
        Turn = "turn_cut": "its turn was interrupted",
        Question = "question_pending": "it was waiting for an answer",
        Error = "api_error": "an error ended its last turn",
    }
}

/// What was left open when an agent's process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    pub cut: Cut,
    /// The question or the error, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl std::fmt::Display for Interruption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use crate::choice::Choice;
        match &self.detail {
            Some(detail) => write!(f, "{}: {detail}", self.cut.meaning()),
            None => f.write_str(self.cut.meaning()),
        }
    }
}

/// What an agent was last seen doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastActivity {
    /// What, if a source that knows the agent said so.
    pub doing: Doing,
    /// What it asked, or what went wrong.
    pub detail: Option<String>,
    /// What the end of its transcript says by now, if anything.
    pub transcript: Option<Says>,
}

/// What was left open by the end of an agent that was last seen at `last`.
pub fn interruption(last: &LastActivity) -> Option<Interruption> {
    let is_over = matches!(last.transcript, Some(Says::Idle));
    let cut = match last.doing {
        // The transcript shows what it did after it was last seen.
        Doing::Working if is_over => return None,
        Doing::Working => Cut::Turn,
        Doing::NeedsInput => Cut::Question,
        Doing::Failed => Cut::Error,
        Doing::Starting | Doing::Idle | Doing::Exited | Doing::Unknown => return None,
    };
    let detail = last.detail.clone().filter(|_| cut != Cut::Turn);
    Some(Interruption { cut, detail })
}

/// What is known of a session whose process has ended.
#[derive(Debug, Clone)]
pub struct SessionEnd<'a> {
    pub exit: &'a SessionExit,
    /// Whether it ran an agent.
    pub is_agent: bool,
    /// Whether anything was said in its conversation.
    pub has_spoken: bool,
    /// Whether it was started to go on with what an earlier run had begun.
    pub is_resumed: bool,
    /// How long it ran.
    pub lasted: Duration,
    /// Whether the operator ended it: by a verb, or by a key that ends it.
    pub is_asked: bool,
    /// Whether an interrupt was typed right before its end.
    pub is_interrupted: bool,
    /// Whether anything was typed into it.
    pub was_typed_to: bool,
    /// What was left open.
    pub interruption: Option<&'a Interruption>,
}

/// What an end means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    Finished,
    /// Neither it nor its operator wanted it to end: it is kept.
    CutShort,
}

/// An agent that ends this soon after it was resumed did not come back.
pub const SOON: Duration = Duration::from_secs(15);

const INTERRUPT: i32 = 2;

/// Decides what the end of a session means.
pub fn meaning(end: &SessionEnd<'_>) -> Decided<Meaning> {
    let cut = |why: String| Decided::new(Meaning::CutShort, why);
    let done = |why| Decided::new(Meaning::Finished, why);
    // Programs that are ended by a signal may clean up and exit with 128 plus its number.
    let signal = end.exit.signal.or(end.exit.code.map(|code| code - 128).filter(|_| end.is_agent));
    let signal = signal.filter(|signal| (1..=31).contains(signal));
    if end.exit.stopped {
        return done("it was ended with its instance");
    }
    if end.is_asked || (end.is_interrupted && signal.is_none_or(|signal| signal == INTERRUPT)) {
        return done("the operator ended it");
    }
    if let Some(signal) = signal {
        return cut(format!("it was ended by signal {signal}, which abide did not send"));
    }
    if !end.is_agent {
        return done("it ended by itself");
    }
    if end.is_resumed && end.lasted < SOON && !end.was_typed_to {
        return cut(format!("it ended right after it was resumed ({})", end.exit));
    }
    if end.exit.code != Some(0) && (end.has_spoken || end.is_resumed) {
        return cut(format!("it failed during its conversation ({})", end.exit));
    }
    match end.interruption {
        Some(interruption) if interruption.cut != Cut::Error => cut(interruption.to_string()),
        _ => done("it ended by itself"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::Extra;
    use crate::time::Timestamp;

    fn exit(code: Option<i32>, signal: Option<i32>) -> SessionExit {
        SessionExit {
            code,
            signal,
            stopped: false,
            at: Timestamp(0),
            why: None,
            cut: None,
            extra: Extra::new(),
        }
    }

    #[derive(Default, Clone, Copy)]
    struct Case {
        code: Option<i32>,
        signal: Option<i32>,
        command: bool,
        unspoken: bool,
        resumed: bool,
        asked: bool,
        interrupted: bool,
        typed: bool,
        cut: Option<Cut>,
    }

    #[track_caller]
    fn means(case: Case, expected: Meaning) {
        let exit = exit(case.code.or(case.signal.is_none().then_some(0)), case.signal);
        let interruption = case.cut.map(|cut| Interruption { cut, detail: None });
        let end = SessionEnd {
            exit: &exit,
            is_agent: !case.command,
            has_spoken: !case.unspoken,
            is_resumed: case.resumed,
            lasted: Duration::from_secs(5),
            is_asked: case.asked,
            is_interrupted: case.interrupted,
            was_typed_to: case.typed,
            interruption: interruption.as_ref(),
        };
        assert_eq!(meaning(&end).decision, expected, "{end:?}");
    }

    #[test]
    fn what_neither_the_session_nor_its_operator_wanted_is_kept() {
        use Meaning::{CutShort, Finished};
        let case = Case::default();
        for (case, expected) in [
            (case, Finished),
            (Case { signal: Some(15), ..case }, CutShort),
            (Case { signal: Some(9), unspoken: true, ..case }, CutShort),
            (Case { signal: Some(9), command: true, ..case }, CutShort),
            (Case { code: Some(143), ..case }, CutShort),
            (Case { code: Some(129), ..case }, CutShort),
            (Case { code: Some(143), command: true, ..case }, Finished),
            (Case { code: Some(1), command: true, ..case }, Finished),
            (Case { signal: Some(15), asked: true, ..case }, Finished),
            (Case { signal: Some(9), asked: true, command: true, ..case }, Finished),
            (Case { signal: Some(2), interrupted: true, ..case }, Finished),
            (Case { code: Some(130), interrupted: true, ..case }, Finished),
            (Case { code: Some(0), interrupted: true, cut: Some(Cut::Turn), ..case }, Finished),
            (Case { signal: Some(9), interrupted: true, ..case }, CutShort),
            (Case { code: Some(130), ..case }, CutShort),
            (Case { code: Some(1), ..case }, CutShort),
            (Case { code: Some(1), unspoken: true, ..case }, Finished),
            (Case { code: Some(1), unspoken: true, resumed: true, ..case }, CutShort),
            (Case { resumed: true, ..case }, CutShort),
            (Case { resumed: true, typed: true, ..case }, Finished),
            (Case { resumed: true, command: true, ..case }, Finished),
            (Case { cut: Some(Cut::Turn), ..case }, CutShort),
            (Case { cut: Some(Cut::Question), typed: true, ..case }, CutShort),
            (Case { cut: Some(Cut::Error), ..case }, Finished),
        ] {
            means(case, expected);
        }
    }

    #[test]
    fn being_ended_with_the_instance_is_no_decision_about_the_session() {
        let exit = SessionExit { stopped: true, ..exit(None, Some(15)) };
        let end = SessionEnd {
            exit: &exit,
            is_agent: true,
            has_spoken: true,
            is_resumed: true,
            lasted: Duration::ZERO,
            is_asked: false,
            is_interrupted: false,
            was_typed_to: false,
            interruption: None,
        };
        assert_eq!(meaning(&end).decision, Meaning::Finished);
    }

    #[test]
    fn what_was_left_open_is_what_it_was_last_seen_at_unless_its_transcript_knows_better() {
        let last = |doing, transcript| LastActivity { doing, detail: Some("Write?".into()), transcript };
        let cut = |doing, transcript| interruption(&last(doing, transcript)).map(|found| found.cut);
        assert_eq!(cut(Doing::Working, None), Some(Cut::Turn));
        assert_eq!(cut(Doing::Working, Some(Says::Busy)), Some(Cut::Turn));
        assert_eq!(cut(Doing::Working, Some(Says::Idle)), None);
        assert_eq!(cut(Doing::NeedsInput, Some(Says::Busy)), Some(Cut::Question));
        assert_eq!(cut(Doing::Failed, None), Some(Cut::Error));
        assert_eq!(cut(Doing::Idle, None), None);
        let asked = interruption(&last(Doing::NeedsInput, None)).unwrap();
        assert_eq!(asked.to_string(), "it was waiting for an answer: Write?");
    }
}
