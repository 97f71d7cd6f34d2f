//! The wall clock, and waiting. Everything that records a time takes it as an argument; this is where the argument comes
//! from.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use abide_model::Timestamp;

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Whether `holds` comes true within `limit`.
pub fn eventually(limit: Duration, holds: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
