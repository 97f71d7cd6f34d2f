//! The switches of a terminal: which there are, what they are numbered, and what the outside must know of them.

/// A switch that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TermMode {
    AppCursorKeys,
    Columns132,
    ReverseVideo,
    Origin,
    Autowrap,
    CursorBlink,
    CursorVisible,
    AllowColumns,
    MoreFix,
    ReverseWrap,
    AppKeypad,
    LeftRightMargins,
    KeepOnColumns,
    FocusEvents,
    AlternateScroll,
    ReverseWrapAll,
    BracketedPaste,
    Synchronized,
    Graphemes,
    ColorScheme,
    InBandResize,
    // From here on: modes without the question mark.
    KeyboardLock,
    Insert,
    NoEcho,
    NewLine,
}

const PRIVATE: [(u16, TermMode); 21] = [
    (1, TermMode::AppCursorKeys),
    (3, TermMode::Columns132),
    (5, TermMode::ReverseVideo),
    (6, TermMode::Origin),
    (7, TermMode::Autowrap),
    (12, TermMode::CursorBlink),
    (25, TermMode::CursorVisible),
    (40, TermMode::AllowColumns),
    (41, TermMode::MoreFix),
    (45, TermMode::ReverseWrap),
    (66, TermMode::AppKeypad),
    (69, TermMode::LeftRightMargins),
    (95, TermMode::KeepOnColumns),
    (1004, TermMode::FocusEvents),
    (1007, TermMode::AlternateScroll),
    (1045, TermMode::ReverseWrapAll),
    (2004, TermMode::BracketedPaste),
    (2026, TermMode::Synchronized),
    (2027, TermMode::Graphemes),
    (2031, TermMode::ColorScheme),
    (2048, TermMode::InBandResize),
];

const ANSI: [(u16, TermMode); 4] =
    [(2, TermMode::KeyboardLock), (4, TermMode::Insert), (12, TermMode::NoEcho), (20, TermMode::NewLine)];

/// Private modes that are remembered and reported, but have no effect here.
const REMEMBERED: [u16; 10] = [4, 18, 19, 35, 42, 67, 1034, 1035, 1036, 1039];
const REMEMBERED_SHIFT: usize = 32;

/// ANSI modes that are known and cannot be set.
const NEVER: [u16; 12] = [1, 5, 7, 10, 11, 13, 14, 15, 16, 17, 18, 19];

/// The switch with this number after `?`.
pub(crate) fn private(number: u16) -> Option<TermMode> {
    PRIVATE.iter().find(|(n, _)| *n == number).map(|(_, mode)| *mode)
}

/// The switch with this number without `?`.
pub(crate) fn ansi(number: u16) -> Option<TermMode> {
    ANSI.iter().find(|(n, _)| *n == number).map(|(_, mode)| *mode)
}

/// Whether an ANSI mode is known to be always off.
pub(crate) fn is_never_set(number: u16) -> bool {
    NEVER.contains(&number)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModeSet(pub(crate) u64);

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
        self.set_bit(mode as usize, on);
    }

    fn set_bit(&mut self, bit: usize, on: bool) {
        self.0 = self.0 & !(1 << bit) | u64::from(on) << bit;
    }

    /// The state of a private mode that is only remembered.
    pub(crate) fn remembered(self, number: u16) -> Option<bool> {
        let at = REMEMBERED.iter().position(|n| *n == number)?;
        Some(self.0 >> (REMEMBERED_SHIFT + at) & 1 == 1)
    }

    /// Remembers the state of a private mode; does nothing with a number that is not known.
    pub(crate) fn remember(&mut self, number: u16, on: bool) {
        if let Some(at) = REMEMBERED.iter().position(|n| *n == number) {
            self.set_bit(REMEMBERED_SHIFT + at, on);
        }
    }
}

/// Which mouse events a program wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

    pub(crate) fn from_u8(n: u8) -> Self {
        [Self::None, Self::X10, Self::Normal, Self::Button, Self::Any]
            .get(usize::from(n))
            .copied()
            .unwrap_or_default()
    }
}

/// How mouse events are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

    pub(crate) fn from_u8(n: u8) -> Self {
        [Self::X10, Self::Utf8, Self::Sgr, Self::Urxvt, Self::SgrPixels]
            .get(usize::from(n))
            .copied()
            .unwrap_or_default()
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
