//! The modes of a client's terminal, kept as the focused session wants them, so that what is typed can be passed on
//! as it is.

use std::io::Write;

use abide_term::{Cursor, CursorShape, Modes, MouseMode};

use crate::screen::display::{Display, TerminalCharset, ascii};

/// Which ways of telling modified keys apart a client's terminal knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KeyProtocols {
    /// The kitty keyboard protocol.
    pub kitty: bool,
    pub modify_other_keys: bool,
}

/// Everything about a client's terminal that is not a cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Outer {
    pub app_cursor_keys: bool,
    pub app_keypad: bool,
    pub bracketed_paste: bool,
    pub focus_events: bool,
    pub mouse: MouseMode,
    pub alternate_scroll: bool,
    /// `None` where the terminal does not know the protocol.
    pub kitty_keyboard: Option<u8>,
    /// `None` where the terminal does not know it.
    pub modify_other_keys: Option<u8>,
    /// As DECSCUSR numbers it; 0 is the terminal's own choice. `None` where the terminal has one shape only.
    pub cursor_style: Option<u8>,
    /// `None` where the terminal has none.
    pub title: Option<String>,
}

impl Outer {
    /// What the focused session wants of a terminal.
    pub fn of(modes: &Modes, cursor: &Cursor, title: &str, keys: KeyProtocols) -> Self {
        // Keys that modifyOtherKeys asks for are translated where the terminal has the newer protocol.
        let translated = u8::from(modes.kitty_keyboard == 0 && modes.modify_other_keys > 0);
        Self {
            app_cursor_keys: modes.app_cursor_keys,
            app_keypad: modes.app_keypad,
            bracketed_paste: modes.bracketed_paste,
            focus_events: modes.focus_events,
            // Presses alone are a mode that few terminals still have; the others are filtered on the way in.
            mouse: if modes.mouse == MouseMode::X10 { MouseMode::Normal } else { modes.mouse },
            // On our own alternate screen the wheel would otherwise type arrow keys into every shell.
            alternate_scroll: modes.alternate_screen && modes.alternate_scroll,
            kitty_keyboard: keys.kitty.then_some(modes.kitty_keyboard | translated),
            modify_other_keys: (keys.modify_other_keys && !keys.kitty).then_some(modes.modify_other_keys),
            cursor_style: Some(cursor_style(cursor)),
            title: Some(title.to_owned()),
        }
    }

    /// The same without what the terminal does not have.
    pub fn limited_to(self, display: Display) -> Self {
        Self {
            cursor_style: self.cursor_style.filter(|_| display.extensions),
            title: self.title.filter(|_| display.strings).map(|title| match display.charset {
                TerminalCharset::Unicode => title,
                TerminalCharset::Ascii => title.chars().map(ascii).collect(),
            }),
            ..self
        }
    }

    /// What our own scroll mode and prompts want: plain keys, pastes that can be distinguished from them, and the wheel if the
    /// session had it anyway.
    pub fn for_ourselves(&self) -> Self {
        Self {
            app_cursor_keys: false,
            app_keypad: false,
            bracketed_paste: true,
            focus_events: self.focus_events,
            mouse: if self.mouse == MouseMode::None { MouseMode::None } else { MouseMode::Normal },
            alternate_scroll: true,
            kitty_keyboard: self.kitty_keyboard.map(|_| 0),
            modify_other_keys: self.modify_other_keys.map(|_| 0),
            cursor_style: self.cursor_style.map(|_| 0),
            title: self.title.clone(),
        }
    }

    /// Writes what turns a terminal from `last` into this; from an unknown state where there is no `last`.
    pub fn write_changes(&self, last: Option<&Self>, out: &mut Vec<u8>) {
        let mut switch = |now: bool, before: Option<bool>, on: &str, off: &str| {
            if before != Some(now) {
                out.extend_from_slice(if now { on } else { off }.as_bytes());
            }
        };
        switch(self.app_cursor_keys, last.map(|l| l.app_cursor_keys), "\x1b[?1h", "\x1b[?1l");
        switch(self.app_keypad, last.map(|l| l.app_keypad), "\x1b=", "\x1b>");
        switch(self.bracketed_paste, last.map(|l| l.bracketed_paste), "\x1b[?2004h", "\x1b[?2004l");
        switch(self.focus_events, last.map(|l| l.focus_events), "\x1b[?1004h", "\x1b[?1004l");
        switch(self.alternate_scroll, last.map(|l| l.alternate_scroll), "\x1b[?1007h", "\x1b[?1007l");
        if last.map(|l| l.mouse) != Some(self.mouse) {
            // One mode replaces another in some terminals and adds to it in others.
            out.extend_from_slice(b"\x1b[?1000l\x1b[?1002l\x1b[?1003l");
            out.extend_from_slice(match self.mouse {
                MouseMode::None => b"\x1b[?1006l",
                MouseMode::X10 | MouseMode::Normal => b"\x1b[?1000h\x1b[?1006h",
                MouseMode::Button => b"\x1b[?1002h\x1b[?1006h",
                MouseMode::Any => b"\x1b[?1003h\x1b[?1006h",
            });
        }
        if let Some(flags) = self.kitty_keyboard
            && last.and_then(|l| l.kitty_keyboard) != Some(flags)
        {
            _ = write!(out, "\x1b[={flags};1u");
        }
        if let Some(level) = self.modify_other_keys
            && last.map_or(Some(0), |l| l.modify_other_keys) != Some(level)
        {
            _ = write!(out, "\x1b[>4;{level}m");
        }
        if let Some(style) = self.cursor_style
            && last.and_then(|l| l.cursor_style) != Some(style)
        {
            _ = write!(out, "\x1b[{style} q");
        }
        if let Some(title) = &self.title
            && last.and_then(|l| l.title.as_ref()) != Some(title)
        {
            _ = write!(out, "\x1b]2;{title}\x1b\\");
        }
    }
}

fn cursor_style(cursor: &Cursor) -> u8 {
    let steady = u8::from(!cursor.blinking);
    match cursor.shape {
        // Where no program asked for a shape, the operator's own choice is the better one.
        CursorShape::Block if steady == 1 && !cursor.chosen => 0,
        CursorShape::Block => 1 + steady,
        CursorShape::Underline => 3 + steady,
        CursorShape::Bar => 5 + steady,
    }
}
