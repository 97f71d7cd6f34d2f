//! Leaving and coming back: isolated trees, what they hold, what is asked, and that nothing is lost or left behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs)]

mod beside;
mod census;
// The tests of the host use all of it.
#[allow(dead_code)]
#[path = "../host/common.rs"]
mod common;
mod hidden;
mod isolation;
mod matrix;
mod repo;
mod screens;
mod trash;
mod trouble;
