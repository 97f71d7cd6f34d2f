//! Finding where a value stands in a file, or where a new one belongs.

use std::ops::Range;

use toml_edit::{Document, InlineTable, Item, Key, Table, Value};

use super::NoPlace;
use super::cut::comments_in;
use crate::path::{Path, Step};

/// Where a value goes.
pub(super) enum Spot {
    /// In place of the one that is there, whose inner comments move above its line.
    Replace { key: Range<usize>, value: Range<usize>, comments: Vec<String> },
    /// Into the inline table at this span, by the rest of the path.
    Inline { table: Range<usize>, rest: Vec<Step> },
    /// On a line of its own after the line of this offset, or at the top.
    Line { after: Option<usize>, key: String },
    /// Into a new table at the end.
    Table { header: String, key: String },
}

/// The place for a value at `path`, which consists of keys.
pub(super) fn spot_for(text: &str, document: &Document<&str>, path: &Path) -> Result<Spot, NoPlace> {
    if let Some((table, rest)) = inline_parent(document, path) {
        return Ok(Spot::Inline { table, rest });
    }
    let no_place = |problem| NoPlace { path: path.clone(), problem };
    let mut table = document.as_table();
    // How much of the path the header above the line already says.
    let mut headed = 0;
    for (depth, step) in path.0.iter().enumerate() {
        let Step::Key(name) = step else { return Err(no_place("has no line of its own")) };
        let last = depth + 1 == path.0.len();
        match table.get_key_value(name) {
            None => return Ok(new_spot(table, path, headed, last)),
            Some((_, Item::Table(inner))) if !last => {
                table = inner;
                headed = if inner.is_dotted() { headed } else { depth + 1 };
            }
            Some((key, Item::Value(value))) if last => {
                let (Some(key), Some(value)) = (key.span(), value.span()) else { break };
                let comments = comments_in(&text[value.clone()]);
                return Ok(Spot::Replace { key, value, comments });
            }
            Some(_) if last => return Err(no_place("is a section of the file")),
            Some(_) => return Err(no_place("is inside something that is no section of the file")),
        }
    }
    Err(no_place("has no line of its own"))
}

fn new_spot(table: &Table, path: &Path, headed: usize, last: bool) -> Spot {
    let spelled = |steps: &[Step]| Path(steps.to_vec()).to_string();
    let has_lines = table.is_dotted() || last && !table.is_implicit();
    if has_lines {
        return Spot::Line { after: last_line(table).or(header_end(table)), key: spelled(&path.0[headed..]) };
    }
    let (parents, key) = path.0.split_at(path.0.len() - 1);
    Spot::Table { header: spelled(parents), key: spelled(key) }
}

/// Where the last line of a table ends, or its header.
pub(super) fn body_end(table: &Table) -> usize {
    last_line(table).or(header_end(table)).unwrap_or_default()
}

/// `None` for the top of the file, which has no header.
fn header_end(table: &Table) -> Option<usize> {
    table.span().map(|span| span.end).filter(|end| *end > 0)
}

fn last_line(table: &Table) -> Option<usize> {
    let ends = table.iter().filter_map(|(_, item)| match item {
        Item::Value(value) => value.span().map(|span| span.end),
        Item::Table(inner) if inner.is_dotted() => last_line(inner),
        _ => None,
    });
    ends.max()
}

/// The item at `path`, which consists of keys.
pub(super) fn item_at<'d>(top: &'d Item, path: &Path) -> Option<&'d Item> {
    path.0.iter().try_fold(top, |item, step| match step {
        Step::Key(key) => item.get(key.as_str()),
        Step::Index(_) => None,
    })
}

/// The outermost inline table or list on the way to `path`, and the rest of the way.
pub(super) fn inline_parent(document: &Document<&str>, path: &Path) -> Option<(Range<usize>, Vec<Step>)> {
    let mut item = document.as_item();
    for (depth, step) in path.0.iter().enumerate() {
        if let Item::Value(value @ (Value::InlineTable(_) | Value::Array(_))) = item {
            return value.span().map(|span| (span, path.0[depth..].to_vec()));
        }
        let Step::Key(key) = step else { return None };
        item = item.get(key.as_str())?;
    }
    None
}

/// Puts what is `written` into an inline table; `false` if something else is in the way.
pub(super) fn set_inline(value: &mut Value, path: &[Step], written: &str) -> bool {
    let Some((Step::Key(key), rest)) = path.split_first() else { return false };
    let Some(table) = value.as_inline_table_mut() else { return false };
    if !rest.is_empty() {
        let inner = table.entry(key).or_insert_with(|| InlineTable::new().into());
        let done = set_inline(inner, rest, written);
        tidy(table);
        return done;
    }
    let Ok(new) = written.parse::<Value>() else { return false };
    match table.get_mut(key) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = new;
            *old.decor_mut() = decor;
        }
        None => {
            table.insert_formatted(&Key::new(key), new.decorated(" ", ""));
            tidy(table);
        }
    }
    true
}

/// Takes an entry out of an inline table or list; `false` if it is not there.
pub(super) fn remove_inline(value: &mut Value, path: &[Step]) -> bool {
    match (value, path) {
        (Value::InlineTable(table), [Step::Key(key)]) => {
            let removed = table.remove(key).is_some();
            tidy(table);
            removed
        }
        (Value::InlineTable(table), [Step::Key(key), rest @ ..]) => {
            table.get_mut(key).is_some_and(|inner| remove_inline(inner, rest))
        }
        (Value::Array(array), [Step::Index(index)]) if *index < array.len() => {
            array.remove(*index);
            true
        }
        (Value::Array(array), [Step::Index(index), rest @ ..]) => {
            array.get_mut(*index).is_some_and(|inner| remove_inline(inner, rest))
        }
        _ => false,
    }
}

/// Evens out the spaces of a table on one line; one over several lines has comments and is left alone.
fn tidy(table: &mut InlineTable) {
    if !table.to_string().contains('\n') {
        table.fmt();
    }
}
