//! The byte stream of a program cut into text, controls and control sequences.
//!
//! This owns the state in the middle of a sequence or a character, so that the stream may be cut anywhere. It does not
//! know what any sequence means. It is our own rather than the `vte` crate for three reasons: its state can be
//! checkpointed, every string it collects is bounded, and runs of text and parameters are taken whole instead of byte
//! by byte.

use crate::parse::params::Params;
use crate::parse::utf8::{Decoded, decode};
use crate::vt::Vt;

/// A string sequence other than a clipboard write longer than this is dropped.
const MAX_STRING: usize = 16 << 10;
/// A clipboard write longer than this is dropped.
pub(crate) const MAX_CLIPBOARD: usize = (1 << 20) + 64;

const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const ESC: u8 = 0x1b;

/// A control sequence, or the header of a device control string.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Sequence {
    pub(crate) params: Params,
    /// `<`, `=`, `>` or `?` right after the introducer, else 0.
    pub(crate) marker: u8,
    /// The byte before the final one, if it is in 0x20..=0x2f, else 0.
    pub(crate) intermediate: u8,
    /// The byte that says what the sequence does.
    pub(crate) last: u8,
}

impl Sequence {
    fn clear(&mut self) {
        self.params.clear();
        self.marker = 0;
        self.intermediate = 0;
        self.last = 0;
    }
}

/// Where in a sequence the stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub(crate) enum ParserState {
    #[default]
    Ground,
    Escape,
    /// `ESC` and an intermediate.
    EscapeMore,
    /// In the parameters of a `CSI`.
    Csi,
    /// In a `CSI` that cannot be understood: skip to its end.
    CsiIgnore,
    /// In the parameters of a `DCS`.
    Dcs,
    /// In a string that is collected.
    Osc,
    DcsData,
    /// In a string that is thrown away.
    Ignore,
    /// `ESC` inside one of those three: the end if a backslash follows.
    OscEscape,
    DcsEscape,
    IgnoreEscape,
}

/// The state of the stream between two calls of [`Parser::advance`].
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Parser {
    pub(crate) state: ParserState,
    pub(crate) sequence: Sequence,
    /// What a string sequence has said so far. Written down apart, as it may be long.
    #[serde(skip)]
    pub(crate) string: Vec<u8>,
    /// The string outgrew its bound and will be dropped at its end.
    pub(crate) overflowed: bool,
    /// The start of a character that the last chunk ended in, and its length.
    pub(crate) partial: [u8; 4],
    pub(crate) partial_len: u8,
}

impl Parser {
    /// Takes in the next bytes of the stream.
    pub(crate) fn advance(&mut self, bytes: &[u8], vt: &mut Vt) {
        let mut at = if self.partial_len == 0 { 0 } else { self.finish_partial(bytes, vt) };
        while at < bytes.len() {
            let rest = &bytes[at..];
            at += match self.state {
                ParserState::Ground => self.ground(rest, vt),
                ParserState::Csi | ParserState::Dcs => self.parameters(rest, vt),
                ParserState::Escape => self.escape(rest[0], vt),
                ParserState::EscapeMore => self.escape_more(rest[0], vt),
                ParserState::CsiIgnore => self.csi_ignore(rest, vt),
                ParserState::Osc | ParserState::DcsData | ParserState::Ignore => self.string(rest, vt),
                ParserState::OscEscape | ParserState::DcsEscape | ParserState::IgnoreEscape => {
                    self.string_escape(rest[0], vt)
                }
            };
        }
    }

    fn ground(&mut self, bytes: &[u8], vt: &mut Vt) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            if matches!(byte, 0x20..=0x7e) {
                let run = ascii_run(&bytes[at..]);
                vt.print_text(&bytes[at..at + run]);
                at += run;
            } else if byte == ESC {
                at += 1;
                if bytes.get(at) == Some(&b'[') {
                    self.begin(ParserState::Csi);
                    return at + 1;
                }
                self.state = ParserState::Escape;
                return at;
            } else if byte < 0x80 {
                vt.control(byte);
                at += 1;
            } else {
                match decode(&bytes[at..]) {
                    Decoded::Char(c, len) => {
                        print_char(c, vt);
                        at += len;
                    }
                    Decoded::Invalid(len) => {
                        at += len;
                        vt.print_char(char::REPLACEMENT_CHARACTER);
                    }
                    Decoded::Incomplete => {
                        let rest = &bytes[at..];
                        self.partial[..rest.len()].copy_from_slice(rest);
                        self.partial_len = rest.len() as u8;
                        return bytes.len();
                    }
                }
            }
        }
        at
    }

    /// Completes the character that the last chunk ended in; returns how many of `bytes` belonged to it.
    fn finish_partial(&mut self, bytes: &[u8], vt: &mut Vt) -> usize {
        let had = usize::from(self.partial_len);
        let more = bytes.len().min(4 - had);
        self.partial[had..had + more].copy_from_slice(&bytes[..more]);
        let (c, len) = match decode(&self.partial[..had + more]) {
            Decoded::Char(c, len) => (c, len),
            Decoded::Invalid(len) => (char::REPLACEMENT_CHARACTER, len),
            Decoded::Incomplete => {
                self.partial_len = (had + more) as u8;
                return more;
            }
        };
        self.partial_len = 0;
        print_char(c, vt);
        len.saturating_sub(had)
    }

    fn begin(&mut self, state: ParserState) {
        self.sequence.clear();
        self.state = state;
    }

    fn begin_string(&mut self, state: ParserState) {
        self.string.clear();
        self.overflowed = false;
        self.state = state;
    }

    fn escape(&mut self, byte: u8, vt: &mut Vt) -> usize {
        self.state = ParserState::Ground;
        match byte {
            b'[' => self.begin(ParserState::Csi),
            b']' => self.begin_string(ParserState::Osc),
            b'P' => self.begin(ParserState::Dcs),
            b'X' | b'^' | b'_' | b'k' => self.begin_string(ParserState::Ignore),
            0x20..=0x2f => {
                self.sequence.intermediate = byte;
                self.state = ParserState::EscapeMore;
            }
            0x30..=0x7e => vt.escape(0, byte),
            CAN | SUB => {}
            ESC => self.state = ParserState::Escape,
            0x00..=0x1f => {
                self.state = ParserState::Escape;
                vt.control(byte);
            }
            0x7f => self.state = ParserState::Escape,
            0x80.. => return 0,
        }
        1
    }

    fn escape_more(&mut self, byte: u8, vt: &mut Vt) -> usize {
        match byte {
            // A second intermediate: nothing that we know has one, so the sequence must not match anything.
            0x20..=0x2f => self.sequence.intermediate = 0xff,
            0x30..=0x7e => {
                self.state = ParserState::Ground;
                vt.escape(self.sequence.intermediate, byte);
            }
            CAN | SUB => self.state = ParserState::Ground,
            ESC => self.state = ParserState::Escape,
            0x00..=0x1f => vt.control(byte),
            0x7f => {}
            0x80.. => {
                self.state = ParserState::Ground;
                return 0;
            }
        }
        1
    }

    fn parameters(&mut self, bytes: &[u8], vt: &mut Vt) -> usize {
        for (at, &byte) in bytes.iter().enumerate() {
            match byte {
                b'0'..=b'9' if self.sequence.intermediate == 0 => self.sequence.params.digit(byte - b'0'),
                b';' | b':' if self.sequence.intermediate == 0 => self.sequence.params.separate(byte == b':'),
                0x40..=0x7e => {
                    self.end_parameters(byte, vt);
                    return at + 1;
                }
                b'<'..=b'?' if self.at_first_byte() => self.sequence.marker = byte,
                0x20..=0x2f if self.sequence.intermediate == 0 => self.sequence.intermediate = byte,
                0x20..=0x3f => {
                    let in_csi = self.state == ParserState::Csi;
                    self.state = if in_csi { ParserState::CsiIgnore } else { ParserState::Ignore };
                    return at + 1;
                }
                CAN | SUB => {
                    self.state = ParserState::Ground;
                    return at + 1;
                }
                ESC => {
                    self.state = ParserState::Escape;
                    return at + 1;
                }
                0x00..=0x1f if self.state == ParserState::Csi => vt.control(byte),
                0x00..=0x1f | 0x7f => {}
                0x80.. => {
                    self.state = ParserState::Ground;
                    return at;
                }
            }
        }
        bytes.len()
    }

    fn at_first_byte(&self) -> bool {
        self.sequence.marker == 0
            && self.sequence.intermediate == 0
            && self.sequence.params.values().is_empty()
    }

    fn end_parameters(&mut self, byte: u8, vt: &mut Vt) {
        self.sequence.last = byte;
        if self.state == ParserState::Csi {
            self.state = ParserState::Ground;
            vt.csi(&self.sequence);
        } else if matches!((self.sequence.intermediate, byte), (b'$' | b'+', b'q')) {
            self.begin_string(ParserState::DcsData);
        } else {
            self.begin_string(ParserState::Ignore);
        }
    }

    fn csi_ignore(&mut self, bytes: &[u8], vt: &mut Vt) -> usize {
        for (at, &byte) in bytes.iter().enumerate() {
            self.state = match byte {
                0x40..=0x7e | CAN | SUB => ParserState::Ground,
                ESC => ParserState::Escape,
                0x80.. => {
                    self.state = ParserState::Ground;
                    return at;
                }
                0x00..=0x1f => {
                    vt.control(byte);
                    continue;
                }
                _ => continue,
            };
            return at + 1;
        }
        bytes.len()
    }

    fn string(&mut self, bytes: &[u8], vt: &mut Vt) -> usize {
        let osc = self.state == ParserState::Osc;
        let ends = |b: &u8| matches!(*b, ESC | CAN | SUB) || osc && *b == BEL;
        let len = bytes.iter().position(ends).unwrap_or(bytes.len());
        if self.state != ParserState::Ignore {
            self.collect(&bytes[..len]);
        }
        let Some(&end) = bytes.get(len) else { return len };
        match (end, self.state) {
            (ESC, ParserState::Osc) => self.state = ParserState::OscEscape,
            (ESC, ParserState::DcsData) => self.state = ParserState::DcsEscape,
            (ESC, _) => self.state = ParserState::IgnoreEscape,
            (CAN | SUB, _) => self.state = ParserState::Ground,
            _ => self.end_string(end == BEL, vt),
        }
        len + 1
    }

    fn string_escape(&mut self, byte: u8, vt: &mut Vt) -> usize {
        if byte != b'\\' {
            // Any other escape sequence cancels the string: a string without end must not swallow what follows it.
            self.state = ParserState::Escape;
            return 0;
        }
        self.end_string(false, vt);
        1
    }

    fn end_string(&mut self, bell: bool, vt: &mut Vt) {
        match self.state {
            ParserState::Osc | ParserState::OscEscape if !self.overflowed => vt.osc(&self.string, bell),
            ParserState::DcsData | ParserState::DcsEscape if !self.overflowed => {
                vt.dcs(&self.sequence, &self.string);
            }
            _ => {}
        }
        self.state = ParserState::Ground;
        self.shrink();
    }

    fn collect(&mut self, bytes: &[u8]) {
        if self.overflowed {
            return;
        }
        self.string.extend_from_slice(&bytes[..bytes.len().min(MAX_CLIPBOARD + 1)]);
        let max = if self.string.starts_with(b"52;") { MAX_CLIPBOARD } else { MAX_STRING };
        if self.string.len() > max {
            self.overflowed = true;
            self.string = Vec::new();
        }
    }

    /// Gives back the memory of a large string: a session that once copied a megabyte must not hold it for ever.
    fn shrink(&mut self) {
        self.string.clear();
        self.string.shrink_to(MAX_STRING);
    }
}

fn print_char(c: char, vt: &mut Vt) {
    // C1 controls written as UTF-8 are dropped: no program sends them on purpose, and text that holds one by
    // accident must not be able to start a sequence.
    if c >= '\u{a0}' {
        vt.print_char(c);
    }
}

/// How many bytes at the start are printable ASCII.
#[inline]
fn ascii_run(bytes: &[u8]) -> usize {
    const LOW: u64 = 0x2020_2020_2020_2020;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        // A byte below 0x20 borrows into its high bit, 0x7f carries into it, and 0x80 and up have it set.
        let bad = (word.wrapping_sub(LOW) | word.wrapping_add(ONES) | word) & HIGH;
        if bad != 0 {
            // The lowest bad byte is exact: a borrow or carry only disturbs the bytes above it.
            return at + (bad.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = &bytes[at..];
    at + rest.iter().position(|b| !matches!(b, 0x20..=0x7e)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Options, Size};

    #[test]
    fn the_ascii_run_ends_at_the_first_byte_that_is_not_printable() {
        for bad in (0..0x20).chain(0x7f..=0xff) {
            for len in 0..20 {
                let mut bytes = vec![b'~'; 24];
                bytes[len] = bad;
                bytes[21] = b' ';
                assert_eq!(ascii_run(&bytes), len, "{bad:x}");
            }
        }
        assert_eq!(ascii_run(b" ~0123456789abcdef~ "), 20);
    }

    #[test]
    fn a_string_without_end_costs_no_memory() {
        let mut vt = Vt::new(Size { cols: 80, rows: 24 }, Options::default());
        for start in [&b"\x1b]2;"[..], b"\x1b]52;c;", b"\x1bPq", b"\x1bP$q", b"\x1b_G", b"\x1bX"] {
            let mut parser = Parser::default();
            parser.advance(start, &mut vt);
            for _ in 0..1000 {
                parser.advance(&[b'x'; 10_000], &mut vt);
            }
            assert!(parser.string.capacity() < 4 << 20, "{}", parser.string.capacity());
        }
    }
}
