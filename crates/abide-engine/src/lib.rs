//! The verbs as functions: they gather facts, ask the model, carry out what it decides, and print nothing.

pub mod activity;
pub mod conversation;
pub mod doctor;
pub mod end;
mod error;
pub mod list;
pub mod log;
pub mod reconcile;
pub mod running;
pub mod start;
pub mod target;
pub mod trees;

pub use abide_places::substrate;
pub use error::EngineError;
