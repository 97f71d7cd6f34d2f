//! The `abide` command as a person or a script meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;
mod config;
mod contributing;
mod doctor;
mod json;
mod ls;
mod output;
mod service;
mod trash;
mod verbs;
mod workspace;
