//! How abide prints: sanitised tables, JSON, and a little colour where the terminal can show it.

use std::io::{self, IsTerminal, Write};

use abide_model::text::sanitised_lines;
use abide_model::{sanitised, vars};
use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How a cell or a line stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    #[default]
    Plain,
    Strong,
    Faint,
    Good,
    Notice,
    Bad,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\x1b[1m",
            Self::Faint => "\x1b[2m",
            Self::Good => "\x1b[32m",
            Self::Notice => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}

/// Standard output, and what it can show.
pub struct Printer {
    colour: bool,
    /// The width to cut lines to; `None` where nobody looks at the lines.
    width: Option<usize>,
}

impl Printer {
    /// For the standard output we have.
    pub fn new() -> Self {
        let terminal = io::stdout().is_terminal();
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os(vars::TERM).is_none_or(|term| term == "dumb");
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
        Self {
            colour: terminal && !set(vars::NO_COLOR) && !dumb,
            width: size.filter(|_| terminal).map(|size| usize::from(size.ws_col)).filter(|cols| *cols > 0),
        }
    }

    /// Prints `value` as indented JSON. Strings are escaped by the format itself.
    pub fn json(&self, value: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string_pretty(value)?;
        text.push('\n');
        write(text.as_bytes())
    }

    /// Prints one line.
    pub fn line(&self, text: impl AsRef<str>) -> io::Result<()> {
        self.toned_line(Tone::Plain, text)
    }

    /// Prints one line in `tone`.
    pub fn toned_line(&self, tone: Tone, text: impl AsRef<str>) -> io::Result<()> {
        let mut line = self.paint(tone, &sanitised(text.as_ref()));
        line.push('\n');
        write(line.as_bytes())
    }

    /// Prints text of several lines that is not ours.
    pub fn text(&self, text: &str) -> io::Result<()> {
        write(sanitised_lines(text).as_bytes())
    }

    /// Prints text that is ours and already laid out: help, man pages, completions.
    pub fn raw(&self, text: &[u8]) -> io::Result<()> {
        write(text)
    }

    /// Prints `table`.
    pub fn table(&self, table: &Table) -> io::Result<()> {
        let mut text = String::new();
        let widths = table.widths();
        let header = table.header.iter().map(|h| ((*h).to_owned(), Tone::Strong)).collect();
        for row in std::iter::once(&header).chain(&table.rows) {
            self.row(row, &widths, &mut text);
        }
        write(text.as_bytes())
    }

    fn row(&self, row: &[Cell], widths: &[usize], text: &mut String) {
        let mut used = 0;
        for (i, ((cell, tone), width)) in row.iter().zip(widths).enumerate() {
            let last = i + 1 == widths.len();
            let room = self.width.map_or(usize::MAX, |width| width.saturating_sub(used));
            let shown = if last { cut(cell, room) } else { cell.clone() };
            text.push_str(&self.paint(*tone, &shown));
            if !last {
                let gap = width - shown.width() + 2;
                text.extend(std::iter::repeat_n(' ', gap));
                used += width + 2;
            }
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }

    fn paint(&self, tone: Tone, text: &str) -> String {
        if self.colour && tone != Tone::Plain && !text.is_empty() {
            format!("{}{text}\x1b[0m", tone.code())
        } else {
            text.to_owned()
        }
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

type Cell = (String, Tone);

/// Rows under a header, columns as wide as their widest cell.
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table with these columns.
    pub fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. Whatever the cells hold, they print as one harmless line.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = (S, Tone)>) {
        let row: Vec<Cell> =
            cells.into_iter().map(|(cell, tone)| (sanitised(cell.as_ref()).into_owned(), tone)).collect();
        debug_assert_eq!(row.len(), self.header.len());
        self.rows.push(row);
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.header.iter().map(|h| h.width()).collect();
        for row in &self.rows {
            for (width, (cell, _)) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        widths
    }
}

/// `text` in at most `room` columns, with a sign that something was cut.
fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut left = room.saturating_sub(1);
    let kept: String = text
        .chars()
        .take_while(|c| match left.checked_sub(c.width().unwrap_or(0)) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        })
        .collect();
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["ID", "SCOPE"]);
        table.row([("k7p9m2xq", Tone::Good), ("a\x1b[31mred", Tone::Plain)]);
        table.row([("日本", Tone::Plain), ("b", Tone::Plain)]);
        table
    }

    fn printed(printer: &Printer, table: &Table) -> String {
        let mut text = String::new();
        let widths = table.widths();
        for row in &table.rows {
            printer.row(row, &widths, &mut text);
        }
        text
    }

    #[test]
    fn columns_line_up_whatever_is_in_the_cells() {
        let plain = Printer { colour: false, width: None };
        assert_eq!(printed(&plain, &table()), "k7p9m2xq  a·[31mred\n日本      b\n");
    }

    #[test]
    fn colour_is_only_ours() {
        let colour = Printer { colour: true, width: None };
        assert_eq!(printed(&colour, &table()).lines().next().unwrap(), "\x1b[32mk7p9m2xq\x1b[0m  a·[31mred");
    }

    #[test]
    fn the_last_column_is_cut_to_the_terminal() {
        let narrow = Printer { colour: false, width: Some(14) };
        assert_eq!(printed(&narrow, &table()).lines().next().unwrap(), "k7p9m2xq  a·[…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 0), "…");
    }
}
