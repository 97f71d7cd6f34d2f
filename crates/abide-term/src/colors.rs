//! Colours that a program changed or asks about: the palette, and the colours of text, background and cursor.
//!
//! Changes are recorded so that queries tell the truth, and so that a renderer can show them.

use std::collections::BTreeMap;

use crate::options::{Options, Rgb};
use crate::screen::cell::{Color, Style};

/// The special colours (bold, underline, blink, reverse, italic) follow the palette.
pub(crate) const SPECIAL_BASE: u16 = 256;
/// One more than the highest number that OSC 4 takes.
pub(crate) const INDEX_END: u16 = SPECIAL_BASE + 5;
/// OSC 10 to 19 are the dynamic colours; they are stored behind the others.
const DYNAMIC_BASE: u16 = 512;

/// The colours that differ from what they were at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Palette {
    pub(crate) changed: BTreeMap<u16, Rgb>,
}

impl Palette {
    /// The colour with this number in OSC 4.
    pub(crate) fn indexed(&self, n: u16, options: &Options) -> Rgb {
        let initial = || if n < SPECIAL_BASE { xterm_color(n as u8) } else { options.default_fg };
        self.changed.get(&n).copied().unwrap_or_else(initial)
    }

    pub(crate) fn set_indexed(&mut self, n: u16, color: Rgb) {
        if n < INDEX_END {
            self.changed.insert(n, color);
        }
    }

    pub(crate) fn reset_indexed(&mut self, n: u16) {
        self.changed.remove(&n);
    }

    /// Resets the palette, or the special colours.
    pub(crate) fn reset_all(&mut self, special: bool) {
        self.changed.retain(|n, _| *n >= DYNAMIC_BASE || (*n >= SPECIAL_BASE) != special);
    }

    /// The colour that OSC `n` governs, `n` from 10 to 19.
    pub(crate) fn dynamic(&self, n: u16, options: &Options) -> Rgb {
        let initial = match n {
            11 | 14 | 16 | 17 => options.default_bg,
            12 => options.cursor,
            _ => options.default_fg,
        };
        self.changed.get(&(DYNAMIC_BASE + n)).copied().unwrap_or(initial)
    }

    pub(crate) fn set_dynamic(&mut self, n: u16, color: Rgb) {
        self.changed.insert(DYNAMIC_BASE + n, color);
    }

    pub(crate) fn reset_dynamic(&mut self, n: u16) {
        self.changed.remove(&(DYNAMIC_BASE + n));
    }

    /// `style` with the colours that were changed in the place of those that they replace.
    #[inline]
    pub(crate) fn shown(&self, style: Style) -> Style {
        if self.changed.is_empty() {
            return style;
        }
        let shown = |color: Color, default: Option<u16>| {
            let key = match color {
                Color::Default => default.map(|n| DYNAMIC_BASE + n),
                Color::Indexed(n) => Some(u16::from(n)),
                Color::Rgb(..) => None,
            };
            let changed = key.and_then(|key| self.changed.get(&key));
            changed.map_or(color, |&Rgb { r, g, b }| Color::Rgb(r, g, b))
        };
        Style {
            fg: shown(style.fg, Some(10)),
            bg: shown(style.bg, Some(11)),
            underline_color: shown(style.underline_color, None),
            ..style
        }
    }

    pub(crate) fn is_valid_key(n: u16) -> bool {
        n < INDEX_END || (DYNAMIC_BASE + 10..DYNAMIC_BASE + 20).contains(&n)
    }
}

/// A colour as X11 writes it: `rgb:` with one to four digits a channel, or `#` with three to twelve digits.
pub(crate) fn parse(spec: &[u8]) -> Option<Rgb> {
    let spec = std::str::from_utf8(spec).ok()?;
    let hex = |digits: &str| {
        let valid = (1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        valid.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    };
    if let Some(spec) = spec.strip_prefix("rgb:") {
        // The digits are a fraction of the largest number with as many digits.
        let channel = |digits: &str| Some((hex(digits)? * 255 / ((1 << (4 * digits.len())) - 1)) as u8);
        let mut channels = spec.split('/');
        let color =
            Rgb::new(channel(channels.next()?)?, channel(channels.next()?)?, channel(channels.next()?)?);
        return channels.next().is_none().then_some(color);
    }
    let spec = spec.strip_prefix('#')?;
    let width = spec.len() / 3;
    if !spec.is_ascii() || spec.len() % 3 != 0 || width == 0 {
        return None;
    }
    // Here the digits are the most significant ones of sixteen bits.
    let channel = |i: usize| Some((hex(&spec[i * width..(i + 1) * width])? << (16 - 4 * width) >> 8) as u8);
    Some(Rgb::new(channel(0)?, channel(1)?, channel(2)?))
}

/// A colour as a reply writes it.
pub(crate) fn format(Rgb { r, g, b }: Rgb) -> String {
    format!("rgb:{r:02x}{r:02x}/{g:02x}{g:02x}/{b:02x}{b:02x}")
}

/// An entry of xterm's palette.
fn xterm_color(n: u8) -> Rgb {
    const BASE: [u32; 16] = [
        0x00_0000, 0xcd_0000, 0x00_cd00, 0xcd_cd00, 0x00_00ee, 0xcd_00cd, 0x00_cdcd, 0xe5_e5e5, 0x7f_7f7f,
        0xff_0000, 0x00_ff00, 0xff_ff00, 0x5c_5cff, 0xff_00ff, 0x00_ffff, 0xff_ffff,
    ];
    if let Some(color) = BASE.get(usize::from(n)) {
        let [_, r, g, b] = color.to_be_bytes();
        return Rgb::new(r, g, b);
    }
    if n >= 232 {
        let level = 8 + 10 * (n - 232);
        return Rgb::new(level, level, level);
    }
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    let n = n - 16;
    Rgb::new(level(n / 36), level(n / 6 % 6), level(n % 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_the_way_x11_writes_them() {
        for (spec, text) in [
            ("rgb:f0f0/0000/8080", "rgb:f0f0/0000/8080"),
            ("rgb:f/0/8", "rgb:ffff/0000/8888"),
            ("#fff", "rgb:f0f0/f0f0/f0f0"),
            ("#f0f080", "rgb:f0f0/f0f0/8080"),
            ("#f00f00800", "rgb:f0f0/f0f0/8080"),
            ("#f000f0008000", "rgb:f0f0/f0f0/8080"),
        ] {
            assert_eq!(parse(spec.as_bytes()).map(format).as_deref(), Some(text), "{spec}");
        }
        for spec in
            ["", "#", "#ff", "#ggg", "rgb:1/2", "rgb:1/2/3/4", "rgb:12345/0/0", "rgb://", "#éé", "red"]
        {
            assert_eq!(parse(spec.as_bytes()), None, "{spec}");
        }
    }

    #[test]
    fn the_palette_is_that_of_xterm() {
        assert_eq!(xterm_color(21), Rgb::new(0, 0, 255));
        assert_eq!(xterm_color(196), Rgb::new(255, 0, 0));
        assert_eq!(xterm_color(255), Rgb::new(238, 238, 238));
    }
}
