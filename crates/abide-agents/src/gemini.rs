//! Gemini CLI.
//!
//! Settings for one launch are accepted only below directories that all are root's, and it complains about others, so that its
//! hooks are not set. Its titles say all that they would.
//!
//! It keeps a directory per project, found through a register of projects, and names a transcript by the minute and the
//! first part of the id. Resuming writes a second, short file under the same id, so the longest is the conversation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use abide_model::Timestamp;
use abide_model::activity::Says;
use abide_model::conversation::{Located, TranscriptCandidate};
use serde::Deserialize;
use serde_json::Value;

use crate::activity::{ActivitySigns, Statement, backwards};
use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, Words, is_uuid};
use crate::fatal::Fatal;
use crate::files::{About, FileResult, Root, head, records, same_dir};
use crate::title::Said;

/// Gemini CLI.
#[derive(Debug)]
pub(crate) struct Gemini;

static PROFILE: Profile = Profile {
    name: "gemini",
    grammar: Grammar {
        program: "gemini",
        is_id: is_uuid,
        preset: &["--session-id"],
        resume: &["--resume", "-r", "--session-file"],
        latest_words: &["latest", "--resume", "-r"],
        resuming: &["--resume", "{id}"],
        first_turn: &["--prompt", "-p", "--prompt-interactive", "-i"],
        switches: &[
            "--debug", "-d", "--sandbox", "-s", "--yolo", "-y", "--screen-reader", "--skip-trust",
            "--accept-raw-output-risk", "--acp", "--experimental-acp", "--list-extensions", "-l",
            "--list-sessions", "--raw-output",
        ],
        many: &[
            "--allowed-tools", "--extensions", "-e", "--include-directories", "--admin-policy",
            "--allowed-mcp-server-names", "--policy",
        ],
        words: Words::Prompt,
        commands: &["extension", "extensions", "gemma", "hook", "hooks", "mcp", "skill", "skills"],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("GEMINI_CLI_HOME", ".gemini")],
    dir: ".gemini",
    package: Some(("@google/gemini-cli", "0.61.0")),
    fatal: &[
        ("Invalid session identifier", Fatal::NoConversation),
        ("No previous sessions found", Fatal::NoConversation),
        ("already exists", Fatal::AlreadyInUse),
        ("Please set an Auth method", Fatal::Auth),
        ("Unknown argument", Fatal::Arguments),
    ],
    said: Some(Said { at: "/type", is: "user", text: "/content" }),
    signs: ActivitySigns {
        rules: include_str!("rules/gemini.toml"),
        tail: Some(tail),
        ..ActivitySigns::NONE
    },
    ..Profile::UNKNOWN
};

impl Agent for Gemini {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn find_transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> FileResult<Located> {
        let root = Root::open(config_dir)?;
        let Some((_, chats)) = projects(&root, Some(cwd))?.pop() else { return Ok(Located::Missing) };
        let mut longest = None;
        for path in root.files(&chats)? {
            if short_id(&path) == id.get(..8)
                && start(&head(&path)?).is_some_and(|start| start.session_id == id)
            {
                longest = longest.max(root.file(&path)?.map(|seen| (seen.size(), path)));
            }
        }
        Ok(longest.map_or(Located::Missing, |(_, path)| Located::Found(path)))
    }

    fn discover(&self, config_dir: &Path, cwd: Option<&Path>, since: Timestamp) -> Vec<TranscriptCandidate> {
        let Ok(root) = Root::open(config_dir) else { return Vec::new() };
        let mut candidates = Vec::new();
        for (dir, chats) in projects(&root, cwd).unwrap_or_default() {
            let files = root.files(&chats).unwrap_or_default();
            let named = files.into_iter().filter_map(|path| Some((short_id(&path)?.to_owned(), path)));
            let about = |head: &[u8]| {
                let main = start(head).filter(|start| start.kind == "main");
                // The transcript does not spell its directory; the register that led to it does.
                About {
                    sub_agent: main.is_none(),
                    cwd: Some(dir.clone()),
                    id: main.map(|start| start.session_id),
                }
            };
            candidates.extend(root.candidates(named, cwd, since, about));
        }
        candidates.sort_by(|a, b| a.id.cmp(&b.id).then(b.size.cmp(&a.size)));
        candidates.dedup_by(|later, longest| later.id == longest.id);
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.modified));
        candidates
    }

    fn named(&self, path: &Path) -> Option<String> {
        short_id(path).and_then(|_| start(&head(path).ok()?)).map(|start| start.session_id)
    }
}

#[derive(Deserialize)]
struct Register {
    projects: BTreeMap<String, String>,
}

/// The first record of a transcript.
#[derive(Deserialize)]
struct TranscriptStart {
    #[serde(rename = "sessionId")]
    session_id: String,
    #[serde(default)]
    kind: String,
}

/// How a transcript begins in which something was said. One without is removed when gemini ends, and cannot be resumed.
fn start(head: &[u8]) -> Option<TranscriptStart> {
    let said = |record: Value| record["type"] == "user";
    let start = records::<TranscriptStart>(head).next().filter(|start| is_uuid(&start.session_id));
    start.filter(|_| records(head).any(said))
}

/// The first part of the id, which is all that `session-<minute>-<part>.jsonl` holds of it.
fn short_id(path: &Path) -> Option<&str> {
    let stem = path.file_name()?.to_str()?.strip_prefix("session-")?.strip_suffix(".jsonl")?;
    stem.rsplit('-').next()
}

/// The projects in the register, each with the directory of its transcripts: that of `cwd`, or all.
fn projects(root: &Root, cwd: Option<&Path>) -> FileResult<Vec<(String, PathBuf)>> {
    let register = root.path().join("projects.json");
    if root.file(&register)?.is_none() {
        return Ok(Vec::new());
    }
    let unreadable = |error| format!("{}: {error}", register.display());
    let Register { projects } = serde_json::from_slice(&head(&register)?).map_err(unreadable)?;
    let inside = |slug: &str| !slug.is_empty() && !slug.contains('/') && slug != "." && slug != "..";
    let wanted = |(dir, slug): &(String, String)| inside(slug) && cwd.is_none_or(|cwd| same_dir(dir, cwd));
    let chats = |(dir, slug): (String, String)| (dir, root.path().join("tmp").join(slug).join("chats"));
    Ok(projects.into_iter().filter(wanted).map(chats).collect())
}

/// An answer may be followed by a call that is not written down before it is over: it says nothing.
fn tail(end: &[u8]) -> Option<Statement> {
    let last = backwards(end).find(|record| record["type"].is_string())?;
    let prompted = last["type"] == "user";
    prompted.then(|| Statement::new(Says::Working, "its transcript ends with a prompt"))
}
