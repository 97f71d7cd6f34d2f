//! What the owner of a [`Term`](crate::Term) decides for it: its size and the few settings that a program cannot change.

/// Largest width and height that a terminal may have: past it a size is a mistake or an attack on memory.
pub(crate) const MAX_SIDE: u16 = 2048;

/// Width and height in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns, from 2 (a wide character must fit) to 2048.
    pub cols: u16,
    /// Rows, from 1 to 2048.
    pub rows: u16,
}

impl Size {
    /// The nearest size that the model can hold.
    pub fn clamped(self) -> Self {
        Self { cols: self.cols.clamp(2, MAX_SIDE), rows: self.rows.clamp(1, MAX_SIDE) }
    }
}

/// A colour of eight bits per channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rgb {
    pub r: u8,
    pub g: u8,
    pub b: u8,
}

impl Rgb {
    /// A colour from its three channels.
    pub const fn new(r: u8, g: u8, b: u8) -> Self {
        Self { r, g, b }
    }
}

/// Settings that outlive any reset by the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Lines kept after they left the top of the primary screen, counted as the program wrote them and not as wrapped.
    pub scrollback: usize,
    /// What colour queries say the default text colour is.
    pub default_fg: Rgb,
    /// What colour queries say the default background is.
    pub default_bg: Rgb,
    /// What colour queries say the cursor's colour is.
    pub cursor: Rgb,
    /// Width and height of a cell in pixels, for the reports that are in pixels.
    pub cell_pixels: (u16, u16),
    /// Whether the keys that modifyOtherKeys asks for can come; a query is answered accordingly.
    pub tells_modified_keys: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scrollback: 10_000,
            default_fg: Rgb::new(0xd0, 0xd0, 0xd0),
            default_bg: Rgb::new(0, 0, 0),
            cursor: Rgb::new(0xd0, 0xd0, 0xd0),
            cell_pixels: (8, 16),
            tells_modified_keys: true,
        }
    }
}
