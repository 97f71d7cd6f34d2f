//! Against the real SQLite, which python3 brings along.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// Runs `script` in a directory with `db` open, and ends without closing it, as a program that is killed does.
fn python(dir: &Path, script: &str) {
    let script = format!("import json, os, sqlite3\ndb = sqlite3.connect('t.db')\n{script}\nos._exit(0)");
    let run = Command::new("python3").args(["-c", &script]).current_dir(dir).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

fn made(script: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    python(dir.path(), script);
    dir
}

/// Column `column` of every row of `t`, or of those with `key` in `k`.
fn column(dir: &TempDir, column: &str, key: Option<&str>) -> Look<Option<Vec<Value>>> {
    read(&dir.path().join("t.db"), |database| {
        let table = database.table("t")?;
        let rows = match key {
            Some(key) => database.rows_with(&table, "k", key)?,
            None => database.rows(&table)?,
        };
        Ok(rows.iter().map(|row| row.get(column).clone()).collect())
    })
}

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

#[test]
fn rows_of_every_size_are_what_sqlite_wrote() {
    for page in [512, 4096, 65536] {
        let dir = made(&format!(
            "db.execute('PRAGMA page_size = {page}')
db.execute('CREATE TABLE t (k TEXT, v TEXT)')
db.execute('CREATE INDEX i ON t (k)')
for n in list(range(300)) + [400, 481, 482, 489, 1000, 4061, 4062, 70000, 300000]:
    db.execute('INSERT INTO t VALUES (?, ?)', ('even' if n % 2 == 0 else 'odd' + 'x' * n, 'v' * n))
db.commit()"
        ));
        let sizes = (0..300).chain([400, 481, 482, 489, 1000, 4061, 4062, 70_000, 300_000]);
        let expected: Vec<usize> = sizes.collect();
        let lengths = |values: Vec<Value>| -> Vec<usize> {
            values.iter().map(|value| value.text().unwrap().len()).collect()
        };
        assert_eq!(lengths(column(&dir, "v", None).unwrap().unwrap()), expected, "{page}");
        let even: Vec<usize> = expected.into_iter().filter(|n| n % 2 == 0).collect();
        assert_eq!(lengths(column(&dir, "v", Some("even")).unwrap().unwrap()), even, "{page}");
    }
}

#[test]
fn every_kind_of_value_is_what_sqlite_wrote() {
    let dir = made(
        "db.execute('CREATE TABLE \"t\" (`id` TEXT PRIMARY KEY NOT NULL, v, \"odd, name (x)\" TEXT DEFAULT (max(1,2)), CONSTRAINT c UNIQUE (v))')
numbers = [0, 1, -1, 127, 128, -128, -129, 2**15, -2**23 - 1, 2**31, -2**40, 2**62, -2**63]
for n, v in enumerate(numbers + [1.5, None, 'caf\\u00e9', b'xx']):
    db.execute('INSERT INTO t (id, v) VALUES (?, ?)', (str(n), v))
db.execute('ALTER TABLE t ADD late TEXT')
db.execute('ALTER TABLE t ADD `k` TEXT')
db.execute('INSERT INTO t (id, late, k) VALUES (?, ?, ?)', ('x', 'here', 'k'))
db.commit()",
    );
    let numbers =
        [0, 1, -1, 127, 128, -128, -129, 1 << 15, -(1 << 23) - 1, 1 << 31, -(1 << 40), 1 << 62, i64::MIN];
    let mut expected: Vec<Value> = numbers.map(Value::Integer).to_vec();
    expected.extend([Value::Real(1.5), Value::Null, text("caf\u{e9}"), Value::Bytes, Value::Null]);
    assert_eq!(column(&dir, "v", None).unwrap().unwrap(), expected);
    assert_eq!(column(&dir, "late", Some("k")).unwrap().unwrap(), [text("here")], "without an index");
    assert_eq!(column(&dir, "late", None).unwrap().unwrap()[0], Value::Null, "a row from before the column");
    assert_eq!(column(&dir, "none", None).unwrap().unwrap()[0], Value::Null);
}

const LOGGED: &str = "db.execute('PRAGMA journal_mode = WAL')
db.execute('CREATE TABLE t (k TEXT, v TEXT)')
db.commit()
for n in range(50):
    db.execute('INSERT INTO t VALUES (?, ?)', ('a', 'x' * 900))
    db.commit()
db.execute('UPDATE t SET v = ? WHERE rowid = 7', ('changed',))
db.commit()
";

#[test]
fn what_is_only_in_the_log_is_read_and_what_was_cut_there_is_not() {
    let dir = made(&format!("{LOGGED}db.execute('DELETE FROM t')"));
    let log = dir.path().join("t.db-wal");
    let whole = fs::read(&log).unwrap();
    let values = column(&dir, "v", None).unwrap().unwrap();
    assert_eq!((values.len(), &values[6]), (50, &text("changed")), "the deletion was not committed");
    for (cut, left) in [(whole.len() - 1, "x".repeat(900)), (whole.len() - 5000, "x".repeat(900))] {
        fs::write(&log, &whole[..cut]).unwrap();
        assert_eq!(column(&dir, "v", None).unwrap().unwrap()[6], text(left), "the last change is torn");
    }
    let garbage = [&whole[..], &[0xab; 9000]].concat();
    fs::write(&log, garbage).unwrap();
    assert_eq!(column(&dir, "v", None).unwrap().unwrap()[6], text("changed"));
}

#[test]
fn a_log_that_was_begun_anew_does_not_bring_old_pages_back() {
    let again = "db.execute('PRAGMA wal_checkpoint(RESTART)')
db.execute('UPDATE t SET v = ? WHERE rowid = 7', ('newest',))
db.commit()";
    let dir = made(&format!("{LOGGED}{again}"));
    let values = column(&dir, "v", None).unwrap().unwrap();
    assert_eq!((values.len(), &values[6]), (50, &text("newest")));
}

#[test]
fn what_is_read_while_it_is_written_to_is_never_half_of_a_change() {
    let dir = tempfile::tempdir().unwrap();
    let script = "import sqlite3, sys
db = sqlite3.connect('t.db', isolation_level=None)
db.execute('PRAGMA journal_mode = WAL')
db.execute('PRAGMA synchronous = OFF')
db.execute('PRAGMA wal_autocheckpoint = 20')
db.execute('CREATE TABLE t (k TEXT, v TEXT)')
db.execute('CREATE INDEX i ON t (k)')
for n in range(40):
    db.execute('INSERT INTO t VALUES (?, ?)', ('a', 'x' * (n * 97)))
print('ready', flush=True)
n = 0
while True:
    n += 1
    db.execute('BEGIN')
    db.execute('UPDATE t SET v = ?', (str(n) + ' ' + 'y' * (n % 7 * 1500),))
    if n % 3 == 0:
        db.execute('DELETE FROM t WHERE rowid NOT IN (SELECT rowid FROM t ORDER BY rowid DESC LIMIT 30)')
    if n % 3 == 1:
        db.executemany('INSERT INTO t VALUES (?, ?)', [('a', str(n) + ' ' + 'y' * (n % 7 * 1500))] * 10)
    db.execute('COMMIT')
    if n % 50 == 0:
        db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    if n % 9 == 0:
        print('written', flush=True)
        sys.stdin.readline()
";
    let mut writer = Command::new("python3");
    let writer = writer.args(["-c", script]).current_dir(dir.path());
    let mut writer = writer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut answers = BufReader::new(writer.stdout.take().unwrap());
    answers.read_line(&mut String::new()).unwrap();
    let (mut orders, mut states) = (writer.stdin.take().unwrap(), std::collections::BTreeSet::new());
    for _ in 0..150 {
        // It pauses after a few changes, so that the last attempt succeeds however slow the machine is.
        orders.write_all(b"go on\n").unwrap();
        let values = column(&dir, "v", Some("a"));
        answers.read_line(&mut String::new()).unwrap();
        let Ok(Some(values)) = values else { continue };
        // All rows are of one change, and an index that is of another would lead astray.
        let changes: std::collections::BTreeSet<&str> =
            values.iter().filter_map(|value| value.text()?.split_once(' ')).map(|(n, _)| n).collect();
        assert!(changes.len() <= 1, "{changes:?}");
        states.extend(changes.into_iter().map(str::to_owned));
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert!(states.len() > 10, "it was written to meanwhile: {states:?}");
}

#[test]
fn what_is_no_database_is_told_from_what_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(column(&dir, "v", None), Ok(None));
    for content in [&b""[..], b"SQLite format 3\0", &[7; 5000]] {
        fs::write(dir.path().join("t.db"), content).unwrap();
        assert!(column(&dir, "v", None).is_err());
    }
    let dir = made("db.execute('CREATE TABLE other (x)'); db.commit()");
    assert_eq!(column(&dir, "v", None), Err("the database has no table `t`".to_owned()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_makes_it_panic_or_go_on_for_ever(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        log in any::<bool>(),
    ) {
        static MADE: std::sync::OnceLock<TempDir> = std::sync::OnceLock::new();
        let made = MADE.get_or_init(|| made(&format!("{LOGGED}db.execute('CREATE INDEX i ON t (k)')\ndb.commit()
db.execute('PRAGMA wal_checkpoint')\ndb.execute('UPDATE t SET k = ? WHERE rowid = 3', ('b',))\ndb.commit()")));
        let dir = tempfile::tempdir().unwrap();
        for (name, hit) in [("t.db", !log), ("t.db-wal", log)] {
            let mut bytes = fs::read(made.path().join(name)).unwrap();
            for (at, byte) in flips.iter().filter(|_| hit) {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        let _ = column(&dir, "v", None);
        let _ = column(&dir, "v", Some("a"));
    }
}
