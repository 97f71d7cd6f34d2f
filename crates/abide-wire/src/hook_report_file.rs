//! What hooks report about conversations, for the process that binds sessions to them: one JSON object per line.

use std::io::{self, Write};

use abide_model::watching::HookReport;
use abide_sys::atomic::{self, Durability};
use abide_sys::untrusted;

use crate::instance_dir::InstanceDir;
use crate::session::SessionId;

/// The file does not grow beyond this: its older half is dropped.
const MAX_SIZE: usize = 64 << 10;

/// Appends the conversation of `report`, unless the last one written for its session and run is the same.
pub fn append(instance_dir: &InstanceDir, report: &HookReport) {
    let Some(conversation) = &report.conversation else { return };
    if let Err(err) = try_append(instance_dir, report, conversation) {
        tracing::warn!(session = %report.session, conversation, "not written down: {err}");
    }
}

/// Appends that something was entered in `session` now, for the first time in this run.
pub fn append_turn(instance_dir: &InstanceDir, session: &SessionId, generation: u64) {
    let at = abide_sys::clock::now().0;
    let line = serde_json::json!({ "generation": generation, "session": session, "at": at });
    let append = || {
        let mut file = untrusted::append(&instance_dir.turns())?;
        file.write_all(format!("{line}\n").as_bytes())
    };
    if let Err(err) = append() {
        tracing::warn!(%session, "its first turn was not written down: {err}");
    }
}

fn try_append(instance_dir: &InstanceDir, report: &HookReport, conversation: &str) -> io::Result<()> {
    let path = instance_dir.conversations();
    let earlier = match untrusted::read(&path) {
        Err(err) if err.kind() != io::ErrorKind::NotFound => return Err(err),
        read => String::from_utf8_lossy(&read.unwrap_or_default()).into_owned(),
    };
    let own = |line: &&str| {
        let line: Option<serde_json::Value> = serde_json::from_str(line).ok();
        line.filter(|line| {
            line["session"] == report.session.to_string() && line["generation"] == report.generation
        })
        .is_some()
    };
    let last = earlier.lines().rev().find(own).and_then(|line| serde_json::from_str(line).ok());
    let known = last.is_some_and(|line: serde_json::Value| {
        line["conversation"] == conversation && line["transcript"].as_str() == report.transcript.as_deref()
    });
    if known {
        return Ok(());
    }
    let line = serde_json::json!({
        "generation": report.generation,
        "session": report.session,
        "conversation": conversation,
        "transcript": report.transcript,
        "event": report.event,
        "at": abide_sys::clock::now().0,
    });
    tracing::info!(session = %report.session, conversation, event = report.event, "conversation reported");
    if earlier.len() > MAX_SIZE {
        let lines: Vec<&str> = earlier.lines().collect();
        let kept = lines[lines.len() / 2..].join("\n");
        let text = format!("{kept}\n{line}\n");
        return atomic::write_path(&path, text.as_bytes(), 0o600, Durability::Synced);
    }
    let mut file = untrusted::append(&path)?;
    // Not brought to disk here: every screen would wait for it.
    file.write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn report(session: u32, conversation: &str) -> HookReport {
        HookReport::of_conversation(SessionId(session), 1, conversation.to_owned(), "registry")
    }

    #[test]
    fn a_conversation_is_written_once_until_it_changes_and_the_file_stays_small() {
        let dir = tempfile::tempdir().unwrap();
        let instance_dir = InstanceDir::new(dir.path());
        instance_dir.prepare_state().unwrap();
        let lines = || fs::read_to_string(instance_dir.conversations()).unwrap().lines().count();
        for (session, id, expected) in
            [(1, "a", 1), (1, "a", 1), (2, "b", 2), (1, "a", 2), (1, "b", 3), (1, "a", 4)]
        {
            append(&instance_dir, &report(session, id));
            assert_eq!(lines(), expected, "{session} {id}");
        }
        for number in 0..2000 {
            append(&instance_dir, &report(1, &format!("conversation-{number}")));
        }
        let text = fs::read_to_string(instance_dir.conversations()).unwrap();
        assert!(text.len() < 2 * MAX_SIZE && text.trim_end().ends_with('}'), "{}", text.len());
        assert!(text.contains("conversation-1999"), "the newest is what counts");
    }
}
