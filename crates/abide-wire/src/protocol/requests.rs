//! Every request that a client makes, and its reply.

use abide_model::Pid;
use abide_model::activity::{Background, Says, Source};
use serde::{Deserialize, Serialize};

use crate::mux_options::LiveSettings;
use crate::os_text::OsText;
use crate::protocol::event::{ActivityReport, EventKind};
use crate::session::{ProcessExit, SessionId, SpawnSpec, TerminalSize};

/// Carried out; there is nothing more to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Done {}

/// Asks for the state of the capsule and its sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GetStatus {}

/// The state of the capsule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusReply {
    /// Which run of the instance this is.
    pub generation: u64,
    /// The version of the running software.
    pub version: String,
    pub keeper_pid: Pid,
    pub mux_pid: Pid,
    /// How many clients are attached.
    pub attached: usize,
    /// The session that new clients see first.
    pub focused: Option<SessionId>,
    /// What the machine does not do while this capsule keeps it awake, in logind's words; absent while it does not.
    pub awake: Option<String>,
    /// Every session, in tab order.
    pub sessions: Vec<SessionStatus>,
}

/// The state of one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    pub id: SessionId,
    /// What the operator calls it.
    pub name: String,
    /// The program it was started with.
    pub program: String,
    pub pid: Pid,
    pub size: TerminalSize,
    /// Its terminal's title, control characters removed.
    #[serde(default)]
    pub title: String,
    /// How it ended, if it has.
    pub exit: Option<ProcessExit>,
    /// What it is doing.
    pub activity: Option<ActivityReport>,
    /// Milliseconds since it last wrote something.
    #[serde(default)]
    pub quiet_ms: u64,
    /// Whether its output is journaled on disk.
    #[serde(default)]
    pub journaled: bool,
    /// What the launcher passed to the mux about it.
    #[serde(default)]
    pub meta: serde_json::Value,
}

/// Asks for a session's screen. A long past is asked for in pieces, by `max` and then `from` what the last piece gave as
/// [`SnapshotReply::next`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// The session; the focused one where absent.
    pub session: Option<SessionId>,
    pub format: Format,
    /// With the lines that have scrolled off.
    pub scrollback: bool,
    /// Of the lines that have scrolled off and the screen, only so many at the end.
    pub last: Option<usize>,
    /// Beginning with this line, counted from the session's beginning; with the oldest where absent.
    pub from: Option<u64>,
    /// At most so many lines; all where absent.
    pub max: Option<usize>,
}

/// The form of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    #[default]
    Text,
    /// Lines with colours and attributes as escape sequences.
    Ansi,
    Cells,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SnapshotReply {
    pub session: SessionId,
    pub size: TerminalSize,
    pub cursor: SnapshotCursor,
    /// Whether the alternate screen is shown.
    pub alternate: bool,
    /// The title, control characters removed.
    pub title: String,
    /// How many of the lines are scrollback; the screen follows.
    pub scrollback_lines: usize,
    /// The line with which the rest begins, where this is not all.
    pub next: Option<u64>,
    /// The lines, for text and ansi.
    #[serde(default)]
    pub lines: Vec<String>,
    /// The lines, for cells.
    #[serde(default)]
    pub cells: Vec<Vec<SnapshotCell>>,
}

/// The cursor of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SnapshotCursor {
    /// Column, from 0.
    pub col: u16,
    /// Row of the screen, from 0.
    pub row: u16,
    /// Whether it is shown.
    pub visible: bool,
}

/// One cell of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SnapshotCell {
    /// Its grapheme; empty for a blank, and for the second half of a wide one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// How many columns it takes; 0 for the second half of a wide one.
    pub width: u8,
    /// Foreground: `default`, a palette number, or `#rrggbb`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fg: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bg: String,
    /// Attributes by name, e.g. `bold`, `underline`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attrs: Vec<String>,
}

/// Starts a session in this capsule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spawn {
    pub spec: Box<SpawnSpec>,
    /// Show it to the attached clients at once.
    #[serde(default)]
    pub focus: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnReply {
    pub session: SessionId,
    pub pid: Pid,
}

/// Ends a session: politely first, then by force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kill {
    pub session: SessionId,
}

/// Sends a signal to a session's process group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    pub session: SessionId,
    pub signal: i32,
}

/// Gives a session's terminal a size; while clients are attached, theirs decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResizeTo {
    pub session: SessionId,
    pub size: TerminalSize,
}

/// Types into a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Send {
    pub session: SessionId,
    /// What to type, in order.
    pub input: Vec<Input>,
}

/// A piece of input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// Text, as a paste where the program asked for bracketed paste.
    Text(String),
    /// A named key, e.g. `enter`, `ctrl-c`, `up`.
    Key(String),
    Bytes(Vec<u8>),
}

/// Waits for something to become true of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    pub session: SessionId,
    pub until: Until,
    /// For how long at most; for ever where absent.
    pub timeout_ms: Option<u64>,
}

/// What to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// The session is not working, or said nothing for so long.
    Idle {
        /// How long it must have been quiet where it does not report its state itself.
        quiet_ms: u64,
        /// Whether it works for as long as something that it left running does.
        #[serde(default)]
        background: Background,
    },
    /// It takes input: what is typed is not lost on an agent that is starting.
    Ready,
    /// It has answered what was typed last, or had the time to, and has written nothing for so long.
    Echoed {
        /// How long it must have been quiet.
        quiet_ms: u64,
    },
    /// It waits for the operator's decision.
    NeedsInput,
    Exit,
    /// This text is on its screen.
    Text {
        pattern: String,
    },
}

/// How a wait ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitReply {
    pub outcome: WaitOutcome,
    /// How the process ended, if it has.
    pub exit: Option<ProcessExit>,
    /// The line in which the text was found.
    pub line: Option<String>,
    /// Of a session that was waited for to be idle: the error that ended its turn, or why it is not idle.
    pub problem: Option<String>,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitOutcome {
    /// What was waited for is true.
    Reached,
    /// The process ended first.
    Exited,
    /// The time was up.
    TimedOut,
}

/// Asks to hear events from now on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Subscribe {
    /// Which kinds; all where empty.
    #[serde(default)]
    pub kinds: Vec<EventKind>,
    /// Of which session; of all where absent.
    pub session: Option<SessionId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeReply {
    /// Its number, which its events carry.
    pub subscription: u64,
}

/// Gives a session another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rename {
    pub session: SessionId,
    pub name: String,
}

/// Shows a session to the attached clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Focus {
    pub session: SessionId,
}

/// Stops the capsule and everything in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shutdown {
    /// Why, for the exit record.
    pub reason: String,
}

/// Changes the settings of a running mux, and of those that follow it in this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configure {
    pub settings: LiveSettings,
}

/// Continues on another binary without ending a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upgrade {
    /// The new binary's path.
    pub exe: OsText,
}

/// Asks what is said about a session's activity, by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetEvidence {
    pub session: SessionId,
}

/// What is said about a session's activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceReply {
    pub activity: ActivityReport,
    pub statements: Vec<SourceReport>,
}

/// What one source says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReport {
    pub source: Source,
    pub says: Says,
    /// For how long, in milliseconds.
    pub for_ms: u64,
    pub detail: String,
}
