//! What a session is to every part of the capsule: its id, how it is started, how it ended.

use std::fmt;

use serde::{Deserialize, Serialize};

pub use abide_model::SessionId;

use crate::os_text::OsText;

/// The size of a terminal in cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Columns.
    pub cols: u16,
    pub rows: u16,
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self { cols: 80, rows: 24 }
    }
}

/// How a session's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessExit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// In [`SpawnSpec::meta`]: the agent that the session runs.
pub const META_AGENT: &str = "agent";
/// In [`SpawnSpec::meta`]: the command line of the operator's shell.
pub const META_SHELL: &str = "shell";

/// Everything needed to start a session. It may hold secrets: it travels over sockets only and prints no values.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct SpawnSpec {
    /// The session's id; no other session of the capsule may have it.
    pub id: SessionId,
    /// What the operator calls it.
    #[serde(default)]
    pub name: String,
    /// The program and its arguments. The program is looked up in the `PATH` of `env`.
    pub argv: Vec<OsText>,
    /// The whole environment: nothing is inherited. `TERM` and `COLORTERM` are added where missing.
    #[serde(default)]
    pub env: Vec<(OsText, OsText)>,
    /// The working directory. It must exist.
    pub cwd: OsText,
    /// The terminal's first size.
    #[serde(default)]
    pub size: TerminalSize,
    /// The file mode creation mask; the keeper's own where absent.
    pub umask: Option<u32>,
    /// What the mux has to know about the session and the keeper need not understand, by the names `META_*`.
    #[serde(default)]
    pub meta: serde_json::Value,
}

impl fmt::Debug for SpawnSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("SpawnSpec")
            .field("id", &self.id)
            .field("name", &self.name)
            .field("program", &self.argv.first())
            .field("env_names", &names)
            .field("cwd", &self.cwd)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_a_spec_shows_neither_arguments_nor_values() {
        let spec = SpawnSpec {
            id: SessionId(1),
            name: "a".into(),
            argv: vec!["claude".into(), "--token=hunter2".into()],
            env: vec![("TOKEN".into(), "hunter2".into())],
            cwd: "/".into(),
            size: TerminalSize::default(),
            umask: None,
            meta: serde_json::Value::Null,
        };
        let shown = format!("{spec:?}");
        assert!(shown.contains("TOKEN") && !shown.contains("hunter2"), "{shown}");
    }
}
