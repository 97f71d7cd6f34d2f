//! What was typed, as keys.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialogKey {
    Char(char),
    Enter,
    Esc,
    /// The key that takes the last character back.
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C or Ctrl-D: whoever pressed it wants out.
    Quit,
}

/// Cuts a stream of bytes into keys, however it arrives.
#[derive(Debug, Default)]
pub struct KeyDecoder {
    pending: Vec<u8>,
}

/// Longer than any key: what has not ended by then is no key.
const LONGEST: usize = 32;

impl KeyDecoder {
    /// Takes in what was read and gives the keys in it.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<DialogKey> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some(used) = first(&self.pending, &mut keys) {
            self.pending.drain(..used);
        }
        if self.pending.len() > LONGEST {
            self.pending.clear();
        }
        keys
    }

    /// Whether something has begun that may go on: Escape alone, or the beginning of what a key sends.
    pub fn waits(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Nothing more came: what was waiting is all of it.
    pub fn give_up(&mut self) -> Option<DialogKey> {
        let pending = std::mem::take(&mut self.pending);
        (pending == b"\x1b").then_some(DialogKey::Esc)
    }
}

/// Adds the first key of `bytes` to `keys` and gives how many bytes it took; `None` if it is not all there.
fn first(bytes: &[u8], keys: &mut Vec<DialogKey>) -> Option<usize> {
    let plain = match *bytes.first()? {
        0x1b => return escaped(bytes, keys),
        b'\r' | b'\n' => Some(DialogKey::Enter),
        0x7f | 0x08 => Some(DialogKey::Backspace),
        0x03 | 0x04 => Some(DialogKey::Quit),
        0x0e => Some(DialogKey::Down),
        0x10 => Some(DialogKey::Up),
        0..0x20 => None,
        _ => return character(bytes, keys),
    };
    keys.extend(plain);
    Some(1)
}

fn character(bytes: &[u8], keys: &mut Vec<DialogKey>) -> Option<usize> {
    let length = match bytes[0] {
        0..0x80 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
        _ => return Some(1),
    };
    let text = std::str::from_utf8(bytes.get(..length)?);
    let Some(ch) = text.ok().and_then(|text| text.chars().next()) else { return Some(1) };
    keys.push(DialogKey::Char(ch));
    Some(length)
}

fn escaped(bytes: &[u8], keys: &mut Vec<DialogKey>) -> Option<usize> {
    let (body, last) = match *bytes.get(1)? {
        b'[' => {
            let end = 2 + bytes[2..].iter().position(|byte| (0x40..0x7f).contains(byte))?;
            (&bytes[2..end], bytes[end])
        }
        b'O' => (&bytes[2..2], *bytes.get(2)?),
        0x1b => {
            keys.push(DialogKey::Esc);
            return Some(1);
        }
        // With Alt: not a key of ours.
        _ => return Some(2),
    };
    // A second number says which modifiers were held, which change nothing here.
    let number = body.split(|byte| *byte == b';').next().unwrap_or_default();
    keys.extend(match (last, number) {
        (b'A', _) => Some(DialogKey::Up),
        (b'B', _) => Some(DialogKey::Down),
        (b'H', _) | (b'~', b"1" | b"7") => Some(DialogKey::Home),
        (b'F', _) | (b'~', b"4" | b"8") => Some(DialogKey::End),
        (b'~', b"5") => Some(DialogKey::PageUp),
        (b'~', b"6") => Some(DialogKey::PageDown),
        (b'M', _) if bytes[1] == b'O' => Some(DialogKey::Enter),
        _ => None,
    });
    Some(if bytes[1] == b'O' { 3 } else { 3 + body.len() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_keys_send_is_recognised() {
        let typed = "j\x1b[A\x1bOB\x1b[5~\x1b[6;5~\x1b[1~\x1b[F\r\x7fé日\x03\x1bx\x1b[15~/";
        use DialogKey::{Backspace, Char, Down, End, Enter, Home, PageDown, PageUp, Quit, Up};
        let expected = [
            Char('j'),
            Up,
            Down,
            PageUp,
            PageDown,
            Home,
            End,
            Enter,
            Backspace,
            Char('é'),
            Char('日'),
            Quit,
            Char('/'),
        ];
        assert_eq!(KeyDecoder::default().push(typed.as_bytes()), expected);
        let mut one_by_one = KeyDecoder::default();
        let keys: Vec<_> = typed.bytes().flat_map(|byte| one_by_one.push(&[byte])).collect();
        assert_eq!(keys, expected);
    }

    #[test]
    fn escape_is_a_key_once_nothing_follows_it() {
        let mut decoder = KeyDecoder::default();
        assert_eq!(decoder.push(b"\x1b"), []);
        assert!(decoder.waits());
        assert_eq!(decoder.give_up(), Some(DialogKey::Esc));
        assert!(!decoder.waits());
        assert_eq!(decoder.push(b"\x1b\x1b"), [DialogKey::Esc]);
        decoder.push(b"[1");
        assert_eq!(decoder.give_up(), None, "half a sequence is no key");
    }

    proptest! {
        #[test]
        fn nothing_typed_breaks_the_decoder(bytes: Vec<u8>) {
            let mut decoder = KeyDecoder::default();
            decoder.push(&bytes);
            decoder.give_up();
            prop_assert_eq!(decoder.push(b"x"), [DialogKey::Char('x')]);
        }
    }
}
