//! Trees of real repositories: made, worked in, taken away and brought back.
#![allow(
    clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, unsafe_code, missing_docs
)]

mod common;
mod crash;
mod dropped;
mod elsewhere;
mod hidden;
mod making;
mod matrix;
mod overlooked;
mod strangers;
mod sweep;

/// The body of the processes that the tests start. On its own it does nothing.
#[test]
fn child() {
    if std::env::var_os(crash::TASK).is_some() {
        crash::in_child();
    }
}
