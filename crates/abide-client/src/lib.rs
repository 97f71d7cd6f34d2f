//! The client: puts the operator's terminal in front of a capsule.
//!
//! It draws what the mux sends and sends what is typed, and understands neither. As soon as it knows what the terminal
//! can do it lends it to the mux, which then does both itself, and mostly waits. What the client does understand is the
//! terminal: it is put into raw mode and given back as it was, however the client ends. Nothing here prints anything
//! else; why it ended is the caller's to say.

mod connect;
mod environment;
mod probe;
mod run;

use std::io::{self, IsTerminal};

use abide_model::{TrueColor, vars};
use abide_sys::signals::TerminalSignals;
use abide_sys::terminal::OperatorTerminal;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::CallError;
use abide_wire::session::{ProcessExit, SessionId};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AttachMode {
    #[default]
    Control,
    /// Nothing that is typed reaches a session, and the size does not count.
    ReadOnly,
}

#[derive(Debug, Clone, Default)]
pub struct AttachOptions {
    /// The session to show first; the one that was looked at last where absent.
    pub session: Option<SessionId>,
    pub mode: AttachMode,
    /// The byte of the prefix key, by which one can leave while there is no mux to understand it; `C-b` where 0.
    pub prefix: u8,
    /// Whether the terminal shows any colour.
    pub truecolor: TrueColor,
}

/// Called once, as soon as the operator sees the screen, with the session that is shown, where that is known.
pub type OnShown<'a> = &'a dyn Fn(Option<SessionId>);

/// How an attachment ended. The terminal is as it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachEnd {
    /// The operator left, and everything keeps running.
    Detached(String),
    /// The terminal went away, and everything keeps running. There is nothing to print on: writing to it may never end.
    TerminalGone,
    /// The last session ended.
    SessionEnded {
        /// How, as far as is known.
        exit: Option<ProcessExit>,
        /// The same for people.
        message: String,
    },
    /// The capsule was stopped.
    Shutdown(String),
    /// The capsule cannot be reached any more.
    Lost(String),
}

impl AttachEnd {
    /// Why it ended, for the operator.
    pub fn message(&self) -> &str {
        match self {
            Self::TerminalGone => "the terminal is gone; everything keeps running",
            Self::Detached(message)
            | Self::SessionEnded { message, .. }
            | Self::Shutdown(message)
            | Self::Lost(message) => message,
        }
    }
}

/// Why nothing could be attached.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is nothing to draw on.
    #[error("attaching needs a terminal for input and output; use `abide peek` and `abide send` without one")]
    NotATerminal,
    /// There is nothing to draw with.
    #[error("this terminal (TERM=dumb) cannot draw; use `abide peek` and `abide send`, or another terminal")]
    DumbTerminal,
    /// The capsule cannot be reached.
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("the terminal cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// Attaches the terminal to the capsule of `instance_dir`, until the operator leaves or there is nothing more to see. Call it
/// with one thread: signals are taken over meanwhile.
pub fn attach(
    instance_dir: &InstanceDir,
    options: &AttachOptions,
    on_shown: OnShown<'_>,
) -> Result<AttachEnd, ClientError> {
    check()?;
    let (stream, decoder) = connect::first(instance_dir)?;
    let signals = TerminalSignals::take()?;
    let mut terminal = OperatorTerminal::open()?;
    terminal.enter()?;
    let mut attachment = run::Attachment::new(instance_dir, options, terminal, stream, decoder)?;
    let ended = attachment.run(&signals, on_shown);
    drop(attachment);
    Ok(ended?)
}

/// Whether there is a terminal that we can use.
pub fn check() -> Result<(), ClientError> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(ClientError::NotATerminal);
    }
    if std::env::var_os(vars::TERM).is_none_or(|term| term == "dumb") {
        return Err(ClientError::DumbTerminal);
    }
    Ok(())
}
