//! Claude Code.
//!
//! It takes an id for a new conversation and writes the transcript at the first prompt: before that there is nothing to
//! resume, and the same id may be given again; after that the id may only be resumed.

use std::path::Path;

use abide_model::Pid;
use abide_model::activity::Says;
use serde_json::Value;

use crate::activity::{ActivitySigns, Statement, backwards, text_of};
use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, Words, is_uuid};
use crate::fatal::Fatal;
use crate::hooks::{Injection, Reporter};
use crate::projects::{LongName, ProjectLayout};
use crate::registry;
use crate::title::Said;

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
        forking: &["--resume", "{id}", "--fork-session", "--session-id", "{new}"],
        first_turn: &["--print", "-p"],
        switches: &[
            "--print", "-p", "--allow-dangerously-skip-permissions", "--bare", "--brief", "--chrome",
            "--dangerously-skip-permissions", "--disable-slash-commands", "--ide", "--include-hook-events",
            "--include-partial-messages", "--mcp-debug", "--no-chrome", "--no-session-persistence",
            "--replay-user-messages", "--strict-mcp-config", "--verbose", "--ax-screen-reader",
            "--background", "--bg", "--desktop", "--exclude-dynamic-system-prompt-sections",
            "--forward-subagent-text", "--restricted", "--safe-mode", "--tmux",
        ],
        many: &[
            "--add-dir", "--allowed-tools", "--allowedTools", "--betas", "--disallowed-tools",
            "--disallowedTools", "--file", "--mcp-config", "--tools",
        ],
        words: Words::Prompt,
        commands: &[
            "agents", "attach", "auth", "auto-mode", "config", "doctor", "install", "mcp", "plugin",
            "plugins", "setup-token", "update", "upgrade", "gateway", "import", "kill", "logs", "purge",
            "respawn", "rm", "stop", "ultrareview",
        ],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("CLAUDE_CONFIG_DIR", "")],
    dir: ".claude",
    package: Some(("@anthropic-ai/claude-code", "2.1.325")),
    fatal: &[
        ("No conversation found with session ID", Fatal::NoConversation),
        ("Session ID … is already in use", Fatal::AlreadyInUse),
        ("Invalid API key", Fatal::Auth),
        ("Please run /login", Fatal::Auth),
        ("OAuth token has expired", Fatal::Auth),
        ("error: unknown option", Fatal::Arguments),
        ("can only be used with --continue or --resume if --fork-session", Fatal::Arguments),
    ],
    resumes_anywhere: true,
    said: Some(Said { at: "/type", is: "user", text: "/message/content" }),
    continues: Some(("CLAUDE_CODE_RESUME_INTERRUPTED_TURN", "1")),
    signs: ActivitySigns {
        rules: include_str!("rules/claude.toml"),
        tail: Some(tail),
        registry: true,
        hooks: Some(hooks),
        ..ActivitySigns::NONE
    },
    projects: Some(ProjectLayout { inside: "", long: LongName::Cut }),
    ..Profile::UNKNOWN
};

impl Agent for Claude {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    /// It keeps nothing open, but publishes which conversation each of its processes is in.
    fn open_in(&self, config_dir: &Path, pid: Pid) -> Vec<String> {
        registry::read(&config_dir.join("sessions"), pid)
            .map(|entry| entry.conversation)
            .into_iter()
            .collect()
    }

    fn published(&self, config_dir: &Path) -> Vec<(String, Pid)> {
        registry::all(&config_dir.join("sessions"))
    }
}

/// The events that its oldest supported version knows. Events of single tools would add nothing to these.
const EVENTS: &[&str] = &["SessionStart", "UserPromptSubmit", "Notification", "Stop", "SessionEnd"];

/// Settings for one launch. Of two, the last counts.
const SETTINGS: &str = "--settings";

fn hooks(reporter: &Reporter<'_>) -> Injection {
    let file = reporter.dir.join("claude.json");
    Injection {
        argv: vec![SETTINGS.to_owned(), file.display().to_string()],
        once: &[SETTINGS],
        files: vec![(file, reporter.settings(EVENTS, 5).to_string())],
        ..Injection::default()
    }
}

/// Tools whose call is a question to the operator.
const ASKING: &[&str] = &["AskUserQuestion", "ExitPlanMode"];

/// A call without a result is a tool that runs or one that waits for permission. What neither operator nor model said is
/// book-keeping.
fn tail(end: &[u8]) -> Option<Statement> {
    let working = |what| Statement::of_transcript(Says::Working, what);
    let idle = |what| Statement::of_transcript(Says::Idle, what);
    let (mut results, mut message, mut is_over) = (Vec::new(), None, false);
    for record in backwards(end).filter(|record| record["isSidechain"] != true && record["isMeta"] != true) {
        let content = &record["message"]["content"];
        let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
        match record["type"].as_str().unwrap_or_default() {
            "assistant" if record["isApiErrorMessage"] == true && results.is_empty() => {
                let text = format!("its transcript ends with an error: {}", text_of(content));
                return Some(Statement::new(Says::Failed, text));
            }
            "user" | "assistant" if is_over => break,
            "system" if record["subtype"] == "turn_duration" && results.is_empty() => is_over = true,
            "user" => {
                let text = text_of(content);
                if text.starts_with("[Request interrupted by user") && results.is_empty() {
                    return idle("says that it was interrupted");
                }
                // Commands that the agent answers itself are in tags.
                if !text.is_empty() && !text.starts_with('<') && record["isCompactSummary"] != true {
                    return working("ends with a prompt");
                }
                results.extend(parts.iter().map(|part| part["tool_use_id"].clone()).filter(Value::is_string));
            }
            "assistant" => {
                let mut calls = parts.iter().filter(|part| part["type"] == "tool_use");
                if let Some(call) = calls.find(|call| !results.contains(&call["id"])) {
                    return Some(called(call));
                }
                let id = record["message"]["id"].clone();
                match record["message"]["stop_reason"].as_str() {
                    _ if !results.is_empty() => {
                        // A message with several calls is several records.
                        if *message.get_or_insert_with(|| id.clone()) != id {
                            break;
                        }
                    }
                    Some("end_turn" | "stop_sequence" | "max_tokens" | "refusal") => {
                        return idle("ends with an answer");
                    }
                    Some(_) => return working("ends with an unfinished answer"),
                    // Versions that do not say why the model stopped leave it open whether it has.
                    None => return None,
                }
            }
            _ => {}
        }
    }
    match (is_over, results.is_empty()) {
        (true, _) => idle("says that the turn is over"),
        (false, true) => None,
        (false, false) => working("ends with a tool result"),
    }
}

fn called(call: &Value) -> Statement {
    let name = call["name"].as_str().unwrap_or_default();
    if !ASKING.contains(&name) {
        return Statement::new(Says::Busy, format!("its transcript ends with a call to {name}"));
    }
    let question = call["input"]["questions"][0]["question"].as_str().map(str::to_owned);
    let detail = format!("its transcript ends with a call to {name}, which asks the operator");
    Statement { question, ..Statement::new(Says::NeedsInput, detail) }
}
