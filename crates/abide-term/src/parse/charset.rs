//! Character sets that a program can shift into: the line-drawing set above all.

/// A set that G0 or G1 may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Charset {
    #[default]
    Ascii,
    /// Line drawing and symbols in place of the lower-case letters.
    DecGraphics,
}

impl Charset {
    /// The set that this final byte designates; the national sets, which are no longer used, are ASCII.
    pub(crate) fn from_final(byte: u8) -> Self {
        match byte {
            b'0' | b'2' => Self::DecGraphics,
            _ => Self::Ascii,
        }
    }

    /// The character that an ASCII byte stands for.
    pub(crate) fn map(self, byte: u8) -> char {
        match (self, byte) {
            (Self::DecGraphics, b'_'..=b'~') => GRAPHICS[usize::from(byte - b'_')],
            _ => char::from(byte),
        }
    }
}

const GRAPHICS: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽',
    '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

/// G0 and G1, and which of them is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Charsets {
    pub(crate) sets: [Charset; 2],
    /// Which set the printable bytes stand for.
    pub(crate) active: u8,
}

impl Charsets {
    pub(crate) fn current(&self) -> Charset {
        self.sets[usize::from(self.active)]
    }
}
