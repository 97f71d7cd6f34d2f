//! Answers to what programs ask of a terminal.

use crate::modes::TermMode;
use crate::options::Rgb;
use crate::parse::params::Params;
use crate::parse::sgr;
use crate::text::{hex, unhex};
use crate::vt::{CharacterProtection, Vt};

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
        let start: &[u8] = if self.eight_bit { b"\x9b" } else { b"\x1b[" };
        self.outbox.reply(&[start, body.as_bytes()].concat());
    }

    pub(crate) fn dcs_reply(&mut self, body: &str) {
        self.string_reply(b"\x90", b"\x1bP", body);
    }

    /// An OSC reply, ended the way the question was.
    pub(crate) fn osc_reply(&mut self, body: &str, bell: bool) {
        if bell {
            self.outbox.reply(&[b"\x1b]", body.as_bytes(), b"\x07"].concat());
        } else {
            self.string_reply(b"\x9d", b"\x1b]", body);
        }
    }

    fn string_reply(&mut self, start8: &[u8], start7: &[u8], body: &str) {
        let (start, end): (&[u8], &[u8]) =
            if self.eight_bit { (start8, b"\x9c") } else { (start7, b"\x1b\\") };
        self.outbox.reply(&[start, body.as_bytes(), end].concat());
    }

    /// DA1, DA2 and DA3: a VT520 with what we have of its options, and colour.
    pub(crate) fn device_attributes(&mut self, marker: u8) {
        match marker {
            b'>' => self.csi_reply(">64;380;0c"),
            b'=' => self.dcs_reply("!|00000000"),
            _ => self.csi_reply("?65;1;6;9;15;17;18;21;22;28c"),
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
            // No printer; user-defined keys locked; North American keyboard; no locator; no errors; one session.
            15 => "?13n".into(),
            25 => "?21n".into(),
            26 => "?27;1;0;0n".into(),
            53 | 55 => "?50n".into(),
            56 => "?57;0n".into(),
            62 => "0*{".into(),
            63 => return self.dcs_reply(&format!("{}!~0000", params.get(1))),
            75 => "?70n".into(),
            85 => "?83n".into(),
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
        (self.caret.x.saturating_sub(area.left) + 1, self.caret.y.saturating_sub(area.top) + 1)
    }

    /// DECRQM.
    pub(crate) fn mode_report(&mut self, number: u16, private: bool) {
        if self.level < 3 {
            return;
        }
        let reply = if private {
            format!("?{number};{}$y", self.private_mode_state(number))
        } else {
            format!("{number};{}$y", self.ansi_mode_state(number))
        };
        self.csi_reply(&reply);
    }

    /// DECREQTPARM.
    pub(crate) fn terminal_parameters(&mut self, request: u16) {
        if request < 2 {
            self.csi_reply(&format!("{};1;1;128;128;1;0x", request + 2));
        }
    }

    /// DECRQCRA.
    pub(crate) fn checksum_report(&mut self, params: &Params) {
        let sum = self.checksum(params);
        self.dcs_reply(&format!("{}!~{sum:04X}", params.get(0)));
    }

    /// XTWINOPS: reports. What would move or resize the window is not a program's business here, and the titles are
    /// answered empty: a title comes back as input, so whoever can set it could type.
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
            b"s" => format!("{};{}", margins.left + 1, margins.right + 1),
            b"t" | b"*|" => self.rows().to_string(),
            b"$|" => self.cols().to_string(),
            b" q" => self.cursor_style.max(1).to_string(),
            b"\"q" => {
                let protects = self.pen.attrs().contains(crate::screen::cell::Attrs::PROTECTED);
                u8::from(protects && self.protection == CharacterProtection::Dec).to_string()
            }
            b"\"p" => format!("6{};{}", self.level, u8::from(!self.eight_bit)),
            b"*x" => (u8::from(self.rectangle_extent) * 2).to_string(),
            b"$}" | b"$~" => "0".into(),
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
