//! What survives a logout, on a real systemd.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
