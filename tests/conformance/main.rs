//! Real programs, driven the same way in abide and in tmux: the screens must be equal, cell by cell.
//!
//! What may differ is in `allowed.rs`, each entry with its reason. Everything else is a bug of ours.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod abide;
mod allowed;
mod capture;
mod editors;
mod lists;
mod machine;
mod nested;
mod pair;
mod screen;
mod shells;
mod streams;
mod tmux;
mod vttest;
