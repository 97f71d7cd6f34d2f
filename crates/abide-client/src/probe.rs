//! Finding out what the terminal can do, by asking it and taking its answers out of what is typed.
//!
//! The answers are not waited for: over a slow line they come late, and from some terminals never. Until then everything
//! works, with less.

use std::time::{Duration, Instant};

use abide_wire::protocol::Colors;

/// Asks for the flags of the kitty keyboard protocol and for modifyOtherKeys, which few answer, for the colours of text and background, and for
/// the device attributes, which all answer.
pub(super) const QUESTION: &[u8] = b"\x1b[?u\x1b[?4m\x1b]10;?\x1b\\\x1b]11;?\x1b\\\x1b[c";

/// The same for a terminal that might show some of these as text.
pub(super) const PLAIN_QUESTION: &[u8] = b"\x1b[c";

/// After this an answer is no answer any more, but something typed.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// How long the rest of what may be an answer is waited for.
const REST_WITHIN: Duration = Duration::from_millis(50);
/// No answer is longer.
const MAX_ANSWER: usize = 64;

/// Takes the answers out of the input.
#[derive(Debug)]
pub(super) struct TerminalProbe {
    until: Option<Instant>,
    held: Vec<u8>,
    held_since: Option<Instant>,
    reported: TerminalReport,
}

/// What the terminal has reported about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TerminalReport {
    /// It knows the kitty keyboard protocol.
    pub kitty: bool,
    /// It knows xterm's modifyOtherKeys.
    pub modify_other_keys: bool,
    fg: Option<[u8; 3]>,
    bg: Option<[u8; 3]>,
}

impl TerminalReport {
    pub fn colors(self) -> Option<Colors> {
        Some(Colors { fg: self.fg?, bg: self.bg? })
    }
}

enum ReplyMatch<'a> {
    Answer(TerminalReply<'a>, usize),
    Incomplete,
    Nothing,
}

enum TerminalReply<'a> {
    Kitty,
    ModifyOtherKeys,
    Foreground(&'a [u8]),
    Background(&'a [u8]),
    Device,
}

impl TerminalProbe {
    /// A probe whose question is about to be asked.
    pub fn new(now: Instant) -> Self {
        let until = Some(now + ANSWERS_WITHIN);
        Self { until, held: Vec::new(), held_since: None, reported: TerminalReport::default() }
    }

    /// What is known by now.
    pub fn reported(&self) -> TerminalReport {
        self.reported
    }

    /// Whether no answer is waited for any more, and nothing held back.
    pub fn is_over(&self) -> bool {
        self.until.is_none() && self.held.is_empty()
    }

    /// Takes in what the terminal sent, and gives what of it was typed.
    pub fn filter(&mut self, input: &[u8], now: Instant) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(input);
        let mut typed = Vec::with_capacity(bytes.len());
        let mut rest = bytes.as_slice();
        while let Some(&first) = rest.first() {
            match if self.until.is_some() { find(rest) } else { ReplyMatch::Nothing } {
                ReplyMatch::Answer(answer, length) => {
                    match answer {
                        TerminalReply::Kitty => self.reported.kitty = true,
                        TerminalReply::ModifyOtherKeys => self.reported.modify_other_keys = true,
                        TerminalReply::Foreground(color) => self.reported.fg = read_color(color),
                        TerminalReply::Background(color) => self.reported.bg = read_color(color),
                        // Everybody answers this one, and in the order of the questions.
                        TerminalReply::Device => self.until = None,
                    }
                    rest = &rest[length..];
                }
                ReplyMatch::Incomplete => break,
                ReplyMatch::Nothing => {
                    typed.push(first);
                    rest = &rest[1..];
                }
            }
        }
        self.held = rest.to_vec();
        self.held_since = (!self.held.is_empty()).then_some(now);
        typed
    }

    /// When something is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.held_since.map(|since| since + REST_WITHIN).into_iter().chain(self.until).min()
    }

    /// What is no answer after all, because the rest of it has not come.
    pub fn give_up(&mut self, now: Instant) -> Vec<u8> {
        if self.until.is_some_and(|until| until <= now) {
            self.until = None;
        }
        let late = self.held_since.is_some_and(|since| since + REST_WITHIN <= now);
        if !late && self.until.is_some() {
            return Vec::new();
        }
        self.held_since = None;
        std::mem::take(&mut self.held)
    }
}

/// The answer at the beginning of `bytes`.
fn find(bytes: &[u8]) -> ReplyMatch<'_> {
    const STARTS: [&[u8]; 4] = [b"\x1b[?", b"\x1b[>4;", b"\x1b]10;", b"\x1b]11;"];
    let Some(start) = STARTS.into_iter().find(|start| bytes.starts_with(start)) else {
        let begins = STARTS.iter().any(|start| start.starts_with(bytes));
        return if begins { ReplyMatch::Incomplete } else { ReplyMatch::Nothing };
    };
    let rest = &bytes[start.len()..];
    let ends = |byte: &u8| match start {
        b"\x1b[?" | b"\x1b[>4;" => !matches!(byte, b'0'..=b'9' | b';'),
        _ => matches!(byte, 0x07 | b'\\'),
    };
    let Some(end) = rest.iter().position(ends) else {
        return if bytes.len() < MAX_ANSWER { ReplyMatch::Incomplete } else { ReplyMatch::Nothing };
    };
    let answer = match (start, rest[end]) {
        (b"\x1b]10;", _) => TerminalReply::Foreground(&rest[..end]),
        (b"\x1b]11;", _) => TerminalReply::Background(&rest[..end]),
        (b"\x1b[>4;", b'm') => TerminalReply::ModifyOtherKeys,
        (b"\x1b[>4;", _) => return ReplyMatch::Nothing,
        (_, b'u') => TerminalReply::Kitty,
        (_, b'c') => TerminalReply::Device,
        _ => return ReplyMatch::Nothing,
    };
    ReplyMatch::Answer(answer, start.len() + end + 1)
}

/// A colour as terminals report it: `rgb:` and one to four hexadecimal digits for each channel.
fn read_color(text: &[u8]) -> Option<[u8; 3]> {
    let text = std::str::from_utf8(text).ok()?.trim_end_matches('\x1b');
    let mut channels = text.strip_prefix("rgb:")?.split('/').map(|digits| {
        let value = u16::from_str_radix(digits, 16).ok().filter(|_| digits.len() <= 4)?;
        let largest = (1 << (4 * digits.len())) - 1;
        u8::try_from(u32::from(value) * 255 / largest).ok()
    });
    let color = [channels.next()??, channels.next()??, channels.next()??];
    channels.next().is_none().then_some(color)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(chunks: &[&[u8]]) -> (Vec<u8>, TerminalReport) {
        let now = Instant::now();
        let mut probe = TerminalProbe::new(now);
        let mut typed: Vec<u8> = chunks.iter().flat_map(|chunk| probe.filter(chunk, now)).collect();
        typed.extend(probe.give_up(now + ANSWERS_WITHIN));
        (typed, probe.reported())
    }

    #[test]
    fn answers_are_taken_out_and_keys_typed_meanwhile_are_kept() {
        let stream = b"ab\x1b[?0uc\x1b[A\x1b[?62;22cd\x1b[?1u";
        let (whole, reported) = typed(&[stream]);
        assert!(reported.kitty);
        assert_eq!(whole, b"abc\x1b[Ad\x1b[?1u", "after the last answer everything is typed");
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(typed(&bytes).0, whole);
    }

    #[test]
    fn colours_are_read_however_a_terminal_spells_them() {
        let stream = b"a\x1b]10;rgb:ffff/8080/0000\x1b\\b\x1b]11;rgb:f/08/fff\x07c\x1b[?62c";
        let (whole, reported) = typed(&[stream]);
        assert_eq!(whole, b"abc");
        assert_eq!(reported.colors(), Some(Colors { fg: [255, 128, 0], bg: [255, 8, 255] }));
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(typed(&bytes), (whole, reported));
        for odd in ["", "rgb:", "rgb:f/f", "rgb:f/f/f/f", "rgb:00000000000/0/0", "rgb:x/0/0", "rgb://", "red"]
        {
            assert_eq!(read_color(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn a_terminal_that_answers_nothing_loses_no_key() {
        assert_eq!(typed(&[b"\x1b", b"[", b"?", b"25"]), (b"\x1b[?25".to_vec(), TerminalReport::default()));
        assert_eq!(typed(&[b"\x1b[?25h"]), (b"\x1b[?25h".to_vec(), TerminalReport::default()));
    }

    #[test]
    fn a_lone_escape_is_not_kept_for_long() {
        let now = Instant::now();
        let mut probe = TerminalProbe::new(now);
        assert_eq!(probe.filter(b"\x1b", now), b"");
        assert_eq!(probe.deadline(), Some(now + REST_WITHIN));
        assert_eq!(probe.give_up(now + REST_WITHIN), b"\x1b");
    }
}
