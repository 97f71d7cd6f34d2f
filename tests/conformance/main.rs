//! Screens of real programs, compared with tmux cell by cell.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
