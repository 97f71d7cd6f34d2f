//! Where something is inside a TOML file: by names and indices, and from there by line and column.
//!
//! Mistakes are remembered by path and only turned into a position at the end, in the text that the operator wrote:
//! a file of an older version is checked after its migration, when byte offsets no longer mean anything to them.

use std::fmt;
use std::ops::Range;

use toml_edit::{Document, Item, Key};

/// One step from a table or a list to what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    Key(String),
    Index(usize),
}

/// The steps from the top of a file to one of its items.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Path(pub(crate) Vec<PathStep>);

impl Path {
    /// The path that `text` spells the TOML way, e.g. `agents."my.agent".args`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let keys = Key::parse(text).ok()?;
        Some(keys.iter().map(|key| key.get().to_owned()).collect())
    }

    pub(crate) fn starts_with(&self, prefix: &Self) -> bool {
        self.0.starts_with(&prefix.0)
    }
}

impl<S: Into<String>> FromIterator<S> for Path {
    fn from_iter<I: IntoIterator<Item = S>>(keys: I) -> Self {
        Self(keys.into_iter().map(|key| PathStep::Key(key.into())).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Index(index) => write!(f, "[{index}]")?,
                PathStep::Key(key) => {
                    let dot = if depth == 0 { "" } else { "." };
                    write!(f, "{dot}{}", Key::new(key).display_repr())?;
                }
            }
        }
        Ok(())
    }
}

/// Where an item of a file is, and the key that it stands under.
#[derive(Default)]
pub(crate) struct ItemSpans {
    pub(crate) key: Option<Range<usize>>,
    pub(crate) item: Option<Range<usize>>,
}

/// Where the item at `path` is, or else the deepest one on the way to it.
pub(crate) fn find_nearest(document: &Document<&str>, path: &Path) -> ItemSpans {
    let mut found = ItemSpans::default();
    let mut here = document.as_item().clone();
    for step in &path.0 {
        let next = match (step, &here) {
            (PathStep::Key(key), _) => {
                here.as_table_like().and_then(|table| table.get_key_value(key)).map(|(key, item)| {
                    found.key = key.span();
                    item.clone()
                })
            }
            (PathStep::Index(index), Item::ArrayOfTables(tables)) => {
                tables.get(*index).cloned().map(Item::Table)
            }
            (PathStep::Index(index), _) => {
                here.as_array().and_then(|array| array.get(*index)).cloned().map(Item::Value)
            }
        };
        let Some(next) = next else { break };
        found.item = next.span().or(found.item);
        here = next;
    }
    found
}

/// A line and a column of a file, both counted from one; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl Position {
    /// Where byte `offset` of `text` is.
    pub(crate) fn of(offset: usize, text: &[u8]) -> Self {
        let before = &text[..offset.min(text.len())];
        let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.iter().filter(|b| **b == b'\n').count() + 1,
            column: String::from_utf8_lossy(&before[line_start..]).chars().count() + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let text = "a = 1\né = \"ü\" # x\n";
        let at = |needle: &str| Position::of(text.find(needle).unwrap(), text.as_bytes());
        assert_eq!(at("a"), Position { line: 1, column: 1 });
        assert_eq!(at("\"ü"), Position { line: 2, column: 5 });
        assert_eq!(at("#"), Position { line: 2, column: 9 });
        assert_eq!(Position::of(999, text.as_bytes()), Position { line: 3, column: 1 });
    }

    #[test]
    fn a_path_is_spelled_as_it_is_parsed() {
        for text in ["role", "trash.keep_days", "agents.\"my.agent\".args"] {
            assert_eq!(Path::parse(text).unwrap().to_string(), text);
        }
        assert!(Path::parse("a..b").is_none());
        assert!(Path::parse("").is_none());
    }
}
