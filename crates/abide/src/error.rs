//! Errors as the operator sees them: one line, then what to do next.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use abide_model::text::sanitised_lines;

/// The kind of failure, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureKind {
    Failed,
    Usage,
    /// A question could not be asked: there is no terminal.
    NeedsAnswer,
    /// The reader of our output has closed the pipe, which is not an error.
    ReaderGone,
}

/// A failure on its way to the operator.
#[derive(Debug)]
pub struct CommandError {
    kind: FailureKind,
    message: String,
    hints: Vec<String>,
}

/// The result of a verb.
pub type VerbResult<T = ()> = Result<T, CommandError>;

impl CommandError {
    fn new(kind: FailureKind, message: impl Display) -> Self {
        Self { kind, message: message.to_string(), hints: Vec::new() }
    }

    /// Something failed.
    pub fn failed(message: impl Display) -> Self {
        Self::new(FailureKind::Failed, message)
    }

    /// The command line cannot be meant.
    pub fn usage(message: impl Display) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    /// A question has to be answered first, and there is no terminal to ask it on.
    pub fn needs_answer(message: impl Display) -> Self {
        Self::new(FailureKind::NeedsAnswer, message)
    }

    /// Adds what to do next.
    pub fn hint(mut self, hint: impl Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Tells the operator, and says with which code to exit.
    pub fn report(self) -> ExitCode {
        let code = match self.kind {
            FailureKind::Failed => 1,
            FailureKind::Usage => 2,
            FailureKind::NeedsAnswer => 3,
            FailureKind::ReaderGone => return ExitCode::SUCCESS,
        };
        tracing::error!(code, "{}", self.message);
        let mut text = format!("abide: {}\n", self.message);
        for hint in &self.hints {
            text.push_str(&format!("hint: {hint}\n"));
        }
        // If even stderr cannot be written, there is no way left to report that.
        let _ = io::stderr().write_all(sanitised_lines(&text).as_bytes());
        ExitCode::from(code)
    }
}

impl Display for CommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Errors that say themselves what failed.
macro_rules! failures {
    ($($error:ty),+ $(,)?) => { $(
        impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                Self::failed(error)
            }
        }
    )+ };
}

failures! {
    abide_config::ConfigError,
    abide_engine::EngineError,
    abide_engine::substrate::NoAnswer,
    abide_places::host::boot_service::BootError,
    abide_store::StoreError,
    abide_store::ReadError,
    abide_store::ResolveError,
    abide_wire::protocol::CallError,
    serde_json::Error,
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(FailureKind::ReaderGone, error),
            _ => Self::failed(error),
        }
    }
}
