//! The verbs as functions: they gather facts, ask the model, carry out what it decides, and print nothing.

mod conversation;
pub mod doctor;
pub mod environment;
pub mod finish;
pub mod list;
pub mod live;
pub mod load;
pub mod log;
pub mod reconcile;
pub mod resume;
pub mod secrets;
pub mod start;
pub mod target;
