//! Qwen Code.

use std::path::Path;

use abide_model::activity::Says;
use serde_json::Value;

use crate::activity::{ActivitySigns, Statement, backwards};
use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, Words, is_uuid};
use crate::fatal::Fatal;
use crate::hooks::{Injection, Reporter};
use crate::projects::{LongName, ProjectLayout};
use crate::title::Said;

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
        switches: &[
            "--debug", "-d", "--sandbox", "-s", "--yolo", "-y", "--checkpointing", "--screen-reader",
            "--acp", "--bare", "--chat-recording", "--experimental-lsp", "--include-partial-messages",
            "--insecure", "--list-extensions", "-l", "--openai-logging", "--restore-ask-user-question",
            "--safe-mode", "--telemetry", "--telemetry-log-prompts",
        ],
        many: &[
            "--allowed-tools", "--extensions", "-e", "--include-directories", "--add-dir",
            "--allowed-mcp-server-names", "--core-tools", "--disabled-slash-commands", "--exclude-tools",
            "--fallback-model",
        ],
        words: Words::Prompt,
        commands: &[
            "auth", "channel", "extensions", "hooks", "mcp", "sessions", "board", "review", "sandbox",
            "serve", "update",
        ],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("QWEN_RUNTIME_DIR", ""), ("QWEN_HOME", "")],
    dir: ".qwen",
    package: Some(("@qwen-code/qwen-code", "0.24.4")),
    fatal: &[
        ("No saved session found with ID", Fatal::NoConversation),
        ("already exists", Fatal::AlreadyInUse),
        ("No auth type is selected", Fatal::Auth),
        ("Unknown argument", Fatal::Arguments),
    ],
    said: Some(Said { at: "/type", is: "user", text: "/message/parts" }),
    signs: ActivitySigns {
        rules: include_str!("rules/qwen.toml"),
        tail: Some(tail),
        hooks: Some(hooks),
        ..ActivitySigns::NONE
    },
    projects: Some(ProjectLayout { inside: "chats", long: LongName::Whole }),
    ..Profile::UNKNOWN
};

impl Agent for Qwen {
    fn profile(&self) -> &Profile {
        &PROFILE
    }
}

const EVENTS: &[&str] = &["SessionStart", "UserPromptSubmit", "Notification", "Stop", "SessionEnd"];

/// What an administrator has set for everybody.
const DEFAULTS: &str = "/etc/qwen-code/system-defaults.json";

/// Settings for one launch can only take the place of the administrator's defaults; where there are any, they stay.
fn hooks(reporter: &Reporter<'_>) -> Injection {
    if Path::new(DEFAULTS).exists() {
        return Injection::default();
    }
    let file = reporter.dir.join("qwen.json");
    Injection {
        env: vec![("QWEN_CODE_SYSTEM_DEFAULTS_PATH", file.clone().into())],
        files: vec![(file, reporter.settings(EVENTS, 5000).to_string())],
        ..Injection::default()
    }
}

fn tail(end: &[u8]) -> Option<Statement> {
    let last = backwards(end).find(|record| record["type"] != "system")?;
    let calls = |part: &Value| part["functionCall"].is_object();
    let called = last["message"]["parts"].as_array().is_some_and(|parts| parts.iter().any(calls));
    match last["type"].as_str()? {
        "user" => Statement::of_transcript(Says::Working, "ends with a prompt"),
        "tool_result" => Statement::of_transcript(Says::Working, "ends with a tool result"),
        "assistant" if called => Statement::of_transcript(Says::Busy, "ends with a tool call"),
        "assistant" => Statement::of_transcript(Says::Idle, "ends with an answer"),
        _ => None,
    }
}
