//! SGR: the look that text is written with, and the report of it.

use std::fmt::Write;

use crate::parse::params::Params;
use crate::screen::cell::{Attrs, Cell, Color, Underline};
use crate::style_codes::NUMBERED;

/// Applies the parameters of an SGR sequence to the look of the text to come.
pub(crate) fn apply(pen: &mut Cell, params: &Params) {
    if !params.has_colons() {
        apply_plain(pen, params.values());
        return;
    }
    let mut groups = params.groups();
    while let Some(group) = groups.next() {
        match *group {
            [target @ (38 | 48 | 58)] => {
                // Without colons of its own: the arguments are the groups that follow.
                let Some(&[kind]) = groups.next() else { return };
                let mut value = || groups.next().and_then(|group| group.first().copied()).unwrap_or(u16::MAX);
                let color = match kind {
                    5 => index_color(value()),
                    2 => rgb_color(value(), value(), value()),
                    _ => return,
                };
                if let Some(color) = color {
                    set_color(pen, target, color);
                }
            }
            [4, shape, ..] => pen.set_underline(Underline::from_sgr(shape)),
            [target @ (38 | 48 | 58), ref color @ ..] => {
                if let Some(color) = colon_color(color) {
                    set_color(pen, target, color);
                }
            }
            _ => apply_plain(pen, &group[..1]),
        }
    }
}

fn apply_plain(pen: &mut Cell, values: &[u16]) {
    if values.is_empty() {
        pen.reset_sgr();
    }
    let mut rest = values;
    while let Some((&n, more)) = rest.split_first() {
        rest = more;
        match n {
            38 | 48 | 58 => {
                let (color, used) = match *rest {
                    [5, index, ..] => (index_color(index), 2),
                    [2, r, g, b, ..] => (rgb_color(r, g, b), 4),
                    // Cut short: what is left cannot be distinguished from other attributes.
                    _ => return,
                };
                if let Some(color) = color {
                    set_color(pen, n, color);
                }
                rest = &rest[used..];
            }
            n => apply_one(pen, n),
        }
    }
}

#[inline]
fn apply_one(pen: &mut Cell, n: u16) {
    match n {
        0 => pen.reset_sgr(),
        1 => pen.set_attr(Attrs::BOLD, true),
        2 => pen.set_attr(Attrs::DIM, true),
        3 => pen.set_attr(Attrs::ITALIC, true),
        4 => pen.set_underline(Underline::Single),
        5 | 6 => pen.set_attr(Attrs::BLINK, true),
        7 => pen.set_attr(Attrs::INVERSE, true),
        8 => pen.set_attr(Attrs::HIDDEN, true),
        9 => pen.set_attr(Attrs::STRIKE, true),
        21 => pen.set_underline(Underline::Double),
        22 => pen.set_attr(Attrs::BOLD | Attrs::DIM, false),
        23 => pen.set_attr(Attrs::ITALIC, false),
        24 => pen.set_underline(Underline::None),
        25 => pen.set_attr(Attrs::BLINK, false),
        27 => pen.set_attr(Attrs::INVERSE, false),
        28 => pen.set_attr(Attrs::HIDDEN, false),
        29 => pen.set_attr(Attrs::STRIKE, false),
        30..=37 => pen.set_fg(Color::Indexed((n - 30) as u8)),
        39 => pen.set_fg(Color::Default),
        40..=47 => pen.set_bg(Color::Indexed((n - 40) as u8)),
        49 => pen.set_bg(Color::Default),
        53 => pen.set_attr(Attrs::OVERLINE, true),
        55 => pen.set_attr(Attrs::OVERLINE, false),
        59 => pen.set_underline_color(Color::Default),
        90..=97 => pen.set_fg(Color::Indexed((n - 82) as u8)),
        100..=107 => pen.set_bg(Color::Indexed((n - 92) as u8)),
        _ => {}
    }
}

fn set_color(pen: &mut Cell, target: u16, color: Color) {
    match target {
        38 => pen.set_fg(color),
        48 => pen.set_bg(color),
        _ => pen.set_underline_color(color),
    }
}

/// The arguments after `38:`: `5:index`, `2:r:g:b`, or `2:space:r:g:b`.
fn colon_color(args: &[u16]) -> Option<Color> {
    match *args {
        [5, index, ..] => index_color(index),
        [2, r, g, b] => rgb_color(r, g, b),
        [2, _, r, g, b, ..] => rgb_color(r, g, b),
        _ => None,
    }
}

fn index_color(index: u16) -> Option<Color> {
    u8::try_from(index).ok().map(Color::Indexed)
}

fn rgb_color(r: u16, g: u16, b: u16) -> Option<Color> {
    Some(Color::Rgb(u8::try_from(r).ok()?, u8::try_from(g).ok()?, u8::try_from(b).ok()?))
}

/// The parameters that would give text this look, starting from none.
pub(crate) fn report(pen: &Cell) -> String {
    let style = pen.style();
    let mut out = String::from("0");
    for (attr, n) in NUMBERED {
        if style.attrs.contains(attr) {
            // Writing to a string cannot fail.
            let _ = write!(out, ";{n}");
        }
    }
    match style.underline {
        Underline::None => {}
        Underline::Single => out.push_str(";4"),
        shape => {
            let _ = write!(out, ";4:{}", shape.sgr());
        }
    }
    for (target, low, color) in [(38, 30, style.fg), (48, 40, style.bg), (58, 0, style.underline_color)] {
        let _ = match color {
            Color::Default => Ok(()),
            Color::Indexed(n @ 0..8) if low > 0 => write!(out, ";{}", low + n),
            Color::Indexed(n @ 8..16) if low > 0 => write!(out, ";{}", low + 52 + n),
            Color::Indexed(n) => write!(out, ";{target}:5:{n}"),
            Color::Rgb(r, g, b) => write!(out, ";{target}:2::{r}:{g}:{b}"),
        };
    }
    out
}
