//! What a conversation is about: the first thing that the operator said in it.

use std::path::Path;

use serde_json::Value;

use crate::files::{head, records};

/// Longer titles are cut.
const MAX_CHARS: usize = 120;

/// Which records of a transcript hold what the operator said, as JSON pointers.
#[derive(Debug, Clone, Copy)]
pub struct Said {
    /// Where a record says what it is.
    pub at: &'static str,
    /// What it says there.
    pub is: &'static str,
    /// Where the text is: a string, or a list of parts that have one.
    pub text: &'static str,
}

pub(crate) fn of(transcript: &Path, said: Said) -> Option<String> {
    let head = head(transcript).ok()?;
    let spoken = |record: Value| {
        let is_theirs = record.pointer(said.at).and_then(Value::as_str) == Some(said.is);
        let text = is_theirs.then(|| record.pointer(said.text)).flatten()?;
        let parts = text.as_array().map_or(std::slice::from_ref(text), Vec::as_slice);
        let text = |part: &Value| part.as_str().or_else(|| part["text"].as_str()).map(str::to_owned);
        parts.iter().filter_map(text).find(|text| is_theirs_own(text))
    };
    let first = records::<Value>(&head).find_map(spoken)?;
    Some(first.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_CHARS).collect())
}

/// Agents put context of their own, in tags, into the mouth of the operator.
fn is_theirs_own(text: &str) -> bool {
    !text.trim_start().starts_with('<') && !text.trim().is_empty()
}
