//! The keeper as a process: real terminals, real signals, a real mux to kill.
//!
//! The keeper forks, blocks signals and becomes a daemon, so it must run in a process of its own with one thread.
//! This test binary is that process, too: called as `capsule keeper`, `capsule mux` or `session`, it plays that part.
#![allow(
    clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr,
    missing_docs
)]

mod liveness;
mod mux;
mod session;
mod support;
mod tests;

use std::ffi::OsString;

use abide_keeper as keeper;
use abide_keeper::KeeperArgs;
use abide_testkit::{harness, log};

fn main() {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<_> = args.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    match words.as_slice() {
        ["capsule", "keeper", ..] => {
            tracing::subscriber::set_global_default(log::Stderr).unwrap();
            std::process::exit(keeper::run(KeeperArgs::parse(args[2..].iter().cloned()).unwrap()));
        }
        ["capsule", "mux"] => mux::run(),
        ["capsule", "probe"] => println!("{}", keeper::probe()),
        ["session", part, rest @ ..] => session::run(part, rest),
        _ => harness::run(&[tests::ALL, liveness::ALL].concat()),
    }
}
