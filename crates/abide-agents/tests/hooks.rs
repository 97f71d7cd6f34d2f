//! Hooks: what is set for a launch, and what agents say through them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::Path;

use abide_agents::hooks::{self, Injection, Reporter};
use abide_model::SessionId;
use abide_model::activity::Says;
use abide_model::vars;
use abide_model::watching::HookReport;
use serde_json::{Value, json};

fn report(payload: &Value) -> Option<HookReport> {
    hooks::report(payload.to_string().as_bytes(), SessionId(1), 3)
}

/// As claude 2.1 and qwen 0.24 said it, shortened.
#[test]
fn what_an_agent_says_to_a_hook_is_understood() {
    let id = "b09e3733-9e17-4161-98b2-c660257870b8";
    let event = |name: &str, more: Value| {
        let mut payload =
            json!({"session_id": id, "transcript_path": "/t.jsonl", "cwd": "/", "hook_event_name": name});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let report = report(&payload).unwrap();
        assert_eq!(
            (report.conversation.as_deref(), report.transcript.as_deref()),
            (Some(id), Some("/t.jsonl"))
        );
        hooks::meaning(&report).map(|statement| (statement.says, statement.question))
    };
    assert_eq!(event("SessionStart", json!({"source": "startup"})), Some((Says::Idle, None)));
    assert_eq!(event("SessionStart", json!({"source": "compact"})), None, "in the middle of a turn");
    assert_eq!(event("UserPromptSubmit", json!({"prompt": "x"})), Some((Says::Working, None)));
    let asks = json!({"notification_type": "permission_prompt", "message": "may I?"});
    assert_eq!(event("Notification", asks), Some((Says::NeedsInput, Some("may I?".to_owned()))));
    let idles = json!({"notification_type": "idle_prompt", "message": "waiting for your input"});
    assert_eq!(event("Notification", idles), Some((Says::Idle, None)));
    assert_eq!(event("Notification", json!({"notification_type": "auth_success"})), None);
    assert_eq!(event("Stop", json!({"stop_hook_active": false})), Some((Says::Idle, None)));
    assert_eq!(event("SessionEnd", json!({"reason": "clear"})), None);
}

#[test]
fn what_is_no_report_or_a_hostile_one_is_refused_or_cut() {
    assert_eq!(hooks::report(b"", SessionId(1), 1), None);
    assert_eq!(hooks::report(b"{\"hook_event_name\": \"St", SessionId(1), 1), None);
    assert_eq!(report(&json!({"session_id": "x"})), None);
    let of_another = json!({"hook_event_name": "Stop", "session_id": "x", "agent_id": "y"});
    assert_eq!(report(&of_another), None, "a sub-agent's turn is not the session's");
    let hostile = json!({
        "hook_event_name": "Notification", "session_id": "a\u{1b}]0;b", "transcript_path": "x".repeat(10_000),
        "message": "y".repeat(1 << 20),
    });
    let report = report(&hostile).unwrap();
    assert_eq!((report.conversation, report.transcript), (None, None));
    assert_eq!(report.text.unwrap().len(), 1000);
}

fn injected(agent: &str, argv: &[String]) -> Option<Injection> {
    let hooks = abide_agents::agent(agent).unwrap().profile().signs.hooks?;
    let exe = Path::new("/opt/it's here/abide");
    let help = "--plugin-dir <directory>\n  --dangerously-bypass-hook-trust";
    Some(hooks(&Reporter { exe, dir: Path::new("/unit/state/hooks/s1"), argv, help }))
}

#[test]
fn every_file_of_a_hook_lies_in_the_directory_of_the_launch() {
    for agent in abide_agents::KNOWN {
        for (path, contents) in injected(agent.name(), &[]).into_iter().flat_map(|injection| injection.files)
        {
            assert!(path.starts_with("/unit/state/hooks/s1"), "{}", path.display());
            assert!(contents.contains("capsule"), "{contents}");
        }
    }
    assert!(["gemini", "kimi", "amp"].iter().all(|agent| injected(agent, &[]).is_none()));
}

#[test]
fn settings_call_the_hook_whatever_the_path_of_abide_and_let_no_failure_through() {
    let claude = injected("claude", &[]).unwrap();
    assert_eq!(claude.argv[0], "--settings");
    assert_eq!(Path::new(&claude.argv[1]), claude.files[0].0);
    let settings: Value = serde_json::from_str(&claude.files[0].1).unwrap();
    let hook = &settings["hooks"]["Stop"][0]["hooks"][0];
    assert_eq!(hook["type"], "command");
    let command = hook["command"].as_str().unwrap();
    let ran = std::process::Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "a missing abide disturbs the agent: {ran:?}");
    let dir = tempfile::tempdir().unwrap();
    let exe = dir.path().join("it's here");
    std::os::unix::fs::symlink("/bin/echo", &exe).unwrap();
    let reporter = Reporter { exe: &exe, dir: dir.path(), argv: &[], help: "" };
    let command = reporter.command().replace(">/dev/null 2>&1", "");
    let ran = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "capsule report\n");
}

/// As codex 0.166 computes it: the hash of what a hook is, as JSON with sorted keys.
#[test]
fn codex_gets_the_hash_of_each_hook_that_it_should_trust() {
    let settings = injected("codex", &[]).unwrap().argv.pop().unwrap();
    let settings: toml_edit::DocumentMut = settings.parse().unwrap();
    let events: Vec<&str> = settings["hooks"]
        .as_inline_table()
        .unwrap()
        .iter()
        .map(|(name, _)| name)
        .filter(|name| *name != "state")
        .collect();
    assert_eq!(events.len(), 5);
    for event in events {
        let hook = &settings["hooks"][event][0]["hooks"][0];
        assert!(hook["command"].as_str().unwrap().starts_with(&format!("\"${}\" ", vars::ABIDE_EXE)));
        let mut key = String::new();
        for letter in event.chars() {
            key.extend((letter.is_ascii_uppercase() && !key.is_empty()).then_some('_'));
            key.push(letter.to_ascii_lowercase());
        }
        let identity = json!({
            "event_name": key,
            "hooks": [{
                "async": false, "command": hook["command"].as_str().unwrap(),
                "timeout": hook["timeout"].as_integer().unwrap(), "type": "command",
            }],
        });
        let sum = "printf %s \"$0\" | sha256sum | cut -d' ' -f1";
        let sum = std::process::Command::new("sh").args(["-c", sum, &identity.to_string()]).output().unwrap();
        let state = &settings["hooks"]["state"][&format!("/<session-flags>/config.toml:{key}:0:0")];
        let trusted = state["trusted_hash"].as_str().unwrap();
        assert_eq!(trusted, format!("sha256:{}", String::from_utf8(sum.stdout).unwrap().trim()), "{event}");
    }
}

#[test]
fn what_an_agent_does_not_offer_or_the_operator_has_set_is_left_alone() {
    let own = ["codex", "-c", "hooks.Stop=[]"].map(str::to_owned);
    assert_eq!(injected("codex", &own), Some(Injection::default()));
    for agent in ["codex", "copilot"] {
        let hooks = abide_agents::agent(agent).unwrap().profile().signs.hooks.unwrap();
        let reporter =
            Reporter { exe: Path::new("/abide"), dir: Path::new("/unit"), argv: &[], help: "--config" };
        assert_eq!(hooks(&reporter), Injection::default());
    }
}
