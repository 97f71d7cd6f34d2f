//! GitHub Copilot CLI.

use std::path::{Path, PathBuf};

use abide_model::activity::Says;
use abide_model::conversation::{Located, TranscriptCandidate};
use abide_model::{Pid, Timestamp};
use serde::Deserialize;

use crate::activity::{ActivitySigns, Statement, backwards};
use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, is_uuid, offers};
use crate::fatal::Fatal;
use crate::files::{About, FileResult, Root, records};
use crate::hooks::{Injection, Reporter};
use crate::title::Said;

/// The transcript in the directory of a conversation.
const EVENTS: &str = "events.jsonl";

/// How the names of the locks begin that a process has on its conversation, by its number. Found again, they would be taken
/// for those of another process that got the number.
const IN_USE: &str = "inuse.";

/// GitHub Copilot CLI.
#[derive(Debug)]
pub(crate) struct Copilot;

static PROFILE: Profile = Profile {
    name: "copilot",
    grammar: Grammar {
        program: "copilot",
        is_id: is_uuid,
        preset: &["--session-id"],
        resume: &["--resume", "-r"],
        latest: &["--continue"],
        resuming: &["--resume={id}"],
        first_turn: &["--prompt", "-p", "--interactive", "-i"],
        switches: &[
            "--allow-all", "--allow-all-paths", "--allow-all-tools", "--allow-all-urls", "--autopilot",
            "--banner", "--experimental", "--no-ask-user", "--no-auto-update", "--no-color",
            "--no-custom-instructions", "--plan", "--screen-reader", "--silent", "-s", "--yolo", "--acp",
            "--allow-all-mcp-server-instructions", "--assisted-approval", "--disable-builtin-mcps",
            "--disable-client-telemetry", "--disallow-temp-dir", "--enable-all-github-mcp-tools",
            "--enable-memory", "--fleet", "--no-bash-env", "--no-experimental", "--no-mouse", "--no-remote",
            "--no-remote-export", "--plain-diff", "--remote", "--remote-export", "--share-gist",
            "--trust-folder",
        ],
        many: &[
            "--allow-tool", "--allow-url", "--available-tools", "--deny-tool", "--deny-url",
            "--excluded-tools", "--secret-env-vars",
        ],
        commands: &[
            "completion", "help", "init", "login", "mcp", "plugin", "update", "version", "app", "config",
            "instruction", "lsp", "memories", "sandbox", "sessions", "skill", "workflow",
        ],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("COPILOT_HOME", "")],
    dir: ".copilot",
    package: Some(("@github/copilot", "1.0.102")),
    fatal: &[
        ("No session, task, or name matched", Fatal::NoConversation),
        ("Session in use", Fatal::AlreadyInUse),
        ("No authentication information found", Fatal::Auth),
        ("error: unexpected argument", Fatal::Arguments),
    ],
    resumes_anywhere: true,
    said: Some(Said { at: "/type", is: "user.message", text: "/data/content" }),
    asked_for_help: true,
    signs: ActivitySigns {
        rules: include_str!("rules/copilot.toml"),
        tail: Some(tail),
        hooks: Some(hooks),
        ..ActivitySigns::NONE
    },
    ..Profile::UNKNOWN
};

impl Agent for Copilot {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn find_transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> FileResult<Located> {
        let root = Root::open(config_dir)?;
        root.judge(&root.path().join("session-state").join(id).join(EVENTS), cwd, about)
    }

    fn discover(&self, config_dir: &Path, cwd: Option<&Path>, since: Timestamp) -> Vec<TranscriptCandidate> {
        let Ok(root) = Root::open(config_dir) else { return Vec::new() };
        let named = |dir: PathBuf| Some((id_of(&dir)?, dir.join(EVENTS)));
        let sessions = root.dirs(&root.path().join("session-state")).unwrap_or_default();
        root.candidates(sessions.into_iter().filter_map(named), cwd, since, about)
    }

    fn named(&self, path: &Path) -> Option<String> {
        path.ends_with(EVENTS).then(|| id_of(path.parent()?)).flatten()
    }

    fn belongings(&self, transcript: &Path) -> PathBuf {
        transcript.parent().unwrap_or(transcript).to_owned()
    }

    fn is_passing(&self, file: &Path) -> bool {
        file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(IN_USE))
    }

    fn published(&self, config_dir: &Path) -> Vec<(String, Pid)> {
        let Ok(root) = Root::open(config_dir) else { return Vec::new() };
        let sessions = root.dirs(&root.path().join("session-state")).unwrap_or_default();
        let open = |dir: &PathBuf| Some((id_of(dir)?, user_of(dir)?));
        sessions.iter().filter_map(open).collect()
    }
}

/// The process that has the conversation in `dir` open: it leaves a file `inuse.<pid>.…` there, which stays when it is
/// killed. A process that was started after the file was made only has the same number.
fn user_of(dir: &Path) -> Option<Pid> {
    let marks = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let user = |mark: std::fs::DirEntry| {
        let pid: Pid = mark.file_name().to_str()?.strip_prefix(IN_USE)?.split('.').next()?.parse().ok()?;
        let made = mark.metadata().and_then(|meta| meta.modified()).ok()?;
        abide_sys::process::started(pid).is_some_and(|started| started <= made).then_some(pid)
    };
    marks.filter_map(user).next()
}

fn id_of(dir: &Path) -> Option<String> {
    dir.file_name()?.to_str().filter(|name| is_uuid(name)).map(str::to_owned)
}

#[derive(Deserialize)]
struct CopilotEvent {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    context: CopilotContext,
}

#[derive(Deserialize)]
struct CopilotContext {
    cwd: String,
}

fn about(head: &[u8]) -> About {
    let cwd = records::<CopilotEvent>(head).next().map(|event| event.data.context.cwd);
    About { cwd, ..About::default() }
}

const HOOKED: &[&str] = &["SessionStart", "UserPromptSubmit", "Notification", "Stop"];

/// Loads a plugin for one launch, beside those of the operator. Older versions cannot.
const PLUGIN: &str = "--plugin-dir";

fn hooks(reporter: &Reporter<'_>) -> Injection {
    if !offers(reporter.help, PLUGIN) {
        return Injection::default();
    }
    let dir = reporter.dir.join("copilot");
    let mut plugin = reporter.settings(HOOKED, 5);
    plugin["name"] = "abide".into();
    Injection {
        argv: vec![PLUGIN.to_owned(), dir.display().to_string()],
        files: vec![(dir.join("plugin.json"), plugin.to_string())],
        ..Injection::default()
    }
}

/// What it calls a turn ends with each call of a tool; the next one begins with the tool's answer.
fn tail(end: &[u8]) -> Option<Statement> {
    let (mut ended, mut completed) = (false, Vec::new());
    for record in backwards(end) {
        let data = &record["data"];
        match record["type"].as_str().unwrap_or_default() {
            "permission.completed" => completed.push(data["requestId"].clone()),
            "permission.requested" if !completed.contains(&data["requestId"]) => {
                let question = data["permissionRequest"]["fullCommandText"].as_str().map(str::to_owned);
                let asks =
                    Statement::new(Says::NeedsInput, "its transcript ends with a request for permission");
                return Some(Statement { question, ..asks });
            }
            "assistant.turn_end" => ended = true,
            "assistant.message" if ended => {
                return Statement::of_transcript(Says::Idle, "says that the turn is over");
            }
            "tool.execution_complete" | "assistant.turn_start" | "user.message" => {
                return Statement::of_transcript(Says::Working, "says that a turn has begun");
            }
            "session.resume" | "session.start" | "session.shutdown" | "abort" => {
                return Statement::of_transcript(Says::Idle, "says that no turn has begun");
            }
            _ => {}
        }
    }
    None
}
