//! OpenCode's database: which conversations it holds, and what is taken out of it. python3 brings the real SQLite along.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Command;

use abide_agents::{Located, agent};
use abide_model::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

const SCHEMA: &str = "
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, cost real DEFAULT 0 NOT NULL,
  tokens_cache_read integer DEFAULT 0 NOT NULL, model text, time_created integer NOT NULL,
  time_updated integer NOT NULL, time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, data text NOT NULL);
CREATE INDEX message_session_idx ON message (session_id, time_created, id);
CREATE INDEX part_session_idx ON part (session_id);
";

/// A conversation: its id, its parent, the directory, when it was last written to and when it was archived.
type Kept<'a> = (&'a str, Option<&'a str>, &'a str, i64, Option<i64>);

/// Its directory with a database in it, and directories to work in.
struct OpenCode {
    root: TempDir,
}

impl OpenCode {
    fn with(rows: &[Kept<'_>]) -> Self {
        let root = tempfile::tempdir().unwrap();
        let made = Self { root };
        for dir in ["shop", "other", "data"] {
            std::fs::create_dir(made.path(dir)).unwrap();
        }
        let rows = rows.iter().map(|(id, parent, dir, updated, archived)| {
            json!([
                id,
                "p",
                parent,
                "quick-fox",
                made.path(dir),
                format!("About {id}"),
                "1.18.33",
                0.5,
                7,
                r#"{"id":"m"}"#,
                1,
                updated,
                archived
            ])
        });
        let rows = Value::from(rows.collect::<Vec<_>>());
        let script = "import json, os, sqlite3, sys
db = sqlite3.connect('data/opencode.db')
db.execute('PRAGMA journal_mode = WAL')
db.executescript(sys.argv[1])
db.executemany('INSERT INTO session VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)', json.loads(sys.argv[2]))
for n in range(3):
    message = ('msg_%d' % (2 - n), 'ses_a', n, json.dumps({'role': 'user', 'n': n}))
    db.execute('INSERT INTO message VALUES (?,?,?,?)', message)
    for p in (2, 1):
        part = ('prt_%d%d' % (n, p), message[0], 'ses_a', json.dumps({'type': 'text', 'text': 'x' * 5000 * p}))
        db.execute('INSERT INTO part VALUES (?,?,?,?)', part)
db.execute('INSERT INTO part VALUES (?,?,?,?)', ('prt_x', 'msg_x', 'ses_b', '[]'))
db.commit()
os._exit(0)";
        let mut python = Command::new("python3");
        let run = python.args(["-c", script, SCHEMA, &rows.to_string()]).current_dir(made.root.path());
        let run = run.output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        made
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(below)
    }

    fn locate(&self, id: &str) -> Located {
        agent("opencode").unwrap().transcript(&self.path("data"), &self.path("shop"), id)
    }

    fn found(&self, dir: Option<&Path>, since: i64) -> Vec<String> {
        let found = agent("opencode").unwrap().discover(&self.path("data"), dir, Timestamp(since));
        found.into_iter().map(|candidate| candidate.id).collect()
    }

    fn extract(&self, id: &str) -> Result<Vec<u8>, String> {
        let shared = agent("opencode").unwrap().profile().shared.unwrap();
        (shared.extract)(&self.path("data").join(shared.file), id)
    }
}

fn opencode() -> OpenCode {
    OpenCode::with(&[
        ("ses_a", None, "shop", 1000, None),
        ("ses_b", None, "shop", 3000, None),
        ("ses_c", None, "other", 2000, None),
        ("ses_sub", Some("ses_a"), "shop", 4000, None),
        ("ses_old", None, "shop", 5000, Some(6000)),
        ("--evil", None, "shop", 7000, None),
    ])
}

#[test]
fn a_conversation_is_found_missing_or_of_another_directory() {
    let opencode = opencode();
    let database = opencode.path("data/opencode.db");
    assert_eq!(opencode.locate("ses_a"), Located::Found(database.clone()));
    assert_eq!(opencode.locate("ses_none"), Located::Missing);
    assert!(matches!(opencode.locate("ses_c"), Located::Unknown(why) if why.contains("other")));
    assert!(matches!(opencode.locate("--evil"), Located::Unknown(_)));
    std::fs::remove_file(database).unwrap();
    assert!(matches!(opencode.locate("ses_a"), Located::Unknown(_)), "it may have been told to use another");
}

#[test]
fn its_conversations_are_listed_the_newest_first_without_sub_agents_and_what_was_put_away() {
    let opencode = opencode();
    let shop = opencode.path("shop");
    assert_eq!(opencode.found(Some(&shop), 0), ["ses_b", "ses_a"]);
    assert_eq!(opencode.found(Some(&shop), 1001), ["ses_b"]);
    assert_eq!(opencode.found(None, 0), ["ses_b", "ses_c", "ses_a"]);
    let found = agent("opencode").unwrap().discover(&opencode.path("data"), Some(&shop), Timestamp(0));
    assert_eq!((found[0].title.as_deref(), found[0].modified), (Some("About ses_b"), Timestamp(3000)));
    assert_eq!(opencode.found(Some(&opencode.path("data")), 0), [""; 0]);
}

#[test]
fn what_is_taken_out_is_one_conversation_in_the_form_of_its_own_export() {
    let opencode = opencode();
    let exported: Value = serde_json::from_slice(&opencode.extract("ses_a").unwrap()).unwrap();
    let info = json!({
        "id": "ses_a", "projectID": "p", "slug": "quick-fox", "directory": opencode.path("shop"),
        "title": "About ses_a", "version": "1.18.33", "cost": 0.5, "tokens": { "cache": { "read": 7 } },
        "model": { "id": "m" }, "time": { "created": 1, "updated": 1000 },
    });
    assert_eq!(exported["info"], info);
    let messages = exported["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[0]["info"], json!({ "id": "msg_2", "sessionID": "ses_a", "role": "user", "n": 0 }));
    let part = json!({
        "id": "prt_01", "messageID": "msg_2", "sessionID": "ses_a", "type": "text", "text": "x".repeat(5000),
    });
    assert_eq!(messages[0]["parts"][0], part);
    let other: Value = serde_json::from_slice(&opencode.extract("ses_b").unwrap()).unwrap();
    assert_eq!(other["messages"], json!([]));
    assert!(opencode.extract("ses_none").unwrap_err().contains("there is no conversation ses_none"));
}
