//! GitHub Copilot CLI.

use std::path::{Path, PathBuf};

use abide_model::Timestamp;
use abide_model::conversation::{Candidate, Located};
use serde::Deserialize;

use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, is_uuid};
use crate::fatal::Fatal;
use crate::files::{About, Look, Root, located, records};

/// The transcript in the directory of a conversation.
const EVENTS: &str = "events.jsonl";

/// GitHub Copilot CLI.
#[derive(Debug)]
pub(crate) struct Copilot;

static PROFILE: Profile = Profile {
    name: "copilot",
    grammar: Grammar {
        program: "copilot",
        is_id: is_uuid,
        preset: &["--session-id"],
        resume: &["--resume"],
        latest: &["--continue"],
        resuming: &["--resume={id}"],
        first_turn: &["--prompt", "-p", "--interactive", "-i"],
        switches: &[
            "--allow-all",
            "--allow-all-paths",
            "--allow-all-tools",
            "--allow-all-urls",
            "--autopilot",
            "--banner",
            "--experimental",
            "--no-ask-user",
            "--no-auto-update",
            "--no-color",
            "--no-custom-instructions",
            "--plan",
            "--screen-reader",
            "--silent",
            "-s",
            "--yolo",
        ],
        commands: &["completion", "help", "init", "login", "mcp", "plugin", "update", "version"],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("COPILOT_HOME", "")],
    dir: ".copilot",
    fatal: &[
        ("No session, task, or name matched", Fatal::NoConversation),
        ("Session in use", Fatal::AlreadyInUse),
        ("No authentication information found", Fatal::Auth),
        ("error: unknown option", Fatal::Arguments),
    ],
};

impl Agent for Copilot {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> Located {
        located(look(config_dir, cwd, id))
    }

    fn discover(&self, config_dir: &Path, cwd: &Path, since: Timestamp) -> Vec<Candidate> {
        let Ok(root) = Root::open(config_dir) else { return Vec::new() };
        let named = |dir: PathBuf| {
            let id = dir.file_name()?.to_str().filter(|name| is_uuid(name))?.to_owned();
            Some((id, dir.join(EVENTS)))
        };
        let sessions = root.dirs(&root.path().join("session-state")).unwrap_or_default();
        root.candidates(sessions.into_iter().filter_map(named), cwd, since, about)
    }
}

fn look(config_dir: &Path, cwd: &Path, id: &str) -> Look<Located> {
    if !is_uuid(id) {
        return Err(format!("`{id}` is not an id of this agent"));
    }
    let root = Root::open(config_dir)?;
    root.judge(&root.path().join("session-state").join(id).join(EVENTS), cwd, about)
}

#[derive(Deserialize)]
struct Event {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cwd: String,
}

fn about(head: &[u8]) -> About {
    let cwd = records::<Event>(head).next().map(|event| event.data.context.cwd);
    About { cwd, ..About::default() }
}
