//! Looks as escape sequences (SGR), the shortest way from one to the next.

use std::io::Write;

use abide_term::{Attrs, Color, Style, Underline};

/// How many colours a client's terminal knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// The palette of 256; direct colours become the nearest of them.
    Palette,
    /// Direct colours as they are.
    Direct,
}

/// Attributes that are a number in SGR.
const NUMBERED: [(Attrs, u8); 8] = [
    (Attrs::BOLD, 1),
    (Attrs::DIM, 2),
    (Attrs::ITALIC, 3),
    (Attrs::BLINK, 5),
    (Attrs::INVERSE, 7),
    (Attrs::HIDDEN, 8),
    (Attrs::STRIKE, 9),
    (Attrs::OVERLINE, 53),
];

/// Writes what turns a terminal's pen from `from` into `to`.
pub(super) fn change(from: &Style, to: &Style, depth: Depth, out: &mut Vec<u8>) {
    if from == to {
        return;
    }
    out.extend_from_slice(b"\x1b[");
    let start = out.len();
    // Single attributes can not be taken away reliably everywhere, so going back starts from nothing.
    let takes_away = !to.attrs.contains(from.attrs)
        || (from.underline != Underline::None && to.underline == Underline::None)
        || (from.underline_color != Color::Default && to.underline_color == Color::Default);
    let mut from = *from;
    if takes_away || *to == Style::default() {
        from = Style::default();
        if *to != from {
            out.extend_from_slice(b"0;");
        }
    }
    for (attr, number) in NUMBERED {
        if to.attrs.contains(attr) && !from.attrs.contains(attr) {
            number_to(out, number);
        }
    }
    if to.underline != from.underline {
        match to.underline {
            Underline::Single => number_to(out, 4),
            // With a colon: a terminal that does not know the shape must not read it as an attribute of its own.
            shape => _ = write!(out, "4:{};", shape.sgr()),
        }
    }
    if to.fg != from.fg {
        color(out, to.fg, 30, depth);
    }
    if to.bg != from.bg {
        color(out, to.bg, 40, depth);
    }
    if to.underline_color != from.underline_color {
        underline_color(out, to.underline_color, depth);
    }
    if out.len() > start && out.last() == Some(&b';') {
        out.pop();
    }
    out.push(b'm');
}

fn number_to(out: &mut Vec<u8>, number: u8) {
    // Writing to memory does not fail.
    _ = write!(out, "{number};");
}

fn color(out: &mut Vec<u8>, color: Color, base: u8, depth: Depth) {
    _ = match reduced(color, depth) {
        Color::Default => write!(out, "{};", base + 9),
        Color::Indexed(n @ 0..8) => write!(out, "{};", base + n),
        Color::Indexed(n @ 8..16) => write!(out, "{};", base + 52 + n),
        Color::Indexed(n) => write!(out, "{};5;{n};", base + 8),
        Color::Rgb(r, g, b) => write!(out, "{};2;{r};{g};{b};", base + 8),
    };
}

fn underline_color(out: &mut Vec<u8>, color: Color, depth: Depth) {
    _ = match reduced(color, depth) {
        Color::Default => write!(out, "59;"),
        Color::Indexed(n) => write!(out, "58:5:{n};"),
        Color::Rgb(r, g, b) => write!(out, "58:2::{r}:{g}:{b};"),
    };
}

fn reduced(color: Color, depth: Depth) -> Color {
    match (color, depth) {
        (Color::Rgb(r, g, b), Depth::Palette) => Color::Indexed(nearest(r, g, b)),
        _ => color,
    }
}

/// The nearest colour of the palette's cube (16 to 231) or of its greys (232 to 255).
fn nearest(r: u8, g: u8, b: u8) -> u8 {
    const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let step = |channel: u8| (0u8..6).min_by_key(|&at| STEPS[usize::from(at)].abs_diff(channel)).unwrap_or(0);
    let cube = [step(r), step(g), step(b)];
    let cube_color = cube.map(|at| STEPS[usize::from(at)]);
    let mean = (u16::from(r) + u16::from(g) + u16::from(b)) / 3;
    let grey = u8::try_from(mean.saturating_sub(3) / 10).unwrap_or(23).min(23);
    let grey_color = [8 + 10 * grey; 3];
    let distance = |color: [u8; 3]| -> u32 {
        let one = |(a, b): (u8, u8)| u32::from(a.abs_diff(b)).pow(2);
        color.into_iter().zip([r, g, b]).map(one).sum()
    };
    if distance(grey_color) < distance(cube_color) {
        232 + grey
    } else {
        16 + 36 * cube[0] + 6 * cube[1] + cube[2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(from: &Style, to: &Style) -> String {
        let mut out = Vec::new();
        change(from, to, Depth::Direct, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_what_changes_is_written() {
        let plain = Style::default();
        let red = Style { fg: Color::Indexed(1), ..plain };
        let bold_red = Style { attrs: Attrs::BOLD, ..red };
        assert_eq!(written(&plain, &plain), "");
        assert_eq!(written(&plain, &red), "\x1b[31m");
        assert_eq!(written(&red, &bold_red), "\x1b[1m");
        assert_eq!(written(&bold_red, &red), "\x1b[0;31m");
        assert_eq!(written(&bold_red, &plain), "\x1b[m");
        let bright = Style { bg: Color::Indexed(9), ..plain };
        assert_eq!(written(&plain, &bright), "\x1b[101m");
        assert_eq!(written(&bright, &red), "\x1b[31;49m");
    }

    #[test]
    fn a_terminal_without_direct_colours_gets_the_nearest_of_its_palette() {
        assert_eq!(nearest(255, 0, 0), 196);
        assert_eq!(nearest(0, 0, 0), 16);
        assert_eq!(nearest(128, 128, 128), 244);
        let mut out = Vec::new();
        let to = Style { fg: Color::Rgb(255, 255, 255), ..Style::default() };
        change(&Style::default(), &to, Depth::Palette, &mut out);
        assert_eq!(out, b"\x1b[38;5;231m");
    }
}
