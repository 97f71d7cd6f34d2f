//! The switches of a terminal: which there are, what they are numbered, and what the outside must know of them.

/// A switch that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TermMode {
    AppCursorKeys,
    ReverseVideo,
    Origin,
    Autowrap,
    CursorBlink,
    CursorVisible,
    AppKeypad,
    BackspaceSendsBs,
    FocusEvents,
    AlternateScroll,
    BracketedPaste,
    Synchronized,
    Graphemes,
    ColorScheme,
    InBandResize,
    // From here on: modes without the question mark.
    Insert,
    NewLine,
}

const PRIVATE: [(u16, TermMode); 15] = [
    (1, TermMode::AppCursorKeys),
    (5, TermMode::ReverseVideo),
    (6, TermMode::Origin),
    (7, TermMode::Autowrap),
    (12, TermMode::CursorBlink),
    (25, TermMode::CursorVisible),
    (66, TermMode::AppKeypad),
    (67, TermMode::BackspaceSendsBs),
    (1004, TermMode::FocusEvents),
    (1007, TermMode::AlternateScroll),
    (2004, TermMode::BracketedPaste),
    (2026, TermMode::Synchronized),
    (2027, TermMode::Graphemes),
    (2031, TermMode::ColorScheme),
    (2048, TermMode::InBandResize),
];

const ANSI: [(u16, TermMode); 2] = [(4, TermMode::Insert), (20, TermMode::NewLine)];

/// The switch with this number after `?`.
pub(crate) fn private(number: u16) -> Option<TermMode> {
    PRIVATE.iter().find(|(n, _)| *n == number).map(|(_, mode)| *mode)
}

/// The switch with this number without `?`.
pub(crate) fn ansi(number: u16) -> Option<TermMode> {
    ANSI.iter().find(|(n, _)| *n == number).map(|(_, mode)| *mode)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct ModeSet(pub(crate) u32);

impl Default for ModeSet {
    fn default() -> Self {
        let mut set = Self(0);
        for mode in
            [TermMode::Autowrap, TermMode::CursorVisible, TermMode::AlternateScroll, TermMode::Graphemes]
        {
            set.set(mode, true);
        }
        set
    }
}

impl ModeSet {
    #[inline]
    pub(crate) fn has(self, mode: TermMode) -> bool {
        self.0 >> mode as u8 & 1 == 1
    }

    pub(crate) fn set(&mut self, mode: TermMode, on: bool) {
        let bit = mode as u8;
        self.0 = self.0 & !(1 << bit) | u32::from(on) << bit;
    }
}

/// Which mouse events a program wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum MouseMode {
    #[default]
    None,
    /// Presses only (9).
    X10,
    /// Presses and releases (1000).
    Normal,
    /// Also motion while a button is down (1002).
    Button,
    /// Also motion without a button (1003).
    Any,
}

impl MouseMode {
    pub(crate) fn from_number(number: u16) -> Option<Self> {
        Some(match number {
            9 => Self::X10,
            1000 => Self::Normal,
            1002 => Self::Button,
            1003 => Self::Any,
            _ => return None,
        })
    }
}

/// How mouse events are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum MouseEncoding {
    #[default]
    X10,
    /// Three characters (1005).
    Utf8,
    /// Decimal numbers (1006).
    Sgr,
    /// Decimal numbers in the way of rxvt (1015).
    Urxvt,
    /// As `Sgr`, in pixels (1016).
    SgrPixels,
}

impl MouseEncoding {
    pub(crate) fn from_number(number: u16) -> Option<Self> {
        Some(match number {
            1005 => Self::Utf8,
            1006 => Self::Sgr,
            1015 => Self::Urxvt,
            1016 => Self::SgrPixels,
            _ => return None,
        })
    }
}

/// What the terminal around this one must mirror, and what the keys and the mouse must be encoded for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Cursor keys send `ESC O` (1).
    pub app_cursor_keys: bool,
    /// The keypad sends its own sequences (66, `ESC =`).
    pub app_keypad: bool,
    /// Pasted text is bracketed (2004).
    pub bracketed_paste: bool,
    /// Focus changes are reported (1004).
    pub focus_events: bool,
    /// Which mouse events are reported.
    pub mouse: MouseMode,
    /// How mouse events are written.
    pub mouse_encoding: MouseEncoding,
    /// The wheel sends cursor keys on the alternate screen (1007).
    pub alternate_scroll: bool,
    /// Flags of the kitty keyboard protocol; 0 is off.
    pub kitty_keyboard: u8,
    /// xterm's modifyOtherKeys, 0 to 2.
    pub modify_other_keys: u8,
    /// The alternate screen is shown.
    pub alternate_screen: bool,
    /// The program is in the middle of an update (2026): hold the frame.
    pub synchronized: bool,
    /// The whole screen is shown inverted (5).
    pub reverse_video: bool,
    /// Backspace sends BS instead of DEL (67).
    pub backspace_sends_bs: bool,
}
