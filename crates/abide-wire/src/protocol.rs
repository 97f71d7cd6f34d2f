//! What clients and the mux say to each other over the capsule's socket.
//!
//! Both sides first send a [`Hello`] frame; the newest version that both know is spoken from then on. After that a
//! client sends [`Request`]s, each of which gets exactly one reply, and may attach, after which terminal bytes flow
//! both ways in frames of their own. Whatever one side does not know gets an error reply or is ignored: a newer
//! peer is never left hanging.
//!
//! This module is the wire only. How the mux carries a verb out is not its business.

mod attach;
mod connection;
mod event;
mod frame;
mod requests;
mod verb;

use abide_model::Pid;
use serde::{Deserialize, Serialize};

pub use attach::{Attach, Bye, ByeReason, Colors, Resize, TerminalTrait};
pub use connection::{CallError, Connection};
pub use event::{ActivityReport, Event, EventKind, EventMessage};
pub use frame::{
    Frame, FrameDecoder, FrameError, FrameKind, HEADER_LEN, MAX_CLIENT_FRAME, MAX_FRAME, encode, encode_json,
    header,
};
pub use requests::{
    Configure, Done, EvidenceReply, Focus, Format, GetEvidence, GetStatus, Input, Kill, Rename, ResizeTo,
    Send, SessionStatus, Shutdown, Signal, Snapshot, SnapshotCell, SnapshotCursor, SnapshotReply,
    SourceReport, Spawn, SpawnReply, StatusReply, Subscribe, SubscribeReply, Until, Upgrade, Wait,
    WaitOutcome, WaitReply,
};
pub use verb::{Call, ReplyTo, Request, RequestError, RequestRefusal, RequestVerb, error_code};

/// The protocol versions that this build speaks, newest last.
pub const VERSIONS: &[u32] = &[1];

/// The first frame of either side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The protocol versions that the sender speaks; in the mux's answer, the one version chosen.
    pub protocol: Vec<u32>,
    /// The sender's software version, for people.
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub pid: Pid,
    /// The run of the instance, as far as the sender knows it.
    pub generation: Option<u64>,
}

impl Hello {
    /// What this build says first.
    pub fn ours() -> Self {
        Self {
            protocol: VERSIONS.to_vec(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: abide_sys::process::own_pid(),
            generation: None,
        }
    }
}

/// There is no version that both sides speak.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this side speaks protocol {ours:?} and the other {theirs:?}; use the same abide version for both (`abide upgrade`)"
)]
pub struct VersionMismatch {
    pub ours: Vec<u32>,
    /// What the other side speaks.
    pub theirs: Vec<u32>,
}

/// The newest version that both sides speak.
pub fn negotiate(theirs: &[u32]) -> Result<u32, VersionMismatch> {
    let common = VERSIONS.iter().copied().filter(|version| theirs.contains(version)).max();
    common.ok_or_else(|| VersionMismatch { ours: VERSIONS.to_vec(), theirs: theirs.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_version_is_chosen_and_a_refusal_names_both_sides() {
        assert_eq!(negotiate(&[1, 2, 99]), Ok(1));
        let refusal = negotiate(&[98, 99]).unwrap_err();
        assert!(refusal.to_string().contains("[98, 99]"), "{refusal}");
    }
}
