//! What a client's screen is made of: cells that can be understood without the terminal model they came from.
//!
//! A screen shows several models side by side, and each model numbers its grapheme clusters and links for itself.
//! Here they are numbered once for the whole mux, so that two cells compare as numbers.

use std::collections::HashMap;

use abide_term::{Attrs, Cell, Color, Style, Term, Underline};
use abide_wire::mux_options::MuxOptions;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A number that stands for a text of [`Strings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StringId(u32);

/// What a cell shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// One code point; a space where there is nothing.
    Char(char),
    /// Several code points that are one character.
    Cluster(StringId),
    /// The right half of a wide character.
    Tail,
}

/// One cell of a client's screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Glyph {
    pub text: Text,
    pub wide: bool,
    pub look: Style,
    pub link: Option<StringId>,
}

impl Glyph {
    pub const BLANK: Self = Self {
        text: Text::Char(' '),
        wide: false,
        look: Style {
            fg: Color::Default,
            bg: Color::Default,
            underline_color: Color::Default,
            underline: Underline::None,
            attrs: Attrs::NONE,
        },
        link: None,
    };

    /// A character of our own drawing.
    pub fn new(ch: char, look: Style) -> Self {
        Self { text: Text::Char(ch), look, ..Self::BLANK }
    }

    /// What `cell` of `term` shows.
    pub fn of(term: &Term, cell: &Cell, strings: &mut Strings) -> Self {
        let text = if cell.is_continuation() {
            Text::Tail
        } else if cell.is_blank() {
            Text::Char(' ')
        } else if let Some(ch) = cell.ch() {
            Text::Char(ch)
        } else {
            let mut buffer = [0; 4];
            cluster(term.grapheme(cell, &mut buffer), cell.is_wide(), strings)
        };
        let link = term.hyperlink(cell).filter(|uri| strings.policy.allows(uri)).map(|uri| strings.id(uri));
        Self { text, wide: cell.is_wide(), look: term.shown_style(cell), link }
    }

    /// The same cell with nothing in it: what remains of a wide character that was cut in half.
    pub fn emptied(self) -> Self {
        Self { text: Text::Char(' '), wide: false, ..self }
    }

    /// Whether erasing with the default background leaves exactly this.
    pub fn is_erased(&self) -> bool {
        *self == Self::BLANK
    }
}

/// A cluster that fits its cells. One that ended up in a single cell at the edge of a screen and is wider by nature
/// would run over its neighbour: of that, the first character is shown if it fits.
fn cluster(text: &str, wide: bool, strings: &mut Strings) -> Text {
    if wide || text.width() <= 1 {
        return Text::Cluster(strings.id(text));
    }
    Text::Char(text.chars().next().filter(|ch| ch.width() == Some(1)).unwrap_or(' '))
}

/// Which links of programs reach the operator's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkPolicy {
    /// Those that a terminal opens in a browser, an editor or a mail program.
    Harmless,
    All,
}

impl LinkPolicy {
    pub fn of(options: &MuxOptions) -> Self {
        if options.live.links { Self::All } else { Self::Harmless }
    }
}

impl LinkPolicy {
    fn allows(self, uri: &str) -> bool {
        // A terminal hands the address to the desktop, where any registered scheme starts a program.
        const HARMLESS: [&str; 4] = ["http:", "https:", "file:", "mailto:"];
        let has_scheme =
            |scheme: &&str| uri.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
        // What is not printable ASCII must be percent-encoded in an address: anything else is an escape in disguise.
        uri.bytes().all(|byte| byte.is_ascii_graphic())
            && (self == Self::All || HARMLESS.iter().any(has_scheme))
    }
}

/// The texts that glyphs refer to.
#[derive(Debug)]
pub(crate) struct Strings {
    ids: HashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
    bytes: usize,
    generation: u64,
    policy: LinkPolicy,
}

/// Beyond these the table starts anew. A program that makes up ever new ones must not grow it for ever.
const MAX_TEXTS: usize = 8192;
const MAX_BYTES: usize = 1 << 20;

impl Strings {
    pub fn new(policy: LinkPolicy) -> Self {
        Self { ids: HashMap::new(), texts: Vec::new(), bytes: 0, generation: 0, policy }
    }

    /// Makes room if the table is full, and returns the number of times that this happened. A holder of glyphs of an
    /// earlier generation must forget them. To be called between frames only.
    pub fn generation(&mut self) -> u64 {
        if self.texts.len() > MAX_TEXTS || self.bytes > MAX_BYTES {
            *self = Self { generation: self.generation + 1, ..Self::new(self.policy) };
        }
        self.generation
    }

    fn id(&mut self, text: &str) -> StringId {
        if let Some(&id) = self.ids.get(text) {
            return StringId(id);
        }
        let id = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.bytes += text.len();
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        StringId(id)
    }

    pub fn get(&self, id: StringId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_links_pass_unless_all_are_allowed_and_none_with_control_characters() {
        for good in ["https://a.b/c", "HTTP://x", "file:///etc/motd", "mailto:a@b"] {
            assert!(LinkPolicy::Harmless.allows(good), "{good}");
        }
        for odd in ["javascript:alert(1)", "ssh://host", "vscode://x", "httpx:", ""] {
            assert!(!LinkPolicy::Harmless.allows(odd), "{odd}");
        }
        assert!(LinkPolicy::All.allows("ssh://host"));
        assert!(!LinkPolicy::All.allows("https://a\x1b]52;c;x"));
    }

    #[test]
    fn ever_new_texts_do_not_grow_the_table_for_ever() {
        let mut strings = Strings::new(LinkPolicy::All);
        let mut generations = 0;
        for n in 0..100_000 {
            let text = n.to_string();
            let id = strings.id(&text);
            assert_eq!(strings.get(id), text);
            generations = strings.generation();
        }
        assert!(generations > 5 && strings.texts.len() <= MAX_TEXTS + 1);
    }
}
