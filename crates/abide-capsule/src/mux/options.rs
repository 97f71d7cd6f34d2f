//! What the launcher decides for a mux, as it travels through the keeper.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The settings of a mux. A field that the launcher left out has its default; one of a newer version is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MuxOptions {
    /// What the status bar calls the instance; the unit directory's name where empty.
    pub name: String,
    /// Lines kept after they left the screen.
    pub scrollback: usize,
    /// The size of each session's journal; 0 keeps none on disk.
    pub journal_bytes: u64,
    /// The key that begins a command.
    pub prefix: Prefix,
    /// Where the status bar is.
    pub status_bar: StatusBar,
    /// Whether programs may write to the clients' clipboards.
    pub clipboard: bool,
    /// Whether links of every scheme reach the clients, and not only those of the harmless ones.
    pub links: bool,
    /// Whether notifications and titles reach the clients.
    pub notifications: bool,
}

impl Default for MuxOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            scrollback: 10_000,
            journal_bytes: 8 << 20,
            prefix: Prefix::default(),
            status_bar: StatusBar::default(),
            clipboard: false,
            links: false,
            notifications: true,
        }
    }
}

/// Where the status bar is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusBar {
    /// In the last row.
    #[default]
    Bottom,
    /// In the first row.
    Top,
    /// Not at all.
    Off,
}

/// The key that begins a command, held as the byte that a terminal sends for it. Written as `C-b`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix(u8);

impl Prefix {
    /// The byte that a terminal sends for the key.
    pub fn byte(self) -> u8 {
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

impl Default for Prefix {
    fn default() -> Self {
        Self(0x02)
    }
}

/// Why a word is no prefix key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a prefix key; write it as `C-b`", .0.escape_default())]
pub struct BadPrefix(String);

impl TryFrom<String> for Prefix {
    type Error = BadPrefix;

    fn try_from(word: String) -> Result<Self, BadPrefix> {
        match word.strip_prefix("C-").map(str::as_bytes) {
            Some(b"Space") => Ok(Self(0)),
            // A terminal sends the same bytes for these and for Tab and Enter.
            Some([b'i' | b'j' | b'm']) => Err(BadPrefix(word)),
            Some([letter @ (b'a'..=b'z' | b'\\' | b']' | b'^' | b'_')]) => Ok(Self(letter & 0x1f)),
            _ => Err(BadPrefix(word)),
        }
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.to_string()
    }
}

impl fmt::Display for Prefix {
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
    fn what_is_left_out_has_its_default_and_what_is_newer_is_ignored() {
        let options: MuxOptions =
            serde_json::from_str(r#"{"prefix": "C-a", "status_bar": "top", "sparkles": true}"#).unwrap();
        let expected = MuxOptions {
            prefix: Prefix::try_from("C-a".to_owned()).unwrap(),
            status_bar: StatusBar::Top,
            ..MuxOptions::default()
        };
        assert_eq!(options, expected);
    }

    #[test]
    fn a_prefix_is_shown_as_it_was_written() {
        for word in ["C-a", "C-b", "C-z", "C-Space", "C-\\", "C-]", "C-^", "C-_"] {
            assert_eq!(Prefix::try_from(word.to_owned()).unwrap().to_string(), word);
        }
        for word in ["", "b", "C-", "C-i", "C-m", "C-é", "C-B"] {
            assert!(Prefix::try_from(word.to_owned()).is_err(), "{word}");
        }
    }
}
