//! Reaching the mux: the first time, and again while it is being replaced.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use abide_wire::exit_record::{ExitRecord, RecordedSession, StopReason};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::{CallError, Connection, FrameDecoder};
use abide_wire::socket;

use crate::{AttachEnd, ClientError};

/// How long a mux that is just being started may take to answer for the first time.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
/// How long the mux may be gone.
const LONGEST_ABSENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// An absence that is shorter than this is not worth a word.
const WORTH_A_WORD: Duration = Duration::from_millis(150);

/// Connects, and agrees on a version.
pub(super) fn first(instance_dir: &InstanceDir) -> Result<(UnixStream, FrameDecoder), ClientError> {
    let connection = Connection::connect(instance_dir, FIRST_ANSWER)?;
    let (stream, decoder) = connection.into_parts();
    stream.set_nonblocking(true)?;
    Ok((stream, decoder))
}

/// An absence of the mux.
#[derive(Debug)]
pub(super) struct Absence {
    since: Instant,
    next_try: Instant,
    pause: Duration,
    said: bool,
}

/// What came of trying to connect again.
pub(super) enum Again {
    /// There is a connection, but no answer yet.
    Connected(UnixStream),
    NotYet,
    /// There is no keeper any more, so there will be no mux either.
    Gone,
}

impl Absence {
    pub fn new(now: Instant) -> Self {
        Self { since: now, next_try: now, pause: FIRST_PAUSE, said: false }
    }

    /// When something is to be done about it.
    pub fn deadline(&self, trying: bool) -> Instant {
        let end = self.since + LONGEST_ABSENCE;
        let word = if self.said { end } else { self.since + WORTH_A_WORD };
        if trying { self.next_try.min(word).min(end) } else { word.min(end) }
    }

    /// Whether to notify the operator now.
    pub fn is_worth_a_word(&mut self, now: Instant) -> bool {
        let worth = !self.said && now >= self.since + WORTH_A_WORD;
        self.said |= worth;
        worth
    }

    pub fn is_too_long(&self, now: Instant) -> bool {
        now >= self.since + LONGEST_ABSENCE
    }

    /// A connection ended before there was an answer.
    pub fn failed_again(&mut self, now: Instant) {
        self.next_try = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Tries, if it is time.
    pub fn try_again(&mut self, instance_dir: &InstanceDir, now: Instant) -> Again {
        if now < self.next_try {
            return Again::NotYet;
        }
        self.failed_again(now);
        match socket::connect(&instance_dir.run_dir()) {
            Ok(stream) if stream.set_nonblocking(true).is_ok() => Again::Connected(stream),
            // The keeper holds the socket open for as long as it lives, with or without a mux.
            Err(err) if matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                Again::Gone
            }
            Ok(_) | Err(_) => Again::NotYet,
        }
    }
}

/// What happened to a capsule that is gone, according to its exit record.
pub(super) fn why_gone(instance_dir: &InstanceDir) -> AttachEnd {
    let Ok(Some(record)) = ExitRecord::read(instance_dir) else {
        return AttachEnd::Lost("the capsule is gone and recorded no reason; see `abide ls`".to_owned());
    };
    let ended = |session: &RecordedSession| Some((session.ended_ms?, session.name.clone(), session.exit?));
    let last = record.sessions.iter().filter_map(ended).max_by_key(|(at, ..)| *at);
    match record.reason {
        Some(StopReason::LastSessionEnded) => AttachEnd::SessionEnded {
            exit: last.as_ref().map(|(_, _, exit)| *exit),
            message: last.map_or_else(
                || "the last session ended".to_owned(),
                |(_, name, exit)| format!("{name} ended ({exit})"),
            ),
        },
        Some(StopReason::Operator | StopReason::Sigterm) => {
            let note = if record.note.is_empty() { String::new() } else { format!(": {}", record.note) };
            AttachEnd::Shutdown(format!("the instance was stopped{note}"))
        }
        Some(StopReason::Fatal) => AttachEnd::Lost(format!(
            "the capsule failed: {}; `abide resume` brings the session back",
            record.note
        )),
        None => AttachEnd::Lost("the capsule was killed; `abide resume` brings the session back".to_owned()),
    }
}

/// What to say when the mux did not come back.
pub(super) fn absent_too_long() -> AttachEnd {
    let seconds = LONGEST_ABSENCE.as_secs();
    AttachEnd::Lost(format!("no answer for {seconds} s; the session may still run, see `abide doctor`"))
}

/// A connection that cannot be understood.
pub(super) fn not_understood(err: &CallError) -> AttachEnd {
    AttachEnd::Lost(err.to_string())
}
