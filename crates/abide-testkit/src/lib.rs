//! What the tests stand on. A helper here panics where a test should fail: nothing of it is part of the product.

pub mod model_api;
mod sandbox;
mod terminal;

pub use sandbox::{Run, Sandbox};
pub use terminal::Terminal;

use std::time::{Duration, Instant};

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
