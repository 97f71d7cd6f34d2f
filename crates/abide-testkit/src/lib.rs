//! What the tests stand on. A helper here panics where a test should fail: nothing of it is part of the product.

pub mod model_api;
mod sandbox;
mod terminal;

pub use sandbox::{Run, Sandbox};
pub use terminal::Terminal;

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The labelled points of a crate at which its processes can be killed, read from its code. `dir` is the crate's directory,
/// as seen from the one that the test runs in.
pub fn crash_points(dir: &str) -> Vec<String> {
    let (mut dirs, mut found) = (vec![PathBuf::from(dir).join("src")], Vec::new());
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            if entry.path().is_dir() {
                dirs.push(entry.path());
            } else {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                let calls = text.split("crash::point(\"").skip(1);
                found.extend(calls.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
            }
        }
    }
    assert!(!found.is_empty(), "{dir} has no labelled points");
    found.sort();
    found
}

/// Waits until `ready` gives something; panics with `what` if that takes too long.
///
/// The limit is far beyond what anything should take: it exists so that a broken test ends, not to measure speed.
pub fn eventually<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
