//! Reads a SQLite database that another program owns and may be writing to: read-only, and one state of it at a time.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

use crate::files::FileResult;

/// How long the owner may keep the database locked. In WAL mode, which is the usual one, it never does.
const PATIENCE: Duration = Duration::from_millis(500);

/// Reads the database at `path` with `look`, which sees one state of it; `None` if there is no such file.
pub(crate) fn read<T>(path: &Path, look: impl FnOnce(&Database) -> FileResult<T>) -> FileResult<Option<T>> {
    if !path.exists() {
        return Ok(None);
    }
    let failed = |error: rusqlite::Error| format!("{}: {error}", path.display());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    // Everything inside of it sees the state that the first query saw. Dropping the connection ends it.
    connection.execute_batch("BEGIN").map_err(failed)?;
    look(&Database(connection)).map(Some)
}

/// One state of a database.
pub(crate) struct Database(Connection);

/// A row of a table.
pub(crate) struct SqlRow {
    columns: Rc<Vec<String>>,
    values: Vec<Value>,
}

impl SqlRow {
    /// The value in `column`; nothing if there is no such column, as in a database of another version.
    pub(crate) fn get(&self, column: &str) -> &Value {
        let at = self.columns.iter().position(|name| name == column);
        at.and_then(|at| self.values.get(at)).unwrap_or(&Value::Null)
    }

    pub(crate) fn text(&self, column: &str) -> Option<&str> {
        if let Value::Text(text) = self.get(column) { Some(text) } else { None }
    }

    pub(crate) fn integer(&self, column: &str) -> Option<i64> {
        if let Value::Integer(number) = self.get(column) { Some(*number) } else { None }
    }
}

impl Database {
    /// Every row of `table`, in the order in which they were inserted.
    pub(crate) fn rows(&self, table: &str) -> FileResult<Vec<SqlRow>> {
        self.select(&format!("SELECT * FROM {table} ORDER BY rowid"), [])
    }

    /// The rows of `table` that have `text` in `column`.
    pub(crate) fn rows_with(&self, table: &str, column: &str, text: &str) -> FileResult<Vec<SqlRow>> {
        self.select(&format!("SELECT * FROM {table} WHERE {column} = ?1 ORDER BY rowid"), [text])
    }

    fn select(&self, query: &str, parameters: impl rusqlite::Params) -> FileResult<Vec<SqlRow>> {
        let run = || {
            let mut query = self.0.prepare(query)?;
            let columns = Rc::new(query.column_names().map(str::to_owned).collect::<Vec<_>>());
            let row = |row: &rusqlite::Row<'_>| {
                let values = (0..columns.len()).map(|at| row.get(at)).collect::<rusqlite::Result<_>>()?;
                Ok(SqlRow { columns: Rc::clone(&columns), values })
            };
            query.query_map(parameters, row)?.collect::<rusqlite::Result<Vec<_>>>()
        };
        run().map_err(|error: rusqlite::Error| format!("the database cannot be read: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database in WAL mode whose owner was killed: what it wrote last is in the log alone.
    fn left_by_a_killed_owner() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let script = "import os, sqlite3
db = sqlite3.connect('t.db')
db.execute('PRAGMA journal_mode = WAL')
db.execute('CREATE TABLE t (k TEXT, v)')
db.executemany('INSERT INTO t VALUES (?, ?)', [('a', 1), ('b', 1.5), ('a', 'caf\\u00e9'), ('c', b'x'), ('d', None)])
db.commit()
db.execute('DELETE FROM t')
os._exit(0)";
        let run = std::process::Command::new("python3").args(["-c", script]).current_dir(dir.path()).output();
        assert!(run.unwrap().status.success());
        dir
    }

    #[test]
    fn what_is_only_in_the_log_is_read_and_what_was_not_committed_is_not() {
        let dir = left_by_a_killed_owner();
        let (all, some, unknown) = read(&dir.path().join("t.db"), |database| {
            let value = |row: &SqlRow| row.get("v").clone();
            let all: Vec<Value> = database.rows("t")?.iter().map(value).collect();
            let some: Vec<Value> = database.rows_with("t", "k", "a")?.iter().map(value).collect();
            Ok((all, some, database.rows("t")?[0].get("none").clone()))
        })
        .unwrap()
        .unwrap();
        let text = Value::Text("café".to_owned());
        assert_eq!(
            all,
            [Value::Integer(1), Value::Real(1.5), text.clone(), Value::Blob(b"x".to_vec()), Value::Null]
        );
        assert_eq!((some, unknown), (vec![Value::Integer(1), text], Value::Null));
    }

    #[test]
    fn a_look_sees_one_state_while_the_owner_writes() {
        let dir = left_by_a_killed_owner();
        let path = dir.path().join("t.db");
        let counts = read(&path, |database| {
            let before = database.rows("t")?.len();
            Connection::open(&path).unwrap().execute("DELETE FROM t", []).unwrap();
            Ok((before, database.rows("t")?.len()))
        });
        assert_eq!(counts, Ok(Some((5, 5))));
        assert_eq!(read(&path, |database| Ok(database.rows("t")?.len())), Ok(Some(0)));
    }

    #[test]
    fn a_file_that_is_no_database_is_distinguished_from_a_missing_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        let count = || read(&path, |database| Ok(database.rows("t")?.len()));
        assert_eq!(count(), Ok(None));
        for content in [&b""[..], b"SQLite format 3\0", &[7; 5000]] {
            std::fs::write(&path, content).unwrap();
            assert!(count().is_err());
        }
    }
}
