//! What the terminal has to say to the outside: bytes for the program, events for the owner. Both are bounded.

use std::collections::VecDeque;

use crate::status::ProgramStatus;

/// A program that asks without reading the answers gets no more of them.
const MAX_REPLIES: usize = 64 << 10;
/// The oldest events give way beyond these.
const MAX_EVENTS: usize = 256;
const MAX_EVENT_BYTES: usize = 2 << 20;

/// Something that happened and is not part of the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermEvent {
    /// BEL.
    Bell,
    /// The window title changed.
    Title(String),
    /// A desktop notification (OSC 9, OSC 99, OSC 777).
    Notify {
        text: String,
        /// The body of the sequence that makes a terminal show it, made safe.
        sequence: String,
    },
    /// How far a program or a command is (OSC 9;4, OSC 133): the body of the sequence that tells a terminal, made safe.
    Progress(String),
    /// The program wrote to a clipboard (OSC 52).
    Clipboard {
        /// Which one, as the letters of the sequence: `c`, `p`, `s0` …
        selection: String,
        data: Vec<u8>,
    },
    /// The program reported what it is doing (OSC 7501).
    Status(ProgramStatus),
}

impl TermEvent {
    fn bytes(&self) -> usize {
        match self {
            Self::Title(text) | Self::Progress(text) => text.len(),
            Self::Notify { text, sequence } => text.len() + sequence.len(),
            Self::Clipboard { selection, data } => selection.len() + data.len(),
            Self::Status(status) => status.bytes(),
            Self::Bell => 0,
        }
    }
}

/// Replies and events that have not been taken yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    replies: Vec<u8>,
    events: VecDeque<TermEvent>,
    event_bytes: usize,
}

impl Outbox {
    pub(crate) fn reply(&mut self, bytes: &[u8]) {
        if self.replies.len() + bytes.len() <= MAX_REPLIES {
            self.replies.extend_from_slice(bytes);
        }
    }

    pub(crate) fn event(&mut self, event: TermEvent) {
        if event == TermEvent::Bell && self.events.back() == Some(&TermEvent::Bell) {
            return;
        }
        self.event_bytes += event.bytes();
        self.events.push_back(event);
        while self.events.len() > MAX_EVENTS || self.event_bytes > MAX_EVENT_BYTES {
            let Some(oldest) = self.events.pop_front() else { break };
            self.event_bytes -= oldest.bytes();
        }
    }

    pub(crate) fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.replies)
    }

    pub(crate) fn take_events(&mut self) -> Vec<TermEvent> {
        self.event_bytes = 0;
        std::mem::take(&mut self.events).into()
    }
}
