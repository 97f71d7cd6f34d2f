//! How we draw what is around the programs: the status bar, the lines between panes, the help.

use abide_term::{Attrs, Color, Style, Underline};

use crate::screen::display::{TerminalCharset, ascii};
use crate::screen::glyph::Glyph;

/// The looks of our own parts of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chrome {
    pub ground: Style,
    pub name: Style,
    pub current: Style,
    pub alert: Style,
    pub message: Style,
    pub line: Style,
    pub focused_line: Style,
    pub overlay: Style,
    charset: TerminalCharset,
}

impl Chrome {
    pub fn new(colored: bool, charset: TerminalCharset) -> Self {
        Self { charset, ..if colored { COLORED } else { PLAIN } }
    }

    /// A character of a line or a pattern, in the terminal's charset.
    pub fn character(&self, ch: char) -> char {
        match self.charset {
            TerminalCharset::Unicode => ch,
            TerminalCharset::Ascii => ascii(ch),
        }
    }
}

const COLORED: Chrome = Chrome {
    ground: colors(250, 236),
    name: colors(16, 39),
    current: colors(231, 242),
    alert: colors(16, 214),
    message: colors(16, 221),
    line: Style { fg: Color::Indexed(240), ..Glyph::BLANK.look },
    focused_line: Style { fg: Color::Indexed(39), ..Glyph::BLANK.look },
    overlay: colors(252, 236),
    charset: TerminalCharset::Unicode,
};

/// The same without colours: what is ours is inverse, and what counts is bold.
const PLAIN: Chrome = Chrome {
    ground: attributes(Attrs::INVERSE),
    name: attributes(BOLD_INVERSE),
    current: attributes(Attrs::BOLD),
    alert: Style { underline: Underline::Single, ..attributes(BOLD_INVERSE) },
    message: attributes(BOLD_INVERSE),
    line: Glyph::BLANK.look,
    focused_line: attributes(Attrs::BOLD),
    overlay: attributes(Attrs::INVERSE),
    charset: TerminalCharset::Unicode,
};

const BOLD_INVERSE: Attrs = Attrs::BOLD.with(Attrs::INVERSE, true);

const fn colors(fg: u8, bg: u8) -> Style {
    Style { fg: Color::Indexed(fg), bg: Color::Indexed(bg), ..Glyph::BLANK.look }
}

const fn attributes(attrs: Attrs) -> Style {
    Style { attrs, ..Glyph::BLANK.look }
}
