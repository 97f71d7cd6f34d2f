//! Typed bytes as keys, for what reacts to nothing else.

use crate::input::keys::Key;
use crate::input::tokens::{Token, Tokens};

/// The keys in a stream of typed bytes, however it is cut.
#[derive(Debug, Default)]
pub struct KeyStream {
    tokens: Tokens,
    /// The beginning of a character.
    partial: Vec<u8>,
}

impl KeyStream {
    /// Takes in what was read and gives the keys in it.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut bytes = [&std::mem::take(&mut self.partial), bytes].concat();
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            self.partial = bytes.split_off(error.valid_up_to());
        }
        let mut keys = Vec::new();
        self.tokens.feed(&bytes, |token| add_keys(token, &mut keys));
        keys
    }

    /// Whether something has begun that may go on: Escape alone, or the beginning of what a key sends.
    pub fn is_holding(&self) -> bool {
        self.tokens.is_holding()
    }

    /// Nothing more came: what was held is all of it.
    pub fn flush(&mut self) -> Vec<Key> {
        let mut keys = Vec::new();
        self.partial.clear();
        self.tokens.flush(|token| add_keys(token, &mut keys));
        keys
    }
}

fn add_keys(token: Token<'_>, keys: &mut Vec<Key>) {
    match token {
        Token::Text(text) => keys.extend(String::from_utf8_lossy(text).chars().map(Key::of_char)),
        Token::Sequence(sequence) => keys.push(Key::of_sequence(sequence)),
        Token::Pasted(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_gives_the_same_keys_however_it_is_cut() {
        let typed = "j\x1b[A\x1bOB\x1b[6;5~\x1b[F\r\x7fé日\x03\x1bx/".as_bytes();
        let expected = [
            Key::Char('j'),
            Key::Up,
            Key::Down,
            Key::PageDown,
            Key::End,
            Key::Enter,
            Key::Backspace,
            Key::Char('é'),
            Key::Char('日'),
            Key::Ctrl('c'),
            Key::Other,
            Key::Char('/'),
        ];
        assert_eq!(KeyStream::default().feed(typed), expected);
        let mut one_by_one = KeyStream::default();
        assert_eq!(typed.iter().flat_map(|byte| one_by_one.feed(&[*byte])).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn escape_is_a_key_once_nothing_follows_it() {
        let mut stream = KeyStream::default();
        assert_eq!(stream.feed(b"\x1b"), []);
        assert!(stream.is_holding());
        assert_eq!(stream.flush(), [Key::Escape]);
        assert!(!stream.is_holding());
        assert_eq!(stream.feed(b"\x1b\x1b"), [Key::Escape]);
        stream.feed(b"[1");
        assert_eq!(stream.flush(), [Key::Other], "half a sequence is no key of ours");
    }
}
