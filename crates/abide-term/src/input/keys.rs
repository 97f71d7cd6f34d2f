//! Keys as a terminal sends them: reading the ones that are meant for us, and writing the ones that `send` names.

use crate::Modes;

/// What a terminal sends for the key called `name`; `None` for a name that is none.
pub fn key_bytes(name: &str, app_cursor_keys: bool) -> Option<Vec<u8>> {
    named(name, &Modes { app_cursor_keys, ..Modes::default() })
}

/// A key, as far as the mux and the dialogs react to keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Ctrl(char),
    Enter,
    Escape,
    Backspace,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    /// Something that is no key press, such as the release of one.
    Nothing,
    /// A key that means nothing to us.
    Other,
}

impl Key {
    /// The key that a character stands for.
    pub fn of_char(ch: char) -> Self {
        match ch {
            '\r' | '\n' => Self::Enter,
            '\x08' | '\x7f' => Self::Backspace,
            '\0' => Self::Ctrl(' '),
            '\x01'..='\x1a' => Self::Ctrl(char::from(ch as u8 | 0x60)),
            '\x1b' => Self::Escape,
            '\x1c'..='\x1f' => Self::Ctrl(char::from(ch as u8 | 0x40)),
            _ => Self::Char(ch),
        }
    }

    /// The key that a sequence stands for.
    pub fn of_sequence(sequence: &[u8]) -> Self {
        match sequence {
            [0x1b] => Self::Escape,
            [0x1b, b'O', last] => Self::of_final(*last),
            [0x1b, b'[', params @ .., b'u'] => Self::of_code(&KeyParams::read(params)),
            [0x1b, b'[', params @ .., b'~'] => Self::of_tilde(&KeyParams::read(params)),
            [0x1b, b'[', params @ .., last] => match KeyParams::read(params) {
                params if params.is_release() => Self::Nothing,
                _ => Self::of_final(*last),
            },
            _ => Self::Other,
        }
    }

    fn of_final(last: u8) -> Self {
        match last {
            b'A' => Self::Up,
            b'B' => Self::Down,
            b'C' => Self::Right,
            b'D' => Self::Left,
            b'H' => Self::Home,
            b'F' => Self::End,
            b'M' => Self::Enter,
            _ => Self::Other,
        }
    }

    fn of_tilde(params: &KeyParams) -> Self {
        if params.is_release() {
            return Self::Nothing;
        }
        match params.first {
            1 | 7 => Self::Home,
            4 | 8 => Self::End,
            5 => Self::PageUp,
            6 => Self::PageDown,
            // xterm's modifyOtherKeys: 27 ; modifiers ; code.
            27 => Self::with_modifiers(params.third, params.second),
            _ => Self::Other,
        }
    }

    /// The kitty protocol: code : shifted : in this place on a US keyboard ; modifiers : event ; text u.
    fn of_code(params: &KeyParams) -> Self {
        if params.is_release() {
            return Self::Nothing;
        }
        match params.first {
            57_352 => Self::Up,
            57_353 => Self::Down,
            57_350 => Self::Left,
            57_351 => Self::Right,
            57_354 => Self::PageUp,
            57_355 => Self::PageDown,
            57_356 => Self::Home,
            57_357 => Self::End,
            // Shift, Control, Alt and their like, pressed by themselves on the way to a key.
            57_441..=57_454 | 57_358..=57_360 => Self::Nothing,
            _ => Self::with_modifiers(params.character(), params.second),
        }
    }

    fn with_modifiers(code: u32, modifiers: u32) -> Self {
        // Caps Lock and Num Lock are reported too, and change nothing here.
        let bits = modifiers.saturating_sub(1) & 0b1111;
        let shift = bits & 1 != 0;
        let Some(ch) = char::from_u32(code) else { return Self::Other };
        match bits & !1 {
            0 if shift && ch.is_ascii_lowercase() => Self::Char(ch.to_ascii_uppercase()),
            0 => Self::of_char(ch),
            4 => Self::Ctrl(ch.to_ascii_lowercase()),
            _ => Self::Other,
        }
    }
}

/// The parameters of a sequence that describes a key.
#[derive(Debug, Default)]
struct KeyParams {
    first: u32,
    first_shifted: u32,
    first_base: u32,
    second: u32,
    /// 1 press, 2 repeat, 3 release.
    event: u32,
    third: u32,
}

impl KeyParams {
    fn read(bytes: &[u8]) -> Self {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut fields = text.split(';').map(|field| field.split(':'));
        let mut field = || {
            let mut parts = fields.next().into_iter().flatten();
            [(); 3].map(|()| number(parts.next()))
        };
        let ([first, first_shifted, first_base], [second, event, _], [third, ..]) =
            (field(), field(), field());
        Self { first, first_shifted, first_base, second, event, third }
    }

    /// The character of a key in the kitty protocol, from whatever the terminal tells of it.
    fn character(&self) -> u32 {
        let has = |modifier: u8| self.second.saturating_sub(1) & u32::from(modifier) != 0;
        if has(CTRL) && self.first > 0x7f && self.first_base != 0 {
            // Other scripts have no control characters. A Latin letter is what is written on the key, wherever that is.
            self.first_base
        } else if self.third != 0 {
            self.third
        } else if !has(SHIFT) {
            self.first
        } else if self.first_shifted != 0 {
            self.first_shifted
        } else {
            us_shifted(self.first)
        }
    }

    fn is_release(&self) -> bool {
        self.event == 3
    }
}

/// What Shift makes of a key on a US keyboard: the best guess where a terminal tells no more than the key.
fn us_shifted(code: u32) -> u32 {
    let keys = "1234567890-=[]\\;',./`".chars().zip("!@#$%^&*()_+{}|:\"<>?~".chars());
    let mut found = keys.filter(|(plain, _)| u32::from(*plain) == code);
    found.next().map_or(code, |(_, shifted)| u32::from(shifted))
}

/// Whether a sequence is the key that a terminal otherwise sends as the control character `byte`.
pub fn is_control_key(sequence: &[u8], letter: char) -> bool {
    matches!(sequence, [0x1b, b'[', .., b'u' | b'~']) && Key::of_sequence(sequence) == Key::Ctrl(letter)
}

/// A key of the kitty protocol as modifyOtherKeys of this level writes it; `None` for a sequence that is no such key.
pub fn as_modify_other_keys(sequence: &[u8], level: u8) -> Option<Vec<u8>> {
    let [0x1b, b'[', params @ .., b'u'] = sequence else { return None };
    let params = KeyParams::read(params);
    let ch = char::from_u32(params.character()).filter(|_| params.first < 57_344)?;
    let modifiers = u8::try_from(params.second.saturating_sub(1) & 0b1111).unwrap_or(0);
    let has_character = matches!(ch, 'a'..='z' | 'A'..='Z' | ' ' | '@' | '[' | '\\' | ']' | '^' | '_');
    let is_usual = match modifiers & !ALT {
        0 => !matches!(ch, '\r' | '\t' | '\x7f') || modifiers == 0,
        SHIFT => !matches!(ch, '\r' | '\t' | '\x7f' | '\x1b'),
        CTRL => has_character,
        _ => false,
    };
    if modifiers == 0 || (level < 2 && is_usual) {
        let plain = Modes::default();
        return Some(character(ch, modifiers & !SHIFT, &plain));
    }
    Some(format!("\x1b[27;{};{}~", modifiers + 1, u32::from(ch)).into_bytes())
}

/// The keys that have a name but no character: the final byte of their sequence, or its number before a `~`.
const NAMED: [(&[&str], Form); 24] = [
    (&["up"], Form::Final(b'A')),
    (&["down"], Form::Final(b'B')),
    (&["right"], Form::Final(b'C')),
    (&["left"], Form::Final(b'D')),
    (&["home"], Form::Final(b'H')),
    (&["end"], Form::Final(b'F')),
    (&["f1"], Form::Final(b'P')),
    (&["f2"], Form::Final(b'Q')),
    (&["f3"], Form::Final(b'R')),
    (&["f4"], Form::Final(b'S')),
    (&["insert", "ic"], Form::Tilde(2)),
    (&["delete", "dc"], Form::Tilde(3)),
    (&["pageup", "ppage", "pgup"], Form::Tilde(5)),
    (&["pagedown", "npage", "pgdn"], Form::Tilde(6)),
    (&["f5"], Form::Tilde(15)),
    (&["f6"], Form::Tilde(17)),
    (&["f7"], Form::Tilde(18)),
    (&["f8"], Form::Tilde(19)),
    (&["f9"], Form::Tilde(20)),
    (&["f10"], Form::Tilde(21)),
    (&["f11"], Form::Tilde(23)),
    (&["f12"], Form::Tilde(24)),
    (&["backtab", "btab"], Form::Final(b'Z')),
    (&["menu"], Form::Tilde(29)),
];

#[derive(Debug, Clone, Copy)]
enum Form {
    Final(u8),
    Tilde(u8),
}

const SHIFT: u8 = 1;
const ALT: u8 = 2;
const CTRL: u8 = 4;

/// The bytes of a key by its name (`enter`, `ctrl-c`, `C-c`, `M-x`, `shift-up`, `f5`, `é`), as a terminal in these
/// modes sends them; `None` for a name that is none.
pub fn named(name: &str, modes: &Modes) -> Option<Vec<u8>> {
    let (mut rest, mut modifiers) = (name, 0u8);
    'modifiers: loop {
        for (prefixes, bit) in
            [(["C-", "ctrl-", "^"], CTRL), (["M-", "alt-", "meta-"], ALT), (["S-", "shift-", "s-"], SHIFT)]
        {
            let stripped = prefixes.iter().find_map(|prefix| strip_ignoring_case(rest, prefix));
            if let Some(stripped) = stripped.filter(|stripped| !stripped.is_empty()) {
                (rest, modifiers) = (stripped, modifiers | bit);
                continue 'modifiers;
            }
        }
        break;
    }
    let lower = rest.to_lowercase();
    if let Some((_, form)) = NAMED.iter().find(|(names, _)| names.contains(&lower.as_str())) {
        return Some(functional(*form, modifiers, modes));
    }
    let ch = match lower.as_str() {
        "enter" | "return" | "cr" => '\r',
        "tab" => '\t',
        "space" => ' ',
        "escape" | "esc" => '\x1b',
        "backspace" | "bspace" | "bs" => '\x7f',
        _ => single(rest)?,
    };
    Some(character(ch, modifiers, modes))
}

fn strip_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    // One letter and a dash are distinct by case (`S-` and `s-` are the same key, `C-` and `c-` are not both used).
    let start = text.get(..prefix.len())?;
    let same = if prefix.len() == 2 { start == prefix } else { start.eq_ignore_ascii_case(prefix) };
    same.then(|| &text[prefix.len()..])
}

fn single(text: &str) -> Option<char> {
    let mut chars = text.chars();
    let ch = chars.next()?;
    (chars.next().is_none() && !ch.is_control()).then_some(ch)
}

fn functional(form: Form, modifiers: u8, modes: &Modes) -> Vec<u8> {
    let modified = modifiers + 1;
    let text = match (form, modifiers) {
        (Form::Final(last @ (b'P'..=b'S')), 0) => format!("\x1bO{}", char::from(last)),
        (Form::Final(last), 0) if modes.app_cursor_keys && last != b'Z' => {
            format!("\x1bO{}", char::from(last))
        }
        (Form::Final(last), 0) => format!("\x1b[{}", char::from(last)),
        (Form::Final(last), _) => format!("\x1b[1;{modified}{}", char::from(last)),
        (Form::Tilde(number), 0) => format!("\x1b[{number}~"),
        (Form::Tilde(number), _) => format!("\x1b[{number};{modified}~"),
    };
    text.into_bytes()
}

fn character(ch: char, modifiers: u8, modes: &Modes) -> Vec<u8> {
    let ambiguous = ch == '\x1b' || modifiers & (CTRL | ALT) != 0;
    let special = matches!(ch, '\r' | '\t' | '\x7f');
    let kitty = modes.kitty_keyboard & 1 != 0 && (ambiguous || (special && modifiers != 0));
    let kitty_all = modes.kitty_keyboard & 8 != 0 && (special || ambiguous);
    if kitty || kitty_all {
        let code = u32::from(ch.to_ascii_lowercase());
        return match modifiers {
            0 => format!("\x1b[{code}u").into_bytes(),
            _ => format!("\x1b[{code};{}u", modifiers + 1).into_bytes(),
        };
    }
    if ch == '\t' && modifiers & SHIFT != 0 {
        return b"\x1b[Z".to_vec();
    }
    let ch = match ch {
        '\x7f' if modes.backspace_sends_bs => '\x08',
        _ if modifiers & CTRL != 0 => control(ch),
        _ if modifiers & SHIFT != 0 => ch.to_ascii_uppercase(),
        _ => ch,
    };
    let mut bytes = Vec::new();
    if modifiers & ALT != 0 {
        bytes.push(0x1b);
    }
    bytes.extend_from_slice(ch.encode_utf8(&mut [0; 4]).as_bytes());
    bytes
}

/// The control character of a key, where it has one.
fn control(ch: char) -> char {
    match ch {
        'a'..='z' | 'A'..='Z' | '@' | '[' | '\\' | ']' | '^' | '_' => char::from(ch as u8 & 0x1f),
        ' ' | '2' => '\0',
        '3'..='7' => char::from(ch as u8 - b'3' + 0x1b),
        '8' | '?' => '\x7f',
        '/' | '-' => '\x1f',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_protocol_are_translated_to_the_other() {
        for (sequence, one, two) in [
            (&b"\x1b[13;2u"[..], &b"\x1b[27;2;13~"[..], &b"\x1b[27;2;13~"[..]),
            (b"\x1b[99;5u", b"\x03", b"\x1b[27;5;99~"),
            (b"\x1b[120;3u", b"\x1bx", b"\x1b[27;3;120~"),
            (b"\x1b[49;5u", b"\x1b[27;5;49~", b"\x1b[27;5;49~"),
            (b"\x1b[27u", b"\x1b", b"\x1b"),
        ] {
            assert_eq!(as_modify_other_keys(sequence, 1).as_deref(), Some(one), "{sequence:?}");
            assert_eq!(as_modify_other_keys(sequence, 2).as_deref(), Some(two), "{sequence:?}");
        }
        assert_eq!(as_modify_other_keys(b"\x1b[A", 2), None);
    }

    #[test]
    fn keys_are_read_in_every_encoding_that_a_terminal_may_use() {
        for (sequence, key) in [
            (&b"\x1b[A"[..], Key::Up),
            (b"\x1bOA", Key::Up),
            (b"\x1b[1;1:1A", Key::Up),
            (b"\x1b[5~", Key::PageUp),
            (b"\x1b[98;5u", Key::Ctrl('b')),
            (b"\x1b[98;5:3u", Key::Nothing),
            (b"\x1b[98;69u", Key::Ctrl('b')),
            (b"\x1b[27;5;98~", Key::Ctrl('b')),
            (b"\x1b[100u", Key::Char('d')),
            (b"\x1b[1080::98;5u", Key::Ctrl('b')),
            (b"\x1b[120::98;5u", Key::Ctrl('x')),
            (b"\x1b[1080::98u", Key::Char('и')),
            (b"\x1b[53:37;2u", Key::Char('%')),
            (b"\x1b[53;2;37u", Key::Char('%')),
            (b"\x1b[50;2;34u", Key::Char('"')),
            (b"\x1b[53;2u", Key::Char('%')),
            (b"\x1b[103;2u", Key::Char('G')),
            (b"\x1b[57442;5u", Key::Nothing),
            (b"\x1b[13u", Key::Enter),
            (b"\x1b[27u", Key::Escape),
            (b"\x1b", Key::Escape),
            (b"\x1b[1;1:3A", Key::Nothing),
            (b"\x1bx", Key::Other),
        ] {
            assert_eq!(Key::of_sequence(sequence), key, "{}", sequence.escape_ascii());
        }
    }

    #[test]
    fn the_prefix_is_found_in_the_encodings_of_other_keyboard_protocols_and_not_elsewhere() {
        assert!(is_control_key(b"\x1b[98;5u", 'b') && is_control_key(b"\x1b[27;5;98~", 'b'));
        assert!(!is_control_key(b"\x1b[98;5:3u", 'b') && !is_control_key(b"\x1b[98;6u", 'a'));
        assert!(!is_control_key(b"\x1b[200~", 'b'));
    }

    #[test]
    fn names_give_what_the_key_sends_in_the_present_modes() {
        let plain = Modes::default();
        let app = Modes { app_cursor_keys: true, ..plain };
        let kitty = Modes { kitty_keyboard: 1, ..plain };
        for (name, modes, bytes) in [
            ("Enter", &plain, &b"\r"[..]),
            ("C-c", &plain, b"\x03"),
            ("ctrl-c", &plain, b"\x03"),
            ("ctrl-c", &kitty, b"\x1b[99;5u"),
            ("Escape", &kitty, b"\x1b[27u"),
            ("enter", &kitty, b"\r"),
            ("shift-enter", &kitty, b"\x1b[13;2u"),
            ("Up", &plain, b"\x1b[A"),
            ("Up", &app, b"\x1bOA"),
            ("S-Up", &app, b"\x1b[1;2A"),
            ("M-x", &plain, b"\x1bx"),
            ("PageDown", &plain, b"\x1b[6~"),
            ("f1", &plain, b"\x1bOP"),
            ("C-Space", &plain, b"\0"),
            ("shift-tab", &plain, b"\x1b[Z"),
            ("é", &plain, "é".as_bytes()),
            ("-", &plain, b"-"),
        ] {
            assert_eq!(named(name, modes).as_deref(), Some(bytes), "{name}");
        }
        for name in ["", "nonsense", "ctrl-", "C-nonsense", "ab"] {
            assert_eq!(named(name, &plain), None, "{name}");
        }
    }
}
