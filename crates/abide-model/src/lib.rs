//! What abide believes and how it decides, with no I/O.
//!
//! Everything here is data or a pure function of data. A decision is made here and nowhere else, and comes with the
//! reason that logs, `abide explain` and the tests read; other crates gather the facts or carry the decision out.

pub mod activity;
pub mod brake;
pub mod choice;
pub mod container;
pub mod conversation;
pub mod decide;
pub mod differences;
pub mod evidence;
pub mod id;
pub mod instance;
pub mod ladder;
pub mod leaving;
pub mod liveness;
pub mod name;
pub mod offer;
pub mod placement;
pub mod prefix;
pub mod program;
pub mod recipe;
mod relocation;
pub mod retention;
pub mod session;
pub mod session_end;
pub mod status;
pub mod text;
pub mod time;
pub mod vars;
pub mod watching;
pub mod words;

pub use activity::Doing;
pub use choice::{
    Choice, Isolation, KeepAwake, Permission, Place, Policy, StatusBar, Substrate, TrueColor, UnitMode,
    UnknownChoice,
};
pub use decide::Decided;
pub use differences::{Configured, Difference};
pub use id::{InstanceId, Pid, ProcessIdentity, SessionId};
pub use instance::{Extra, Instance, LaunchScope};
pub use liveness::{HostIdentity, Liveness};
pub use prefix::{BadPrefixKey, PrefixKey};
pub use recipe::{EnvRef, Recipe};
pub use session::{Conversation, Session};
pub use status::{DecidedBy, InstanceState, Standing, Status, StatusEvent};
pub use text::{Safe, sanitised};
pub use time::Timestamp;
