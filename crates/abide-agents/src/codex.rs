//! Codex.
//!
//! It takes no id. Its transcripts lie by the day on which they were begun, named by the id; the databases beside them are
//! made from them and not needed. What it is doing it says through the terminal; that it is in another conversation now, only
//! its hooks say at once.

use std::path::{Path, PathBuf};

use abide_model::Timestamp;
use abide_model::activity::Says;
use abide_model::conversation::{Located, TranscriptCandidate, Typed};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::activity::{ActivitySigns, Statement, backwards};
use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, Words, is_uuid, offers};
use crate::fatal::Fatal;
use crate::files::{About, FileResult, Root, records};
use crate::hooks::{Injection, Reporter};
use crate::title::Said;

/// Days that are looked at, the newest first: some fifty years of daily use.
const MAX_DAYS: usize = 20_000;

/// Runs the agent in one process. Without it a daemon that all sessions share does the work, and outlives them.
const ONE_PROCESS: &str = "--no-daemon";

/// Where it locks the conversations that are open.
const LOCKS: &str = "thread-writer-locks";

#[derive(Debug)]
pub(crate) struct Codex;

static PROFILE: Profile = Profile {
    name: "codex",
    grammar: Grammar {
        program: "codex",
        is_id: is_uuid,
        latest: &["--last"],
        picker: &["--all"],
        resume_verb: &["resume"],
        fork_verb: &["fork"],
        resuming: &["resume", "{id}"],
        forking: &["fork", "{id}"],
        first_turn: &["--image", "-i"],
        switches: &[
            "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "--full-auto",
            "--no-alt-screen", ONE_PROCESS, "--oss", "--search", "--strict-config", "--yolo",
            "--approve-for-me", "--worktree",
        ],
        many: &["--image", "-i"],
        words: Words::Prompt,
        commands: &[
            "agents", "app-server", "apply", "archive", "cloud", "completion", "debug", "delete", "doctor",
            "e", "exec", "exec-server", "features", "login", "logout", "mcp", "mcp-server", "plugin",
            "queue", "review", "sandbox", "unarchive", "update", "a", "help", "migrate-nfs-db",
            "migrate-rollouts", "remote-control",
        ],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("CODEX_HOME", "")],
    dir: ".codex",
    package: Some(("@openai/codex", "0.166.0")),
    fatal: &[
        ("No saved session found with ID", Fatal::NoConversation),
        ("no rollout found for thread id", Fatal::NoConversation),
        ("This conversation is open in another app", Fatal::AlreadyInUse),
        ("already has an active writer", Fatal::AlreadyInUse),
        ("401 Unauthorized", Fatal::Auth),
        ("Not logged in", Fatal::Auth),
        ("error: unexpected argument", Fatal::Arguments),
    ],
    resumes_anywhere: true,
    said: Some(Said { at: "/payload/role", is: "user", text: "/payload/content" }),
    asked_for_help: true,
    signs: ActivitySigns {
        rules: include_str!("rules/codex.toml"),
        tail: Some(tail),
        hooks: Some(hooks),
        needs_consent: true,
        ..ActivitySigns::NONE
    },
    ..Profile::UNKNOWN
};

impl Agent for Codex {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn find_transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> FileResult<Located> {
        let root = Root::open(config_dir)?;
        for day in days(&root)? {
            if let Some(path) = root.files(&day)?.iter().find(|path| id_of(path) == Some(id)) {
                return root.judge(path, cwd, about);
            }
        }
        Ok(Located::Missing)
    }

    fn discover(&self, config_dir: &Path, cwd: Option<&Path>, since: Timestamp) -> Vec<TranscriptCandidate> {
        let Ok(root) = Root::open(config_dir) else { return Vec::new() };
        let named = |path: PathBuf| Some((id_of(&path)?.to_owned(), path));
        let days = days(&root).unwrap_or_default();
        let files = days.iter().flat_map(|day| root.files(day).unwrap_or_default());
        root.candidates(files.filter_map(named), cwd, since, about)
    }

    fn named(&self, path: &Path) -> Option<String> {
        // It locks the id before there is a transcript.
        let lock = || path.file_name()?.to_str()?.strip_suffix(".lock").filter(|id| is_uuid(id));
        let locked = path.parent().is_some_and(|dir| dir.ends_with(LOCKS)).then(lock).flatten();
        locked.or_else(|| id_of(path)).map(str::to_owned)
    }

    fn adjust_for(&self, help: &str, argv: Vec<String>) -> Vec<String> {
        let given = argv.iter().any(|word| word == ONE_PROCESS);
        match self.typed(&argv) {
            Typed::Nothing | Typed::Conversation(_) | Typed::Latest
                if offers(help, ONE_PROCESS) && !given =>
            {
                PROFILE.grammar.append(argv, [ONE_PROCESS])
            }
            _ => argv,
        }
    }
}

/// What a version offers that asks whether hooks are to be trusted. Older ones take other settings, or none.
const ASKS_FOR_TRUST: &str = "--dangerously-bypass-hook-trust";

/// The hook. It is the same text wherever abide is, as it is trusted by its hash.
const HOOK: &str = r#""$ABIDE_EXE" capsule report >/dev/null 2>&1 || :"#;

/// How long it may take. What is called at an interrupt is given no more, and is hashed with what it is given.
const SECONDS: u32 = 3;

/// The events, as settings call them and as keys do, each with the hash of its hook.
const EVENTS: &[(&str, &str, &str)] = &[
    ("SessionStart", "session_start", "23664ab959d9320921d73ce92ef9680b7f74c7792f811f1a701e6933cb5b09ad"),
    (
        "UserPromptSubmit",
        "user_prompt_submit",
        "94d571326568a92c5e899c228241effc6bb687e2c0844f2ce7b5cea694a1834b",
    ),
    (
        "PermissionRequest",
        "permission_request",
        "fa9cab037806b78a6343fef7239dd257c84ccfc00d4d9a3600939910ca710cfb",
    ),
    ("Stop", "stop", "53f7fcf13fdd5eceaa5a6aeddd3b63174828fd8b2d105691174c851882b09fa7"),
    ("Interrupt", "interrupt", "cf61e81e4f2803967e030bde19f96544dc104cde1a42c2f4a49da1d96e2800d7"),
];

/// Settings for one launch hold both the hooks and that these very ones are trusted: about all others codex asks as ever.
fn hooks(reporter: &Reporter<'_>) -> Injection {
    let own = |word: &String| word.trim_start_matches("--config=").starts_with("hooks");
    if !offers(reporter.help, ASKS_FOR_TRUST) || reporter.argv.iter().any(own) {
        return Injection::default();
    }
    let hook = |(event, ..): &(&str, &str, &str)| {
        format!("{event}=[{{hooks=[{{type=\"command\",command='{HOOK}',timeout={SECONDS}}}]}}]")
    };
    let trusted = |(_, key, hash): &(&str, &str, &str)| {
        format!("\"/<session-flags>/config.toml:{key}:0:0\"={{trusted_hash=\"sha256:{hash}\"}}")
    };
    let hooks = EVENTS.iter().map(hook).collect::<Vec<_>>().join(",");
    let state = EVENTS.iter().map(trusted).collect::<Vec<_>>().join(",");
    let argv = vec!["-c".to_owned(), format!("hooks={{{hooks},state={{{state}}}}}")];
    Injection { argv, ..Injection::default() }
}

/// The directories `sessions/YYYY/MM/DD`, the newest first.
fn days(root: &Root) -> FileResult<Vec<PathBuf>> {
    let mut days = Vec::new();
    for year in root.dirs(&root.path().join("sessions"))?.iter().rev() {
        for month in root.dirs(year)?.iter().rev() {
            days.extend(root.dirs(month)?.into_iter().rev());
            if days.len() >= MAX_DAYS {
                return Ok(days);
            }
        }
    }
    Ok(days)
}

/// The id in `rollout-<time>-<id>.jsonl`.
fn id_of(path: &Path) -> Option<&str> {
    let stem = path.file_name()?.to_str()?.strip_prefix("rollout-")?.strip_suffix(".jsonl")?;
    stem.get(stem.len().checked_sub(36)?..).filter(|id| is_uuid(id))
}

#[derive(Deserialize)]
struct RolloutRecord {
    #[serde(rename = "type")]
    kind: String,
    payload: Meta,
}

#[derive(Deserialize)]
struct Meta {
    cwd: String,
    #[serde(default)]
    thread_source: Option<String>,
    #[serde(default)]
    source: Option<SessionSource>,
}

/// Older versions spell a sub-agent's source as an object.
#[derive(Deserialize)]
#[serde(untagged)]
enum SessionSource {
    Name(String),
    Other(IgnoredAny),
}

fn about(head: &[u8]) -> About {
    let Some(meta) = records::<RolloutRecord>(head).find(|record| record.kind == "session_meta") else {
        return About::default();
    };
    let Meta { cwd, thread_source, source } = meta.payload;
    let named = |name: &str| name == "subagent";
    let sub_agent = thread_source.as_deref().is_some_and(named)
        || source.is_some_and(|source| match source {
            SessionSource::Name(name) => named(&name),
            SessionSource::Other(_) => true,
        });
    About { cwd: Some(cwd), sub_agent, id: None }
}

/// A call without output is a tool that runs or one that waits for approval, of which nothing is written down.
fn tail(end: &[u8]) -> Option<Statement> {
    let mut outputs: Vec<Value> = Vec::new();
    for record in backwards(end) {
        let payload = &record["payload"];
        match payload["type"].as_str().unwrap_or_default() {
            "task_complete" | "turn_complete" if payload["error"].is_object() => {
                let text = payload["error"]["message"].as_str().unwrap_or_default();
                return Some(Statement::new(
                    Says::Failed,
                    format!("its transcript ends with an error: {text}"),
                ));
            }
            "task_complete" | "turn_complete" => {
                return Statement::of_transcript(Says::Idle, "says that the turn is over");
            }
            "turn_aborted" => {
                return Statement::of_transcript(Says::Idle, "says that it was interrupted");
            }
            "task_started" | "turn_started" => {
                return Statement::of_transcript(Says::Working, "says that a turn has begun");
            }
            "function_call_output" | "custom_tool_call_output" => outputs.push(payload["call_id"].clone()),
            "function_call" | "custom_tool_call" | "local_shell_call"
                if !outputs.contains(&payload["call_id"]) =>
            {
                return Statement::of_transcript(Says::Busy, "ends with a tool call");
            }
            _ => {}
        }
    }
    None
}
