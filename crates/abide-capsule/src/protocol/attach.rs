//! The messages of an attached client.

use serde::{Deserialize, Serialize};

use crate::session::{Exit, SessionId};

/// Turns the connection into a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Attach {
    /// The terminal's columns.
    pub cols: u16,
    /// The terminal's rows.
    pub rows: u16,
    /// Watch only: input is ignored and the size does not count.
    #[serde(default)]
    pub read_only: bool,
    /// The client's `TERM`.
    #[serde(default)]
    pub term: String,
    /// What the client knows about its terminal, e.g. `truecolor`, `kitty-keyboard`, `osc52`.
    #[serde(default)]
    pub caps: Vec<String>,
    /// The session to show first; the focused one where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// The payload of a [`Kind::Resize`](super::Kind::Resize) frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resize {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
    /// Width in pixels, 0 where unknown.
    pub width_px: u16,
    /// Height in pixels, 0 where unknown.
    pub height_px: u16,
}

impl Resize {
    /// The payload: four little-endian numbers.
    pub fn to_bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        let values = [self.cols, self.rows, self.width_px, self.height_px];
        for (slot, value) in bytes.chunks_exact_mut(2).zip(values) {
            slot.copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// Reads a payload; what a newer version adds behind is ignored.
    pub fn from_bytes(payload: &[u8]) -> Option<Self> {
        let value = |at: usize| Some(u16::from_le_bytes([*payload.get(at)?, *payload.get(at + 1)?]));
        Some(Self { cols: value(0)?, rows: value(2)?, width_px: value(4)?, height_px: value(6)? })
    }
}

/// The last frame of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bye {
    /// Why it ends.
    pub reason: ByeReason,
    /// The same for people.
    #[serde(default)]
    pub message: String,
    /// How the session ended, where that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
}

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ByeReason {
    /// The client asked for it.
    Detached,
    /// The last session ended.
    SessionEnded,
    /// The capsule stops.
    Shutdown,
    /// A new mux takes over: connect again.
    Restarting,
    /// The client did not keep to the protocol, or speaks no common version.
    Protocol,
    /// A reason of a newer version.
    #[serde(other)]
    Other,
}
