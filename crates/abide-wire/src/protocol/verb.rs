//! The control verbs: which there are, and how a request and its reply are wrapped.

use abide_model::watching::HookReport;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::requests::*;

/// A request type, and what answers it.
pub trait Call: Serialize {
    /// The verb on the wire.
    const VERB: &'static str;
    /// What a successful reply holds.
    type Reply: Serialize + DeserializeOwned;
}

macro_rules! verbs {
    ($($word:literal $name:ident => $reply:ty),+ $(,)?) => {
        /// Any request, as the mux receives it.
        #[derive(Debug, Clone, PartialEq, Deserialize)]
        #[serde(tag = "verb")]
        pub enum RequestVerb {
            $(#[doc = concat!("`", $word, "`")] #[serde(rename = $word)] $name($name)),+
        }

        impl RequestVerb {
            /// Every verb that this build knows.
            pub const WORDS: &'static [&'static str] = &[$($word),+];
        }

        $(
            impl Call for $name {
                const VERB: &'static str = $word;
                type Reply = $reply;
            }
        )+
    };
}

verbs! {
    "status" GetStatus => StatusReply,
    "snapshot" Snapshot => SnapshotReply,
    "spawn" Spawn => SpawnReply,
    "kill" Kill => Done,
    "signal" Signal => Done,
    "resize" ResizeTo => Done,
    "send" Send => Done,
    "wait" Wait => WaitReply,
    "subscribe" Subscribe => SubscribeReply,
    "rename" Rename => Done,
    "focus" Focus => Done,
    "shutdown" Shutdown => Done,
    "upgrade" Upgrade => Done,
    "report" HookReport => Done,
    "evidence" GetEvidence => EvidenceReply,
    "configure" Configure => Done,
}

/// A request with the number that its reply will carry.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Request {
    /// A number of the client's choosing.
    pub id: u64,
    #[serde(flatten)]
    pub verb: RequestVerb,
}

/// Why a request frame could not be read, with the number to reply to where it had one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestError {
    /// The request's number, 0 where even that was not readable.
    pub id: u64,
    pub refusal: RequestRefusal,
}

impl Request {
    /// Reads the payload of a request frame. Whatever is wrong with it, there is something to reply.
    pub fn parse(payload: &[u8]) -> Result<Self, RequestError> {
        #[derive(Deserialize)]
        struct RequestHead {
            #[serde(default)]
            id: u64,
            #[serde(default)]
            verb: String,
        }
        serde_json::from_slice(payload).map_err(|err| {
            let known = serde_json::from_slice(payload).unwrap_or(RequestHead { id: 0, verb: String::new() });
            let refusal = if known.verb.is_empty() || RequestVerb::WORDS.contains(&known.verb.as_str()) {
                RequestRefusal::new(error_code::BAD_REQUEST, err.to_string())
            } else {
                let text = format!("`{}` is not a verb of this version", known.verb.escape_default());
                RequestRefusal::new(error_code::UNKNOWN_VERB, text)
            };
            RequestError { id: known.id, refusal }
        })
    }
}

/// The reply to a request: either what was asked for, or why not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplyTo<T> {
    pub id: u64,
    /// What was asked for.
    pub ok: Option<T>,
    pub error: Option<RequestRefusal>,
}

impl<T> ReplyTo<T> {
    /// A reply from a result.
    pub fn new(id: u64, outcome: Result<T, RequestRefusal>) -> Self {
        match outcome {
            Ok(value) => Self { id, ok: Some(value), error: None },
            Err(refusal) => Self { id, ok: None, error: Some(refusal) },
        }
    }
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct RequestRefusal {
    /// A stable word, one of [`error_code`]'s.
    pub code: String,
    /// The same for people.
    pub message: String,
    /// The system's error number, where one was the cause.
    pub errno: Option<i32>,
}

impl RequestRefusal {
    /// A refusal without a system error.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), errno: None }
    }
}

/// The stable words of [`RequestRefusal::code`].
pub mod error_code {
    /// The request could not be understood.
    pub const BAD_REQUEST: &str = "bad_request";
    /// The verb is of another version.
    pub const UNKNOWN_VERB: &str = "unknown_verb";
    /// A frame of a kind that this version does not know.
    pub const UNKNOWN_FRAME: &str = "unknown_frame";
    /// There is no session of that name.
    pub const NO_SUCH_SESSION: &str = "no_such_session";
    /// The session's process has ended already.
    pub const SESSION_ENDED: &str = "session_ended";
    /// The program could not be started.
    pub const SPAWN_FAILED: &str = "spawn_failed";
    /// The new binary cannot take over.
    pub const UPGRADE_REFUSED: &str = "upgrade_refused";
    /// The answer would exceed a frame, or a queue is full.
    pub const TOO_LARGE: &str = "too_large";
    /// A fault of the mux itself.
    pub const INTERNAL: &str = "internal";
}
