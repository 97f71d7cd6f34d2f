//! The verbs as functions: they gather facts, ask the model, carry out what it decides, and print nothing.

pub mod activity;
pub mod boot;
mod claims;
mod conversation;
pub mod conversations;
pub mod daemons;
pub mod differences;
pub mod doctor;
pub mod environment;
mod equip;
mod error;
pub mod finish;
pub mod follow;
mod help;
pub mod holders;
pub mod list;
pub mod live;
pub mod load;
pub mod log;
mod moved;
mod processes;
pub mod protection;
pub mod prune;
pub mod reconcile;
pub mod resume;
pub mod secrets;
pub mod setup;
pub mod start;
pub mod stop;
pub mod substrate;
pub mod take;
pub mod target;
pub mod trash;
pub mod trees;
mod vault;

pub use error::Error;
