//! One connection: frames in, frames out, both bounded. What the frames mean is decided elsewhere.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::view::View;
use crate::protocol::{
    Bye, ByeReason, Decoder, Event, EventKind, EventMessage, Kind, MAX_CLIENT_FRAME, Refusal, ReplyTo,
    encode, encode_json, error_code,
};
use crate::session::{Exit, SessionId};

/// While this much waits to be read by a client, it is not listened to, and gets no events.
const MAX_WAITING: usize = 256 << 10;
/// A client that is slow should be skipped ahead soon, and not when a large buffer of old frames is through.
const SEND_BUFFER: usize = 64 << 10;
/// How long a client that was told to go may take to hear it.
const LEAVES_WITHIN: Duration = Duration::from_secs(5);
/// One read from a client.
const CHUNK: usize = 16 << 10;
/// The most that one client may listen to.
const MAX_SUBSCRIPTIONS: usize = 32;

/// Names a connection for as long as the mux lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClientId(pub u64);

/// What a client wants to hear.
#[derive(Debug)]
pub(super) struct Subscription {
    id: u64,
    kinds: Vec<EventKind>,
    session: Option<SessionId>,
    lost: u64,
}

/// A connection.
pub(super) struct Client {
    stream: UnixStream,
    decoder: Decoder,
    out: Vec<u8>,
    out_sent: usize,
    /// It has said hello.
    pub greeted: bool,
    /// What it shows, if it is attached.
    pub view: Option<Box<View>>,
    subscriptions: Vec<Subscription>,
    /// Nothing more is read; closed as soon as everything is sent, and at the latest then.
    leaving: Option<Instant>,
    /// The other side is gone.
    gone: bool,
}

impl Client {
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // Only a hint: with the system's own size a slow client merely sees older frames.
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER);
        Ok(Self {
            stream,
            decoder: Decoder::new(MAX_CLIENT_FRAME),
            out: Vec::new(),
            out_sent: 0,
            greeted: false,
            view: None,
            subscriptions: Vec::new(),
            leaving: None,
            gone: false,
        })
    }

    pub fn wants_to_read(&self) -> bool {
        !self.gone && self.leaving.is_none() && self.waiting() < MAX_WAITING
    }

    pub fn wants_to_write(&self) -> bool {
        self.waiting() > 0 && !self.gone
    }

    fn waiting(&self) -> usize {
        self.out.len() - self.out_sent
    }

    /// Whether everything so far has left: the next frame may be drawn.
    pub fn is_caught_up(&self) -> bool {
        self.waiting() == 0
    }

    /// Whether the connection is over.
    pub fn is_over(&self, now: Instant) -> bool {
        self.gone || self.leaving.is_some_and(|until| self.waiting() == 0 || until <= now)
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.is_some() || self.gone
    }

    /// When a client that was told to go, but does not read it, is dropped.
    pub fn leaves_at(&self) -> Option<Instant> {
        self.leaving
    }

    /// The other side has hung up.
    pub fn hung_up(&mut self) {
        self.gone = true;
    }

    /// Takes what has arrived, once.
    pub fn receive(&mut self) {
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) => self.gone = true,
            Ok(n) => self.decoder.push(&chunk[..n]),
            Err(err) if matches!(err.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.gone = true,
        }
    }

    /// The next whole frame: its kind and payload. A stream that is none ends the connection.
    pub fn next_frame(&mut self) -> Option<(Option<Kind>, Vec<u8>)> {
        if self.is_leaving() {
            return None;
        }
        match self.decoder.next() {
            Ok(frame) => frame.map(|frame| (frame.kind(), frame.payload.to_vec())),
            Err(err) => {
                let message = err.to_string();
                self.bye(ByeReason::Protocol, &message, None);
                None
            }
        }
    }

    /// Sends as much as the other side has room for.
    pub fn flush(&mut self) {
        while self.wants_to_write() {
            match self.stream.write(&self.out[self.out_sent..]) {
                Ok(n) => self.out_sent += n,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.gone = true,
            }
        }
        self.out_sent = 0;
        self.out.clear();
        if self.out.capacity() > CHUNK {
            self.out = Vec::new();
        }
        self.report_losses();
    }

    /// Queues bytes for the client's terminal.
    pub fn output(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(MAX_CLIENT_FRAME) {
            // A piece is never too long.
            let _ = encode(Kind::Output, piece, &mut self.out);
        }
    }

    pub fn pong(&mut self, payload: &[u8]) {
        let _ = encode(Kind::Pong, payload, &mut self.out);
    }

    pub fn send<T: Serialize>(&mut self, kind: Kind, message: &T) {
        if let Err(err) = encode_json(kind, message, &mut self.out) {
            tracing::warn!("a message could not be encoded: {err}");
        }
    }

    /// Answers a request.
    pub fn reply<T: Serialize>(&mut self, id: u64, outcome: Result<T, Refusal>) {
        if encode_json(Kind::Reply, &ReplyTo::new(id, outcome), &mut self.out).is_err() {
            let refusal = Refusal::new(error_code::TOO_LARGE, "the answer is too large; ask for less of it");
            self.send(Kind::Reply, &ReplyTo::<()>::new(id, Err(refusal)));
        }
    }

    /// Says why and ends the connection.
    pub fn bye(&mut self, reason: ByeReason, message: &str, exit: Option<Exit>) {
        if !self.is_leaving() {
            self.send(Kind::Bye, &Bye { reason, message: message.to_owned(), exit });
            self.leaving = Some(Instant::now() + LEAVES_WITHIN);
        }
    }

    /// Begins a subscription.
    pub fn subscribe(
        &mut self,
        id: u64,
        kinds: Vec<EventKind>,
        session: Option<SessionId>,
    ) -> Result<(), Refusal> {
        if self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return Err(Refusal::new(
                error_code::TOO_LARGE,
                "this connection has too many subscriptions already",
            ));
        }
        self.subscriptions.push(Subscription { id, kinds, session, lost: 0 });
        Ok(())
    }

    /// Tells the client what happened, if it wants to hear it. One that does not keep up hears how much it missed.
    pub fn notify(&mut self, event: &Event, session: Option<&SessionId>) {
        let full = self.waiting() >= MAX_WAITING;
        for subscription in &mut self.subscriptions {
            let wanted = subscription.kinds.is_empty() || subscription.kinds.contains(&event.kind());
            let concerned = subscription.session.is_none() || subscription.session.as_ref() == session;
            if wanted && concerned && full {
                subscription.lost += 1;
            } else if wanted && concerned {
                let message = EventMessage { subscription: subscription.id, event: event.clone() };
                let _ = encode_json(Kind::Event, &message, &mut self.out);
            }
        }
    }

    fn report_losses(&mut self) {
        for subscription in self.subscriptions.iter_mut().filter(|subscription| subscription.lost > 0) {
            let event = Event::Lost { count: std::mem::take(&mut subscription.lost) };
            let _ = encode_json(
                Kind::Event,
                &EventMessage { subscription: subscription.id, event },
                &mut self.out,
            );
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
