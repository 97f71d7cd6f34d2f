//! Operating system commands: titles, colours, links, the clipboard, and what programs say about themselves.

use crate::colors::{self, INDEX_END, SPECIAL_BASE};
use crate::outbox::TermEvent;
use crate::status::ProgramStatus;
use crate::text::{clean, number, unbase64};
use crate::titles::MAX_TITLE;
use crate::vt::Vt;

/// Longest address of a hyperlink, and longest id.
const MAX_URI: usize = 2 << 10;
const MAX_LINK_ID: usize = 256;
const MAX_NOTIFICATION: usize = 4 << 10;

impl Vt {
    /// `OSC`, complete, and whether BEL ended it.
    pub(crate) fn osc(&mut self, data: &[u8], bell: bool) {
        let at = data.iter().position(|b| *b == b';');
        let (code, rest) = match at {
            Some(at) => (&data[..at], &data[at + 1..]),
            None => (data, &[][..]),
        };
        let Some(code) = number::<u16>(code) else { return };
        match code {
            0 | 2 => self.set_title(rest),
            4 => self.indexed_colors(rest, 0, bell),
            5 => self.indexed_colors(rest, SPECIAL_BASE, bell),
            8 => self.set_link(rest),
            9 => self.notify_or_progress(rest),
            10..=19 => self.dynamic_colors(code, rest, bell),
            52 => self.clipboard(rest),
            104 => self.reset_colors(rest, 0),
            105 => self.reset_colors(rest, SPECIAL_BASE),
            110..=119 => {
                self.palette.reset_dynamic(code - 100);
                self.recolored();
            }
            99 => self.notify_99(rest),
            133 => self.command_mark(rest),
            777 => self.notify_777(rest),
            7501 => self.program_status(rest),
            _ => {}
        }
    }

    fn set_title(&mut self, text: &[u8]) {
        let title = clean(text, MAX_TITLE);
        if title != self.titles.window {
            self.titles.window.clone_from(&title);
            self.changes += 1;
            self.outbox.event(TermEvent::Title(title));
        }
    }

    pub(crate) fn pop_title(&mut self, which: u16) {
        if let Some(title) = self.titles.pop(which) {
            self.set_title(title.as_bytes());
        }
    }

    /// OSC 4 and 5: pairs of a number and a colour, or a question mark.
    fn indexed_colors(&mut self, pairs: &[u8], base: u16, bell: bool) {
        let mut parts = pairs.split(|b| *b == b';');
        while let (Some(index), Some(spec)) = (parts.next(), parts.next()) {
            let Some(n) = number::<u16>(index).and_then(|n| n.checked_add(base)).filter(|n| *n < INDEX_END)
            else {
                continue;
            };
            if spec == b"?" {
                let color = colors::format(self.palette.indexed(n, &self.options));
                let code = if base == 0 { 4 } else { 5 };
                self.osc_reply(&format!("{code};{};{color}", n - base), bell);
            } else if let Some(color) = colors::parse(spec) {
                self.palette.set_indexed(n, color);
                self.recolored();
            }
        }
    }

    fn reset_colors(&mut self, indices: &[u8], base: u16) {
        if indices.is_empty() {
            self.palette.reset_all(base > 0);
        }
        for index in indices.split(|b| *b == b';') {
            if let Some(n) = number::<u16>(index).and_then(|n| n.checked_add(base)) {
                self.palette.reset_indexed(n);
            }
        }
        self.recolored();
    }

    /// A colour looks otherwise now, wherever it is on the screen.
    fn recolored(&mut self) {
        self.changes += 1;
        self.grid.touch_all();
    }

    /// OSC 10 to 19: one colour each, and more of them for the numbers that follow.
    fn dynamic_colors(&mut self, first: u16, specs: &[u8], bell: bool) {
        for (n, spec) in (first..=19).zip(specs.split(|b| *b == b';')) {
            if spec == b"?" {
                let color = colors::format(self.palette.dynamic(n, &self.options));
                self.osc_reply(&format!("{n};{color}"), bell);
            } else if let Some(color) = colors::parse(spec) {
                self.palette.set_dynamic(n, color);
                self.recolored();
            }
        }
    }

    /// OSC 8: parameters, then the address; no address ends the link.
    fn set_link(&mut self, rest: &[u8]) {
        let Some(at) = rest.iter().position(|b| *b == b';') else { return };
        let (params, uri) = (&rest[..at], &rest[at + 1..]);
        if uri.is_empty() || uri.len() > MAX_URI {
            self.pen.set_link(0);
            return;
        }
        let id = params.split(|b| *b == b':').find_map(|pair| pair.strip_prefix(b"id=")).unwrap_or_default();
        let link = self.link_number(&clean(id, MAX_LINK_ID), &clean(uri, MAX_URI));
        self.pen.set_link(link);
    }

    /// OSC 9 is a notification, unless it is one of the numbered commands of another terminal.
    fn notify_or_progress(&mut self, rest: &[u8]) {
        let command = rest.split(|b| *b == b';').next().unwrap_or_default();
        let numbered = number::<u16>(command).is_some() && rest.len() > command.len();
        match command {
            b"4" if numbered => self.progress(&rest[2..]),
            _ if numbered => {}
            _ => {
                let text = clean(rest, MAX_NOTIFICATION);
                // With the controls gone it must not have become one of those commands after all.
                let guard = if text.starts_with(|c: char| c.is_ascii_digit()) { " " } else { "" };
                self.notify(format!("9;{guard}{text}"), text);
            }
        }
    }

    /// OSC 9;4: what a taskbar shows, as a state and a percentage. Nothing but numbers is passed on.
    fn progress(&mut self, rest: &[u8]) {
        let mut parts = rest.split(|b| *b == b';');
        let state = parts.next().and_then(number::<u8>).filter(|state| *state <= 4);
        let percent = parts.next().map_or(Some(0), number::<u8>).filter(|percent| *percent <= 100);
        if let (Some(state), Some(percent)) = (state, percent) {
            self.outbox.event(TermEvent::Progress(format!("9;4;{state};{percent}")));
        }
    }

    /// OSC 133, of which the beginning and the end of a command are passed on. Where a prompt begins is a place on the
    /// screen, and a renderer puts that elsewhere.
    fn command_mark(&mut self, rest: &[u8]) {
        let mut parts = rest.split(|b| *b == b';');
        match (parts.next(), parts.next().and_then(number::<u8>)) {
            (Some(b"C"), _) => self.outbox.event(TermEvent::Progress("133;C".to_owned())),
            (Some(b"D"), Some(code)) => self.outbox.event(TermEvent::Progress(format!("133;D;{code}"))),
            (Some(b"D"), None) => self.outbox.event(TermEvent::Progress("133;D".to_owned())),
            _ => {}
        }
    }

    /// OSC 99: `key=value` pairs, then the text. Only what says how the text is to be read is passed on: nothing that
    /// makes a terminal answer, and nothing that it would start or close.
    fn notify_99(&mut self, rest: &[u8]) {
        let Some(at) = rest.iter().position(|b| *b == b';') else { return };
        let (meta, payload) = (clean(&rest[..at], MAX_LINK_ID), clean(&rest[at + 1..], MAX_NOTIFICATION));
        let pairs: Vec<(&str, &str)> = meta.split(':').filter_map(|pair| pair.split_once('=')).collect();
        let value = |wanted: &str| pairs.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
        if !matches!(value("p"), None | Some("title" | "body")) {
            return;
        }
        let plain = |value: &str| value.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_+.".contains(&b));
        let passed =
            pairs.iter().filter(|(key, value)| ["i", "d", "p", "e", "u", "o"].contains(key) && plain(value));
        let passed: Vec<String> = passed.map(|(key, value)| format!("{key}={value}")).collect();
        let is_encoded = value("e") == Some("1");
        let text = match is_encoded.then(|| unbase64(payload.as_bytes())) {
            Some(Some(decoded)) => clean(&decoded, MAX_NOTIFICATION),
            Some(None) => return,
            None => payload.clone(),
        };
        self.notify(format!("99;{};{payload}", passed.join(":")), text);
    }

    fn notify_777(&mut self, rest: &[u8]) {
        if let Some(text) = rest.strip_prefix(b"notify;") {
            // Title and body.
            let text = clean(text, MAX_NOTIFICATION);
            let parts: Vec<&str> = text.splitn(2, ';').filter(|part| !part.is_empty()).collect();
            self.notify(format!("777;notify;{text}"), parts.join(": "));
        }
    }

    fn notify(&mut self, sequence: String, text: String) {
        if !text.is_empty() {
            self.outbox.event(TermEvent::Notify { text, sequence });
        }
    }

    /// OSC 52: which clipboards, then their contents in base64. The question mark that asks for them is not answered.
    fn clipboard(&mut self, rest: &[u8]) {
        let Some(at) = rest.iter().position(|b| *b == b';') else { return };
        let selection: String =
            rest[..at].iter().map(|b| char::from(*b)).filter(char::is_ascii_alphanumeric).take(16).collect();
        if let Some(data) = unbase64(&rest[at + 1..]) {
            self.outbox.event(TermEvent::Clipboard { selection, data });
        }
    }

    /// OSC 7501. The query is answered in the order of the stream, so that it comes before the answer to a DA1 sent
    /// after it: that is how a program finds out that the terminal speaks the protocol.
    fn program_status(&mut self, rest: &[u8]) {
        if rest == b"?" {
            self.outbox.reply(b"\x1b]7501;?\x1b\\");
        } else if let Some(status) = ProgramStatus::parse(rest) {
            self.status = Some(status.clone());
            self.changes += 1;
            self.outbox.event(TermEvent::Status(status));
        }
    }
}
