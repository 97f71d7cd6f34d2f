//! The mux and the client as processes: a real keeper, real terminals, real keys.
//!
//! This test binary plays every part: called as `capsule keeper`, `capsule mux`, `client` or `session` it is that.
//! The operator's terminal is a PTY of the test's own, and what comes out of it is fed to a terminal model.
#![allow(
    clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::print_stderr,
    missing_docs
)]

mod attached;
mod control;
mod keyboard;
mod kinds;
mod lent;
mod parts;
mod restored;
mod support;
mod terminal;
mod trouble;

use std::ffi::OsString;

use abide_keeper as keeper;
use abide_keeper::KeeperArgs;
use abide_mux as mux;
use abide_testkit::{harness, log};

fn main() {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<_> = args.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    match words.as_slice() {
        ["capsule", "keeper", ..] => {
            tracing::subscriber::set_global_default(log::Stderr).unwrap();
            std::process::exit(keeper::run(KeeperArgs::parse(args[2..].iter().cloned()).unwrap()));
        }
        ["capsule", "mux"] => {
            tracing::subscriber::set_global_default(log::Stderr).unwrap();
            std::process::exit(mux::run(std::io::stdin(), |_| None));
        }
        ["capsule", "probe"] => println!("{}", keeper::probe()),
        ["client", rest @ ..] => terminal::play_client(rest),
        ["session", part, rest @ ..] => parts::run(part, rest),
        _ => harness::run(
            &[attached::ALL, keyboard::ALL, control::ALL, trouble::ALL, restored::ALL, lent::ALL, kinds::ALL]
                .concat(),
        ),
    }
}
