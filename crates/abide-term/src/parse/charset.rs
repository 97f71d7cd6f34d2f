//! Character sets that a program can shift into: the line-drawing set above all.

/// A set that one of G0 to G3 may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Charset {
    #[default]
    Ascii,
    /// Line drawing and symbols in place of the lower-case letters.
    DecGraphics,
    /// ASCII with a pound sign in place of `#`.
    British,
}

impl Charset {
    /// The set that this final byte designates; the national sets that nobody uses any more are ASCII.
    pub(crate) fn from_final(byte: u8) -> Self {
        match byte {
            b'0' | b'2' => Self::DecGraphics,
            b'A' => Self::British,
            _ => Self::Ascii,
        }
    }

    pub(crate) fn from_u8(n: u8) -> Self {
        match n {
            1 => Self::DecGraphics,
            2 => Self::British,
            _ => Self::Ascii,
        }
    }

    /// The character that an ASCII byte stands for.
    pub(crate) fn map(self, byte: u8) -> char {
        match (self, byte) {
            (Self::DecGraphics, b'_'..=b'~') => GRAPHICS[usize::from(byte - b'_')],
            (Self::British, b'#') => '£',
            _ => char::from(byte),
        }
    }
}

const GRAPHICS: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽',
    '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

/// G0 to G3 and which of them is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charsets {
    pub(crate) sets: [Charset; 4],
    /// Which set the printable bytes stand for.
    pub(crate) active: u8,
    /// A set for the next character only.
    pub(crate) single: Option<u8>,
}

impl Charsets {
    /// Whether bytes are plain ASCII at the moment.
    pub(crate) fn is_ascii(&self) -> bool {
        self.single.is_none() && self.sets[usize::from(self.active)] == Charset::Ascii
    }

    /// The character that an ASCII byte stands for now; ends a single shift.
    pub(crate) fn map(&mut self, byte: u8) -> char {
        let set = self.single.take().unwrap_or(self.active);
        self.sets[usize::from(set)].map(byte)
    }
}
