//! A TOML file being changed: by cutting and pasting text, so that what is not changed stays as it is, byte for byte.
//!
//! The parser only says where things are. Printing a changed document instead would move comments, reflow lists and
//! replace line ends. A comment is never removed: those of what goes away stay where they were. What the values mean
//! is not this module's business.

use std::ops::Range;

use toml_edit::{Array, Document, InlineTable, Item, Value};

use self::cut::{Cut, comments_in, cut_lines, cuts_at};
use self::line::{end_line, line_end, line_start, newline, start};
use self::spot::{Spot, body_end, inline_parent, item_at, remove_inline, set_inline, spot_for};
use crate::path::{Path, Step};

mod cut;
mod line;
mod spot;

/// The text of a file, and what was done to it.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    text: String,
    /// Where things were before a migration: (now, then).
    moves: Vec<(Path, Path)>,
    touched: Vec<Path>,
}

/// Why a change has no place in the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoPlace {
    pub(crate) path: Path,
    pub(crate) problem: &'static str,
}

type Edited = Result<(), NoPlace>;

/// A key and its value on lines of their own.
struct Statement {
    key: Range<usize>,
    value: Range<usize>,
    /// The comment lines directly above.
    comments: Range<usize>,
}

impl Draft {
    pub(crate) fn new(text: String) -> Self {
        Self { text, moves: Vec::new(), touched: Vec::new() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_touched(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Whether `path` is part of what was changed, and so not what the operator's file says.
    pub(crate) fn touches(&self, path: &Path) -> bool {
        self.touched.iter().any(|touched| path.starts_with(touched))
    }

    /// Where `path` was in the file before it was migrated.
    pub(crate) fn origin(&self, path: &Path) -> Path {
        self.moves.iter().rev().fold(path.clone(), |path, (now, then)| {
            match path.0.strip_prefix(now.0.as_slice()) {
                Some(rest) => Path(then.0.iter().chain(rest).cloned().collect()),
                None => path,
            }
        })
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
        self.insert(path, value.to_string().trim(), "", "")?;
        self.touched.push(path.clone());
        Ok(())
    }

    /// Ends a migration: `key` says the new version, and what was done counts as the file's own content.
    pub(crate) fn stamp(&mut self, key: &str, version: i64) -> Edited {
        let path = Path::from_iter([key]);
        if self.contains(&path) {
            self.insert(&path, &version.to_string(), "", "")?;
        } else {
            let top = start(&self.text);
            let line = format!("{key} = {version}{}", newline(&self.text));
            self.replace(top..top, &line)?;
        }
        self.touched.clear();
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

    /// Takes out the table at `path` if nothing is left in it.
    pub(crate) fn remove_if_empty(&mut self, path: &Path) -> Edited {
        let empty = self.document().is_ok_and(|document| {
            item_at(document.as_item(), path)
                .and_then(Item::as_table_like)
                .is_some_and(|table| table.is_empty())
        });
        if empty { self.remove(path) } else { Ok(()) }
    }

    /// Does all of `change`, or nothing: what a migration can not place is left for the schema to refuse.
    pub(crate) fn attempt(&mut self, change: impl FnOnce(&mut Self) -> Edited) {
        let before = self.clone();
        if change(self).is_err() {
            *self = before;
        }
    }

    /// Moves a value to another key, converted if `convert` knows how; its comments go with it.
    ///
    /// What can not be moved, because it is no value or because the new key is taken, stays where it is.
    pub(crate) fn carry(&mut self, from: &str, to: &str, convert: fn(&Value) -> Option<Value>) {
        let (Some(from), Some(to)) = (Path::parse(from), Path::parse(to)) else { return };
        let Some(value) = self.value(&from) else { return };
        if self.contains(&to) {
            return;
        }
        let converted = convert(&value).map(|value| value.to_string().trim().to_owned());
        self.attempt(|draft| {
            match draft.statement(&from)? {
                Some(statement) => draft.carry_statement(&statement, converted, &from, &to)?,
                None => {
                    let written = converted.unwrap_or_else(|| value.to_string().trim().to_owned());
                    draft.remove(&from)?;
                    draft.insert(&to, &written, "", "")?;
                }
            }
            draft.moves.push((to, from));
            Ok(())
        });
    }

    fn carry_statement(
        &mut self,
        it: &Statement,
        converted: Option<String>,
        from: &Path,
        to: &Path,
    ) -> Edited {
        let written = converted.unwrap_or_else(|| self.text[it.value.clone()].to_owned());
        if are_siblings(from, to) {
            let between = &self.text[it.key.end..it.value.start];
            let line = format!("{}{between}{written}", last_key(to));
            return self.replace(it.key.start..it.value.end, &line);
        }
        let comments = self.text[it.comments.clone()].to_owned();
        let remark = self.text[it.value.end..line_end(&self.text, it.value.end)].trim_end().to_owned();
        let mut text = self.text.clone();
        let span = it.comments.start..it.value.end;
        cut_lines(&mut text, &Cut { span, comments: Vec::new(), keep_remark: false });
        self.accept(text)?;
        self.insert(to, &written, &comments, &remark)
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

    fn insert(&mut self, path: &Path, written: &str, comments: &str, remark: &str) -> Edited {
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
                let line = format!("{comments}{key} = {written}{remark}{newline}");
                let mut text = self.text.clone();
                let at = match after {
                    Some(offset) => end_line(&mut text, offset, newline),
                    None => start(&text),
                };
                text.insert_str(at, &line);
                self.accept(text)
            }
            Spot::Table { header, key } => self.insert_block(
                None,
                &format!("[{header}]{newline}{comments}{key} = {written}{remark}{newline}"),
            ),
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

    fn statement(&self, path: &Path) -> Result<Option<Statement>, NoPlace> {
        let document = self.document()?;
        if inline_parent(&document, path).is_some() {
            return Ok(None);
        }
        let Some((parent, Step::Key(key))) = path.split_last() else { return Ok(None) };
        let table = item_at(document.as_item(), &parent).and_then(Item::as_table);
        let Some((key, Item::Value(value))) = table.and_then(|table| table.get_key_value(key)) else {
            return Ok(None);
        };
        let (Some(key_span), Some(value_span)) = (key.span(), value.span()) else { return Ok(None) };
        let line = line_start(&self.text, key_span.start);
        let above =
            key.leaf_decor().prefix().and_then(|prefix| prefix.span()).map_or(line, |span| span.start);
        let lines = self.text[above.min(line)..line].split_inclusive('\n').rev();
        let length: usize = lines.take_while(|line| line.trim_start().starts_with('#')).map(str::len).sum();
        Ok(Some(Statement { key: key_span, value: value_span, comments: line - length..line }))
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

    fn replace(&mut self, span: Range<usize>, with: &str) -> Edited {
        let mut text = self.text.clone();
        text.replace_range(span, with);
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

fn are_siblings(one: &Path, other: &Path) -> bool {
    one.split_last().map(|(parent, _)| parent) == other.split_last().map(|(parent, _)| parent)
}

/// The last key of `path` as TOML spells it.
fn last_key(path: &Path) -> String {
    Path(path.0.last().cloned().into_iter().collect()).to_string()
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
