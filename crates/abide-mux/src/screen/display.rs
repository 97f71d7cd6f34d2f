//! What a client's terminal can show, and what becomes of a picture that asks for more.

use abide_term::{Attrs, Color, Style, Underline};
use abide_wire::protocol::TerminalTrait;

use crate::screen::chrome::Chrome;

/// How many colours a client's terminal knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    Monochrome,
    Eight,
    Sixteen,
    /// The palette of 256; direct colours become the nearest of them.
    Palette,
    /// Direct colours as they are.
    Direct,
}

/// Which characters a client's terminal takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalCharset {
    Unicode,
    Ascii,
}

/// What a client's terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Display {
    pub depth: Depth,
    pub charset: TerminalCharset,
    /// Links, shapes and colours of underlines, shapes of the cursor, synchronized output.
    pub extensions: bool,
    /// Operating system commands (OSC): titles, notifications, the clipboard.
    pub strings: bool,
    /// The operator wants no colours in what is drawn around the programs.
    pub no_color: bool,
}

impl Display {
    pub fn of(traits: &[TerminalTrait]) -> Self {
        let has = |one| traits.contains(&one);
        let depth = if has(TerminalTrait::Monochrome) {
            Depth::Monochrome
        } else if has(TerminalTrait::EightColors) {
            Depth::Eight
        } else if has(TerminalTrait::SixteenColors) {
            Depth::Sixteen
        } else if has(TerminalTrait::DirectColors) {
            Depth::Direct
        } else {
            Depth::Palette
        };
        Self {
            depth,
            charset: if has(TerminalTrait::NotUtf8) {
                TerminalCharset::Ascii
            } else {
                TerminalCharset::Unicode
            },
            extensions: !has(TerminalTrait::NoExtensions),
            strings: !has(TerminalTrait::NoStrings),
            no_color: has(TerminalTrait::NoColor),
        }
    }

    /// How we draw what is around the programs.
    pub fn chrome(&self) -> Chrome {
        // With fewer colours ours would become each other's, and text would vanish in its background.
        let colored = !self.no_color && self.depth >= Depth::Palette;
        Chrome::new(colored, if self.extensions { self.charset } else { TerminalCharset::Ascii })
    }

    /// The nearest to `look` that the terminal can show.
    pub fn look(&self, look: &Style) -> Style {
        let mut shown = *look;
        if !self.extensions {
            shown.underline_color = Color::Default;
            if look.underline != Underline::None {
                shown.underline = Underline::Single;
            }
        }
        if self.depth == Depth::Direct {
            return shown;
        }
        if self.depth == Depth::Eight && matches!(look.fg, Color::Indexed(8..16)) {
            // What bright colours were before there were any.
            shown.attrs = shown.attrs.with(Attrs::BOLD, true);
        }
        shown.fg = reduced(look.fg, self.depth);
        shown.bg = reduced(look.bg, self.depth);
        shown.underline_color = reduced(shown.underline_color, self.depth);
        if shown.fg == shown.bg && look.fg != look.bg && shown.fg != Color::Default {
            let light_on_dark = shown.bg == Color::Indexed(0);
            shown.fg = Color::Indexed(if light_on_dark { 7 } else { 0 });
        }
        shown
    }
}

/// A character in ASCII, as near as a single one comes.
pub(crate) fn ascii(ch: char) -> char {
    match ch {
        ' '..='~' => ch,
        '\u{a0}' => ' ',
        '─' | '━' | '═' | '╌' | '–' | '—' => '-',
        '│' | '┃' | '║' | '╎' => '|',
        '\u{2500}'..='\u{257f}' => '+',
        '\u{2580}'..='\u{259f}' => '#',
        '‘' | '’' => '\'',
        '“' | '”' => '"',
        '·' | '…' => '.',
        '•' | '●' => '*',
        '→' | '›' | '❯' => '>',
        '←' | '‹' => '<',
        _ => '?',
    }
}

fn reduced(color: Color, depth: Depth) -> Color {
    match (color, depth) {
        (Color::Default, _) | (_, Depth::Direct) => color,
        (_, Depth::Monochrome) => Color::Default,
        (Color::Indexed(_), Depth::Palette) | (Color::Indexed(0..16), Depth::Sixteen) => color,
        (Color::Rgb(r, g, b), Depth::Palette) => Color::Indexed(nearest([r, g, b])),
        (Color::Indexed(n @ 0..16), Depth::Eight) => Color::Indexed(n % 8),
        (Color::Indexed(n), _) => Color::Indexed(nearest_of_first(of_palette(n), depth)),
        (Color::Rgb(r, g, b), _) => Color::Indexed(nearest_of_first([r, g, b], depth)),
    }
}

const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The first colours of the palette, as most terminals have them.
const FIRST: [[u8; 3]; 16] = [
    [0, 0, 0],
    [170, 0, 0],
    [0, 170, 0],
    [170, 85, 0],
    [0, 0, 170],
    [170, 0, 170],
    [0, 170, 170],
    [170, 170, 170],
    [85, 85, 85],
    [255, 85, 85],
    [85, 255, 85],
    [255, 255, 85],
    [85, 85, 255],
    [255, 85, 255],
    [85, 255, 255],
    [255, 255, 255],
];

/// Red, green and blue of a colour of the palette.
fn of_palette(n: u8) -> [u8; 3] {
    match n {
        0..16 => FIRST[usize::from(n)],
        16..232 => [(n - 16) / 36, (n - 16) / 6 % 6, (n - 16) % 6].map(|at| STEPS[usize::from(at)]),
        232.. => [8 + 10 * (n - 232); 3],
    }
}

fn distance(one: [u8; 3], other: [u8; 3]) -> u32 {
    one.into_iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
}

/// The nearest of the first eight or sixteen colours.
fn nearest_of_first(color: [u8; 3], depth: Depth) -> u8 {
    let count = if depth == Depth::Eight { 8 } else { 16 };
    (0..count).min_by_key(|&n| distance(FIRST[usize::from(n)], color)).unwrap_or(0)
}

/// The nearest colour of the palette's cube (16 to 231) or of its greys (232 to 255).
fn nearest(color: [u8; 3]) -> u8 {
    let step = |channel: u8| (0u8..6).min_by_key(|&at| STEPS[usize::from(at)].abs_diff(channel)).unwrap_or(0);
    let cube = color.map(step);
    let mean = color.into_iter().map(u16::from).sum::<u16>() / 3;
    let grey = u8::try_from(mean.saturating_sub(3) / 10).unwrap_or(23).min(23);
    let from_cube = 16 + 36 * cube[0] + 6 * cube[1] + cube[2];
    if distance(of_palette(232 + grey), color) < distance(of_palette(from_cube), color) {
        232 + grey
    } else {
        from_cube
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display(traits: &[TerminalTrait]) -> Display {
        Display::of(traits)
    }

    fn colored(fg: Color, bg: Color) -> Style {
        Style { fg, bg, ..Style::default() }
    }

    #[test]
    fn a_terminal_without_direct_colours_gets_the_nearest_of_its_palette() {
        assert_eq!(nearest([255, 0, 0]), 196);
        assert_eq!(nearest([0, 0, 0]), 16);
        assert_eq!(nearest([128, 128, 128]), 244);
        let white = colored(Color::Rgb(255, 255, 255), Color::Default);
        assert_eq!(display(&[]).look(&white).fg, Color::Indexed(231));
        assert_eq!(display(&[TerminalTrait::DirectColors]).look(&white), white);
    }

    #[test]
    fn few_colours_become_the_nearest_and_text_stays_apart_from_its_background() {
        let red = colored(Color::Indexed(196), Color::Rgb(250, 250, 250));
        let shown = display(&[TerminalTrait::SixteenColors]).look(&red);
        assert_eq!((shown.fg, shown.bg), (Color::Indexed(1), Color::Indexed(15)));
        let bright = display(&[TerminalTrait::EightColors]).look(&colored(Color::Indexed(9), Color::Default));
        assert_eq!((bright.fg, bright.attrs), (Color::Indexed(1), Attrs::BOLD));
        let greys = colored(Color::Indexed(255), Color::Indexed(250));
        let shown = display(&[TerminalTrait::EightColors]).look(&greys);
        assert_ne!(shown.fg, shown.bg);
        assert_eq!(display(&[TerminalTrait::Monochrome]).look(&red), Style::default());
    }

    #[test]
    fn underlines_are_plain_where_a_terminal_knows_no_shapes() {
        let curly =
            Style { underline: Underline::Curly, underline_color: Color::Indexed(1), ..Style::default() };
        let plain = Style { underline: Underline::Single, ..Style::default() };
        assert_eq!(display(&[TerminalTrait::NoExtensions]).look(&curly), plain);
        assert_eq!(display(&[]).look(&curly), curly);
    }
}
