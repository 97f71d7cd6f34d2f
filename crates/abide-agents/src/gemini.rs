//! Gemini CLI.
//!
//! It keeps a directory per project, found through a register of projects, and names a transcript by the minute and the
//! first part of the id. Resuming writes a second, short file under the same id, so the longest is the conversation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use abide_model::Timestamp;
use abide_model::conversation::{Candidate, Located};
use serde::Deserialize;

use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, Words, is_uuid};
use crate::fatal::Fatal;
use crate::files::{About, Look, Root, head, located, records, same_dir};

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
        resuming: &["--resume", "{id}"],
        first_turn: &["--prompt", "-p", "--prompt-interactive", "-i"],
        switches: &["--debug", "-d", "--sandbox", "-s", "--yolo", "-y", "--screen-reader", "--skip-trust"],
        many: &["--allowed-tools", "--extensions", "-e", "--include-directories"],
        words: Words::Prompt,
        commands: &["extension", "extensions", "gemma", "hook", "hooks", "mcp", "skill", "skills"],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("GEMINI_CLI_HOME", ".gemini")],
    dir: ".gemini",
    fatal: &[
        ("Invalid session identifier", Fatal::NoConversation),
        ("already exists", Fatal::AlreadyInUse),
        ("Please set an Auth method", Fatal::Auth),
        ("Unknown argument", Fatal::Arguments),
    ],
};

impl Agent for Gemini {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> Located {
        located(look(config_dir, cwd, id))
    }

    fn discover(&self, config_dir: &Path, cwd: &Path, since: Timestamp) -> Vec<Candidate> {
        let Ok(root) = Root::open(config_dir) else { return Vec::new() };
        let chats = chats(&root, cwd).ok().flatten();
        let files = chats.and_then(|dir| root.files(&dir).ok()).unwrap_or_default();
        let named = files.into_iter().filter_map(|path| Some((short_id(&path)?.to_owned(), path)));
        let about = |head: &[u8]| {
            let main = start(head).filter(|start| start.kind == "main");
            // The transcript does not spell its directory; the register that led to it does.
            let cwd = cwd.to_str().map(str::to_owned);
            About { sub_agent: main.is_none(), cwd, id: main.map(|start| start.session_id) }
        };
        let mut candidates = root.candidates(named, cwd, since, about);
        candidates.sort_by(|a, b| a.id.cmp(&b.id).then(b.size.cmp(&a.size)));
        candidates.dedup_by(|later, longest| later.id == longest.id);
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.modified));
        candidates
    }
}

#[derive(Deserialize)]
struct Register {
    projects: BTreeMap<String, String>,
}

/// The first record of a transcript.
#[derive(Deserialize)]
struct Start {
    #[serde(rename = "sessionId")]
    session_id: String,
    #[serde(default)]
    kind: String,
}

fn start(head: &[u8]) -> Option<Start> {
    records::<Start>(head).next().filter(|start| is_uuid(&start.session_id))
}

/// The first part of the id, which is all that `session-<minute>-<part>.jsonl` holds of it.
fn short_id(path: &Path) -> Option<&str> {
    let stem = path.file_name()?.to_str()?.strip_prefix("session-")?.strip_suffix(".jsonl")?;
    stem.rsplit('-').next()
}

/// The directory of the transcripts of `cwd`, if the register has one.
fn chats(root: &Root, cwd: &Path) -> Look<Option<PathBuf>> {
    let register = root.path().join("projects.json");
    if root.file(&register)?.is_none() {
        return Ok(None);
    }
    let unreadable = |error| format!("{}: {error}", register.display());
    let Register { projects } = serde_json::from_slice(&head(&register)?).map_err(unreadable)?;
    let slug = projects.into_iter().find(|(dir, _)| same_dir(dir, cwd)).map(|(_, slug)| slug);
    let inside = |slug: &String| !slug.is_empty() && !slug.contains('/') && slug != "." && slug != "..";
    Ok(slug.filter(inside).map(|slug| root.path().join("tmp").join(slug).join("chats")))
}

fn look(config_dir: &Path, cwd: &Path, id: &str) -> Look<Located> {
    if !is_uuid(id) {
        return Err(format!("`{id}` is not an id of this agent"));
    }
    let root = Root::open(config_dir)?;
    let Some(chats) = chats(&root, cwd)? else { return Ok(Located::Missing) };
    let mut longest = None;
    for path in root.files(&chats)? {
        if short_id(&path) == id.get(..8) && start(&head(&path)?).is_some_and(|start| start.session_id == id)
        {
            longest = longest.max(root.file(&path)?.map(|seen| (seen.size(), path)));
        }
    }
    Ok(longest.map_or(Located::Missing, |(_, path)| Located::Found(path)))
}
