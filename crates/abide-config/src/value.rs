//! The types of values that only configuration has: sizes, the journal.

use std::fmt;
use std::str::FromStr;

/// Units of a [`ByteSize`], largest first.
const UNITS: [(&str, u64); 5] =
    [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A number of bytes, written with a binary unit such as `8MiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// A size of so many mebibytes.
    pub const fn mib(count: u32) -> Self {
        Self((count as u64) << 20)
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

/// Why a word is not a [`ByteSize`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a size; allowed: a whole number and one of B, KiB, MiB, GiB, TiB, such as 8MiB")]
pub struct BadSize;

impl FromStr for ByteSize {
    type Err = BadSize;

    fn from_str(word: &str) -> Result<Self, BadSize> {
        let digits = word.find(|c: char| !c.is_ascii_digit()).ok_or(BadSize)?;
        let (count, unit) = word.split_at(digits);
        let (_, bytes) = UNITS.iter().find(|(name, _)| *name == unit).ok_or(BadSize)?;
        let count: u64 = count.parse().map_err(|_| BadSize)?;
        count.checked_mul(*bytes).map(Self).ok_or(BadSize)
    }
}

abide_model::serde_as_text!(ByteSize);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().find(|(_, bytes)| self.0 != 0 && self.0.is_multiple_of(*bytes));
        let (unit, bytes) = whole.copied().unwrap_or(("B", 1));
        write!(f, "{}{unit}", self.0 / bytes)
    }
}

/// How much of each session's output is kept on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalLimit {
    /// Nothing: a session's screen is lost with its mux.
    Off,
    /// The newest so many bytes.
    Newest(ByteSize),
}

impl JournalLimit {
    /// Smaller rings would not hold one full redraw of a large terminal.
    pub const SMALLEST: ByteSize = ByteSize(64 << 10);
    /// Rings are mapped into memory, one for each session.
    pub const LARGEST: ByteSize = ByteSize(1 << 30);
}

impl FromStr for JournalLimit {
    type Err = BadSize;

    fn from_str(word: &str) -> Result<Self, BadSize> {
        if word == "off" {
            return Ok(Self::Off);
        }
        let size: ByteSize = word.parse()?;
        if (Self::SMALLEST..=Self::LARGEST).contains(&size) { Ok(Self::Newest(size)) } else { Err(BadSize) }
    }
}

abide_model::serde_as_text!(JournalLimit);

impl fmt::Display for JournalLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Newest(size) => size.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_shown_as_it_was_written() {
        for word in ["0B", "1B", "1023B", "1KiB", "8MiB", "5GiB", "2TiB", "1025KiB"] {
            assert_eq!(word.parse::<ByteSize>().unwrap().to_string(), word);
        }
        assert_eq!("8MiB".parse::<ByteSize>().unwrap().bytes(), 8 << 20);
    }

    #[test]
    fn a_size_without_a_known_unit_or_too_large_to_count_is_refused() {
        for word in ["", "8", "MiB", "8MB", "8 MiB", "-1B", "1.5GiB", "99999999999999999999B", "99999999TiB"]
        {
            assert!(word.parse::<ByteSize>().is_err(), "{word:?}");
        }
    }

    #[test]
    fn a_journal_is_off_or_within_its_bounds() {
        assert_eq!("off".parse(), Ok(JournalLimit::Off));
        assert!("64KiB".parse::<JournalLimit>().is_ok());
        assert!("1GiB".parse::<JournalLimit>().is_ok());
        assert!("63KiB".parse::<JournalLimit>().is_err());
        assert!("1025MiB".parse::<JournalLimit>().is_err());
    }
}
