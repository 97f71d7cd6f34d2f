//! The wall clock. Everything that records a time takes it as an argument; this is where the argument comes from.

use std::time::{SystemTime, UNIX_EPOCH};

use abide_model::Timestamp;

pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
