//! Isolated trees of the host's repositories: making them, what they hold that exists nowhere else, taking them out of
//! the repository and putting them back.
//!
//! Everything goes through the real `git`, bounded in time, in an environment of our own. This crate gathers facts and
//! carries out what was decided; whether a tree may go is decided elsewhere, and no tree with work in it is deleted here.

mod command;
mod error;
mod evidence;
mod files;
mod gitdir;
mod make;
mod removal;
mod repair;
mod site;
mod source_cache;

pub use error::GitError;
pub use evidence::{BeforeSetup, before_setup, evidence_of, settle};
pub use make::materialise::{CloneObjects, Materialised, WantedTree, materialise};
pub use removal::beside::{beside, release_beside, restore_beside};
pub use removal::registration::{Forgotten, Registration, forget, registered};
pub use removal::release::{Released, is_released, release};
pub use removal::restore::{RestoredTree, check_restore, restore};
pub use repair::drift::{Drift, adrift};
pub use repair::rebuild::rebuild_record;
pub use repair::{Repair, fault, linked_elsewhere, repair};
pub use site::{tree, tree_name};
pub use source_cache::SourceCache;
