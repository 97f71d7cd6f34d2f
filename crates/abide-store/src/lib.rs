//! Instances on disk.
//!
//! An *instance directory* is the directory of one instance and the only truth about it. This crate makes, reads, changes, removes and
//! brings back instance directories, so that at every moment, whatever crashes, an instance directory is whole or not there. It knows nothing of
//! what an instance does: which change of status is right is decided in `abide-model`, and when, in `abide-engine`.
//!
//! What holds everywhere in here:
//! - A file appears whole or not at all; an instance directory appears, leaves and returns by one `rename`.
//! - An instance directory is changed only under its own lock, which lives inside it and is never unlinked while the instance directory exists.
//! - What cannot be read is *damaged*: it is shown with the reason, and never overwritten, moved or deleted.
//! - No link is ever followed out of the store.

mod create;
mod damage;
mod dir;
mod error;
mod instance_dir;
mod layout;
mod list;
mod lock;
mod manifest;
pub mod outcomes;
mod resolve;
mod staging;
mod store;
mod sweep;
mod trash;
mod tree;

pub use damage::Damage;
pub use error::{IoFailure, ReadError, ResolveError, Result, StoreError};
pub use instance_dir::InstanceLock;
pub use layout::{StorePaths, TrashName};
pub use list::StoreEntry;
pub use store::{ClaimsLock, Store, refuse_foreign};
pub use sweep::SweepReport;
pub use trash::TrashEntry;
