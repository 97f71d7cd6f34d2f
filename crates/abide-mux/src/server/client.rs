//! One connection: frames in, frames out, both bounded. What the frames mean is decided elsewhere.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use abide_model::Pid;
use abide_wire::protocol::{
    Bye, ByeReason, Event, EventKind, EventMessage, FrameDecoder, FrameKind, MAX_CLIENT_FRAME, ReplyTo,
    RequestRefusal, encode, encode_json, error_code,
};
use abide_wire::session::{ProcessExit, SessionId};
use abide_wire::socket;
use serde::Serialize;

use crate::screen::view::ClientView;
use crate::server::lent_terminal::Lent;

/// While this much waits to be read by a client, it is not listened to, and gets no events.
const MAX_WAITING: usize = 256 << 10;
/// A client that is slow should be skipped ahead soon, and not when a large buffer of old frames is through.
const SEND_BUFFER: usize = 64 << 10;
/// How long a client may take to read its goodbye.
const LEAVES_WITHIN: Duration = Duration::from_secs(5);
/// How long a connection may take to say hello. Clients of ours say it first of all.
const GREETS_WITHIN: Duration = Duration::from_secs(5);
/// One read from a client.
const CHUNK: usize = 16 << 10;
/// The most that one client may listen to.
const MAX_SUBSCRIPTIONS: usize = 32;

/// Names a connection for as long as the mux lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId(pub u64);

/// What a client wants to hear.
#[derive(Debug)]
pub(crate) struct Subscription {
    id: u64,
    kinds: Vec<EventKind>,
    session: Option<SessionId>,
    lost: u64,
}

/// Bytes for a reader that takes them at its own pace.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outgoing {
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes as much as there is room for.
    pub fn flush(&mut self, mut to: impl Write) -> io::Result<()> {
        while self.waiting() > 0 {
            match to.write(&self.bytes[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(err) => return Err(err),
            }
        }
        self.sent = 0;
        self.bytes.clear();
        if self.bytes.capacity() > CHUNK {
            self.bytes = Vec::new();
        }
        Ok(())
    }
}

pub(crate) struct Client {
    /// Its terminal, if that is lent to us. Closed before the connection: its end means to the client that the terminal is free again.
    pub lent: Option<Lent>,
    stream: UnixStream,
    decoder: FrameDecoder,
    /// The descriptor that came with the frame that is being received.
    passed: Option<OwnedFd>,
    out: Outgoing,
    /// The process on the other side; 0 where it cannot be seen from here.
    pub peer: Option<Pid>,
    /// It has said hello.
    pub greeted: bool,
    /// It is dropped if it has not said hello by then.
    pub greets_by: Instant,
    /// What it shows, if it is attached.
    pub view: Option<Box<ClientView>>,
    /// The session that it was last notified to show.
    shown: Option<SessionId>,
    /// The session whose input it filled up. It is not listened to until that reads; others are.
    pub filled: Option<SessionId>,
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
            peer: socket::peer_pid(&stream),
            lent: None,
            stream,
            decoder: FrameDecoder::new(MAX_CLIENT_FRAME),
            passed: None,
            out: Outgoing::default(),
            greeted: false,
            greets_by: Instant::now() + GREETS_WITHIN,
            view: None,
            shown: None,
            filled: None,
            subscriptions: Vec::new(),
            leaving: None,
            gone: false,
        })
    }

    pub fn wants_to_read(&self) -> bool {
        !self.is_leaving() && self.out.waiting() < MAX_WAITING
    }

    pub fn wants_to_write(&self) -> bool {
        self.out.waiting() > 0 && !self.gone
    }

    /// Whether everything so far has left: the next frame may be drawn.
    pub fn is_caught_up(&self) -> bool {
        let drawn = |lent: &Lent| lent.is_ours && lent.out.waiting() == 0;
        self.out.waiting() == 0 && self.lent.as_ref().is_none_or(drawn)
    }

    /// Whether the connection is over.
    pub fn is_over(&self, now: Instant) -> bool {
        let mute = !self.greeted && self.greets_by <= now;
        self.gone || mute || self.leaving.is_some_and(|until| self.out.waiting() == 0 || until <= now)
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.is_some() || self.gone
    }

    /// When a client that does not read its goodbye is dropped.
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
        match socket::receive(&self.stream, &mut chunk) {
            Ok((0, _)) => self.gone = true,
            Ok((n, passed)) => {
                self.decoder.push(&chunk[..n]);
                self.passed = passed.or(self.passed.take());
            }
            Err(err) if matches!(err.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.gone = true,
        }
    }

    /// The next whole frame: its kind and payload. A stream that is none ends the connection.
    pub fn next_frame(&mut self) -> Option<(Option<FrameKind>, Vec<u8>)> {
        if self.is_leaving() {
            return None;
        }
        let next = self.decoder.next().map(|frame| frame.map(|frame| (frame.kind(), frame.payload.to_vec())));
        match next {
            Ok(Some(frame)) => Some(frame),
            Ok(None) => {
                if self.decoder.buffered() == 0 {
                    // It came with a frame that has no use for it.
                    self.passed = None;
                }
                None
            }
            Err(err) => {
                let message = err.to_string();
                self.bye(ByeReason::Protocol, &message, None);
                None
            }
        }
    }

    /// Takes the terminal that the client lends, or says that it stays with the client. It is not touched before the
    /// client has drawn what it was sent.
    pub fn borrow_terminal(&mut self) {
        self.lent = self.passed.take().filter(|_| self.view.is_some()).and_then(Lent::take);
        if self.lent.is_some() {
            let _ = encode(FrameKind::Lent, &[], &mut self.out.bytes);
        } else {
            let refusal = RequestRefusal::new(error_code::BAD_REQUEST, "this is not a usable terminal");
            self.reply::<()>(0, Err(refusal));
        }
    }

    /// What was typed on the lent terminal.
    pub fn typed(&mut self) -> Vec<u8> {
        let mut chunk = [0; CHUNK];
        match self.lent.as_ref().map(|lent| lent.read(&mut chunk)) {
            Some(Ok(n)) => chunk[..n].to_vec(),
            Some(Err(_)) => {
                self.terminal_gone();
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn terminal_gone(&mut self) {
        self.bye(ByeReason::Detached, "the terminal is gone; everything keeps running", None);
    }

    /// Sends as much as the other side has room for.
    pub fn flush(&mut self) {
        if self.lent.as_mut().is_some_and(|lent| lent.flush().is_err()) {
            self.terminal_gone();
        }
        self.gone |= self.out.flush(&self.stream).is_err();
        if self.out.waiting() == 0 {
            self.report_losses();
        }
    }

    /// Queues bytes for the client's terminal.
    pub fn output(&mut self, bytes: &[u8]) {
        if let Some(lent) = &mut self.lent {
            return lent.out.push(bytes);
        }
        for piece in bytes.chunks(MAX_CLIENT_FRAME) {
            // A piece is never too long.
            let _ = encode(FrameKind::Output, piece, &mut self.out.bytes);
        }
    }

    pub fn send<T: Serialize>(&mut self, kind: FrameKind, message: &T) {
        if let Err(err) = encode_json(kind, message, &mut self.out.bytes) {
            tracing::warn!("a message could not be encoded: {err}");
        }
    }

    pub fn reply<T: Serialize>(&mut self, id: u64, outcome: Result<T, RequestRefusal>) {
        if encode_json(FrameKind::Reply, &ReplyTo::new(id, outcome), &mut self.out.bytes).is_err() {
            let refusal = RequestRefusal::new(error_code::TOO_LARGE, "the reply is too large; ask for less");
            self.send(FrameKind::Reply, &ReplyTo::<()>::new(id, Err(refusal)));
        }
    }

    /// Says why and ends the connection.
    pub fn bye(&mut self, reason: ByeReason, message: &str, exit: Option<ProcessExit>) {
        if !self.is_leaving() {
            // A client that has been dismissed has its terminal back.
            self.lent = None;
            self.send(FrameKind::Bye, &Bye { reason, message: message.to_owned(), exit });
            self.leaving = Some(Instant::now() + LEAVES_WITHIN);
        }
    }

    /// Tells an attached client what it shows, so that it can ask for the same again.
    pub fn shows(&mut self, session: SessionId) {
        if self.shown != Some(session) && !self.is_leaving() {
            self.shown = Some(session);
            self.send(FrameKind::Event, &EventMessage { subscription: 0, event: Event::Shown { session } });
        }
    }

    pub fn subscribe(
        &mut self,
        id: u64,
        kinds: Vec<EventKind>,
        session: Option<SessionId>,
    ) -> Result<(), RequestRefusal> {
        if self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return Err(RequestRefusal::new(
                error_code::TOO_LARGE,
                "this connection has too many subscriptions already",
            ));
        }
        self.subscriptions.push(Subscription { id, kinds, session, lost: 0 });
        Ok(())
    }

    /// Tells the client what happened, if it wants to hear it. One that does not keep up hears how much it missed.
    pub fn notify(&mut self, event: &Event, session: Option<&SessionId>) {
        let full = self.out.waiting() >= MAX_WAITING;
        for subscription in &mut self.subscriptions {
            let wanted = subscription.kinds.is_empty() || subscription.kinds.contains(&event.kind());
            let concerned = subscription.session.is_none() || subscription.session.as_ref() == session;
            if wanted && concerned && full {
                subscription.lost += 1;
            } else if wanted && concerned {
                let message = EventMessage { subscription: subscription.id, event: event.clone() };
                let _ = encode_json(FrameKind::Event, &message, &mut self.out.bytes);
            }
        }
    }

    fn report_losses(&mut self) {
        for subscription in self.subscriptions.iter_mut().filter(|subscription| subscription.lost > 0) {
            let event = Event::Lost { count: std::mem::take(&mut subscription.lost) };
            let _ = encode_json(
                FrameKind::Event,
                &EventMessage { subscription: subscription.id, event },
                &mut self.out.bytes,
            );
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
