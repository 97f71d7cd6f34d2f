//! What one attached client looks at, and what it is in the middle of.

use std::time::{Duration, Instant};

use abide_term::input::tokens::Tokens;
use abide_wire::protocol::{Attach, TerminalTrait};
use abide_wire::session::{SessionId, TerminalSize};

use crate::input::typing::HeldToken;
use crate::screen::compose::{DrawnVersions, SceneShape};
use crate::screen::display::Display;
use crate::screen::layout::TabId;
use crate::screen::modes::KeyProtocols;
use crate::screen::paint::Painter;
use crate::screen::scroll::Scroll;

/// The time that a frame takes up: no more than 120 are drawn in a second.
const FRAME: Duration = Duration::from_nanos(1_000_000_000 / 120);
/// How much unused time may be saved up and spent at once: what is typed a little faster than frames come is still echoed
/// without waiting for the next one.
const SAVED: Duration = Duration::from_nanos(4 * 1_000_000_000 / 120);
/// How long a message stays.
const MESSAGE: Duration = Duration::from_secs(3);
/// How long the rest of an escape sequence is waited for. A lone Escape is a key, and must not take long.
const SEQUENCE: Duration = Duration::from_millis(25);
/// The same where the key is ours: cut in two by a slow line, it would leave our mode and type its rest into the program.
const OWN_ESCAPE: Duration = Duration::from_millis(150);
/// The same once more of it has come than an Escape: no key of ours begins so.
const OWN_SEQUENCE: Duration = Duration::from_millis(500);
/// What a program may have us pass on besides the picture, between two frames.
const MAX_EXTRAS: usize = 2 << 20;

/// The largest terminal that is drawn for.
const MAX_SIDE: u16 = 1000;

/// What the client's keys go to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum InputMode {
    #[default]
    Session,
    /// To moving about in what scrolled off.
    Scroll(Scroll),
    /// To what shall be searched for there.
    Search(Scroll, String),
    /// To a question: kill this session?
    Kill(SessionId),
    /// To a new name for this session.
    Rename(SessionId, String),
    /// To the help, of which this page is shown: any key turns to the next, and after the last one closes it.
    Help(usize),
}

#[derive(Debug)]
pub(crate) struct ClientView {
    pub tab: TabId,
    pub size: TerminalSize,
    pub read_only: bool,
    pub keys: KeyProtocols,
    pub display: Display,
    pub mode: InputMode,
    /// The paste that is coming in began in a mode of ours: no session gets the rest of it.
    pub paste_is_ours: bool,
    /// Its terminal has the focus, as far as it says.
    pub has_focus: bool,
    /// The prefix was pressed, and the next key is a command.
    pub prefixed: bool,
    /// What was typed while the shell that it is meant for is being started.
    pub held: Vec<HeldToken>,
    pub tokens: Tokens,
    tokens_since: Option<Instant>,
    message: Option<(String, Instant)>,
    pub painter: Painter,
    pub seen: DrawnVersions,
    pub pan: (u16, u16),
    /// What was on the screen when the last frame was drawn, for finding what the mouse points at.
    pub shape: Option<SceneShape>,
    /// Bells and the like, to be sent with the next frame.
    pub extras: Vec<u8>,
    /// Something has changed since the last frame.
    dirty: bool,
    next_frame: Instant,
    /// Grows with each use of any client: the largest is the one that was used last.
    pub used: u64,
}

impl ClientView {
    pub fn new(attach: &Attach, tab: TabId, used: u64, now: Instant) -> Self {
        let size = clamped(TerminalSize { cols: attach.cols, rows: attach.rows });
        let display = Display::of(&attach.caps);
        Self {
            tab,
            size,
            read_only: attach.read_only,
            keys: key_protocols(attach),
            display,
            mode: InputMode::default(),
            paste_is_ours: false,
            has_focus: true,
            prefixed: false,
            held: Vec::new(),
            tokens: Tokens::default(),
            tokens_since: None,
            message: None,
            painter: Painter::new(size, display),
            seen: DrawnVersions::default(),
            pan: (0, 0),
            shape: None,
            extras: Vec::new(),
            dirty: true,
            next_frame: now,
            used,
        }
    }

    /// The client has learnt more about its terminal.
    pub fn update(&mut self, attach: &Attach) {
        self.read_only = attach.read_only;
        if self.keys != key_protocols(attach) {
            self.keys = key_protocols(attach);
            self.painter.forget_modes();
        }
        self.display = Display::of(&attach.caps);
        self.painter.set_display(self.display);
        self.dirty = true;
    }

    /// The client's terminal has another size, or has lost what it showed.
    pub fn resize(&mut self, size: TerminalSize) {
        self.size = clamped(size);
        self.painter.forget(self.size);
        self.dirty = true;
    }

    /// The client's terminal is of this size, as far as it says; whether that is news.
    pub fn follow(&mut self, size: Option<TerminalSize>) -> bool {
        let news = size.filter(|size| clamped(*size) != self.size);
        news.inspect(|size| self.resize(*size)).is_some()
    }

    /// Something that the client sees has changed.
    pub fn touch(&mut self) {
        self.dirty = true;
    }

    /// When the next frame is to be drawn, if there is anything to draw.
    pub fn frame_at(&self) -> Option<Instant> {
        self.dirty.then_some(self.next_frame)
    }

    /// A frame was drawn.
    pub fn drawn(&mut self, now: Instant) {
        self.dirty = false;
        let earliest = now.checked_sub(SAVED).unwrap_or(now);
        self.next_frame = self.next_frame.max(earliest) + FRAME;
    }

    /// Gives the frames to come as much saved time as if none had been drawn for a while.
    pub fn save_up(&mut self, now: Instant) {
        self.next_frame = self.next_frame.min(now.checked_sub(SAVED).unwrap_or(now));
    }

    /// Shows a line to the operator for a while.
    pub fn say(&mut self, text: impl Into<String>, now: Instant) {
        self.message = Some((text.into(), now + MESSAGE));
        self.dirty = true;
    }

    pub fn message(&self) -> Option<&str> {
        self.message.as_ref().map(|(text, _)| text.as_str())
    }

    /// Takes the message away at the first key, or when its time is over.
    pub fn unsay(&mut self) {
        self.dirty |= self.message.take().is_some();
    }

    pub fn message_until(&self) -> Option<Instant> {
        self.message.as_ref().map(|(_, until)| *until)
    }

    /// Starts or ends waiting for the rest of a sequence, after input was taken in.
    pub fn watch_tokens(&mut self, now: Instant) {
        self.tokens_since = self.tokens.is_holding().then_some(now);
    }

    /// Until when the rest of a sequence is waited for.
    pub fn tokens_until(&self) -> Option<Instant> {
        let is_ours = self.mode != InputMode::Session || self.prefixed;
        let patience = match self.tokens.held() {
            _ if !is_ours => SEQUENCE,
            0..=1 => OWN_ESCAPE,
            _ => OWN_SEQUENCE,
        };
        self.tokens_since.map(|since| since + patience)
    }

    /// Passes something on to the terminal with the next frame; too much of it is dropped.
    pub fn pass_on(&mut self, bytes: &[u8]) {
        if self.extras.len() + bytes.len() <= MAX_EXTRAS {
            self.extras.extend_from_slice(bytes);
            self.dirty = true;
        }
    }

    /// Passes an operating system command on, to a terminal that knows such.
    pub fn pass_on_string(&mut self, bytes: &[u8]) {
        if self.display.strings {
            self.pass_on(bytes);
        }
    }

    pub fn show(&mut self, tab: TabId) {
        if self.tab != tab {
            self.tab = tab;
            self.mode = InputMode::default();
            self.pan = (0, 0);
        }
        self.dirty = true;
    }
}

fn clamped(size: TerminalSize) -> TerminalSize {
    TerminalSize { cols: size.cols.clamp(1, MAX_SIDE), rows: size.rows.clamp(1, MAX_SIDE) }
}

fn key_protocols(attach: &Attach) -> KeyProtocols {
    let has = |one| attach.caps.contains(&one);
    let modify_other_keys = has(TerminalTrait::ModifyOtherKeys);
    KeyProtocols { kitty: has(TerminalTrait::KittyKeyboard), modify_other_keys }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::layout::Layout;

    #[test]
    fn after_an_interrupt_a_frame_does_not_wait_for_those_of_the_flood_before() {
        let now = Instant::now() + Duration::from_secs(1);
        let attach =
            Attach { cols: 80, rows: 24, read_only: false, caps: Vec::new(), colors: None, session: None };
        let mut layout = Layout::default();
        layout.add(&SessionId(1));
        let mut view = ClientView::new(&attach, layout.tabs()[0].id, 0, now);
        let may_draw = |view: &ClientView| view.frame_at().is_some_and(|at| at <= now);
        while may_draw(&view) {
            view.drawn(now);
            view.touch();
        }
        view.save_up(now);
        for _ in 0..3 {
            assert!(may_draw(&view));
            view.drawn(now);
            view.touch();
        }
    }
}
