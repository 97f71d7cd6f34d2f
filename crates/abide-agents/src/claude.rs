//! Claude Code.
//!
//! It takes an id for a new conversation and writes the transcript at the first prompt: before that there is nothing to
//! resume, and the same id may be given again; after that the id may only be resumed.

use std::path::Path;

use abide_model::Timestamp;
use abide_model::conversation::{Candidate, Located};

use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, Words, is_uuid};
use crate::fatal::Fatal;
use crate::projects;

/// Claude Code.
#[derive(Debug)]
pub(crate) struct Claude;

static PROFILE: Profile = Profile {
    name: "claude",
    grammar: Grammar {
        program: "claude",
        is_id: is_uuid,
        preset: &["--session-id"],
        resume: &["--resume", "-r"],
        latest: &["--continue", "-c"],
        fork: &["--fork-session"],
        resuming: &["--resume", "{id}"],
        forking: &["--resume", "{id}", "--fork-session"],
        first_turn: &["--print", "-p"],
        switches: &[
            "--print",
            "-p",
            "--allow-dangerously-skip-permissions",
            "--bare",
            "--brief",
            "--chrome",
            "--dangerously-skip-permissions",
            "--disable-slash-commands",
            "--ide",
            "--include-hook-events",
            "--include-partial-messages",
            "--mcp-debug",
            "--no-chrome",
            "--no-session-persistence",
            "--replay-user-messages",
            "--strict-mcp-config",
            "--verbose",
        ],
        many: &[
            "--add-dir",
            "--allowed-tools",
            "--allowedTools",
            "--betas",
            "--disallowed-tools",
            "--disallowedTools",
            "--file",
            "--mcp-config",
            "--tools",
        ],
        words: Words::Prompt,
        commands: &[
            "agents",
            "attach",
            "auth",
            "auto-mode",
            "config",
            "doctor",
            "install",
            "mcp",
            "plugin",
            "plugins",
            "setup-token",
            "update",
            "upgrade",
        ],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("CLAUDE_CONFIG_DIR", "")],
    dir: ".claude",
    fatal: &[
        ("No conversation found with session ID", Fatal::NoConversation),
        ("Session ID … is already in use", Fatal::AlreadyInUse),
        ("Invalid API key", Fatal::Auth),
        ("Please run /login", Fatal::Auth),
        ("OAuth token has expired", Fatal::Auth),
        ("error: unknown option", Fatal::Arguments),
        ("can only be used with --continue or --resume if --fork-session", Fatal::Arguments),
    ],
};

impl Agent for Claude {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> Located {
        projects::transcript(config_dir, "", cwd, id)
    }

    fn discover(&self, config_dir: &Path, cwd: &Path, since: Timestamp) -> Vec<Candidate> {
        projects::discover(config_dir, "", cwd, since)
    }
}
