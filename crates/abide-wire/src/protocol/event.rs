//! What a subscriber hears.

use abide_model::Doing;
use serde::{Deserialize, Serialize};

use crate::protocol::SessionStatus;
use crate::session::{ProcessExit, SessionId, TerminalSize};

/// One event for one subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventMessage {
    /// The subscription, as [`SubscribeReply`](crate::protocol::SubscribeReply) named it.
    pub subscription: u64,
    #[serde(flatten)]
    pub event: Event,
}

/// The kinds of events, for choosing what to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// [`Event::Started`].
    Started,
    /// [`Event::Exited`].
    Exited,
    /// [`Event::Activity`].
    Activity,
    /// [`Event::Title`].
    Title,
    /// [`Event::Notification`].
    Notification,
    /// [`Event::Bell`].
    Bell,
    /// [`Event::Resized`].
    Resized,
    /// [`Event::Clients`].
    Clients,
    /// [`Event::Lost`].
    Lost,
    /// A kind of a newer version; never matches.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A session was started.
    Started { status: Box<SessionStatus> },
    /// A session's process ended and its output was read to the end.
    Exited { session: SessionId, exit: ProcessExit },
    /// What a session is doing changed.
    Activity {
        session: SessionId,
        /// What it does now.
        activity: ActivityReport,
    },
    /// A session's title changed.
    Title {
        session: SessionId,
        /// The new title, control characters removed.
        title: String,
    },
    /// A session wants to notify the operator.
    Notification {
        session: SessionId,
        /// The text, control characters removed.
        text: String,
    },
    /// A session rang the bell.
    Bell { session: SessionId },
    /// A session's terminal has a new size.
    Resized { session: SessionId, size: TerminalSize },
    /// A client attached or left.
    Clients {
        /// How many are attached now.
        attached: usize,
    },
    /// What an attached client looks at changed. Only that client hears it, and needs no subscription.
    Shown {
        /// The session that gets what is typed.
        session: SessionId,
    },
    /// The subscriber did not keep up, and this many events were dropped; ask for the status.
    Lost { count: u64 },
    /// An event of a newer version.
    #[serde(other)]
    Unknown,
}

impl Event {
    /// The kind that a subscriber names to hear this.
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Started { .. } => EventKind::Started,
            Self::Exited { .. } => EventKind::Exited,
            Self::Activity { .. } => EventKind::Activity,
            Self::Title { .. } => EventKind::Title,
            Self::Notification { .. } => EventKind::Notification,
            Self::Bell { .. } => EventKind::Bell,
            Self::Resized { .. } => EventKind::Resized,
            Self::Clients { .. } => EventKind::Clients,
            Self::Lost { .. } => EventKind::Lost,
            Self::Shown { .. } | Self::Unknown => EventKind::Unknown,
        }
    }
}

/// What a session is doing, since when and how we know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityReport {
    pub state: Doing,
    /// For how long, in milliseconds of monotonic time.
    pub for_ms: u64,
    #[serde(default)]
    pub because: String,
    /// What the operator is asked.
    pub question: Option<String>,
    /// Whether it is a shell that waits for a command. Not known of what does not say so.
    #[serde(default)]
    pub is_waiting_shell: bool,
}
