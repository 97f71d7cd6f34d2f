//! A TOML file being changed, by `toml_edit`: what is not changed keeps its form and its comments.

use std::collections::{HashMap, VecDeque};

use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::path::{Path, PathStep};

/// Some editors begin a file with it; TOML does not know it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A file's content, and what was done to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    document: DocumentMut,
    byte_order_mark: bool,
    /// The text that was read, if lines of it end with a carriage return.
    crlf: Option<String>,
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
    /// The file with this `text`, which is that `document`.
    pub(crate) fn new(text: &str, document: DocumentMut) -> Self {
        let byte_order_mark = text.starts_with(BYTE_ORDER_MARK);
        let crlf = text.contains("\r\n").then(|| text.trim_start_matches(BYTE_ORDER_MARK).to_owned());
        Self { document, byte_order_mark, crlf, touched: Vec::new() }
    }

    /// The file as it is to be written. `toml_edit` ends lines with a line feed alone.
    pub(crate) fn text(&self) -> String {
        let mut text = self.document.to_string();
        if let Some(original) = &self.crlf {
            text = with_line_ends_of(original, &text);
        }
        if self.byte_order_mark {
            text.insert(0, BYTE_ORDER_MARK);
        }
        text
    }

    pub(crate) fn document(&self) -> &DocumentMut {
        &self.document
    }

    pub(crate) fn document_mut(&mut self) -> &mut DocumentMut {
        &mut self.document
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

    /// The value at `path`, if there is one and it is no table.
    pub(crate) fn value(&self, path: &Path) -> Option<&Value> {
        self.item(path)?.as_value()
    }

    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.item(path).is_some()
    }

    fn item(&self, path: &Path) -> Option<&Item> {
        path.0.iter().try_fold(self.document.as_item(), |item, step| match step {
            PathStep::Key(key) => item.get(key),
            PathStep::Index(_) => None,
        })
    }

    /// Puts `value` at `path`, which consists of keys.
    pub(crate) fn set(&mut self, path: &Path, value: &Value) -> Edited {
        let no_place = |problem| NoPlace { path: path.clone(), problem };
        let Some((key, parents)) = keys(path) else { return Err(no_place("has no line of its own")) };
        let table = table_at(self.document.as_table_mut(), parents)
            .ok_or_else(|| no_place("is inside a value that is not a section of the file"))?;
        match table.get_mut(key) {
            Some(Item::Value(old)) => replace(old, value.clone()),
            Some(_) => return Err(no_place("is a section of the file")),
            None => drop(table.insert(key, Item::Value(value.clone().decorated(" ", "")))),
        }
        self.touched(path.clone());
        Ok(())
    }

    /// Removes what is at `path`: a value, an entry of a list, or a table with all that it holds. Comments above it stay.
    pub(crate) fn remove(&mut self, path: &Path) -> Edited {
        let no_place = || NoPlace { path: path.clone(), problem: "is not in the file" };
        let (last, parents) = path.0.split_last().ok_or_else(no_place)?;
        let parent = parents.iter().try_fold(self.document.as_item_mut(), |item, step| match step {
            PathStep::Key(key) => item.as_table_like_mut()?.get_mut(key),
            PathStep::Index(_) => None,
        });
        match (parent.ok_or_else(no_place)?, last) {
            (Item::ArrayOfTables(tables), PathStep::Index(index)) if *index < tables.len() => {
                tables.remove(*index);
            }
            (Item::Value(Value::Array(array)), PathStep::Index(index)) if *index < array.len() => {
                array.remove(*index);
            }
            (item, PathStep::Key(key)) => {
                let table = item.as_table_like_mut().ok_or_else(no_place)?;
                if let Some(comments) = remove_key(table, key) {
                    let end = self.document.trailing().as_str().unwrap_or_default().to_owned();
                    self.document.set_trailing(comments + &end);
                }
            }
            _ => return Err(no_place()),
        }
        self.touched(path.clone());
        Ok(())
    }

    /// Adds a table to the list of tables at `key`, whichever way the list is written.
    pub(crate) fn push_table(&mut self, key: &str, entries: &[(&str, Value)]) -> Edited {
        let list = self.document.entry(key).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        let index = match list {
            Item::ArrayOfTables(tables) => {
                tables.push(entries.iter().map(|(key, value)| (*key, value.clone())).collect());
                tables.len() - 1
            }
            Item::Value(Value::Array(array)) => {
                array.push(entries.iter().map(|(key, value)| (*key, value.clone())).collect::<InlineTable>());
                array.len() - 1
            }
            _ => return Err(NoPlace { path: Path::from_iter([key]), problem: "is not a list of tables" }),
        };
        self.touched(Path(vec![PathStep::Key(key.to_owned()), PathStep::Index(index)]));
        Ok(())
    }

    fn touched(&mut self, path: Path) {
        let mut item = Some(self.document.as_item_mut());
        for step in &path.0 {
            let PathStep::Key(key) = step else { break };
            item = item.and_then(|item| item.as_table_like_mut()?.get_mut(key));
            if let Some(value) = item.as_mut().and_then(|item| item.as_value_mut()) {
                even_out(value);
            }
        }
        self.touched.push(path);
    }
}

/// `text` with each line that is in `original` ended as it is there; one that is new ends as the one before it.
fn with_line_ends_of(original: &str, text: &str) -> String {
    let bare = |line: &'_ str| line.trim_end_matches(['\r', '\n']).len();
    let mut ends: HashMap<&str, VecDeque<&str>> = HashMap::new();
    let mut last = "\r\n";
    for line in original.split_inclusive('\n').rev() {
        let (line, end) = line.split_at(bare(line));
        last = if end.is_empty() { last } else { end };
        ends.entry(line).or_default().push_front(end);
    }
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let (line, end) = line.split_at(bare(line));
        let known = ends.get_mut(line).and_then(VecDeque::pop_front);
        last = known.filter(|end| !end.is_empty()).unwrap_or(last);
        out.push_str(line);
        out.push_str(if end.is_empty() { "" } else { last });
    }
    out
}

/// Puts `new` in the place of `old`, with the comment that stands there.
pub(crate) fn replace(old: &mut Value, new: Value) {
    let decor = old.decor().clone();
    *old = new;
    *old.decor_mut() = decor;
}

/// The last key of `path` and those before it; `None` if it leads through a list.
fn keys(path: &Path) -> Option<(&str, Vec<&str>)> {
    let mut keys = Vec::new();
    for step in &path.0 {
        let PathStep::Key(key) = step else { return None };
        keys.push(key.as_str());
    }
    Some((keys.pop()?, keys))
}

/// The table that `parents` lead to; what is missing is made in the style of where it goes.
fn table_at<'d>(root: &'d mut Table, parents: Vec<&str>) -> Option<&'d mut dyn TableLike> {
    let (mut table, mut inline, depth) = (root as &mut dyn TableLike, false, parents.len());
    for (at, key) in parents.into_iter().enumerate() {
        let item = table.entry(key).or_insert_with(|| match inline {
            true => Item::Value(InlineTable::new().into()),
            // Only the innermost needs a header of its own.
            false => Item::Table(implicit(at + 1 < depth)),
        });
        inline |= item.is_inline_table();
        table = item.as_table_like_mut()?;
    }
    Some(table)
}

fn implicit(implicit: bool) -> Table {
    let mut table = Table::new();
    table.set_implicit(implicit);
    table
}

/// Removes `key`. The comments above it move to what follows in the same table, or are returned if nothing does.
fn remove_key(table: &mut dyn TableLike, key: &str) -> Option<String> {
    let next = table.iter().map(|(name, _)| name.to_owned()).skip_while(|name| name != key).nth(1);
    let comments = table.key(key).and_then(|key| key.leaf_decor().prefix()?.as_str().map(str::to_owned));
    table.remove(key);
    let comments = comments.filter(|text| text.contains('#'))?;
    let Some(mut next) = next.and_then(|next| table.key_mut(&next)) else { return Some(comments) };
    let decor = next.leaf_decor_mut();
    let own = decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default().to_owned();
    decor.set_prefix(comments + &own);
    None
}

/// Evens out the spaces of inline tables on one line; those over several lines hold comments and stay as they are.
fn even_out(value: &mut Value) {
    if let Value::InlineTable(table) = value
        && !table.to_string().contains('\n')
    {
        table.fmt();
        table.iter_mut().for_each(|(_, value)| even_out(value));
    }
}
