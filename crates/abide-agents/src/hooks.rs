//! Hooks: how an agent is made to tell, for one launch and without touching the operator's own settings, what it is doing and
//! which conversation it is in; and what it means when it does.
//!
//! A hook runs `abide capsule report`, which reads what the agent says on standard input, passes it to the mux of its session,
//! and never prints, fails or keeps the agent waiting.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use abide_model::SessionId;
use abide_model::activity::Says;
use abide_model::watching::HookReport;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::activity::Statement;

/// The longest text of a hook that is passed on.
const MAX_TEXT: usize = 1000;
/// The longest name of anything.
const MAX_NAME: usize = 512;

/// What a hook needs to call, where its files may be, and what it is set for.
#[derive(Debug, Clone, Copy)]
pub struct Reporter<'a> {
    /// The `abide` that is called.
    pub exe: &'a Path,
    /// A directory for the files of this launch.
    pub dir: &'a Path,
    /// The command line of this launch.
    pub argv: &'a [String],
    /// What the agent's `--help` says; empty if it was not asked.
    pub help: &'a str,
}

/// What is added to a launch so that hooks are called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Injection {
    pub argv: Vec<String>,
    /// Options among them that can be given only once.
    pub once: &'static [&'static str],
    pub env: Vec<(&'static str, OsString)>,
    /// Files that these name, with their contents.
    pub files: Vec<(PathBuf, String)>,
}

impl Reporter<'_> {
    /// The hook as a shell command. An abide that is gone, or one that fails, is no concern of the agent's.
    pub fn command(&self) -> String {
        let exe = self.exe.to_string_lossy().replace('\'', r"'\''");
        format!("'{exe}' capsule report >/dev/null 2>&1 || :")
    }

    /// Settings in which `events` call the hook, in the form that several agents share. `timeout` is in their unit.
    pub fn settings(&self, events: &[&str], timeout: u32) -> Value {
        let hook = json!([{"hooks": [{"type": "command", "command": self.command(), "timeout": timeout}]}]);
        let hooks: serde_json::Map<String, Value> =
            events.iter().map(|event| ((*event).to_owned(), hook.clone())).collect();
        json!({ "hooks": hooks })
    }
}

/// What agents say to a hook. Names differ; what is not here is not looked at.
#[derive(Debug, Default, Deserialize)]
struct Payload {
    #[serde(alias = "hookEventName", alias = "type")]
    hook_event_name: Option<String>,
    #[serde(alias = "sessionId", alias = "sessionID")]
    session_id: Option<String>,
    #[serde(alias = "transcriptPath")]
    transcript_path: Option<String>,
    #[serde(alias = "notificationType")]
    notification_type: Option<String>,
    source: Option<String>,
    message: Option<String>,
    /// The sub-agent that it is about.
    agent_id: Option<IgnoredAny>,
}

/// The report that a hook makes of what the agent said to it. `None` if that was nothing it knows, or about a sub-agent:
/// what that does, and where that is written down, is not the session's.
pub fn report(payload: &[u8], session: SessionId, generation: u64) -> Option<HookReport> {
    let payload: Payload =
        serde_json::from_slice(payload).ok().filter(|said: &Payload| said.agent_id.is_none())?;
    let named = |name: Option<String>| {
        name.filter(|name| !name.is_empty() && name.len() <= MAX_NAME && !name.contains(char::is_control))
    };
    Some(HookReport {
        session,
        generation,
        event: named(payload.hook_event_name)?,
        kind: named(payload.notification_type.or(payload.source)),
        text: payload.message.map(|text| text.chars().take(MAX_TEXT).collect()),
        conversation: named(payload.session_id),
        transcript: named(payload.transcript_path),
    })
}

/// What a report says about the session's activity. `None` if nothing.
pub fn meaning(report: &HookReport) -> Option<Statement> {
    let kind = report.kind.as_deref().unwrap_or_default();
    let says = match report.event.as_str() {
        "UserPromptSubmit" | "BeforeAgent" | "PreToolUse" | "PostToolUse" | "busy" => Says::Working,
        "PermissionRequest" | "permission" | "question" => Says::NeedsInput,
        "Notification" => match kind {
            "permission_prompt" | "ToolPermission" | "elicitation_dialog" => Says::NeedsInput,
            "idle_prompt" => Says::Idle,
            _ => return None,
        },
        // Compaction begins a session in the middle of a turn.
        "SessionStart" if kind == "compact" => return None,
        "StopFailure" => Says::Failed,
        "SessionStart" | "Stop" | "AfterAgent" | "Interrupt" | "idle" => Says::Idle,
        _ => return None,
    };
    let kind = if kind.is_empty() { String::new() } else { format!(" ({kind})") };
    let question = report.text.clone().filter(|_| says == Says::NeedsInput);
    Some(Statement { says, detail: format!("its hook {}{kind} was called", report.event), question })
}
