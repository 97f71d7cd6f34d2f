//! One character cell in sixteen bytes, and the style that it carries.
//!
//! A cell is self-contained except for two things that live in tables of the terminal: the text of a grapheme cluster
//! of several code points, and the address of a hyperlink. Both are small ids here.

/// A colour as a program asked for it; what `Default` and `Indexed` look like is the renderer's affair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// The terminal's own foreground or background.
    #[default]
    Default,
    /// An entry of the 256-colour palette.
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// The shape of an underline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Underline {
    #[default]
    None,
    Single,
    Double,
    Curly,
    Dotted,
    Dashed,
}

impl Underline {
    /// The shape with this number in `CSI 4 : n m`.
    pub(crate) fn from_sgr(n: u16) -> Self {
        match n {
            0 => Self::None,
            2 => Self::Double,
            3 => Self::Curly,
            4 => Self::Dotted,
            5 => Self::Dashed,
            _ => Self::Single,
        }
    }

    /// The number of this shape in `CSI 4 : n m`.
    pub fn sgr(self) -> u8 {
        self as u8
    }
}

/// A set of character attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attrs(u16);

impl Attrs {
    /// None of them.
    pub const NONE: Self = Self(0);
    pub const BOLD: Self = Self(1);
    pub const DIM: Self = Self(1 << 1);
    pub const ITALIC: Self = Self(1 << 2);
    pub const BLINK: Self = Self(1 << 3);
    /// Foreground and background swapped.
    pub const INVERSE: Self = Self(1 << 4);
    pub const HIDDEN: Self = Self(1 << 5);
    pub const STRIKE: Self = Self(1 << 6);
    pub const OVERLINE: Self = Self(1 << 7);

    /// Whether all of `other` is set here.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set as a number, one bit per attribute.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// The set with `other` added or taken away.
    pub const fn with(self, other: Self, on: bool) -> Self {
        Self(if on { self.0 | other.0 } else { self.0 & !other.0 })
    }

    /// The set with these bits, ignoring those that mean nothing.
    pub(crate) fn from_bits(bits: u16) -> Self {
        Self(bits & 0x1ff)
    }
}

impl std::ops::BitOr for Attrs {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How a cell looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub fg: Color,
    pub bg: Color,
    /// Colour of the underline; `Default` follows the text.
    pub underline_color: Color,
    /// Shape of the underline.
    pub underline: Underline,
    pub attrs: Attrs,
}

/// Highest hyperlink id that a cell can hold.
pub(crate) const MAX_LINK: u16 = (1 << 14) - 1;
/// Cell codes from here on are ids of grapheme clusters: no scalar value is that large.
pub(crate) const CLUSTER_BASE: u32 = 0x11_0000;
/// One more than the highest code that a cell can hold.
pub(crate) const CODE_END: u32 = 1 << 21;

const CODE: u32 = CODE_END - 1;
const KIND: u32 = 3 << 21;
const WIDE: u32 = 1 << 21;
const TAIL: u32 = 2 << 21;
const ATTR_SHIFT: u32 = 23;
const COLOR: u32 = (1 << 26) - 1;
const LINK_SHIFT: u32 = 26;
const UNDERLINE: u32 = 7 << 26;
const UNDERLINE_SHIFT: u32 = 26;
const LINK_TOP: u32 = 3 << 30;
const LINK_TOP_SHIFT: u32 = 30;

/// One cell of the screen.
///
/// The layout is dense so that a screen is small and two cells compare as sixteen bytes:
/// `content` = code (21 bits), narrow/wide/tail (2), attributes (9); `fg`, `bg` = colour (26), part of the link id (6);
/// `ul` = underline colour (26), underline shape (3), a spare bit, the top of the link id (2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[repr(C)]
pub struct Cell {
    content: u32,
    fg: u32,
    bg: u32,
    ul: u32,
}

impl Cell {
    /// The style of the cell.
    pub fn style(&self) -> Style {
        Style {
            fg: unpack(self.fg),
            bg: unpack(self.bg),
            underline_color: unpack(self.ul),
            underline: Underline::from_shape((self.ul & UNDERLINE) >> UNDERLINE_SHIFT),
            attrs: self.attrs(),
        }
    }

    /// The attributes of the cell.
    pub fn attrs(&self) -> Attrs {
        Attrs((self.content >> ATTR_SHIFT) as u16)
    }

    /// Whether this is the left half of a character two columns wide.
    pub fn is_wide(&self) -> bool {
        self.content & KIND == WIDE
    }

    /// Whether this is the right half of a wide character: it has no text of its own.
    pub fn is_continuation(&self) -> bool {
        self.content & KIND == TAIL
    }

    /// Whether nothing was written here since it was last erased.
    pub fn is_blank(&self) -> bool {
        self.content & (CODE | KIND) == 0
    }

    /// The character, if the cell holds exactly one code point.
    pub fn ch(&self) -> Option<char> {
        match self.code() {
            0 => None,
            code => char::from_u32(code),
        }
    }

    pub(crate) fn code(&self) -> u32 {
        self.content & CODE
    }

    /// The id of the grapheme cluster that the cell shows, if it shows one.
    pub(crate) fn cluster(&self) -> Option<u32> {
        self.code().checked_sub(CLUSTER_BASE)
    }

    /// Which hyperlink the cell belongs to; 0 is none, and equal numbers are the same link.
    pub fn link_id(&self) -> u16 {
        let low = self.fg >> LINK_SHIFT;
        let mid = self.bg >> LINK_SHIFT;
        let top = self.ul >> LINK_TOP_SHIFT;
        (low | mid << 6 | top << 12) as u16
    }

    pub(crate) fn set_link(&mut self, link: u16) {
        let link = u32::from(link.min(MAX_LINK));
        self.fg = self.fg & COLOR | (link & 63) << LINK_SHIFT;
        self.bg = self.bg & COLOR | (link >> 6 & 63) << LINK_SHIFT;
        self.ul = self.ul & !LINK_TOP | (link >> 12) << LINK_TOP_SHIFT;
    }

    /// The same look with this code, one column wide.
    pub(crate) fn narrow(self, code: u32) -> Self {
        Self { content: self.content & !(CODE | KIND) | code & CODE, ..self }
    }

    /// The same look with this code, as the left half of a wide character.
    pub(crate) fn wide(self, code: u32) -> Self {
        Self { content: self.content & !(CODE | KIND) | code & CODE | WIDE, ..self }
    }

    /// The right half that belongs to a wide character of this look.
    pub(crate) fn tail(self) -> Self {
        Self { content: self.content & !(CODE | KIND) | TAIL, ..self }
    }

    /// Same text and width with another code: a character that grew into a cluster.
    pub(crate) fn with_code(self, code: u32) -> Self {
        Self { content: self.content & !CODE | code & CODE, ..self }
    }

    /// What erasing leaves behind: nothing but the background colour.
    pub(crate) fn erased(self) -> Self {
        Self { content: 0, fg: 0, bg: self.bg & COLOR, ul: 0 }
    }

    /// Whether the cell is as it was on an untouched screen.
    pub(crate) fn is_pristine(&self) -> bool {
        *self == Self::default()
    }

    /// Whether this is a blank or an ASCII character in the default style.
    pub(crate) fn is_plain(&self) -> bool {
        self.content < 0x80 && self.fg == 0 && self.bg == 0 && self.ul == 0
    }

    /// Whether writing ASCII with this look leaves a row plain.
    pub(crate) fn is_plain_pen(&self) -> bool {
        self.content & !(CODE | KIND) == 0 && self.fg == 0 && self.bg == 0 && self.ul == 0
    }

    /// Whether this is a printable ASCII character in exactly the look of `pen`, which has no text.
    #[inline]
    pub(crate) fn is_ascii_in(&self, pen: &Self) -> bool {
        let same = self.fg == pen.fg && self.bg == pen.bg && self.ul == pen.ul;
        same && matches!(self.content ^ pen.content, 0x20..=0x7e)
    }

    pub(crate) fn set_fg(&mut self, color: Color) {
        self.fg = self.fg & !COLOR | pack(color);
    }

    pub(crate) fn set_bg(&mut self, color: Color) {
        self.bg = self.bg & !COLOR | pack(color);
    }

    pub(crate) fn set_underline_color(&mut self, color: Color) {
        self.ul = self.ul & !COLOR | pack(color);
    }

    pub(crate) fn set_underline(&mut self, shape: Underline) {
        self.ul = self.ul & !UNDERLINE | (shape as u32) << UNDERLINE_SHIFT;
    }

    pub(crate) fn set_attr(&mut self, attr: Attrs, on: bool) {
        let bits = u32::from(attr.0) << ATTR_SHIFT;
        self.content = if on { self.content | bits } else { self.content & !bits };
    }

    /// Plain text with no attribute but the link, which SGR does not govern.
    pub(crate) fn reset_sgr(&mut self) {
        let link = self.link_id();
        *self = Self::default();
        self.set_link(link);
    }

    /// Takes over a style, keeping text, width and link.
    pub(crate) fn restyle(&mut self, style: Style) {
        self.content = self.content & (CODE | KIND) | u32::from(style.attrs.0) << ATTR_SHIFT;
        self.set_fg(style.fg);
        self.set_bg(style.bg);
        self.set_underline_color(style.underline_color);
        self.set_underline(style.underline);
    }
}

impl Underline {
    fn from_shape(n: u32) -> Self {
        if n == 0 { Self::None } else { Self::from_sgr(n as u16) }
    }
}

fn pack(color: Color) -> u32 {
    match color {
        Color::Default => 0,
        Color::Indexed(n) => 1 << 24 | u32::from(n),
        Color::Rgb(r, g, b) => 2 << 24 | u32::from(r) << 16 | u32::from(g) << 8 | u32::from(b),
    }
}

fn unpack(word: u32) -> Color {
    let [b, g, r, kind] = (word & COLOR).to_le_bytes();
    match kind {
        1 => Color::Indexed(b),
        2 => Color::Rgb(r, g, b),
        _ => Color::Default,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_sixteen_bytes() {
        assert_eq!(size_of::<Cell>(), 16);
    }

    #[test]
    fn every_part_of_a_cell_survives_beside_the_others() {
        let style = Style {
            fg: Color::Rgb(1, 2, 3),
            bg: Color::Indexed(200),
            underline_color: Color::Rgb(255, 254, 253),
            underline: Underline::Dashed,
            attrs: Attrs::BOLD | Attrs::OVERLINE | Attrs::ITALIC,
        };
        for link in [0, 1, 63, 64, 4095, 4096, MAX_LINK] {
            let mut cell = Cell::default().wide('漢' as u32);
            cell.restyle(style);
            cell.set_link(link);
            assert_eq!((cell.style(), cell.link_id(), cell.ch()), (style, link, Some('漢')));
            assert!(cell.is_wide());
            cell.reset_sgr();
            assert_eq!((cell.style(), cell.link_id()), (Style::default(), link));
        }
    }
}
