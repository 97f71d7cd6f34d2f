//! Taking lines out of a text without taking comments along.

use std::ops::Range;

use toml_edit::{Document, Item, Key, Table, Value};

use super::line::{is_blank, line_end, line_start, newline};
use super::spot::item_at;
use crate::path::{Path, Step};

/// Lines to be taken out.
pub(super) struct Cut {
    /// From anywhere in the first line to anywhere in the last; the comment at its end stays.
    pub(super) span: Range<usize>,
    /// Comments from inside, which stay.
    pub(super) comments: Vec<String>,
}

/// The cuts that take out what is at `path`.
pub(super) fn cuts_at(text: &str, document: &Document<&str>, path: &Path) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let Some((parent, last)) = path.split_last() else { return cuts };
    match (item_at(document.as_item(), &parent), last) {
        (Some(Item::ArrayOfTables(tables)), Step::Index(index)) => {
            if let Some(table) = tables.get(*index) {
                table_cuts(text, table, &mut cuts);
            }
        }
        (Some(Item::Table(table)), Step::Key(key)) => {
            if let Some((key, item)) = table.get_key_value(key) {
                item_cuts(text, key, item, &mut cuts);
            }
        }
        _ => {}
    }
    cuts
}

fn item_cuts(text: &str, key: &Key, item: &Item, cuts: &mut Vec<Cut>) {
    match item {
        Item::Value(value) => {
            if let (Some(key), Some(span)) = (key.span(), value.span()) {
                let comments = comments_in(&text[span.clone()]);
                cuts.push(Cut { span: key.start..span.end, comments });
            }
        }
        Item::Table(table) => table_cuts(text, table, cuts),
        Item::ArrayOfTables(tables) => tables.iter().for_each(|table| table_cuts(text, table, cuts)),
        Item::None => {}
    }
}

fn table_cuts(text: &str, table: &Table, cuts: &mut Vec<Cut>) {
    if !table.is_dotted() && !table.is_implicit() {
        cuts.extend(table.span().map(|span| Cut { span, comments: Vec::new() }));
    }
    for (key, item) in table.iter() {
        if let Some(key) = table.key(key) {
            item_cuts(text, key, item, cuts);
        }
    }
}

/// Takes the lines of `cut` out of `text`.
pub(super) fn cut_lines(text: &mut String, cut: &Cut) {
    let newline = newline(text);
    let mut from = line_start(text, cut.span.start);
    let to = line_end(text, cut.span.end);
    let remark = text[cut.span.end..to].trim();
    let remark = remark.starts_with('#').then(|| remark.to_owned());
    let kept: String = cut.comments.iter().cloned().chain(remark).map(|comment| comment + newline).collect();
    // Two empty lines would be left where something stood alone between them.
    let above = text[..from].lines().next_back();
    let below = text[to..].lines().next();
    if kept.is_empty() && above.is_some_and(is_blank) && below.is_none_or(is_blank) {
        from = line_start(text, from.saturating_sub(1));
    }
    text.replace_range(from..to, &kept);
}

/// The comments inside a value, given as its text.
pub(super) fn comments_in(value: &str) -> Vec<String> {
    let mut comments = Vec::new();
    if value.contains('#')
        && let Ok(value) = value.parse::<Value>()
    {
        gather_comments(&value, &mut comments);
    }
    comments
}

fn gather_comments(value: &Value, comments: &mut Vec<String>) {
    let mut gather = |raw: Option<&toml_edit::RawString>| {
        let lines = raw.and_then(|raw| raw.as_str()).unwrap_or_default().lines().map(str::trim);
        comments.extend(lines.filter(|line| line.starts_with('#')).map(str::to_owned));
    };
    match value {
        Value::Array(array) => {
            for element in array {
                gather(element.decor().prefix());
                gather(element.decor().suffix());
            }
            gather(Some(array.trailing()));
            array.iter().for_each(|element| gather_comments(element, comments));
        }
        Value::InlineTable(table) => {
            for (key, element) in table.iter() {
                gather(table.key(key).and_then(|key| key.leaf_decor().prefix()));
                gather(element.decor().prefix());
                gather(element.decor().suffix());
            }
            gather(Some(table.trailing()));
            table.iter().for_each(|(_, element)| gather_comments(element, comments));
        }
        _ => {}
    }
}
