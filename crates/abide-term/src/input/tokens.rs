//! What a client's terminal sent, cut at escape sequences.
//!
//! Nothing is interpreted here and nothing is lost: the tokens of a stream, put together, are the stream. A sequence
//! that has not arrived whole is held back; when nothing more comes, [`Tokens::flush`] gives it up as it is, because
//! a lone Escape is a key.

/// The longest sequence that is waited for. Longer ones are nothing that a keyboard or a mouse sends.
const MAX_SEQUENCE: usize = 128;
/// Answers of a terminal (colours, clipboard) may be longer; they are no keys either, but must stay in one piece.
const MAX_STRING: usize = 4096;

pub const PASTE_BEGIN: &[u8] = b"\x1b[200~";
pub const PASTE_END: &[u8] = b"\x1b[201~";
pub const FOCUS_IN: &[u8] = b"\x1b[I";
pub const FOCUS_OUT: &[u8] = b"\x1b[O";

/// A piece of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// Text and control characters.
    Text(&'a [u8]),
    /// One whole escape sequence.
    Sequence(&'a [u8]),
    /// Text between the marks of a bracketed paste; the marks themselves are sequences.
    Pasted(&'a [u8]),
}

/// The tokens of one stream.
#[derive(Debug, Default)]
pub struct Tokens {
    held: Vec<u8>,
    pasting: bool,
}

enum Scan {
    Whole(usize),
    Incomplete,
    /// Not a sequence after all: this much is ordinary text.
    Text(usize),
}

impl Tokens {
    /// Whether part of a sequence waits for the rest.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// How many bytes of it have come.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes in what arrived.
    pub fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(Token<'_>)) {
        if self.held.is_empty() {
            let rest = self.cut(bytes, &mut sink);
            self.held.extend_from_slice(&bytes[rest..]);
        } else {
            let mut all = std::mem::take(&mut self.held);
            all.extend_from_slice(bytes);
            let rest = self.cut(&all, &mut sink);
            all.drain(..rest);
            self.held = all;
        }
    }

    /// Gives up waiting for the rest of a sequence.
    pub fn flush(&mut self, mut sink: impl FnMut(Token<'_>)) {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return;
        }
        sink(if self.pasting { Token::Pasted(&held) } else { Token::Sequence(&held) });
    }

    /// Cuts `bytes` into tokens and gives how much of them was used.
    fn cut(&mut self, bytes: &[u8], sink: &mut impl FnMut(Token<'_>)) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let plain = rest.iter().position(|byte| *byte == 0x1b).unwrap_or(rest.len());
            if plain > 0 {
                sink(self.text(&rest[..plain]));
                at += plain;
                continue;
            }
            match if self.pasting { scan_paste(rest) } else { scan(rest) } {
                Scan::Whole(length) => {
                    let sequence = &rest[..length];
                    self.pasting = sequence == PASTE_BEGIN || (self.pasting && sequence != PASTE_END);
                    sink(Token::Sequence(sequence));
                    at += length;
                }
                Scan::Text(length) => {
                    sink(self.text(&rest[..length]));
                    at += length;
                }
                Scan::Incomplete => break,
            }
        }
        at
    }

    fn text<'a>(&self, bytes: &'a [u8]) -> Token<'a> {
        if self.pasting { Token::Pasted(bytes) } else { Token::Text(bytes) }
    }
}

/// Inside a paste nothing but its end is a sequence.
fn scan_paste(bytes: &[u8]) -> Scan {
    if bytes.starts_with(PASTE_END) {
        Scan::Whole(PASTE_END.len())
    } else if PASTE_END.starts_with(bytes) {
        Scan::Incomplete
    } else {
        Scan::Text(1)
    }
}

/// The sequence at the start of `bytes`, which begin with an Escape.
fn scan(bytes: &[u8]) -> Scan {
    let Some(&second) = bytes.get(1) else { return Scan::Incomplete };
    match second {
        b'[' => scan_csi(bytes),
        b'O' => {
            if bytes.len() < 3 {
                Scan::Incomplete
            } else {
                Scan::Whole(3)
            }
        }
        b']' | b'P' | b'_' | b'^' | b'X' => scan_string(bytes),
        // Escape, and after it another sequence or key.
        0x1b => Scan::Whole(1),
        _ => {
            let length = 1 + utf8_length(second);
            if bytes.len() < length { Scan::Incomplete } else { Scan::Whole(length) }
        }
    }
}

fn scan_csi(bytes: &[u8]) -> Scan {
    for (at, &byte) in bytes.iter().enumerate().skip(2) {
        match byte {
            // The old mouse reports, whose three values follow the final byte.
            b'M' if at == 2 => return if bytes.len() < 6 { Scan::Incomplete } else { Scan::Whole(6) },
            0x40..=0x7e => return Scan::Whole(at + 1),
            0x20..=0x3f if at < MAX_SEQUENCE => {}
            _ => return Scan::Text(at),
        }
    }
    Scan::Incomplete
}

fn scan_string(bytes: &[u8]) -> Scan {
    for (at, &byte) in bytes.iter().enumerate().skip(2) {
        match byte {
            0x07 => return Scan::Whole(at + 1),
            b'\\' if bytes[at - 1] == 0x1b => return Scan::Whole(at + 1),
            // Alt and a bracket, and then something typed: a terminal's answer holds no such characters.
            b'\r' | b'\n' | 0x03 => return Scan::Text(2),
            _ if at >= MAX_STRING => return Scan::Text(at),
            _ => {}
        }
    }
    Scan::Incomplete
}

fn utf8_length(first: u8) -> usize {
    match first {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(chunks: &[&[u8]]) -> Vec<(char, Vec<u8>)> {
        let mut found: Vec<(char, Vec<u8>)> = Vec::new();
        let mut tokens = Tokens::default();
        let mut sink = |token: Token<'_>| {
            let (kind, bytes) = match token {
                Token::Text(bytes) => ('t', bytes),
                Token::Sequence(bytes) => ('s', bytes),
                Token::Pasted(bytes) => ('p', bytes),
            };
            match found.last_mut() {
                Some((last, text)) if *last == kind && kind != 's' => text.extend_from_slice(bytes),
                _ => found.push((kind, bytes.to_vec())),
            }
        };
        for chunk in chunks {
            tokens.feed(chunk, &mut sink);
        }
        tokens.flush(&mut sink);
        found
    }

    #[test]
    fn a_sequence_is_one_token_however_it_arrives() {
        let stream = b"ab\x1b[98;5u\x1bOA\x1b[<64;10;5Mx\x1b\x1b[A";
        let whole = tokens(&[stream]);
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(tokens(&bytes), whole);
        let sequences: Vec<_> =
            whole.iter().filter(|(kind, _)| *kind == 's').map(|(_, s)| s.as_slice()).collect();
        assert_eq!(sequences, [&b"\x1b[98;5u"[..], b"\x1bOA", b"\x1b[<64;10;5M", b"\x1b", b"\x1b[A"]);
    }

    #[test]
    fn a_lone_escape_is_given_up_when_nothing_follows() {
        assert_eq!(tokens(&[b"\x1b"]), [('s', b"\x1b".to_vec())]);
    }

    #[test]
    fn a_paste_may_hold_anything_but_its_end() {
        let found = tokens(&[b"\x1b[200~a\x02\x1b[A\x1b[20", b"1~b"]);
        let expected: [(char, &[u8]); 4] =
            [('s', PASTE_BEGIN), ('p', b"a\x02\x1b[A"), ('s', PASTE_END), ('t', b"b")];
        assert_eq!(found, expected.map(|(kind, bytes)| (kind, bytes.to_vec())));
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_or_made_up_in_any_chunking(
            parts in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..8),
                Just(b"\x1b[".to_vec()), Just(PASTE_BEGIN.to_vec()), Just(PASTE_END.to_vec()),
                Just(b"\x1b]11;rgb:0/0/0\x07".to_vec()), Just(b"\x1b".to_vec()),
            ], 0..20),
            size in 1usize..9,
        ) {
            let stream = parts.concat();
            let chunks: Vec<&[u8]> = stream.chunks(size).collect();
            let joined: Vec<u8> = tokens(&chunks).into_iter().flat_map(|(_, bytes)| bytes).collect();
            prop_assert_eq!(joined, stream);
        }
    }
}
