//! What a client's terminal sends: to the session as it is, unless it begins with the prefix or we asked a question.

use abide_term::Modes;
use abide_term::input::keys::{self, Key};
use abide_term::input::tokens::{FOCUS_IN, FOCUS_OUT, PASTE_BEGIN, PASTE_END, Token};
use abide_wire::session::SessionId;

use crate::input::mouse::MouseEvent;
use crate::screen::scroll::{Scroll, Way};
use crate::screen::view::{ClientView, InputMode};
use crate::server::Server;
use crate::server::client::ClientId;
use crate::session::{MAX_INPUT, MuxSession};

/// How many lines one step of the wheel is.
const WHEEL_LINES: i64 = 3;
/// The most that is held for a shell that is being started.
const MAX_HELD: usize = 64 << 10;
/// `^C`, `^Z` and `^\\`: keys that end or stop a program at once.
const INTERRUPTS: [u8; 3] = [0x03, 0x1a, 0x1c];
/// The longest name or search.
const MAX_LINE: usize = 200;

/// Input that waits for the shell that it is meant for.
#[derive(Debug)]
pub(crate) struct HeldToken {
    kind: for<'a> fn(&'a [u8]) -> Token<'a>,
    bytes: Vec<u8>,
}

impl From<Token<'_>> for HeldToken {
    fn from(token: Token<'_>) -> Self {
        match token {
            Token::Text(bytes) => Self { kind: |bytes| Token::Text(bytes), bytes: bytes.to_vec() },
            Token::Sequence(bytes) => Self { kind: |bytes| Token::Sequence(bytes), bytes: bytes.to_vec() },
            Token::Pasted(bytes) => Self { kind: |bytes| Token::Pasted(bytes), bytes: bytes.to_vec() },
        }
    }
}

impl Server {
    /// Takes in what a client's terminal sent.
    pub fn on_input(&mut self, id: ClientId, bytes: &[u8]) {
        self.use_client(id);
        // The program must have its new size before it hears what is typed there.
        self.rearrange();
        self.with_tokens(id, |server, tokens| tokens.feed(bytes, |token| server.on_token(id, token)));
    }

    /// Gives up on the sequences that did not go on.
    pub fn flush_tokens(&mut self) {
        let now = self.now;
        let due = |view: &ClientView| view.tokens_until().is_some_and(|until| until <= now);
        let clients = self.clients.iter();
        let due: Vec<ClientId> = clients
            .filter(|(_, client)| client.view.as_deref().is_some_and(due))
            .map(|(id, _)| *id)
            .collect();
        for id in due {
            self.with_tokens(id, |server, tokens| tokens.flush(|token| server.on_token(id, token)));
        }
    }

    fn with_tokens(
        &mut self,
        id: ClientId,
        work: impl FnOnce(&mut Self, &mut abide_term::input::tokens::Tokens),
    ) {
        let Some(view) = self.view_mut(id) else { return };
        let mut tokens = std::mem::take(&mut view.tokens);
        work(self, &mut tokens);
        let now = self.now;
        if let Some(view) = self.view_mut(id) {
            view.tokens = tokens;
            view.watch_tokens(now);
        }
    }

    /// Takes note that a client is the one in use, which decides about sizes.
    fn use_client(&mut self, id: ClientId) {
        let newest =
            self.clients.values().filter_map(|client| client.view.as_ref()).map(|view| view.used).max();
        let used = self.next_number();
        let Some(view) = self.view_mut(id).filter(|view| !view.read_only) else { return };
        let was_newest = Some(view.used) == newest;
        view.used = used;
        let tab = view.tab;
        self.layout.look_at(tab);
        self.refit |= !was_newest;
    }

    fn on_token(&mut self, id: ClientId, token: Token<'_>) {
        if self.clients.get(&id).is_none_or(crate::server::client::Client::is_leaving) {
            return;
        }
        if self.awaits_shell(id) {
            return self.hold(id, token);
        }
        match token {
            Token::Text(text) => self.on_text(id, text),
            Token::Pasted(text) => self.on_paste(id, text),
            Token::Sequence(sequence) => self.on_sequence(id, sequence),
        }
    }

    fn on_text(&mut self, id: ClientId, mut text: &[u8]) {
        let prefix = self.options.live.prefix.byte();
        while !text.is_empty() {
            if self.awaits_shell(id) {
                return self.hold(id, Token::Text(text));
            }
            let Some(view) = self.view_mut(id) else { return };
            if view.mode == InputMode::Session && !view.prefixed {
                let end = text.iter().position(|byte| *byte == prefix);
                let (typed, rest) = text.split_at(end.unwrap_or(text.len()));
                self.type_into(id, typed);
                text = rest;
                if end.is_some() {
                    text = &text[1..];
                    self.on_prefix(id);
                }
                continue;
            }
            let (ch, length) = first_char(text);
            text = &text[length..];
            self.on_key(id, Key::of_char(ch), None);
        }
    }

    fn on_paste(&mut self, id: ClientId, text: &[u8]) {
        let Some(view) = self.view_mut(id) else { return };
        match &mut view.mode {
            InputMode::Session if view.paste_is_ours => {}
            InputMode::Session => self.type_into(id, text),
            InputMode::Search(_, line) | InputMode::Rename(_, line) => {
                let text = String::from_utf8_lossy(text);
                line.extend(
                    text.chars().filter(|ch| !ch.is_control()).take(MAX_LINE.saturating_sub(line.len())),
                );
                view.touch();
            }
            _ => {}
        }
    }

    fn on_sequence(&mut self, id: ClientId, sequence: &[u8]) {
        if let Some(event) = MouseEvent::read(sequence) {
            return self.on_mouse(id, event);
        }
        let modes = self.focused_of(id).map(|session| session.term.modes()).unwrap_or_default();
        let prefix = self.options.live.prefix.letter();
        let Some(view) = self.view_mut(id) else { return };
        if sequence == PASTE_BEGIN {
            view.paste_is_ours = view.mode != InputMode::Session;
        }
        match sequence {
            PASTE_BEGIN | PASTE_END if view.paste_is_ours => {}
            // The marks of a terminal whose modes have not followed the focus yet.
            PASTE_BEGIN | PASTE_END if !modes.bracketed_paste => {}
            PASTE_BEGIN | PASTE_END => self.type_into(id, sequence),
            FOCUS_IN | FOCUS_OUT => {
                view.has_focus = sequence == FOCUS_IN;
                self.tell_focus();
            }
            _ if view.mode != InputMode::Session || view.prefixed => {
                self.on_key(id, Key::of_sequence(sequence), Some(sequence));
            }
            _ if keys::is_control_key(sequence, prefix) => self.on_prefix(id),
            _ if modes.kitty_keyboard == 0 && modes.modify_other_keys > 0 && view.keys.kitty => {
                let translated = keys::as_modify_other_keys(sequence, modes.modify_other_keys);
                self.type_into(id, translated.as_deref().unwrap_or(sequence));
            }
            _ => self.type_into(id, sequence),
        }
    }

    fn on_prefix(&mut self, id: ClientId) {
        if let Some(view) = self.view_mut(id) {
            view.unsay();
            view.prefixed = true;
            view.touch();
        }
    }

    /// A key that is meant for us.
    fn on_key(&mut self, id: ClientId, key: Key, sequence: Option<&[u8]>) {
        let prefix = Key::Ctrl(self.options.live.prefix.letter());
        if key == Key::Nothing {
            return;
        }
        let Some(view) = self.view_mut(id) else { return };
        view.unsay();
        view.touch();
        // Its reports may have been off when it got the focus back.
        view.has_focus = true;
        if std::mem::take(&mut view.prefixed) {
            if key == prefix {
                return self.send_prefix(id);
            }
            self.on_command_key(id, key, sequence);
            // What follows is meant for what the command gave the focus.
            return self.rearrange();
        }
        if key == prefix {
            view.prefixed = true;
            return;
        }
        match std::mem::take(&mut view.mode) {
            // Not reached: in this mode keys go to the session.
            InputMode::Session => {}
            InputMode::Help(page) => {
                let goes_on = page + 1 < crate::screen::frame::help_pages(view.size.rows);
                if goes_on && !matches!(key, Key::Escape | Key::Char('q') | Key::Ctrl('c')) {
                    view.mode = InputMode::Help(page + 1);
                }
            }
            InputMode::Kill(session) => self.answer_kill(id, &session, key),
            InputMode::Rename(session, text) => self.edit_name(id, session, text, key),
            InputMode::Search(scroll, text) => self.edit_search(id, scroll, text, key),
            InputMode::Scroll(scroll) => self.scroll_by_key(id, scroll, key),
        }
    }

    /// The prefix key itself, as the session's keyboard would send it.
    fn send_prefix(&mut self, id: ClientId) {
        let name = self.options.live.prefix.to_string();
        let modes = self.focused_of(id).map(|session| session.term.modes()).unwrap_or_default();
        let bytes = keys::named(&name, &modes).unwrap_or_default();
        self.type_into(id, &bytes);
    }

    fn edit_name(&mut self, id: ClientId, session: SessionId, mut text: String, key: Key) {
        match edit(&mut text, key) {
            LineEdit::Done => self.rename(&session, &text),
            LineEdit::Cancelled => {}
            LineEdit::Goes => self.set_mode(id, InputMode::Rename(session, text)),
        }
    }

    fn edit_search(&mut self, id: ClientId, mut scroll: Scroll, mut text: String, key: Key) {
        match edit(&mut text, key) {
            LineEdit::Done if text.is_empty() => self.scroll_by_key(id, scroll, Key::Char('n')),
            LineEdit::Done => {
                if let Some(session) = self.focused_of(id) {
                    scroll.begin_search(&session.term, &text);
                }
                self.search_on(id, scroll);
            }
            LineEdit::Cancelled => self.set_mode(id, InputMode::Scroll(scroll)),
            LineEdit::Goes => self.set_mode(id, InputMode::Search(scroll, text)),
        }
    }

    fn scroll_by_key(&mut self, id: ClientId, mut scroll: Scroll, key: Key) {
        let Some(term) = self.focused_of(id).map(|session| &session.term) else { return };
        scroll.stop_searching();
        match key {
            Key::Char('q') | Key::Escape | Key::Ctrl('c') | Key::Enter => return,
            Key::Up | Key::Char('k') => scroll.by(term, -1),
            Key::Down | Key::Char('j') => scroll.by(term, 1),
            Key::PageUp | Key::Ctrl('b' | 'u') => scroll.by_pages(term, -1),
            Key::PageDown | Key::Ctrl('f' | 'd') | Key::Char(' ') => scroll.by_pages(term, 1),
            Key::Home | Key::Char('g') => scroll.go_to_start(term),
            Key::End | Key::Char('G') => scroll.go_to_end(term),
            Key::Char('n') => scroll.begin_next(term, Way::Back),
            Key::Char('N') => scroll.begin_next(term, Way::On),
            Key::Char('/') => return self.set_mode(id, InputMode::Search(scroll, String::new())),
            _ => {}
        }
        if scroll.is_searching() {
            self.search_on(id, scroll);
        } else {
            self.set_mode(id, InputMode::Scroll(scroll));
        }
    }

    fn on_mouse(&mut self, id: ClientId, event: MouseEvent) {
        let Some(view) = self.view(id) else { return };
        let Some(shape) = &view.shape else { return };
        let Some((x, y)) = shape.in_tab(event.x, event.y) else { return };
        let Some(pane) = shape.placement.pane_at(x, y) else { return };
        let (session, rect) = (pane.session, pane.rect);
        let event = event.at(x - rect.x, y - rect.y);
        if let (Some(direction), true) = (event.wheel(), self.wheel_is_ours(id, &session)) {
            return self.on_wheel(id, direction);
        }
        // The focus is everybody's.
        if view.mode != InputMode::Session || view.read_only {
            return;
        }
        if event.is_press() && self.layout.tab_of(&session).is_some_and(|tab| tab.focused != session) {
            self.layout.focus(&session);
            self.refit = true;
        }
        if let Some(session) = self.session_mut(&session) {
            let report = event.write(&session.term.modes(), CELL_PIXELS);
            session.send(&report.unwrap_or_default());
        }
    }

    /// Whether the wheel moves our view: where the session does not want it, and where it moves it already.
    fn wheel_is_ours(&self, id: ClientId, session: &SessionId) -> bool {
        let scrolling = self.view(id).is_some_and(|view| matches!(view.mode, InputMode::Scroll(_)));
        let wanted = self.session(session).is_some_and(|session| wants_wheel(&session.term.modes()));
        let focused = self.focused_of(id).is_some_and(|focused| focused.id == *session);
        focused && (scrolling || !wanted)
    }

    fn on_wheel(&mut self, id: ClientId, direction: i32) {
        let Some(session) = self.focused_of(id) else { return };
        let mut scroll = match self.view(id).map(|view| &view.mode) {
            Some(InputMode::Scroll(scroll)) => scroll.clone(),
            Some(InputMode::Session) if direction < 0 => Scroll::at_end(session.id, &session.term),
            _ => return,
        };
        scroll.by(&session.term, i64::from(direction) * WHEEL_LINES);
        let mode =
            if scroll.is_at_end(&session.term) { InputMode::Session } else { InputMode::Scroll(scroll) };
        self.set_mode(id, mode);
    }

    pub fn set_mode(&mut self, id: ClientId, mode: InputMode) {
        if let Some(view) = self.view_mut(id) {
            view.mode = mode;
            view.touch();
        }
    }

    /// Sends input to the session that a client types into.
    fn type_into(&mut self, id: ClientId, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let Some(view) = self.view_mut(id) else { return };
        view.unsay();
        if view.read_only {
            let hint = "this client is read-only; attach without --read-only to type";
            return self.say(id, hint);
        }
        let tab = view.tab;
        let Some(focused) = self.layout.tab(tab).map(|tab| tab.focused) else { return };
        self.attention.typed(&focused, self.now);
        let Some(session) = self.session_mut(&focused) else { return };
        let (fits, filled) = (session.send(bytes), session.input_waiting() >= MAX_INPUT);
        if bytes.iter().any(|byte| INTERRUPTS.contains(byte)) {
            session.interrupted = true;
        }
        // Neither the program nor the picture waits for the disk.
        self.last_seen.note_unwritten(&focused, |seen| seen.typed(bytes));
        self.note_entry(&focused, bytes);
        if let Some(client) = self.clients.get_mut(&id) {
            client.filled = filled.then_some(focused);
        }
        if !fits {
            self.say(id, "the program does not read its input; some of it was dropped");
        }
    }

    /// Keeps what was typed until the shell is there that it is meant for, keys of ours too: fast fingers and scripts do not
    /// wait. Detaching does not have to.
    fn hold(&mut self, id: ClientId, token: Token<'_>) {
        let prefix = self.options.live.prefix.byte();
        let Some(view) = self.view_mut(id) else { return };
        let token = HeldToken::from(token);
        if view.held.iter().map(|held| held.bytes.len()).sum::<usize>() + token.bytes.len() > MAX_HELD {
            return self.say(id, "the new shell has not started yet; some input was dropped");
        }
        view.held.push(token);
        let typed = view.held.iter().flat_map(|held| &held.bytes);
        if typed.rev().take(2).eq([&b'd', &prefix]) {
            view.held.clear();
            self.on_command_key(id, Key::Char('d'), None);
        }
    }

    /// Takes in what was held, now that there is something to type into.
    pub fn release_held(&mut self, id: ClientId) {
        let Some(view) = self.view_mut(id) else { return };
        for held in std::mem::take(&mut view.held) {
            self.on_token(id, (held.kind)(&held.bytes));
        }
    }

    /// The session that a client types into.
    pub fn focused_of(&self, id: ClientId) -> Option<&MuxSession> {
        let tab = self.layout.tab(self.view(id)?.tab)?;
        self.session(&tab.focused)
    }
}

/// The size of a cell, as the model reports it to programs.
const CELL_PIXELS: (u16, u16) = (8, 16);

fn wants_wheel(modes: &Modes) -> bool {
    modes.mouse != abide_term::MouseMode::None
}

/// The first character of input, and how many bytes it takes; what is not UTF-8 is a character that means nothing.
fn first_char(text: &[u8]) -> (char, usize) {
    let longest = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(longest) {
        Ok(valid) => valid,
        Err(err) => std::str::from_utf8(&longest[..err.valid_up_to()]).unwrap_or_default(),
    };
    valid.chars().next().map_or(('\u{fffd}', 1), |ch| (ch, ch.len_utf8()))
}

enum LineEdit {
    Goes,
    Done,
    Cancelled,
}

/// Edits a line by one key.
fn edit(text: &mut String, key: Key) -> LineEdit {
    match key {
        Key::Enter => return LineEdit::Done,
        Key::Escape | Key::Ctrl('c' | 'g') => return LineEdit::Cancelled,
        Key::Backspace => _ = text.pop(),
        Key::Ctrl('u') => text.clear(),
        Key::Char(ch) if text.len() < MAX_LINE => text.push(ch),
        _ => {}
    }
    LineEdit::Goes
}
