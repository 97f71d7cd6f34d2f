//! The messages of an attached client.

use serde::{Deserialize, Serialize};

use crate::session::{ProcessExit, SessionId};

/// Turns the connection into a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Attach {
    pub cols: u16,
    pub rows: u16,
    /// Watch only: input is ignored and the size does not count.
    #[serde(default)]
    pub read_only: bool,
    /// In what the client's terminal differs from one with 256 colours and UTF-8.
    #[serde(default)]
    pub caps: Vec<TerminalTrait>,
    /// The terminal's own colours, as far as it reports them.
    pub colors: Option<Colors>,
    /// The session to show first; the focused one where absent.
    pub session: Option<SessionId>,
}

/// In what a terminal differs from the usual one, which has 256 colours, UTF-8, and what xterm and most others know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TerminalTrait {
    /// It shows any colour.
    #[serde(rename = "truecolor")]
    DirectColors,
    /// It knows the kitty keyboard protocol.
    KittyKeyboard,
    /// It knows xterm's modifyOtherKeys.
    ModifyOtherKeys,
    /// It has 16 colours.
    #[serde(rename = "16-colors")]
    SixteenColors,
    /// It has 8 colours.
    #[serde(rename = "8-colors")]
    EightColors,
    /// It has no colours.
    Monochrome,
    /// The operator wants no colours in the status bar and the lines between panes.
    NoColor,
    /// It does not take UTF-8.
    #[serde(rename = "not-utf-8")]
    NotUtf8,
    /// It knows no links, no shapes of underlines or of the cursor, and no synchronized output.
    NoExtensions,
    /// It would show operating system commands (OSC) as text.
    NoStrings,
    /// One of a newer version.
    #[serde(other)]
    Other,
}

/// The colours of a terminal where a program chooses none: red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Colors {
    pub fg: [u8; 3],
    /// Of what is behind it.
    pub bg: [u8; 3],
}

/// The payload of a [`FrameKind::Resize`](crate::protocol::FrameKind::Resize) frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resize {
    /// Columns.
    pub cols: u16,
    pub rows: u16,
}

impl Resize {
    /// The payload: two little-endian numbers.
    pub fn to_bytes(self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.cols.to_le_bytes(), self.rows.to_le_bytes());
        [a, b, c, d]
    }

    /// Reads a payload; what a newer version adds behind is ignored.
    pub fn from_bytes(payload: &[u8]) -> Option<Self> {
        let [a, b, c, d] = *payload.first_chunk()?;
        Some(Self { cols: u16::from_le_bytes([a, b]), rows: u16::from_le_bytes([c, d]) })
    }
}

/// The last frame of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bye {
    pub reason: ByeReason,
    /// The same for people.
    #[serde(default)]
    pub message: String,
    /// How the session ended, where that is the reason.
    pub exit: Option<ProcessExit>,
}

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ByeReason {
    /// The client asked for it.
    Detached,
    /// The last session ended.
    SessionEnded,
    Shutdown,
    /// A new mux takes over: connect again.
    Restarting,
    /// The client did not keep to the protocol, or speaks no common version.
    Protocol,
    /// A reason of a newer version.
    #[serde(other)]
    Other,
}
