//! What a terminal shows, in a form that two terminals can be compared in.

use std::fmt;

/// One cell: a blank is a space, the right half of a wide character is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    pub look: Look,
}

/// How a cell looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// `default`, a palette number, or `#rrggbb`.
    pub fg: String,
    pub bg: String,
    /// Names of attributes, sorted.
    pub attrs: Vec<String>,
}

impl Default for Look {
    fn default() -> Self {
        Self { fg: "default".to_owned(), bg: "default".to_owned(), attrs: Vec::new() }
    }
}

impl Default for Cell {
    fn default() -> Self {
        Self { text: " ".to_owned(), look: Look::default() }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?} {} on {} {}", self.text, self.look.fg, self.look.bg, self.look.attrs.join("+"))
    }
}

/// Everything about a screen that is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    pub rows: Vec<Vec<Cell>>,
    pub cursor: Cursor,
    pub alternate: bool,
    pub title: String,
}

/// Where the cursor is, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub col: usize,
    pub row: usize,
    pub visible: bool,
}

/// One thing in which two screens are not equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    Cell { row: usize, col: usize, abide: Cell, tmux: Cell },
    Cursor { abide: Cursor, tmux: Cursor },
    Alternate { abide: bool, tmux: bool },
    Size { abide: (usize, usize), tmux: (usize, usize) },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Cell { row, col, abide, tmux } => {
                write!(f, "row {row} column {col}: abide {abide}, tmux {tmux}")
            }
            other => write!(f, "{other:?}"),
        }
    }
}

impl Screen {
    /// The size as columns and rows.
    pub fn size(&self) -> (usize, usize) {
        (self.rows.first().map_or(0, Vec::len), self.rows.len())
    }

    /// The text, row by row, without blanks at the ends.
    pub fn text(&self) -> String {
        let line = |row: &Vec<Cell>| row.iter().map(|cell| cell.text.as_str()).collect::<String>();
        self.rows.iter().map(|row| line(row).trim_end().to_owned() + "\n").collect()
    }

    /// Lets `lines` rows go at the top.
    pub fn scroll(&mut self, lines: usize) {
        let (cols, _) = self.size();
        for _ in 0..lines {
            self.rows.remove(0);
            self.rows.push(vec![Cell::default(); cols]);
        }
        self.cursor.row -= lines;
    }

    /// In what this screen (of abide) is not equal to `tmux`. Titles are left out: tmux invents one.
    pub fn differences(&self, tmux: &Self) -> Vec<Difference> {
        if self.size() != tmux.size() {
            return vec![Difference::Size { abide: self.size(), tmux: tmux.size() }];
        }
        let mut found = Vec::new();
        if self.alternate != tmux.alternate {
            found.push(Difference::Alternate { abide: self.alternate, tmux: tmux.alternate });
        }
        if self.cursor != tmux.cursor {
            found.push(Difference::Cursor { abide: self.cursor, tmux: tmux.cursor });
        }
        for (row, (ours, theirs)) in self.rows.iter().zip(&tmux.rows).enumerate() {
            for (col, (abide, tmux)) in ours.iter().zip(theirs).enumerate() {
                if abide != tmux {
                    found.push(Difference::Cell { row, col, abide: abide.clone(), tmux: tmux.clone() });
                }
            }
        }
        found
    }
}
