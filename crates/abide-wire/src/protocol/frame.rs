//! Frames: a length, a kind, and that many bytes.
//!
//! A frame is the payload's length (u32, little-endian), one byte for its kind, and the payload. The decoder trusts
//! no length: it refuses one above its limit at once, and its memory grows with what has arrived, never with what
//! was announced.

use serde::Serialize;

/// The longest payload that any frame may have.
pub const MAX_FRAME: usize = 16 << 20;
/// The longest payload that the mux takes from a client.
pub const MAX_CLIENT_FRAME: usize = 1 << 20;
/// What precedes a payload: four bytes of length and one of kind.
pub const HEADER_LEN: usize = 5;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// JSON [`Hello`](crate::protocol::Hello), the first frame of either side.
    Hello = 1,
    /// JSON [`Request`](crate::protocol::Request), client to mux.
    Request = 2,
    /// JSON reply to a request, mux to client.
    Reply = 3,
    /// JSON [`EventMessage`](crate::protocol::EventMessage), mux to client.
    Event = 4,
    /// JSON [`Attach`](crate::protocol::Attach), client to mux: from here on the client is a terminal.
    Attach = 5,
    /// What was typed, client to mux.
    Input = 6,
    /// [`Resize`](crate::protocol::Resize): the client's terminal has a new size.
    Resize = 7,
    /// What the client's terminal shall draw.
    Output = 8,
    /// JSON [`Bye`](crate::protocol::Bye), the last frame of either side.
    Bye = 9,
    /// Client to mux, with a descriptor of the client's terminal, which it does not read from here on: read and draw
    /// there yourself. Answered by a [`FrameKind::Lent`], or by a refusal, after which everything stays as it was.
    Lend = 12,
    /// Mux to client: no more [`FrameKind::Output`] comes. Then client to mux: what came before is drawn, so go on.
    Lent = 13,
}

impl FrameKind {
    const ALL: [Self; 11] = [
        Self::Hello,
        Self::Request,
        Self::Reply,
        Self::Event,
        Self::Attach,
        Self::Input,
        Self::Resize,
        Self::Output,
        Self::Bye,
        Self::Lend,
        Self::Lent,
    ];

    /// The kind with this number, if this build knows it.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The number of its kind; see [`Frame::kind`].
    pub raw_kind: u8,
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// The frame's kind; `None` for one of a newer version, which deserves an error reply.
    pub fn kind(&self) -> Option<FrameKind> {
        FrameKind::from_byte(self.raw_kind)
    }
}

/// The stream cannot be understood any further: the connection must be closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {length} bytes exceeds the limit of {limit}")]
pub struct FrameError {
    /// The length that was announced or asked for.
    pub length: usize,
    /// The limit that holds here.
    pub limit: usize,
}

/// The header of a frame whose payload is sent separately. `len` is at most [`MAX_FRAME`].
pub fn header(kind: FrameKind, len: usize) -> Result<[u8; HEADER_LEN], FrameError> {
    let length = u32::try_from(len).ok().filter(|_| len <= MAX_FRAME);
    let [a, b, c, d] = length.ok_or(FrameError { length: len, limit: MAX_FRAME })?.to_le_bytes();
    Ok([a, b, c, d, kind as u8])
}

/// Appends a whole frame to `out`; on an error `out` is as before.
pub fn encode(kind: FrameKind, payload: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
    out.extend_from_slice(&header(kind, payload.len())?);
    out.extend_from_slice(payload);
    Ok(())
}

/// Appends a frame with a JSON payload to `out`; on an error `out` is as before.
pub fn encode_json(kind: FrameKind, message: &impl Serialize, out: &mut Vec<u8>) -> std::io::Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_LEN]);
    let written = serde_json::to_writer(&mut *out, message).map_err(std::io::Error::from);
    let header = written.and_then(|()| {
        let len = out.len() - start - HEADER_LEN;
        header(kind, len).map_err(|err| std::io::Error::new(std::io::ErrorKind::InvalidData, err))
    });
    match header {
        Ok(header) => {
            out[start..start + HEADER_LEN].copy_from_slice(&header);
            Ok(())
        }
        Err(err) => {
            out.truncate(start);
            Err(err)
        }
    }
}

/// Cuts a byte stream into frames.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    consumed: usize,
    limit: usize,
}

impl FrameDecoder {
    /// A decoder that refuses payloads longer than `limit`.
    pub fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), consumed: 0, limit }
    }

    /// Takes in what arrived. Call [`FrameDecoder::next`] until it has no more before pushing again.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        // One huge frame must not cost its size for the rest of a long connection.
        if self.buffer.is_empty() && self.buffer.capacity() > 64 << 10 {
            self.buffer = Vec::new();
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if it has arrived. After an error the stream is lost.
    #[expect(clippy::should_implement_trait, reason = "the frame borrows from the decoder")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let rest = &self.buffer[self.consumed..];
        let Some((header, body)) = rest.split_first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let [a, b, c, d, raw_kind] = *header;
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        if length > self.limit {
            return Err(FrameError { length, limit: self.limit });
        }
        let Some(payload) = body.get(..length) else { return Ok(None) };
        self.consumed += HEADER_LEN + length;
        Ok(Some(Frame { raw_kind, payload }))
    }

    /// How many bytes wait for the rest of their frame.
    pub fn buffered(&self) -> usize {
        self.buffer.len() - self.consumed
    }
}
