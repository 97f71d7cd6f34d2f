//! Requests that are answered when something becomes true of a session. There is no polling: an end, output
//! or a timer brings the answer.

use std::time::{Duration, Instant};

use abide_model::Doing;
use abide_term::row_text;
use abide_wire::protocol::{RequestRefusal, Until, Wait, WaitOutcome, WaitReply, error_code};
use abide_wire::session::{ProcessExit, SessionId};

use crate::server::Server;
use crate::server::client::ClientId;
use crate::session::MuxSession;
use crate::session::activity::Idleness;

/// The most requests that may be waiting at a time.
const MAX_WAITS: usize = 1024;

#[derive(Debug)]
pub(crate) struct Waiting {
    client: ClientId,
    request: u64,
    session: SessionId,
    until: Until,
    give_up_at: Option<Instant>,
    /// Lines that scrolled off before this one were searched already, or are of an earlier run.
    searched_to: u64,
}

impl Waiting {
    /// When it may come to an end without anything happening.
    pub fn deadline(&self, sessions: &[MuxSession], now: Instant) -> Option<Instant> {
        let session = sessions.iter().find(|session| session.id == self.session);
        let quiet_at = match (&self.until, session) {
            (Until::Idle { quiet_ms, background }, Some(session)) => {
                match session.watching.idleness(*background) {
                    Idleness::Unknown => session.last_output().checked_add(Duration::from_millis(*quiet_ms)),
                    Idleness::Idle => session.watching.unaware_until(now),
                    Idleness::Working => None,
                }
            }
            (Until::Echoed { quiet_ms }, Some(session)) => {
                session.watching.answered_at(Duration::from_millis(*quiet_ms)).filter(|at| *at > now)
            }
            _ => None,
        };
        quiet_at.into_iter().chain(self.give_up_at).min()
    }

    /// Whether what was waited for is true now, and the answer then.
    fn check(&mut self, session: &MuxSession, now: Instant) -> Option<WaitReply> {
        let mut problem = None;
        let (reached, line) = match &self.until {
            Until::Exit => (false, None),
            Until::Ready => (session.watching.is_ready(), None),
            Until::Echoed { quiet_ms } => {
                (session.watching.has_answered(Duration::from_millis(*quiet_ms), now), None)
            }
            Until::NeedsInput => (session.watching.doing() == Doing::NeedsInput, None),
            Until::Idle { quiet_ms, background } => {
                let reached = match session.watching.idleness(*background) {
                    Idleness::Unknown => session.quiet_for(now) >= Duration::from_millis(*quiet_ms),
                    Idleness::Idle => session.watching.unaware_until(now).is_none(),
                    Idleness::Working => false,
                };
                (reached, None)
            }
            Until::Text { pattern } => {
                let line = find(session, pattern, &mut self.searched_to);
                (line.is_some(), line)
            }
        };
        let outcome = if reached {
            WaitOutcome::Reached
        } else if self.give_up_at.is_some_and(|at| at <= now) {
            WaitOutcome::TimedOut
        } else {
            return None;
        };
        if matches!(self.until, Until::Idle { .. }) {
            problem = session.watching.problem(outcome);
        }
        Some(WaitReply { outcome, exit: session.exit, line, problem })
    }
}

/// The line that holds `pattern`, on the screen or among the lines that scrolled off since the last look. Lines that
/// were wrapped are searched as one; those that an earlier run left on the screen are not searched.
fn find(session: &MuxSession, pattern: &str, searched_to: &mut u64) -> Option<String> {
    if pattern.is_empty() {
        // Every screen holds it, also one to which nothing was written yet.
        return Some(String::new());
    }
    let (term, earlier_run) = (&session.term, session.earlier_run);
    let oldest = term.scrolled_off().saturating_sub(term.scrollback_len() as u64);
    let first = usize::try_from(searched_to.saturating_sub(oldest)).unwrap_or(usize::MAX);
    *searched_to = term.scrolled_off() + earlier_run.rows(term);
    let (mut cells, mut line, mut is_new) = (Vec::new(), String::new(), false);
    let mut look = |text: &str, wrapped: bool, new: bool| {
        line.push_str(text);
        is_new |= new;
        if wrapped {
            return None;
        }
        let (whole, counts) = (std::mem::take(&mut line), std::mem::take(&mut is_new));
        (counts && whole.contains(pattern)).then(|| whole.trim_end().to_owned())
    };
    for index in first.min(term.scrollback_len())..term.scrollback_len() {
        let wrapped = term.scrollback_row(index, &mut cells);
        if let Some(found) = look(&row_text(term, &cells).0, wrapped, true) {
            return Some(found);
        }
    }
    let rows = term.size().rows;
    (0..rows).find_map(|y| {
        let is_new = earlier_run.is_over_in(term, y);
        look(&row_text(term, term.row(y)).0, term.row_wrapped(y) && y + 1 < rows, is_new)
    })
}

impl Server {
    /// Takes on a request to wait, or answers it at once.
    pub fn begin_wait(&mut self, client: ClientId, request: u64, wait: Wait) {
        if let Some(exit) = self.exit_of(&wait.session) {
            return self.reply(client, request, Ok(ended(&wait.until, exit)));
        }
        let Some(session) = self.session(&wait.session) else {
            return self.refuse(client, request, no_such_session(&wait.session));
        };
        if self.waiting.len() >= MAX_WAITS {
            let refusal = RequestRefusal::new(error_code::TOO_LARGE, "too many requests are waiting already");
            return self.refuse(client, request, refusal);
        }
        let mut waiting = Waiting {
            client,
            request,
            session: wait.session,
            until: wait.until,
            give_up_at: wait.timeout_ms.and_then(|ms| self.now.checked_add(Duration::from_millis(ms))),
            searched_to: session.term.scrolled_off(),
        };
        match waiting.check(session, self.now) {
            Some(reply) => self.reply(client, request, Ok(reply)),
            None => self.waiting.push(waiting),
        }
    }

    /// Answers the requests about a session that has written something.
    pub fn check_waits_of(&mut self, index: usize) {
        let id = &self.sessions[index].id;
        if self.waiting.iter().any(|waiting| waiting.session == *id) {
            self.check_waits();
        }
    }

    /// Answers the requests whose time has come.
    pub fn check_waits(&mut self) {
        let now = self.now;
        let mut replies = Vec::new();
        let sessions = &self.sessions;
        self.waiting.retain_mut(|waiting| {
            let session = sessions.iter().find(|session| session.id == waiting.session);
            let reply = session.and_then(|session| waiting.check(session, now));
            let is_over = reply.is_some();
            replies.extend(reply.map(|reply| (waiting.client, waiting.request, reply)));
            !is_over
        });
        for (client, request, reply) in replies {
            self.reply(client, request, Ok(reply));
        }
    }

    /// Answers everybody who waited for something of a session that has ended.
    pub fn session_waits_end(&mut self, session: &SessionId, exit: ProcessExit) {
        let (over, rest) =
            std::mem::take(&mut self.waiting).into_iter().partition(|one| one.session == *session);
        self.waiting = rest;
        let over: Vec<Waiting> = over;
        for waiting in over {
            self.reply(waiting.client, waiting.request, Ok(ended(&waiting.until, exit)));
        }
    }

    /// Forgets the requests of a client that is gone.
    pub fn forget_waits_of(&mut self, client: ClientId) {
        self.waiting.retain(|waiting| waiting.client != client);
    }

    /// How a session ended that is no more.
    pub fn exit_of(&self, session: &SessionId) -> Option<ProcessExit> {
        if self.session(session).is_some() {
            return None;
        }
        self.ended.iter().rev().find(|(id, _)| id == session).map(|(_, exit)| *exit)
    }
}

fn ended(until: &Until, exit: ProcessExit) -> WaitReply {
    let outcome = if *until == Until::Exit { WaitOutcome::Reached } else { WaitOutcome::Exited };
    WaitReply { outcome, exit: Some(exit), line: None, problem: None }
}

/// The refusal for an unknown session.
pub(crate) fn no_such_session(session: &SessionId) -> RequestRefusal {
    RequestRefusal::new(
        error_code::NO_SUCH_SESSION,
        format!("there is no session {session}; `abide ls` lists them"),
    )
}
