//! Whether an agent that was started takes input yet. Agents say that they are idle, and draw their prompt, before they read
//! what is typed; and while they start they throw it away.

use std::time::{Duration, Instant};

use abide_model::Pid;
use abide_model::activity::{self, Startup};
use abide_sys::process;

/// How often an agent that is starting is looked at.
const EVERY: Duration = Duration::from_millis(100);

/// Processor time within one look, in clock ticks, of an agent that does nothing: it may still draw a cursor.
const RESTING_TICKS: u64 = 2;

/// An agent that is starting.
#[derive(Debug)]
pub(crate) struct Starting {
    began: Instant,
    /// Since when it was always found at rest.
    rests_since: Option<Instant>,
    /// Since when a source that knows it says what it is doing.
    known_since: Option<Instant>,
    /// The processor time of its processes at the last look.
    ticks: u64,
}

/// What a look at it needs to know besides.
pub(crate) struct StartupSigns {
    pub pid: Pid,
    /// When it last wrote something, if it has.
    pub wrote: Option<Instant>,
    pub is_known: bool,
    pub is_raw: bool,
}

impl Starting {
    pub fn new(now: Instant) -> Self {
        Self { began: now, rests_since: None, known_since: None, ticks: 0 }
    }

    /// When to look again; `None` when it takes input.
    pub fn look(&mut self, signs: &StartupSigns, now: Instant) -> Option<Duration> {
        let tree = process::tree(signs.pid);
        let ticks: u64 = tree.iter().map(|process| process.ticks).sum();
        let used = ticks.saturating_sub(std::mem::replace(&mut self.ticks, ticks));
        let rests = used <= RESTING_TICKS && tree.iter().all(process::Stat::is_at_rest);
        self.rests_since = rests.then(|| self.rests_since.unwrap_or(now));
        let since = self.rests_since.map(|since| since.max(signs.wrote.unwrap_or(since)));
        self.known_since = signs.is_known.then(|| self.known_since.unwrap_or(now));
        let startup = Startup {
            rest: since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since)),
            age: self.age(now),
            known_for: self.known_since.map(|since| now.saturating_duration_since(since)),
            is_raw: signs.is_raw,
            has_written: signs.wrote.is_some(),
        };
        (!activity::takes_input(&startup)).then_some(EVERY)
    }

    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }
}
