//! What titles and screens mean, as data: one file per agent, what the operator's configuration adds in the same form, and
//! the small matcher that reads them.
//!
//! A rule looks at the last lines of a screen that are not blank, without the frames that agents draw around them. A pattern
//! is text that a line holds; `^` and `$` tie it to the line's ends, `…` stands for anything, `{spinner}` for one character
//! of an animation. The first rule that fits is the answer; a screen that no rule fits says nothing.

use abide_model::activity::Says;
use serde::Deserialize;

/// How many lines a rule looks at if it does not say.
const LAST: usize = 12;

/// The rules of one agent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// What its titles mean.
    #[serde(default)]
    title: Vec<ActivityRule>,
    /// What its screens mean.
    #[serde(default)]
    screen: Vec<ActivityRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActivityRule {
    /// What it is called in explanations.
    name: String,
    /// What it means if it fits.
    says: Says,
    /// How many lines from the bottom it looks at.
    #[serde(default = "last")]
    last: usize,
    /// One of these fits the lowest line.
    #[serde(default)]
    bottom: Vec<String>,
    /// Each of these fits some line.
    #[serde(default)]
    all: Vec<String>,
    /// One of these fits some line.
    #[serde(default)]
    any: Vec<String>,
    /// None of these fits any line.
    #[serde(default)]
    none: Vec<String>,
    /// The lowest line that one of these fits is what the operator is asked.
    #[serde(default)]
    question: Vec<String>,
}

fn last() -> usize {
    LAST
}

/// What a rule that fits says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub says: Says,
    /// Which rule said so.
    pub rule: String,
    /// What the operator is asked.
    pub question: Option<String>,
}

impl Rules {
    pub fn parse(text: &str) -> Result<Self, toml_edit::de::Error> {
        toml_edit::de::from_str(text)
    }

    /// These rules, and where none of them fits `others`.
    pub fn or(mut self, others: Self) -> Self {
        self.title.extend(others.title);
        self.screen.extend(others.screen);
        self
    }

    /// What a title means.
    pub fn title(&self, title: &str) -> Option<Reading> {
        self.title.iter().find_map(|rule| rule.read(&[title.trim()]))
    }

    /// What a screen means, given as its lines from the top.
    pub fn screen(&self, lines: &[impl AsRef<str>]) -> Option<Reading> {
        let bare = lines.iter().map(|line| line.as_ref().trim_matches(is_frame));
        let lines: Vec<&str> = bare.filter(|line| !line.is_empty()).collect();
        self.screen.iter().find_map(|rule| rule.read(&lines))
    }
}

impl ActivityRule {
    fn read(&self, lines: &[&str]) -> Option<Reading> {
        let region = &lines[lines.len().saturating_sub(self.last)..];
        let somewhere = |pattern: &String| region.iter().any(|line| fits(pattern, line));
        let lowest = region.last()?;
        let applies = (self.bottom.is_empty() || self.bottom.iter().any(|pattern| fits(pattern, lowest)))
            && self.all.iter().all(somewhere)
            && (self.any.is_empty() || self.any.iter().any(somewhere))
            && !self.none.iter().any(somewhere);
        let asks = |line: &&&str| self.question.iter().any(|pattern| fits(pattern, line));
        applies.then(|| Reading {
            says: self.says,
            rule: self.name.clone(),
            question: region
                .iter()
                .rev()
                .find(asks)
                .map(|line| line.trim_start_matches(is_marker).to_owned()),
        })
    }
}

/// What is drawn around text rather than said by it.
fn is_frame(c: char) -> bool {
    c.is_whitespace() || matches!(c, '│' | '┃' | '║' | '╎')
}

/// What is drawn in front of a line that is chosen.
fn is_marker(c: char) -> bool {
    matches!(c, ' ' | '▶' | '❯' | '›' | '●' | '△')
}

/// Whether `line` holds `pattern`.
fn fits(pattern: &str, line: &str) -> bool {
    let (pattern, at_start) = pattern.strip_prefix('^').map_or((pattern, false), |rest| (rest, true));
    let (pattern, at_end) = pattern.strip_suffix('$').map_or((pattern, false), |rest| (rest, true));
    let pieces: Vec<&str> = pattern.split('…').collect();
    let starts = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    let mut starts = starts.take(if at_start { 1 } else { usize::MAX });
    starts.any(|at| follows(&pieces, &line[at..], at_end))
}

/// Whether `text` begins with the first piece, and the others follow in order.
fn follows(pieces: &[&str], text: &str, at_end: bool) -> bool {
    let Some((first, rest)) = pieces.split_first() else { return true };
    let Some(after) = skip(first, text) else { return false };
    if rest.is_empty() {
        return !at_end || after.is_empty();
    }
    let mut starts = after.char_indices().map(|(at, _)| at).chain([after.len()]);
    starts.any(|at| follows(rest, &after[at..], at_end))
}

/// What comes after `piece`, if `text` begins with it.
fn skip<'a>(piece: &str, text: &'a str) -> Option<&'a str> {
    let Some((before, behind)) = piece.split_once("{spinner}") else { return text.strip_prefix(piece) };
    let text = text.strip_prefix(before)?;
    let frame = text.chars().next().filter(|c| is_spinner(*c))?;
    skip(behind, &text[frame.len_utf8()..])
}

fn is_spinner(c: char) -> bool {
    matches!(c, '\u{2801}'..='\u{28ff}' | '◐'..='◓' | '✶' | '✻' | '✽' | '✢' | '✳' | '·' | '🌑'..='🌘')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_tied_to_the_ends_it_names() {
        for (pattern, line, expected) in [
            ("to interrupt", "esc to interrupt · ← for agents", true),
            ("^esc", "esc to interrupt", true),
            ("^to", "esc to interrupt", false),
            ("interrupt$", "esc to interrupt", true),
            ("esc$", "esc to interrupt", false),
            ("^Working (…s • esc", "Working (3s • esc to interrupt)", true),
            ("^Working (…s • esc", "• Working (3s • esc to interrupt)", false),
            ("^{spinner} Working…", "⠙ Working… · Tip", true),
            ("^{spinner} ", "a b", false),
            ("a…b…c$", "xaxbxbxc", true),
            ("^❯$", "❯", true),
            ("", "anything", true),
        ] {
            assert_eq!(fits(pattern, line), expected, "{pattern:?} {line:?}");
        }
    }

    #[test]
    fn a_rule_looks_at_the_bottom_of_the_screen_only() {
        let rules = r#"
            [[screen]]
            name = "asks"
            says = "needs_input"
            last = 2
            all = ["^Proceed?"]
            question = ["^Proceed"]
        "#;
        let rules = Rules::parse(rules).unwrap();
        let reading = rules.screen(&["│ Proceed?  │", "", "│ 1. Yes │", "   "]).unwrap();
        assert_eq!(reading.question.as_deref(), Some("Proceed?"));
        assert_eq!(rules.screen(&["Proceed?", "1. Yes", "and then it went on"]), None);
        assert_eq!(rules.screen(&[] as &[&str]), None);
    }
}
