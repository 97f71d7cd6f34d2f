//! A blocking client: one request at a time, every wait bounded.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::instance_dir::InstanceDir;
use crate::protocol::{
    Bye, Call, EventMessage, FrameDecoder, FrameError, FrameKind, Hello, MAX_FRAME, ReplyTo, RequestRefusal,
    VersionMismatch, encode_json, negotiate,
};
use crate::socket;

/// Events that arrive while a reply is awaited are kept, but no more than this many.
const MAX_EVENTS: usize = 1024;

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nothing listens: no keeper serves the instance.
    #[error("its capsule is not running; `abide ls` shows its state, and `abide resume ID` brings it back")]
    NotRunning,
    /// No answer in time.
    #[error("the capsule did not answer within {0:?}; see `abide doctor`")]
    TimedOut(Duration),
    /// The mux ended the connection.
    #[error("the capsule closed the connection{}", if .0.is_empty() { String::new() } else { format!(": {}", .0) })]
    Closed(String),
    /// The mux said no.
    #[error(transparent)]
    Refused(#[from] RequestRefusal),
    /// There is no common version.
    #[error(transparent)]
    Version(#[from] VersionMismatch),
    /// The mux sent what is no reply.
    #[error("the capsule sent an unreadable message: {0}; see `abide doctor`")]
    Malformed(String),
    #[error("talking to the capsule failed: {0}")]
    Io(#[from] io::Error),
}

impl From<FrameError> for CallError {
    fn from(err: FrameError) -> Self {
        Self::Malformed(err.to_string())
    }
}

/// A connection to a capsule's mux.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    decoder: FrameDecoder,
    hello: Hello,
    next_id: u64,
    events: VecDeque<EventMessage>,
}

impl Connection {
    /// Connects to the capsule of `instance_dir` and agrees on a version, within `timeout`.
    pub fn connect(instance_dir: &InstanceDir, timeout: Duration) -> Result<Self, CallError> {
        let stream = socket::connect(&instance_dir.run_dir()).map_err(|err| match err.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => CallError::NotRunning,
            _ => CallError::Io(err),
        })?;
        Self::over(stream, timeout)
    }

    /// Agrees on a version over an existing stream, within `timeout`.
    pub fn over(stream: UnixStream, timeout: Duration) -> Result<Self, CallError> {
        let mut connection = Self {
            stream,
            decoder: FrameDecoder::new(MAX_FRAME),
            hello: Hello::ours(),
            next_id: 1,
            events: VecDeque::new(),
        };
        let deadline = CallDeadline::after(timeout);
        connection.send_json(FrameKind::Hello, &Hello::ours(), &deadline)?;
        connection.hello = loop {
            let (kind, payload) = connection.receive(&deadline)?;
            if kind == Some(FrameKind::Hello) {
                break parse(&payload)?;
            }
        };
        negotiate(&connection.hello.protocol)?;
        Ok(connection)
    }

    /// What the mux said about itself.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Asks, and waits for the answer for at most `timeout`.
    pub fn call<C: Call>(&mut self, call: &C, timeout: Duration) -> Result<C::Reply, CallError> {
        #[derive(Serialize)]
        struct NumberedCall<'a, C> {
            id: u64,
            verb: &'static str,
            #[serde(flatten)]
            call: &'a C,
        }
        self.exchange(timeout, |id| NumberedCall { id, verb: C::VERB, call })
    }

    /// Asks with a request as it is, of whatever version, and gives the answer likewise.
    pub fn call_raw(
        &mut self,
        request: &serde_json::Map<String, serde_json::Value>,
        timeout: Duration,
    ) -> Result<serde_json::Value, CallError> {
        self.exchange(timeout, |id| {
            let mut numbered = request.clone();
            numbered.insert("id".to_owned(), id.into());
            numbered
        })
    }

    fn exchange<R: DeserializeOwned, M: Serialize>(
        &mut self,
        timeout: Duration,
        message: impl FnOnce(u64) -> M,
    ) -> Result<R, CallError> {
        let id = self.next_id;
        self.next_id += 1;
        let deadline = CallDeadline::after(timeout);
        self.send_json(FrameKind::Request, &message(id), &deadline)?;
        loop {
            let (kind, payload) = self.receive(&deadline)?;
            if kind != Some(FrameKind::Reply) || reply_id(&payload)? != id {
                // A late reply to a call that timed out, or a frame that has nothing to do with calls.
                continue;
            }
            let reply: ReplyTo<R> = parse(&payload)?;
            return match (reply.ok, reply.error) {
                (_, Some(refusal)) => Err(refusal.into()),
                (Some(value), None) => Ok(value),
                (None, None) => Err(CallError::Malformed("a reply without content".to_owned())),
            };
        }
    }

    /// The next event of a subscription, waiting for at most `timeout`.
    pub fn next_event(&mut self, timeout: Duration) -> Result<EventMessage, CallError> {
        let deadline = CallDeadline::after(timeout);
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            self.receive(&deadline)?;
        }
    }

    /// Gives up the stream and what was read ahead of it, for a client that attaches.
    pub fn into_parts(self) -> (UnixStream, FrameDecoder) {
        (self.stream, self.decoder)
    }

    fn send_json(
        &mut self,
        kind: FrameKind,
        message: &impl Serialize,
        deadline: &CallDeadline,
    ) -> Result<(), CallError> {
        let mut frame = Vec::new();
        encode_json(kind, message, &mut frame)?;
        let mut rest = frame.as_slice();
        while !rest.is_empty() {
            self.stream.set_write_timeout(Some(deadline.left()?))?;
            match self.stream.write(rest) {
                Ok(n) => rest = rest.get(n..).unwrap_or_default(),
                Err(err) if is_temporary(&err) => {}
                Err(err) if is_gone(&err) => return Err(CallError::Closed(String::new())),
                Err(err) => return Err(err.into()),
            }
        }
        Ok(())
    }

    /// The next frame. Events are put aside on the way, and a good-bye is an error.
    fn receive(&mut self, deadline: &CallDeadline) -> Result<(Option<FrameKind>, Vec<u8>), CallError> {
        let mut chunk = [0; 16 << 10];
        loop {
            if let Some(frame) = self.decoder.next()? {
                let (kind, payload) = (frame.kind(), frame.payload.to_vec());
                match kind {
                    Some(FrameKind::Bye) => return Err(CallError::Closed(parse::<Bye>(&payload)?.message)),
                    Some(FrameKind::Event) if self.events.len() < MAX_EVENTS => {
                        self.events.push_back(parse(&payload)?)
                    }
                    _ => {}
                }
                return Ok((kind, payload));
            }
            self.stream.set_read_timeout(Some(deadline.left()?))?;
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(CallError::Closed(String::new())),
                Ok(n) => self.decoder.push(&chunk[..n]),
                Err(err) if is_temporary(&err) => {}
                Err(err) if is_gone(&err) => return Err(CallError::Closed(String::new())),
                Err(err) => return Err(err.into()),
            }
        }
    }
}

struct CallDeadline {
    at: Option<Instant>,
    timeout: Duration,
}

impl CallDeadline {
    fn after(timeout: Duration) -> Self {
        // A timeout beyond the clock's range is "for ever".
        Self { at: Instant::now().checked_add(timeout), timeout }
    }

    fn left(&self) -> Result<Duration, CallError> {
        let Some(at) = self.at else { return Ok(Duration::from_secs(3600)) };
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(CallError::TimedOut(self.timeout)) } else { Ok(left) }
    }
}

fn reply_id(payload: &[u8]) -> Result<u64, CallError> {
    #[derive(Deserialize)]
    struct ReplyHead {
        id: u64,
    }
    Ok(parse::<ReplyHead>(payload)?.id)
}

fn parse<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Result<T, CallError> {
    serde_json::from_slice(payload).map_err(|err| CallError::Malformed(err.to_string()))
}

fn is_temporary(err: &io::Error) -> bool {
    matches!(err.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn is_gone(err: &io::Error) -> bool {
    matches!(err.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
