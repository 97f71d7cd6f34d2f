//! Looks as escape sequences (SGR), the shortest way from one to the next.

use std::io::Write;

use crate::{Attrs, Color, Style, Underline};

/// Attributes that are a number in SGR.
pub(crate) const NUMBERED: [(Attrs, u8); 8] = [
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
pub fn change(from: &Style, to: &Style, out: &mut Vec<u8>) {
    if from == to {
        return;
    }
    out.extend_from_slice(b"\x1b[");
    let start = out.len();
    // Single attributes cannot be taken away reliably everywhere, so going back starts from nothing.
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
        color(out, to.fg, 30);
    }
    if to.bg != from.bg {
        color(out, to.bg, 40);
    }
    if to.underline_color != from.underline_color {
        underline_color(out, to.underline_color);
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

fn color(out: &mut Vec<u8>, color: Color, base: u8) {
    _ = match color {
        Color::Default => write!(out, "{};", base + 9),
        Color::Indexed(n @ 0..8) => write!(out, "{};", base + n),
        Color::Indexed(n @ 8..16) => write!(out, "{};", base + 52 + n),
        Color::Indexed(n) => write!(out, "{};5;{n};", base + 8),
        Color::Rgb(r, g, b) => write!(out, "{};2;{r};{g};{b};", base + 8),
    };
}

fn underline_color(out: &mut Vec<u8>, color: Color) {
    _ = match color {
        Color::Default => write!(out, "59;"),
        Color::Indexed(n) => write!(out, "58:5:{n};"),
        Color::Rgb(r, g, b) => write!(out, "58:2::{r}:{g}:{b};"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(from: &Style, to: &Style) -> String {
        let mut out = Vec::new();
        change(from, to, &mut out);
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
}
