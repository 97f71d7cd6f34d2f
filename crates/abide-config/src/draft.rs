//! A TOML file being changed: by cutting and pasting text, so that what is not changed stays as it is, byte for byte.
//!
//! The parser only says where things are. Printing a changed document instead would move comments, reflow lists and
//! replace line ends. A comment is never removed: those of what goes away stay where they were. What the values mean
//! is not this module's business.

use std::ops::Range;

use toml_edit::{Array, Document, InlineTable, Item, Value};

use self::cut::{comments_in, cut_lines, cuts_at};
use self::line::{end_line, line_start, newline, start};
use self::spot::{Spot, body_end, inline_parent, item_at, remove_inline, set_inline, spot_for};
use crate::path::{Path, Step};

mod cut;
mod line;
mod spot;

/// The text of a file, and what was done to it.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    text: String,
    touched: Vec<Path>,
}

/// Why a change has no place in the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoPlace {
    pub(crate) path: Path,
    pub(crate) problem: &'static str,
}

type Edited = Result<(), NoPlace>;

impl Draft {
    pub(crate) fn new(text: String) -> Self {
        Self { text, touched: Vec::new() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Takes what was done so far for the file's own content, as after a migration.
    pub(crate) fn settle(&mut self) {
        self.touched.clear();
    }

    /// Whether `path` is part of what was changed, and so not what the operator's file says.
    pub(crate) fn touches(&self, path: &Path) -> bool {
        self.touched.iter().any(|touched| path.starts_with(touched))
    }

    /// Every text that gets here has been parsed before; the error is for the day that a change breaks one.
    pub(crate) fn document(&self) -> Result<Document<&str>, NoPlace> {
        Document::parse(self.text.as_str()).map_err(|_| NoPlace {
            path: Path::default(),
            problem: "can not be changed without breaking the file",
        })
    }

    /// The value at `path`, if there is one and it is no table.
    pub(crate) fn value(&self, path: &Path) -> Option<Value> {
        let document = self.document().ok()?;
        let item = item_at(document.as_item(), path)?;
        item.as_value().cloned()
    }

    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.document().is_ok_and(|document| item_at(document.as_item(), path).is_some())
    }

    /// Puts `value` at `path`, which consists of keys.
    pub(crate) fn set(&mut self, path: &Path, value: &Value) -> Edited {
        self.insert(path, value.to_string().trim())?;
        self.touched.push(path.clone());
        Ok(())
    }

    /// Takes out whatever is at `path`: a value, an entry of a list, or a table with all that it holds.
    pub(crate) fn remove(&mut self, path: &Path) -> Edited {
        let document = self.document()?;
        if let Some((outer, rest)) = inline_parent(&document, path) {
            self.change_inline(outer, |value| remove_inline(value, &rest))?;
        } else {
            let mut cuts = cuts_at(&self.text, &document, path);
            cuts.sort_by_key(|cut| std::cmp::Reverse(cut.span.start));
            let mut text = self.text.clone();
            for cut in cuts {
                cut_lines(&mut text, &cut);
            }
            self.accept(text)?;
        }
        self.touched.push(path.clone());
        Ok(())
    }

    /// Adds tables to the list of tables at `key`, whichever way the list is written.
    pub(crate) fn push_tables(&mut self, key: &str, tables: &[Vec<(&str, Value)>]) -> Edited {
        let document = self.document()?;
        let there = document.get(key);
        let count = match there {
            Some(Item::Value(value)) => {
                let span = value.span().unwrap_or_default();
                let count = value.as_array().map_or(0, Array::len);
                self.change_inline(span, |value| push_inline(value, tables))?;
                count
            }
            _ => {
                let there = there.and_then(Item::as_array_of_tables);
                let last = there.and_then(|there| there.iter().last()).map(body_end);
                let count = there.map_or(0, |there| there.len());
                let blocks = tables.iter().map(|table| block(key, table, newline(&self.text)));
                let blocks = blocks.collect::<Vec<_>>().join(newline(&self.text));
                self.insert_block(last, &blocks)?;
                count
            }
        };
        let added = (count..count + tables.len())
            .map(|index| Path(vec![Step::Key(key.to_owned()), Step::Index(index)]));
        self.touched.extend(added);
        Ok(())
    }

    fn insert(&mut self, path: &Path, written: &str) -> Edited {
        let newline = newline(&self.text);
        let spot = {
            let document = self.document()?;
            spot_for(&self.text, &document, path)?
        };
        match spot {
            Spot::Replace { key, value, comments } => {
                let mut text = self.text.clone();
                text.replace_range(value, written);
                let kept: String = comments.iter().map(|comment| format!("{comment}{newline}")).collect();
                text.insert_str(line_start(&text, key.start), &kept);
                self.accept(text)
            }
            Spot::Inline { table, rest } => {
                self.change_inline(table, |table| set_inline(table, &rest, written))
            }
            Spot::Line { after, key } => {
                let line = format!("{key} = {written}{newline}");
                let mut text = self.text.clone();
                let at = match after {
                    Some(offset) => end_line(&mut text, offset, newline),
                    None => start(&text),
                };
                text.insert_str(at, &line);
                self.accept(text)
            }
            Spot::Table { header, key } => {
                self.insert_block(None, &format!("[{header}]{newline}{key} = {written}{newline}"))
            }
        }
    }

    /// Puts `block` after the line of offset `after`, or at the end, with an empty line before it.
    fn insert_block(&mut self, after: Option<usize>, block: &str) -> Edited {
        let newline = newline(&self.text);
        let mut text = self.text.clone();
        let at = match after {
            Some(offset) => end_line(&mut text, offset, newline),
            None => {
                let end = text.len();
                end_line(&mut text, end, newline)
            }
        };
        let before = &text[..at];
        let gap = before.len() == start(before) || before.ends_with("\n\n") || before.ends_with("\n\r\n");
        text.insert_str(at, &format!("{}{block}", if gap { "" } else { newline }));
        self.accept(text)
    }

    /// Changes an inline table or list; the comments of what goes away move above its line.
    fn change_inline(&mut self, span: Range<usize>, change: impl FnOnce(&mut Value) -> bool) -> Edited {
        let refused =
            || NoPlace { path: Path::default(), problem: "can not be changed inside an inline table" };
        let before = &self.text[span.clone()];
        let mut value: Value = before.parse().map_err(|_| refused())?;
        if !change(&mut value) {
            return Err(refused());
        }
        let after = value.decorated("", "").to_string();
        let after = after.trim();
        let mut left = comments_in(after);
        let newline = newline(&self.text);
        let mut lost = String::new();
        for comment in comments_in(before) {
            match left.iter().position(|other| *other == comment) {
                Some(index) => drop(left.remove(index)),
                None => lost.extend([comment.as_str(), newline]),
            }
        }
        let mut text = self.text.clone();
        text.replace_range(span.clone(), after);
        text.insert_str(line_start(&text, span.start), &lost);
        self.accept(text)
    }

    fn accept(&mut self, text: String) -> Edited {
        let before = std::mem::replace(&mut self.text, text);
        let parsed = self.document().map(drop);
        if parsed.is_err() {
            self.text = before;
        }
        parsed
    }
}

/// A table of the list `key` as text.
fn block(key: &str, entries: &[(&str, Value)], newline: &str) -> String {
    let mut block = format!("[[{key}]]{newline}");
    for (key, value) in entries {
        block.push_str(&format!("{key} = {}{newline}", value.to_string().trim()));
    }
    block
}

fn push_inline(list: &mut Value, tables: &[Vec<(&str, Value)>]) -> bool {
    let Some(array) = list.as_array_mut() else { return false };
    for entries in tables {
        array.push(entries.iter().map(|(key, value)| (*key, value.clone())).collect::<InlineTable>());
    }
    true
}
