//! Reads a SQLite database that another program owns and may be writing to.
//!
//! Only what looking up conversations needs: whole rows of plain tables, by a scan or by an index. Nothing is locked and
//! nothing is written, not even beside it, so that the owner can not notice; whoever reads gets one state of the database
//! or an error, because a read during which it has changed is done again (`pages`). The library itself would be a megabyte
//! of C for this, and would write to the owner's directory to read a database in WAL mode.

mod pages;
mod record;

use std::path::Path;
use std::time::Duration;

use crate::files::Look;
use pages::Pages;
pub(crate) use record::Value;
use record::{Cell, Kind};

/// How often a database that changes while it is read is read again.
const ATTEMPTS: u64 = 20;

/// No tree is deeper, as each level multiplies what it holds.
const MAX_DEPTH: usize = 16;

/// The tree of the table that lists all others.
const SCHEMA: u32 = 1;

/// Reads the database at `path` with `look`, which sees one state of it; `None` if there is no such file.
pub(crate) fn read<T>(path: &Path, look: impl Fn(&Database) -> Look<T>) -> Look<Option<T>> {
    for attempt in 0..ATTEMPTS {
        // Whoever writes without a pause has one soon.
        std::thread::sleep(Duration::from_millis(attempt));
        let Some(pages) = Pages::open(path)? else { return Ok(None) };
        let database = Database { pages };
        let seen = look(&database);
        // An error may come of a change as well.
        if database.pages.is_unchanged() {
            return seen.map(Some);
        }
    }
    Err(format!("{} is being written to all the time", path.display()))
}

/// One state of a database.
pub(crate) struct Database {
    pages: Pages,
}

/// A table: where its rows are, and what their columns are called.
pub(crate) struct Table {
    name: String,
    root: u32,
    columns: Vec<String>,
}

/// A row of a table.
pub(crate) struct Row<'a> {
    table: &'a Table,
    values: Vec<Value>,
}

impl Row<'_> {
    /// The value in `column`; nothing if there is no such column, as in a database of another version. A row that is older
    /// than a column ends before it.
    pub(crate) fn get(&self, column: &str) -> &Value {
        let at = self.table.columns.iter().position(|name| name == column);
        at.and_then(|at| self.values.get(at)).unwrap_or(&Value::Null)
    }
}

impl Database {
    /// The table called `name`.
    pub(crate) fn table(&self, name: &str) -> Look<Table> {
        let mut found = None;
        self.schema(|entry| {
            if entry.kind == "table" && entry.name == name {
                found = Some(Table { name: entry.name, root: entry.root, columns: columns(&entry.sql) });
            }
        })?;
        found.ok_or_else(|| format!("the database has no table `{name}`"))
    }

    /// Every row of `table`.
    pub(crate) fn rows<'a>(&self, table: &'a Table) -> Look<Vec<Row<'a>>> {
        let mut rows = Vec::new();
        self.walk(table.root, 0, &mut |cell| {
            rows.push(Row { table, values: cell.payload.values()? });
            Ok(())
        })?;
        Ok(rows)
    }

    /// The rows of `table` that have `text` in `column`.
    pub(crate) fn rows_with<'a>(&self, table: &'a Table, column: &str, text: &str) -> Look<Vec<Row<'a>>> {
        let fits = |row: &Row<'a>| row.get(column).text() == Some(text);
        let mut index = None;
        self.schema(|entry| {
            if entry.kind == "index" && entry.table == table.name && is_by(&entry.sql, column) {
                index = Some(entry.root);
            }
        })?;
        let Some(index) = index else { return Ok(self.rows(table)?.into_iter().filter(fits).collect()) };
        let mut ids = Vec::new();
        self.seek(index, text, 0, &mut ids)?;
        let mut rows = Vec::new();
        for id in ids {
            let values = self.row(table.root, id)?.ok_or("an index leads to a row that is not there")?;
            rows.push(Row { table, values });
        }
        rows.retain(fits);
        Ok(rows)
    }

    fn schema(&self, mut visit: impl FnMut(Entry)) -> Look<()> {
        self.walk(SCHEMA, 0, &mut |cell| {
            let mut values = cell.payload.values()?.into_iter();
            let mut text = || values.next().and_then(Value::into_text).unwrap_or_default();
            let (kind, name, table) = (text(), text(), text());
            let root = values.next().and_then(|root| u32::try_from(root.integer()?).ok());
            let sql = values.next().and_then(Value::into_text).unwrap_or_default();
            // A view has no rows of its own.
            if let Some(root) = root.filter(|root| *root != 0) {
                visit(Entry { kind, name, table, root, sql });
            }
            Ok(())
        })
    }

    /// Visits every row of the tree at `page`, in order.
    fn walk(&self, page: u32, depth: usize, visit: &mut dyn FnMut(Cell<'_>) -> Look<()>) -> Look<()> {
        let page = self.node(page, depth)?;
        for cell in record::cells(&self.pages, &page) {
            let cell = cell?;
            match page.kind() {
                Kind::TableLeaf => visit(cell)?,
                _ => self.walk(cell.child, depth + 1, visit)?,
            }
        }
        page.last_child().map_or(Ok(()), |child| self.walk(child, depth + 1, visit))
    }

    /// Collects, from the index at `page`, the rows whose first key is `text`.
    fn seek(&self, page: u32, text: &str, depth: usize, found: &mut Vec<i64>) -> Look<()> {
        let page = self.node(page, depth)?;
        for cell in record::cells(&self.pages, &page) {
            let cell = cell?;
            let values = cell.payload.values()?;
            // Nothing and numbers come before any text, and text is in the order of its bytes.
            let key = values.first().and_then(Value::text).map(str::as_bytes);
            let order = key.cmp(&Some(text.as_bytes()));
            if order.is_ge() && page.kind() == Kind::IndexInterior {
                self.seek(cell.child, text, depth + 1, found)?;
            }
            if order.is_eq() {
                found.extend(values.last().and_then(Value::integer));
            }
            if order.is_gt() {
                return Ok(());
            }
        }
        page.last_child().map_or(Ok(()), |child| self.seek(child, text, depth + 1, found))
    }

    /// The row `id` of the table at `page`.
    fn row(&self, page: u32, id: i64) -> Look<Option<Vec<Value>>> {
        let mut next = page;
        for depth in 0..MAX_DEPTH {
            let page = self.node(next, depth)?;
            let mut cells = record::cells(&self.pages, &page);
            let reached = cells.find(|cell| cell.as_ref().map_or(true, |cell| cell.row >= id)).transpose()?;
            next = match (page.kind(), reached, page.last_child()) {
                (Kind::TableLeaf, Some(cell), _) if cell.row == id => return cell.payload.values().map(Some),
                (Kind::TableLeaf, ..) => return Ok(None),
                (_, Some(cell), _) => cell.child,
                (_, None, Some(child)) => child,
                (_, None, None) => return Ok(None),
            };
        }
        Err(too_deep())
    }

    fn node(&self, page: u32, depth: usize) -> Look<record::Node> {
        if depth == MAX_DEPTH { Err(too_deep()) } else { record::Node::new(&self.pages, page) }
    }
}

fn too_deep() -> String {
    "the database is damaged: one of its trees has no end".to_owned()
}

/// A line of the table that lists all others.
struct Entry {
    kind: String,
    name: String,
    table: String,
    root: u32,
    sql: String,
}

/// The names of the columns that `sql` makes a table of.
fn columns(sql: &str) -> Vec<String> {
    const CONSTRAINTS: [&str; 5] = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"];
    let is_column = |name: &String| !CONSTRAINTS.iter().any(|word| name.eq_ignore_ascii_case(word));
    definitions(sql).into_iter().map(first_name).filter(is_column).collect()
}

/// Whether `sql` makes an index whose first key is `column`, and that leaves no row out.
fn is_by(sql: &str, column: &str) -> bool {
    let whole = !sql.to_ascii_uppercase().contains(" WHERE ");
    whole && definitions(sql).first().is_some_and(|key| key.trim().trim_matches(QUOTES) == column)
}

const QUOTES: [char; 5] = ['`', '"', '\'', '[', ']'];

fn first_name(definition: &str) -> String {
    let definition = definition.trim_start();
    let quoted = definition.starts_with(QUOTES);
    let end = |c: char| if quoted { QUOTES.contains(&c) } else { c.is_whitespace() };
    let name = if quoted { &definition[1..] } else { definition };
    name.split(end).next().unwrap_or_default().to_owned()
}

/// What stands, separated by commas, in the outer parentheses of `sql`.
fn definitions(sql: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start, mut found) = (0, None, 0, Vec::new());
    for (at, c) in sql.char_indices() {
        match (quote, c) {
            (Some(open), _) => quote = quote.filter(|_| open != c),
            (None, '`' | '"' | '\'') => quote = Some(c),
            (None, '(') => {
                depth += 1;
                if depth == 1 {
                    start = at + 1;
                }
            }
            (None, ',' | ')') if depth == 1 => {
                found.push(&sql[start..at]);
                start = at + 1;
                depth -= i32::from(c == ')');
            }
            (None, ')') => depth -= 1,
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests;
