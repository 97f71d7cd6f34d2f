//! Isolated trees of the host's repositories: making them, what they hold that exists nowhere else, taking them out of
//! the repository and putting them back.
//!
//! Everything goes through the real `git`, bounded in time, in an environment of our own. This crate gathers facts and
//! carries out what was decided; whether a tree may go is decided elsewhere, and no tree with work in it is deleted here.

mod ahead;
mod beside;
mod beyond_git;
mod carry;
mod clone;
mod command;
mod drift;
mod error;
mod evidence;
mod files;
mod gitdir;
mod halfmade;
mod ignored;
mod inner;
mod linked;
mod materialise;
mod merged;
mod nested;
mod rebuild;
mod refs;
mod registration;
mod release;
mod repair;
mod restore;
mod site;
mod source;
mod status;

pub use beside::{beside, release_beside, restore_beside};
pub use drift::{Drift, adrift};
pub use error::GitError;
pub use evidence::{BeforeSetup, before_setup, evidence_of, settle};
pub use materialise::{Materialised, Wanted, materialise};
pub use rebuild::rebuild_record;
pub use registration::{Forgotten, Registration, forget, registered};
pub use release::{Released, is_released, release};
pub use repair::{Repair, fault, linked_elsewhere, repair};
pub use restore::{Restored, check_restore, restore};
pub use site::{tree, tree_name};
