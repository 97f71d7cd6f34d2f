//! Answers to what programs ask of a terminal.

use crate::modes::TermMode;
use crate::options::Rgb;
use crate::parse::params::Params;
use crate::parse::sgr;
use crate::screen::cell::{Attrs, Cell, Underline};
use crate::screen::print::cell_text;
use crate::text::{hex, unhex};
use crate::vt::Vt;

/// What XTGETTCAP answers, by terminfo or termcap name.
const CAPABILITIES: [(&str, &str); 9] = [
    ("TN", "xterm-256color"),
    ("name", "xterm-256color"),
    ("Co", "256"),
    ("colors", "256"),
    ("RGB", "8/8/8"),
    ("Tc", ""),
    ("Su", ""),
    ("Smulx", "\\E[4:%p1%dm"),
    ("Setulc", "\\E[58:2::%p1%{65536}%/%d:%p1%{256}%/%{255}%&%d:%p1%{255}%&%d%;m"),
];

impl Vt {
    fn csi_reply(&mut self, body: &str) {
        self.outbox.reply(format!("\x1b[{body}").as_bytes());
    }

    pub(crate) fn dcs_reply(&mut self, body: &str) {
        self.outbox.reply(format!("\x1bP{body}\x1b\\").as_bytes());
    }

    /// An OSC reply, ended the way the question was.
    pub(crate) fn osc_reply(&mut self, body: &str, bell: bool) {
        let end = if bell { "\x07" } else { "\x1b\\" };
        self.outbox.reply(format!("\x1b]{body}{end}").as_bytes());
    }

    /// DA1, DA2 and DA3: a VT220 with colour, and for those who know xterm one of its later versions.
    pub(crate) fn device_attributes(&mut self, marker: u8) {
        match marker {
            b'>' => self.csi_reply(">64;380;0c"),
            b'=' => self.dcs_reply("!|00000000"),
            _ => self.csi_reply("?62;22c"),
        }
    }

    /// XTVERSION.
    pub(crate) fn version_report(&mut self) {
        self.dcs_reply(concat!(">|abide ", env!("CARGO_PKG_VERSION")));
    }

    /// DSR.
    pub(crate) fn status_report(&mut self, params: &Params) {
        match params.get(0) {
            5 => self.csi_reply("0n"),
            6 => {
                let (x, y) = self.reported_position();
                self.csi_reply(&format!("{y};{x}R"));
            }
            _ => {}
        }
    }

    /// DECDSR.
    pub(crate) fn private_status_report(&mut self, params: &Params) {
        let reply = match params.get(0) {
            6 => {
                let (x, y) = self.reported_position();
                format!("?{y};{x};1R")
            }
            996 => self.color_scheme(),
            _ => return,
        };
        self.csi_reply(&reply);
    }

    /// Takes over the colours of the terminal around this one, and tells a program that wants to know (2031) when that
    /// makes a dark screen light or the other way round.
    pub(crate) fn set_default_colors(&mut self, fg: Rgb, bg: Rgb, cursor: Rgb) {
        let before = self.color_scheme();
        (self.options.default_fg, self.options.default_bg, self.options.cursor) = (fg, bg, cursor);
        let after = self.color_scheme();
        if after != before && self.modes.has(TermMode::ColorScheme) {
            self.csi_reply(&after);
        }
    }

    fn color_scheme(&self) -> String {
        let bg = self.palette.dynamic(11, &self.options);
        let brightness = 299 * u32::from(bg.r) + 587 * u32::from(bg.g) + 114 * u32::from(bg.b);
        format!("?997;{}n", if brightness < 127_500 { 1 } else { 2 })
    }

    /// The cursor's column and row as a program counts them.
    fn reported_position(&self) -> (usize, usize) {
        let area = self.addressable();
        (self.caret.x + 1, self.caret.y.saturating_sub(area.top) + 1)
    }

    /// DECRQM.
    pub(crate) fn mode_report(&mut self, number: u16, private: bool) {
        let reply = if private {
            format!("?{number};{}$y", self.private_mode_state(number))
        } else {
            format!("{number};{}$y", self.ansi_mode_state(number))
        };
        self.csi_reply(&reply);
    }

    /// DECRQCRA: the sum that xterm computes over a rectangle. No program needs it, but the public test suites read the
    /// screen with it.
    pub(crate) fn checksum_report(&mut self, params: &Params) {
        let area = self.addressable();
        let first = |i: usize| usize::from(params.or(i, 1)) - 1;
        let end = |i: usize| Some(usize::from(params.get(i))).filter(|n| *n > 0).unwrap_or(usize::MAX);
        let columns = first(3)..end(5).min(self.cols());
        let mut sum = 0u16;
        for y in area.top + first(2)..end(4).saturating_add(area.top).min(area.bottom + 1) {
            // Blanks count only when something follows them, except for the first cell of the row.
            let cells = self.grid.row(y).get(columns.clone()).unwrap_or_default();
            let blanks = cells.iter().rev().take_while(|cell| self.checksum_of(cell) == 0x20).count();
            let counted = &cells[..(cells.len() - blanks).max(1).min(cells.len())];
            sum = counted.iter().fold(sum, |sum, cell| sum.wrapping_add(self.checksum_of(cell)));
        }
        self.dcs_reply(&format!("{}!~{:04X}", params.get(0), sum.wrapping_neg()));
    }

    fn checksum_of(&self, cell: &Cell) -> u16 {
        let mut buf = [0; 4];
        let text = cell_text(&self.clusters, cell, &mut buf);
        let code = text.chars().next().map_or(0x20, |c| c as u32 as u16);
        let style = cell.style();
        let weights = [
            (style.underline != Underline::None, 0x10),
            (style.attrs.contains(Attrs::INVERSE), 0x20),
            (style.attrs.contains(Attrs::BLINK), 0x40),
            (style.attrs.contains(Attrs::BOLD), 0x80),
        ];
        weights.iter().filter(|(on, _)| *on).fold(code, |sum, (_, weight)| sum.wrapping_add(*weight))
    }

    /// XTWINOPS: reports. What would move or resize the window is not a program's business here, and the titles are
    /// answered empty: a title comes back as input, so a program that sets it could type.
    pub(crate) fn window_operation(&mut self, params: &Params) {
        let (cols, rows) = (usize::from(self.size.cols), usize::from(self.size.rows));
        let (width, height) = self.options.cell_pixels;
        let (width, height) = (usize::from(width), usize::from(height));
        let reply = match params.get(0) {
            11 => "1t".into(),
            13 => "3;0;0t".into(),
            14 => format!("4;{};{}t", rows * height, cols * width),
            15 => format!("5;{};{}t", rows * height, cols * width),
            16 => format!("6;{height};{width}t"),
            18 => format!("8;{rows};{cols}t"),
            19 => format!("9;{rows};{cols}t"),
            20 => return self.osc_reply("L", false),
            21 => return self.osc_reply("l", false),
            22 => return self.titles.push(params.get(1)),
            23 => return self.pop_title(params.get(1)),
            _ => return,
        };
        self.csi_reply(&reply);
    }

    /// Tells a program that asked for it (2048) the new size.
    pub(crate) fn report_size_in_band(&mut self) {
        if self.modes.has(TermMode::InBandResize) {
            let (cols, rows) = (u32::from(self.size.cols), u32::from(self.size.rows));
            let (width, height) = self.options.cell_pixels;
            let (width, height) = (cols * u32::from(width), rows * u32::from(height));
            self.csi_reply(&format!("48;{rows};{cols};{height};{width}t"));
        }
    }

    /// The kitty keyboard flags in force.
    pub(crate) fn keyboard_report(&mut self) {
        let flags = self.keyboard.flags();
        self.csi_reply(&format!("?{flags}u"));
    }

    /// XTQMODKEYS.
    pub(crate) fn modify_other_keys_report(&mut self) {
        let level = if self.options.tells_modified_keys { self.keyboard.modify_other_keys } else { 0 };
        self.csi_reply(&format!(">4;{level}m"));
    }

    /// DECRQSS.
    pub(crate) fn setting_report(&mut self, setting: &[u8]) {
        let margins = self.margins;
        let value = match setting {
            b"m" => sgr::report(&self.pen),
            b"r" => format!("{};{}", margins.top + 1, margins.bottom + 1),
            b" q" => self.cursor_style.max(1).to_string(),
            _ => return self.dcs_reply("0$r"),
        };
        let setting = String::from_utf8_lossy(setting);
        self.dcs_reply(&format!("1$r{value}{setting}"));
    }

    /// XTGETTCAP: names in hexadecimal, separated by semicolons; each is answered by itself.
    pub(crate) fn capability_report(&mut self, names: &[u8]) {
        for name in names.split(|b| *b == b';') {
            let known = unhex(name).and_then(|bytes| {
                let found = CAPABILITIES.iter().find(|(known, _)| known.as_bytes() == bytes)?;
                Some((hex(&bytes), found.1))
            });
            match known {
                Some((name, "")) => self.dcs_reply(&format!("1+r{name}")),
                Some((name, value)) => self.dcs_reply(&format!("1+r{name}={}", hex(value.as_bytes()))),
                None => {
                    // Echoed only as far as it is the hexadecimal that it should be.
                    let name: String =
                        name.iter().map(|b| char::from(*b)).take_while(char::is_ascii_hexdigit).collect();
                    self.dcs_reply(&format!("0+r{name}"));
                }
            }
        }
    }
}
