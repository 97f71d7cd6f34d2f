//! What the keys after the prefix do: one table, from which the help is made too.

use abide_term::input::keys::Key;

use crate::screen::layout::Direction;

/// The commands that the mux takes by key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Detach,
    NewShell,
    NextTab,
    PreviousTab,
    Tab(usize),
    Kill,
    Scroll,
    Zoom,
    Split(Direction),
    NextPane,
    /// To the neighbour in this direction.
    Pane(i32, i32),
    Rename,
    Help,
}

/// One line of the help: the keys, and what they do.
pub(crate) const HELP: [(&str, &str); 14] = [
    ("d", "detach, everything keeps running"),
    ("c", "new shell in a new tab"),
    ("n p", "next, previous tab"),
    ("0-9", "tab by number"),
    ("%", "new shell to the right"),
    ("\"", "new shell below"),
    ("o", "next pane"),
    ("arrows", "pane in that direction"),
    ("z", "zoom the pane, and back"),
    ("[", "scroll and search back"),
    (",", "rename"),
    ("x", "kill the session"),
    ("?", "this help"),
    ("prefix", "send the prefix key itself"),
];

impl Command {
    /// The command of a key; `None` for a key without one.
    pub fn of(key: Key) -> Option<Self> {
        Some(match key {
            Key::Char('d') => Self::Detach,
            Key::Char('c') => Self::NewShell,
            Key::Char('n') => Self::NextTab,
            Key::Char('p') => Self::PreviousTab,
            Key::Char(digit @ '0'..='9') => Self::Tab(usize::from(digit as u8 - b'0')),
            Key::Char('x') => Self::Kill,
            Key::Char('[') => Self::Scroll,
            Key::Char('z') => Self::Zoom,
            Key::Char('%') => Self::Split(Direction::Columns),
            Key::Char('"') => Self::Split(Direction::Rows),
            Key::Char('o') => Self::NextPane,
            Key::Left => Self::Pane(-1, 0),
            Key::Right => Self::Pane(1, 0),
            Key::Up => Self::Pane(0, -1),
            Key::Down => Self::Pane(0, 1),
            Key::Char(',') => Self::Rename,
            Key::Char('?') => Self::Help,
            _ => return None,
        })
    }

    /// Whether it changes nothing for other clients, so that a client which only watches may use it too.
    pub fn only_looks(self) -> bool {
        matches!(
            self,
            Self::Detach | Self::NextTab | Self::PreviousTab | Self::Tab(_) | Self::Scroll | Self::Help
        )
    }
}
