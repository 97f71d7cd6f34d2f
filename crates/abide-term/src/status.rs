//! The Program Status Protocol (OSC 7501): a program saying whether it works, waits or is done, and why.
//!
//! A report is `key=value` pairs separated by colons, for instance `state=blocked:app=claude-code:kind=permission`.
//! Everything in it is untrusted text: bounded, and without control characters.

use crate::text::{clean, number, unbase64};

/// Longest value of a key that names something.
const MAX_NAME: usize = 128;
/// Longest title or message.
const MAX_TEXT: usize = 4 << 10;

/// What a program says that it is doing.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ProgramState {
    /// Waiting for the operator to begin something.
    Idle,
    Working,
    /// Finished what it was asked for.
    Done,
    /// Waiting for an answer in the middle of its work.
    Blocked,
    /// Stopped by an error.
    Error,
    /// A word that this version does not know.
    Other(String),
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ProgramStatus {
    /// What the program is doing.
    pub state: ProgramState,
    /// Which of its activities this is about, if it has several.
    pub id: Option<String>,
    /// The name of the program.
    pub app: Option<String>,
    /// What it waits for: `permission`, `question` …
    pub kind: Option<String>,
    pub progress: Option<u8>,
    /// A title for the activity.
    pub title: Option<String>,
    /// A message for the operator.
    pub message: Option<String>,
}

impl ProgramStatus {
    /// Reads what follows `7501;`; `None` if no state is in it.
    pub(crate) fn parse(report: &[u8]) -> Option<Self> {
        let mut status = Self {
            state: ProgramState::Idle,
            id: None,
            app: None,
            kind: None,
            progress: None,
            title: None,
            message: None,
        };
        let mut state = None;
        for pair in report.split(|b| *b == b':') {
            let Some(at) = pair.iter().position(|b| *b == b'=') else { continue };
            let (key, value) = (&pair[..at], &pair[at + 1..]);
            match key {
                b"state" => state = Some(parse_state(value)),
                b"id" => status.id = name(value),
                b"app" => status.app = name(value),
                b"kind" => status.kind = name(value),
                b"progress" => status.progress = number::<u8>(value).filter(|n| *n <= 100),
                b"title" => status.title = free_text(value),
                b"msg" => status.message = free_text(value),
                _ => {}
            }
        }
        status.state = state?;
        Some(status)
    }

    /// All that is in it as the program spelled it.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &String> {
        let word = if let ProgramState::Other(word) = &self.state { Some(word) } else { None };
        [&self.id, &self.app, &self.kind, &self.title, &self.message].into_iter().flatten().chain(word)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.texts().map(String::len).sum()
    }
}

impl ProgramState {
    /// The word for this state in a report.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::Error => "error",
            Self::Other(word) => word,
        }
    }
}

fn parse_state(word: &[u8]) -> ProgramState {
    match word {
        b"idle" => ProgramState::Idle,
        b"working" => ProgramState::Working,
        b"done" => ProgramState::Done,
        b"blocked" => ProgramState::Blocked,
        b"error" => ProgramState::Error,
        other => ProgramState::Other(clean(other, MAX_NAME)),
    }
}

fn name(value: &[u8]) -> Option<String> {
    Some(clean(value, MAX_NAME)).filter(|text| !text.is_empty())
}

/// Text is base64; a program that sends it plain is understood too.
fn free_text(value: &[u8]) -> Option<String> {
    let decoded = unbase64(value).filter(|bytes| std::str::from_utf8(bytes).is_ok());
    let text = clean(decoded.as_deref().unwrap_or(value), MAX_TEXT);
    Some(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_key_by_key_whatever_the_order() {
        let status =
            ProgramStatus::parse(b"app=claude-code:state=blocked:kind=permission:new=1:msg=aGkgdGhlcmU=")
                .unwrap();
        assert_eq!(status.state, ProgramState::Blocked);
        assert_eq!(status.app.as_deref(), Some("claude-code"));
        assert_eq!(status.kind.as_deref(), Some("permission"));
        assert_eq!(status.message.as_deref(), Some("hi there"));
    }

    #[test]
    fn text_is_bounded_and_stripped_of_controls() {
        let mut report = b"state=idle:app=a\x1b]0;x:msg=".to_vec();
        report.extend([b'A'; 20_000]);
        let status = ProgramStatus::parse(&report).unwrap();
        assert_eq!(status.app.as_deref(), Some("a]0;x"));
        assert!(status.bytes() <= 5 << 10);
    }

    #[test]
    fn a_report_without_a_state_is_no_report() {
        assert_eq!(ProgramStatus::parse(b"app=x"), None);
        assert_eq!(ProgramStatus::parse(b""), None);
        assert_eq!(
            ProgramStatus::parse(b"state=napping").unwrap().state,
            ProgramState::Other("napping".into())
        );
    }
}
