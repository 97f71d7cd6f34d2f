//! OpenCode.
//!
//! Its conversations are rows of one database. They are looked up and taken out of it by reading the file: its own commands
//! take a second of a processor each, may ask the network for something first, and there is a look at every `abide ls`.
//! Only what it has lost is given back by a command of its own, so that no other program ever writes to its database.

use std::collections::BTreeMap;
use std::path::Path;

use abide_model::Timestamp;
use abide_model::conversation::{Located, TranscriptCandidate};
use serde_json::{Value as Json, json};

use crate::activity::ActivitySigns;
use crate::agent::{Agent, Profile, Shared};
use crate::argv::{Grammar, is_plain_id};
use crate::fatal::Fatal;
use crate::files::{FileResult, Root, real, same_dir};
use crate::hooks::{Injection, Reporter};
use crate::sqlite::{self, Database, SqlRow};
use rusqlite::types::Value;

/// The database in its directory.
const DATABASE: &str = "opencode.db";

#[derive(Debug)]
pub(crate) struct OpenCode;

static PROFILE: Profile = Profile {
    name: "opencode",
    grammar: Grammar {
        program: "opencode",
        is_id,
        resume: &["--session", "-s"],
        latest: &["--continue", "-c"],
        fork: &["--fork"],
        resuming: &["-s", "{id}"],
        forking: &["-s", "{id}", "--fork"],
        first_turn: &["--prompt"],
        switches: &["--mdns", "--print-logs", "--pure", "--auto", "--mini", "--no-replay"],
        many: &["--cors"],
        // Its one word is the directory of the project.
        commands: &[
            "acp", "agent", "attach", "auth", "completion", "db", "debug", "export", "github", "import",
            "mcp", "models", "plugin", "pr", "providers", "run", "serve", "session", "stats", "uninstall",
            "upgrade", "web", "plug",
        ],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("XDG_DATA_HOME", "opencode")],
    dir: ".local/share/opencode",
    package: Some(("opencode-ai", "1.18.33")),
    fatal: &[
        ("Session not found", Fatal::NoConversation),
        ("opencode auth login", Fatal::Auth),
        ("Unknown argument", Fatal::Arguments),
    ],
    signs: ActivitySigns {
        rules: include_str!("rules/opencode.toml"),
        hooks: Some(hooks),
        ..ActivitySigns::NONE
    },
    shared: Some(Shared { file: DATABASE, extract, beside: &["-wal"], give_back: &["import", "{file}"] }),
    ..Profile::UNKNOWN
};

fn is_id(word: &str) -> bool {
    word.starts_with("ses_") && is_plain_id(word)
}

impl Agent for OpenCode {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn find_transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> FileResult<Located> {
        let path = Root::open(config_dir)?.path().join(DATABASE);
        let recorded = sqlite::read(&path, |database| {
            let rows = database.rows("session")?;
            let row = rows.iter().find(|row| row.text("id") == Some(id));
            Ok(row.map(|row| row.text("directory").unwrap_or_default().to_owned()))
        })?;
        match recorded {
            // It can be configured to keep its conversations elsewhere, so this proves nothing.
            None => Err(format!("there is no {}", path.display())),
            Some(None) => Ok(Located::Missing),
            Some(Some(recorded)) if same_dir(&recorded, cwd) => Ok(Located::Found(path)),
            Some(Some(recorded)) => Err(format!("conversation {id} was held in {recorded}")),
        }
    }

    fn discover(&self, config_dir: &Path, cwd: Option<&Path>, since: Timestamp) -> Vec<TranscriptCandidate> {
        let mut found = conversations(config_dir, cwd, since).unwrap_or_default();
        found.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
        found
    }
}

fn conversations(
    config_dir: &Path,
    cwd: Option<&Path>,
    since: Timestamp,
) -> FileResult<Vec<TranscriptCandidate>> {
    let path = Root::open(config_dir)?.path().join(DATABASE);
    let candidate = |row: &SqlRow| {
        let text = |column: &str| row.text(column).map(str::to_owned);
        // What a sub-agent said belongs to the conversation that began it.
        let own = text("parent_id").is_none() && row.integer("time_archived").is_none();
        let (id, recorded) = (text("id").filter(|id| own && is_id(id))?, text("directory")?);
        let modified = Timestamp(row.integer("time_updated")?);
        let here = modified >= since && cwd.is_none_or(|cwd| same_dir(&recorded, cwd));
        let cwd = real(cwd.unwrap_or(Path::new(&recorded)));
        let begun = row.integer("time_created").map(Timestamp);
        here.then(|| TranscriptCandidate {
            id,
            path: path.clone(),
            cwd,
            modified,
            begun,
            size: 0,
            title: text("title"),
        })
    };
    let found =
        sqlite::read(&path, |database| Ok(database.rows("session")?.iter().filter_map(candidate).collect()))?;
    Ok(found.unwrap_or_default())
}

/// What `opencode export` would print for conversation `id`, and `opencode import` takes.
fn extract(database: &Path, id: &str) -> Result<Vec<u8>, String> {
    let exported = sqlite::read(database, |database| {
        let rows = database.rows_with("session", "id", id)?;
        let row = rows.first().ok_or_else(|| format!("there is no conversation {id}"))?;
        Ok(json!({ "info": info(row), "messages": messages(database, id)? }))
    })?;
    let exported = exported.ok_or_else(|| format!("there is no {}", database.display()))?;
    serde_json::to_vec(&exported).map_err(|error| error.to_string())
}

/// Columns of a conversation, and where its export has them.
const INFO: [(&str, &[&str]); 25] = [
    ("id", &["id"]),
    ("slug", &["slug"]),
    ("project_id", &["projectID"]),
    ("workspace_id", &["workspaceID"]),
    ("directory", &["directory"]),
    ("path", &["path"]),
    ("title", &["title"]),
    ("version", &["version"]),
    ("agent", &["agent"]),
    ("model", &["model"]),
    ("cost", &["cost"]),
    ("tokens_input", &["tokens", "input"]),
    ("tokens_output", &["tokens", "output"]),
    ("tokens_reasoning", &["tokens", "reasoning"]),
    ("tokens_cache_read", &["tokens", "cache", "read"]),
    ("tokens_cache_write", &["tokens", "cache", "write"]),
    ("summary_additions", &["summary", "additions"]),
    ("summary_deletions", &["summary", "deletions"]),
    ("summary_files", &["summary", "files"]),
    ("revert", &["revert"]),
    ("permission", &["permission"]),
    ("metadata", &["metadata"]),
    ("time_created", &["time", "created"]),
    ("time_updated", &["time", "updated"]),
    ("time_archived", &["time", "archived"]),
];

/// The columns of it that hold JSON.
const NESTED: [&str; 4] = ["model", "revert", "permission", "metadata"];

fn info(row: &SqlRow) -> Json {
    let mut info = json!({});
    for (column, place) in INFO {
        let value = match row.get(column) {
            Value::Text(text) if NESTED.contains(&column) => serde_json::from_str(text).unwrap_or_default(),
            Value::Text(text) => Json::from(text.as_str()),
            Value::Integer(number) => Json::from(*number),
            Value::Real(number) => Json::from(*number),
            Value::Null | Value::Blob(_) => continue,
        };
        let target = place.iter().fold(&mut info, |inner, name| &mut inner[*name]);
        *target = value;
    }
    info
}

fn messages(database: &Database, id: &str) -> FileResult<Vec<Json>> {
    let mut parts: BTreeMap<String, Vec<(String, Json)>> = BTreeMap::new();
    for row in database.rows_with("part", "session_id", id)? {
        let of = row.text("message_id").unwrap_or_default();
        let entry = entry(&row, &[("sessionID", id), ("messageID", of)]);
        parts.entry(of.to_owned()).or_default().push(entry);
    }
    let rows = database.rows_with("message", "session_id", id)?;
    let mut messages: Vec<((i64, String), Json)> = Vec::new();
    for row in &rows {
        let created = row.integer("time_created").unwrap_or_default();
        let (id, info) = entry(row, &[("sessionID", id)]);
        let mut parts = parts.remove(&id).unwrap_or_default();
        parts.sort_by(|(a, _), (b, _)| a.cmp(b));
        let parts: Vec<Json> = parts.into_iter().map(|(_, part)| part).collect();
        messages.push(((created, id), json!({ "info": info, "parts": parts })));
    }
    messages.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(messages.into_iter().map(|(_, message)| message).collect())
}

/// A message or a part: what its row holds as JSON, and the ids that have columns of their own.
fn entry(row: &SqlRow, ids: &[(&str, &str)]) -> (String, Json) {
    let id = row.text("id").unwrap_or_default();
    let data = row.text("data").and_then(|data| serde_json::from_str(data).ok());
    let mut data = data.filter(Json::is_object).unwrap_or_default();
    for (name, id) in ids.iter().chain([&("id", id)]) {
        data[*name] = Json::from(*id);
    }
    (id.to_owned(), data)
}

/// Its hooks are plugins: programs in its own process. Ours calls the hook that others call by themselves, one after the
/// other, for what is not a sub-agent's.
const PLUGIN: &str = include_str!("hooks/opencode.js");

fn hooks(reporter: &Reporter<'_>) -> Injection {
    let file = reporter.dir.join("abide.js");
    let exe = serde_json::Value::from(reporter.exe.to_string_lossy());
    let config = serde_json::json!({ "plugin": [format!("file://{}", file.display())] });
    Injection {
        env: vec![("OPENCODE_CONFIG_CONTENT", config.to_string().into())],
        files: vec![(file, PLUGIN.replace("\"{exe}\"", &exe.to_string()))],
        ..Injection::default()
    }
}
