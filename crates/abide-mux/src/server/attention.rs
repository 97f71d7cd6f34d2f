//! The session that has just received input: for a moment, only its output is read.
//!
//! A session that floods keeps a processor busy, and the mux another one. The program that was typed to, and the client
//! that waits for its echo, would have to wait for their turn; with the flood paused they have it at once. The pause is
//! short and rare enough that the flood hardly notices.

use std::time::{Duration, Instant};

use abide_wire::session::SessionId;

/// How long an answer is waited for.
const ANSWER: Duration = Duration::from_millis(2);
/// How long the answer may take to reach the eye, once it is drawn.
const DRAWN: Duration = Duration::from_micros(500);
/// The shortest time from one pause to the next, so that a long paste does not stall the other sessions.
const BETWEEN: Duration = Duration::from_millis(10);

/// The moment after a key.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    session: Option<SessionId>,
    until: Option<Instant>,
    next: Option<Instant>,
}

impl Attention {
    /// Something was typed into `session`.
    pub fn typed(&mut self, session: &SessionId, now: Instant) {
        if self.next.is_none_or(|next| next <= now) {
            self.session = Some(*session);
            self.until = Some(now + ANSWER);
            self.next = Some(now + BETWEEN);
        }
    }

    /// `session` has written something.
    pub fn wrote(&mut self, session: &SessionId, now: Instant) {
        if self.session.as_ref() == Some(session) {
            self.until = self.until.map(|until| until.min(now + DRAWN));
        }
    }

    /// Until when others are not read, if they are not.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Ends what is over.
    pub fn check(&mut self, now: Instant) {
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
            self.session = None;
        }
    }

    /// Whether the output of `session` may be read.
    pub fn allows(&self, session: &SessionId) -> bool {
        self.session.as_ref().is_none_or(|attended| attended == session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_wait_until_the_answer_or_for_a_moment_and_not_again_at_once() {
        let (a, b) = (SessionId(1), SessionId(2));
        let start = Instant::now();
        let mut attention = Attention::default();
        assert!(attention.allows(&a) && attention.allows(&b));
        attention.typed(&a, start);
        assert!(attention.allows(&a) && !attention.allows(&b));
        attention.wrote(&a, start);
        attention.check(start + DRAWN);
        assert!(attention.allows(&b));
        attention.typed(&a, start + ANSWER);
        assert!(attention.allows(&b));
        attention.typed(&a, start + BETWEEN);
        assert!(!attention.allows(&b));
        attention.check(start + BETWEEN + ANSWER);
        assert!(attention.allows(&b) && attention.until().is_none());
    }
}
