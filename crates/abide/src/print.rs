//! How abide prints: sanitised tables, JSON, and a little colour where the terminal can show it.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use abide_model::text::sanitised_lines;
use abide_model::{sanitised, vars};
use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::error::VerbResult;

/// How a cell or a line stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TableTone {
    #[default]
    Plain,
    Strong,
    Faint,
    Good,
    Notice,
    Bad,
}

impl TableTone {
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
    /// The width to cut lines to; `None` if the output is not a terminal.
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
    pub fn json(&self, value: &impl Serialize) -> VerbResult {
        write(format!("{}\n", serde_json::to_string_pretty(value)?).as_bytes())
    }

    /// Prints one line.
    pub fn line(&self, text: impl AsRef<str>) -> VerbResult {
        self.toned_line(TableTone::Plain, text)
    }

    /// Prints one line in `tone`.
    pub fn toned_line(&self, tone: TableTone, text: impl AsRef<str>) -> VerbResult {
        write(format!("{}\n", self.paint(tone, &sanitised(text.as_ref()))).as_bytes())
    }

    /// Prints text of several lines that is not ours.
    pub fn text(&self, text: &str) -> VerbResult {
        write(sanitised_lines(text).as_bytes())
    }

    /// Prints text that is ours and already laid out: help, man pages, completions.
    pub fn raw(&self, text: &[u8]) -> VerbResult {
        write(text)
    }

    /// Prints `table`.
    pub fn table(&self, table: &Table) -> VerbResult {
        write(self.laid_out(table).as_bytes())
    }

    fn laid_out(&self, table: &Table) -> String {
        let mut text = String::new();
        let widths = table.widths(self.width);
        let header = table.header.iter().map(|h| TableCell::from((h, TableTone::Strong))).collect();
        for row in std::iter::once(&header).chain(&table.rows) {
            self.row(row, &widths, &mut text);
        }
        text
    }

    fn row(&self, row: &[TableCell], widths: &[usize], text: &mut String) {
        for (cell, width) in row.iter().zip(widths) {
            let shown = cell.within(*width);
            text.push_str(&self.paint(cell.tone, &shown));
            text.extend(std::iter::repeat_n(' ', width.saturating_sub(columns(&shown)) + GAP));
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }

    fn paint<'a>(&self, tone: TableTone, text: &'a str) -> Cow<'a, str> {
        if self.colour && tone != TableTone::Plain && !text.is_empty() {
            Cow::Owned(format!("{}{text}\x1b[0m", tone.code()))
        } else {
            Cow::Borrowed(text)
        }
    }
}

fn write(bytes: &[u8]) -> VerbResult {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}

/// What stands between two columns.
const GAP: usize = 2;
/// What a list takes at most, and what it keeps as long as another column can give way.
const LIST: std::ops::RangeInclusive<usize> = 16..=80;

/// What the last column keeps as long as another can give way.
const LAST: usize = 8;

/// What stands in one place of a table.
pub struct TableCell {
    /// Several parts are a list, of which the last are counted where there is no room for them.
    parts: Vec<String>,
    tone: TableTone,
}

impl<S: AsRef<str>> From<(S, TableTone)> for TableCell {
    fn from((text, tone): (S, TableTone)) -> Self {
        Self { parts: vec![sanitised(text.as_ref()).into_owned()], tone }
    }
}

impl TableCell {
    /// A list of `parts`.
    pub fn list(parts: impl IntoIterator<Item = String>) -> Self {
        let parts = parts.into_iter().map(|part| sanitised(&part).into_owned()).collect();
        Self { parts, tone: TableTone::Plain }
    }

    /// All parts, in one line.
    fn whole(&self) -> Cow<'_, str> {
        match self.parts.as_slice() {
            [one] => Cow::Borrowed(one),
            parts => Cow::Owned(parts.join(", ")),
        }
    }

    fn width(&self) -> usize {
        let width = columns(&self.whole());
        if self.parts.len() > 1 { width.min(*LIST.end()) } else { width }
    }

    /// The cell in at most `room` columns.
    fn within(&self, room: usize) -> Cow<'_, str> {
        let whole = self.whole();
        let [first, rest @ ..] = self.parts.as_slice() else { return whole };
        if columns(&whole) <= room {
            return whole;
        }
        if rest.is_empty() {
            return Cow::Owned(cut(&whole, room));
        }
        let counted = |left: usize| format!(", +{}", self.parts.len() - left);
        let some = (1..self.parts.len()).rev().map(|kept| self.parts[..kept].join(", ") + &counted(kept));
        Cow::Owned(some.into_iter().find(|some| some.width() <= room).unwrap_or_else(|| {
            let rest = counted(1);
            cut(first, room.saturating_sub(rest.width())) + &rest
        }))
    }
}

/// Rows under a header, columns as wide as their widest cell.
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<TableCell>>,
}

impl Table {
    /// An empty table with these columns.
    pub fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. Whatever the cells hold, they print as one harmless line.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<TableCell>>) {
        let row: Vec<TableCell> = cells.into_iter().map(Into::into).collect();
        debug_assert_eq!(row.len(), self.header.len());
        self.rows.push(row);
    }

    /// How wide each column is in a line of `limit`. Lists give way first, then the last column, then whatever is widest; the
    /// first one never does, for by it the operator calls things.
    fn widths(&self, limit: Option<usize>) -> Vec<usize> {
        let column = |at: usize| self.rows.iter().filter_map(move |row| row.get(at));
        let natural =
            |(at, header): (usize, &&str)| column(at).map(TableCell::width).fold(header.width(), usize::max);
        let mut widths: Vec<usize> = self.header.iter().enumerate().map(natural).collect();
        let last = widths.len().saturating_sub(1);
        let gaps = GAP * last;
        let is_list = |at: usize| column(at).any(|cell| cell.parts.len() > 1);
        let mut excess = limit.map_or(0, |limit| (widths.iter().sum::<usize>() + gaps).saturating_sub(limit));
        while excess > 0 {
            let gives = |(at, width): &(usize, usize)| {
                let first = is_list(*at) && *width > *LIST.start();
                (first, *at == last && *width > LAST, *width)
            };
            let Some((at, 2..)) = widths.iter().copied().enumerate().skip(1).max_by_key(gives) else { break };
            widths[at] -= 1;
            excess -= 1;
        }
        widths
    }
}

/// How wide sanitised `text` is. In ASCII without control characters each takes one column, which most text is.
fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
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
        table.row([("k7p9m2xq", TableTone::Good), ("a\x1b[31mred", TableTone::Plain)]);
        table.row([("日本", TableTone::Plain), ("b", TableTone::Plain)]);
        table
    }

    fn printed(printer: &Printer, table: &Table) -> String {
        printer.laid_out(table).split_once('\n').unwrap().1.to_owned()
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

    #[test]
    fn a_list_gives_way_before_the_columns_beside_it() {
        let mut table = Table::new(&["ID", "STATUS", "SESSIONS", "SCOPE"]);
        let sessions = ["claude (idle 5m)", "bash (idle 2h)", "a, b"].map(str::to_owned);
        let cells = |scope| {
            let [id, status, scope] =
                ["k7p9m2xq", "restorable (stopped)", scope].map(|cell| (cell, TableTone::Plain));
            [id.into(), status.into(), TableCell::list(sessions.clone()), scope.into()]
        };
        table.row(cells("/home/someone/shop"));
        let seen = |width| printed(&Printer { colour: false, width }, &table);
        let whole = seen(None);
        assert!(whole.contains("claude (idle 5m), bash (idle 2h), a, b  /home"), "{whole}");
        let narrow = seen(Some(80));
        let expected = "k7p9m2xq  restorable (stopped)  claude (idle 5m), +2          /home/someone/shop\n";
        assert_eq!(narrow, expected);
        let all = Printer { colour: false, width: Some(60) }.laid_out(&table);
        assert!(all.lines().all(|line| line.width() <= 60), "{all}");
        assert!(all.contains("claude (idl…, +2"), "{all}");
    }

    #[test]
    fn a_long_list_is_counted_even_without_a_terminal() {
        let mut table = Table::new(&["ID", "SESSIONS"]);
        let tabs = (1..=13).map(|n| format!("bash-{n} (idle 2h)"));
        table.row([("k7p9m2xq", TableTone::Plain).into(), TableCell::list(tabs)]);
        let line = printed(&Printer { colour: false, width: None }, &table);
        assert!(line.width() < 100 && line.ends_with(", +9\n"), "{line}");
    }
}
