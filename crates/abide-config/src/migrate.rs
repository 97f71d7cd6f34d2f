//! Migrations: from every older shape of a file to the current one.
//!
//! A migration changes a [`Draft`], so comments and order survive it. It never fails on what it does not understand:
//! that is carried over as it is, and the current schema then refuses it by its own rules, at the line where it stands
//! in the operator's file. Versions are numbered from 0; the position of a migration in its file kind's list is the
//! version that it starts from, so adding one is what makes a new version.

pub(crate) mod config;
pub(crate) mod role;
pub(crate) mod workspace;

use toml_edit::Value;

/// For values that stay as they are under a new key.
fn unchanged(_: &Value) -> Option<Value> {
    None
}

/// What version 0 called a clean-up.
fn policy_from_cleanup(value: &Value) -> Option<Value> {
    match value.as_str()? {
        "prompt" => Some("ask".into()),
        "always_keep" => Some("keep".into()),
        "always_clean" => Some("clean".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
