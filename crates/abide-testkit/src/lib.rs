//! What the tests stand on. A helper here panics where a test should fail: nothing of it is part of the product.

pub mod harness;
pub mod log;
pub mod model_api;
mod nobody;
mod sandbox;
mod small_disk;
mod terminal;

pub use nobody::{as_nobody, give_to_nobody};
pub use sandbox::{Run, Sandbox};
pub use small_disk::{ReadOnly, SmallDisk};
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

/// Fails a test that cannot run where it was started: what did not run must not look like what passed. `remedy` says how to
/// make it run.
#[track_caller]
pub fn cannot_run(needs: &str, remedy: &str) -> ! {
    panic!("this test cannot run here: it needs {needs}; {remedy}")
}

/// The name of the test run whose images `abide-test-systemd:NAME` and `abide-test-box:NAME` are on the engine, and with which every container is labelled so
/// that the run can remove it; fails the test where there is none.
#[track_caller]
pub fn require_containers() -> String {
    std::env::var("ABIDE_TEST_CONTAINERS").unwrap_or_else(|_| {
        cannot_run(
            "a container engine and the image of a test run",
            "`./scripts/test` provides both and sets ABIDE_TEST_CONTAINERS, `./scripts/test fast` leaves this test out",
        )
    })
}

/// Waits until `ready` gives something; panics with `what` if that takes too long.
///
/// The limit is far beyond what anything should take: it exists so that a broken test ends, not to measure speed.
pub fn eventually<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        // A look is often a process or two, and other tests need the processor meanwhile.
        std::thread::sleep((began.elapsed() / 20).clamp(Duration::from_millis(5), Duration::from_millis(25)));
    }
}
