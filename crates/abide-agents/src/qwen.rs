//! Qwen Code.

use std::path::Path;

use abide_model::Timestamp;
use abide_model::conversation::{Candidate, Located};

use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, Words, is_uuid};
use crate::fatal::Fatal;
use crate::projects;

/// The directory of a project that holds its transcripts.
const CHATS: &str = "chats";

/// Qwen Code.
#[derive(Debug)]
pub(crate) struct Qwen;

static PROFILE: Profile = Profile {
    name: "qwen",
    grammar: Grammar {
        program: "qwen",
        is_id: is_uuid,
        preset: &["--session-id"],
        resume: &["--resume", "-r"],
        latest: &["--continue", "-c"],
        fork: &["--fork-session"],
        resuming: &["--resume", "{id}"],
        forking: &["--resume", "{id}", "--fork-session"],
        first_turn: &["--prompt", "-p", "--prompt-interactive", "-i"],
        switches: &["--debug", "-d", "--sandbox", "-s", "--yolo", "-y", "--checkpointing", "--screen-reader"],
        many: &["--allowed-tools", "--extensions", "-e", "--include-directories"],
        words: Words::Prompt,
        commands: &["auth", "channel", "extensions", "hooks", "mcp", "sessions"],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("QWEN_RUNTIME_DIR", ""), ("QWEN_HOME", "")],
    dir: ".qwen",
    fatal: &[
        ("No saved session found with ID", Fatal::NoConversation),
        ("already exists", Fatal::AlreadyInUse),
        ("Please set an Auth method", Fatal::Auth),
        ("Unknown argument", Fatal::Arguments),
    ],
};

impl Agent for Qwen {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> Located {
        projects::transcript(config_dir, CHATS, cwd, id)
    }

    fn discover(&self, config_dir: &Path, cwd: &Path, since: Timestamp) -> Vec<Candidate> {
        projects::discover(config_dir, CHATS, cwd, since)
    }
}
