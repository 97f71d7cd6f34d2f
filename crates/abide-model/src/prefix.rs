//! The key that begins every command to the multiplexer.

use std::fmt;
use std::str::FromStr;

/// The key, held as the byte that a terminal sends for it. Written as `C-b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixKey(u8);

impl PrefixKey {
    /// `C-b`, as in tmux.
    pub const DEFAULT: Self = Self(0x02);

    /// Every spelling, in words.
    pub const ALLOWED: &str =
        r"C-a to C-z except C-i, C-j and C-m (they are Tab and Enter), C-Space, C-\, C-], C-^ or C-_";

    /// The byte that a terminal sends when the key is pressed.
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// The character that is held together with Control.
    pub fn letter(self) -> char {
        match self.0 {
            0 => ' ',
            byte @ 1..=26 => char::from(byte | 0x60),
            byte => char::from(byte | 0x40),
        }
    }
}

/// Why a word is not a [`PrefixKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a prefix key; allowed: {}", PrefixKey::ALLOWED)]
pub struct BadPrefixKey;

impl FromStr for PrefixKey {
    type Err = BadPrefixKey;

    fn from_str(word: &str) -> Result<Self, BadPrefixKey> {
        let key = word.strip_prefix("C-").ok_or(BadPrefixKey)?;
        match key.as_bytes() {
            b"Space" => Ok(Self(0)),
            // A terminal sends the same byte for these and for Tab or Enter.
            b"i" | b"j" | b"m" => Err(BadPrefixKey),
            [letter @ (b'a'..=b'z' | b'\\' | b']' | b'^' | b'_')] => Ok(Self(letter & 0x1f)),
            _ => Err(BadPrefixKey),
        }
    }
}

crate::text::serde_as_text!(PrefixKey);

impl fmt::Display for PrefixKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.letter() {
            ' ' => f.write_str("C-Space"),
            letter => write!(f, "C-{letter}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_key_is_shown_as_it_was_written() {
        let letters = ('a'..='z').filter(|c| !"ijm".contains(*c)).map(String::from);
        for key in letters.chain(["Space", "\\", "]", "^", "_"].map(String::from)) {
            let word = format!("C-{key}");
            assert_eq!(word.parse::<PrefixKey>().unwrap().to_string(), word);
        }
        assert_eq!("C-b".parse(), Ok(PrefixKey::DEFAULT));
    }

    #[test]
    fn a_key_that_a_terminal_cannot_tell_apart_is_refused() {
        for word in ["", "b", "C-", "C-i", "C-j", "C-m", "C-[", "C-B", "M-b", "C-bb", "C-é"] {
            assert!(word.parse::<PrefixKey>().is_err(), "{word:?}");
        }
    }
}
