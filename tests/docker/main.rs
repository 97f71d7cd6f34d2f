//! Instances in containers, on a real engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod bring_up;
mod contained;
mod inside;
mod look;
mod silence;
mod take_down;
