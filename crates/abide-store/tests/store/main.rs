//! The store from outside: its life cycle, and everything that may happen to it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod common;
mod concurrency;
mod crash;
mod damaged;
mod full;
mod lifecycle;
mod links;
mod modes;
mod mounts;
mod versions;

/// The body of the processes that the tests start. On its own it does nothing.
#[test]
fn child() {
    let Some(task) = common::task() else { return };
    match task.as_str() {
        "crash" => crash::in_child(),
        "work" => concurrency::in_child(),
        "full-file" => full::in_child_with_a_limit(),
        "full-disk" => full::in_child_on_a_small_disk(),
        "umask" => modes::in_child(),
        "mounted" => mounts::in_child(),
        other => panic!("no task {other}"),
    }
}
