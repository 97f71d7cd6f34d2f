//! Time that two processes can compare: nanoseconds of the monotonic clock, which the standard library hides.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment, the same for every process of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

impl Moment {
    /// The present.
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::Monotonic);
        // The monotonic clock starts near boot and never goes below zero.
        Self(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
    }

    /// The moment that another process wrote down.
    pub fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// For another process to read.
    pub fn nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this moment; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The time until this moment; zero if it has passed.
    pub fn remaining(self) -> Duration {
        self.since(Self::now())
    }

    /// `span` from now.
    pub fn after(span: Duration) -> Self {
        Self(Self::now().0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Milliseconds with a fraction, as the tables show them.
pub fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// Microseconds with a fraction, as the tables show them.
pub fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}
