//! The lines that left the top of the primary screen.
//!
//! Lines are stored encoded, in pages, and decoded when they are read. A page is dropped whole, so forgetting the
//! oldest line costs nothing most of the time. All lines were written at one width; when the width changes they are all
//! wrapped anew at once, which takes a few milliseconds for ten thousand of them because plain lines are cut as bytes.
//!
//! The limit counts lines as the program wrote them, not the rows that a width makes of them: a narrow view makes more
//! rows and loses nothing. A bound on the bytes stands beside it, for lines without end.

use std::collections::VecDeque;

use crate::screen::cell::Cell;
use crate::screen::grid::RowView;
use crate::screen::line;

/// A page is closed when it holds this many bytes or lines.
const PAGE_BYTES: usize = 32 << 10;
const PAGE_LINES: usize = 512;
/// What a row costs beside its text.
const ROW_COST: usize = size_of::<u32>();
/// Bytes that the rows may take up: so many for each line of the limit, within these bounds. A checkpoint of the largest
/// still fits into its slot.
const BYTES_PER_LINE: usize = 512;
const LEAST_MAX_BYTES: usize = 32 << 20;
const MOST_MAX_BYTES: usize = 192 << 20;

/// A run of consecutive lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScrollbackPage {
    pub(crate) bytes: Vec<u8>,
    /// Where each line ends.
    pub(crate) ends: Vec<u32>,
    /// Lines in all pages before this one, counted since the beginning.
    pub(crate) first: u64,
    /// Some line holds an id of a cluster or a link.
    pub(crate) has_ids: bool,
    /// Ids in this page are no longer valid: the tables ran full.
    pub(crate) ids_lost: bool,
}

impl ScrollbackPage {
    fn line(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }

    fn size(&self) -> usize {
        self.bytes.len() + self.ends.len() * ROW_COST
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= PAGE_BYTES || self.ends.len() >= PAGE_LINES
    }
}

/// The lines that left the screen, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Scrollback {
    pages: VecDeque<ScrollbackPage>,
    /// Number of the oldest line that is kept, counted as in [`ScrollbackPage::first`].
    start: u64,
    /// Number that the next line gets.
    end: u64,
    /// Rows among the kept ones that end a line of the program.
    complete: usize,
    /// Bytes of all pages, with what their rows cost beside the text.
    bytes: usize,
    /// Lines of the program that are kept.
    limit: usize,
    cols: usize,
}

impl Scrollback {
    pub(crate) fn new(limit: usize, cols: usize) -> Self {
        Self { pages: VecDeque::new(), start: 0, end: 0, complete: 0, bytes: 0, limit, cols }
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    fn max_bytes(&self) -> usize {
        self.limit.saturating_mul(BYTES_PER_LINE).clamp(LEAST_MAX_BYTES, MOST_MAX_BYTES)
    }

    /// Adds a row that the program scrolled off; what is too much goes at the other end.
    pub(crate) fn push(&mut self, row: RowView, first_char: impl Fn(u32) -> char) {
        self.append(row, first_char);
        self.trim();
    }

    /// Adds a row that a change of size moved here. It may be moved back, so nothing goes for it.
    pub(crate) fn append(&mut self, row: RowView, first_char: impl Fn(u32) -> char) {
        if self.limit == 0 {
            return;
        }
        let page = self.open_page();
        page.has_ids |= line::encode(row, first_char, &mut page.bytes);
        self.close_row(row.wrapped);
    }

    fn open_page(&mut self) -> &mut ScrollbackPage {
        if self.pages.back().is_none_or(ScrollbackPage::is_full) {
            if let Some(full) = self.pages.back_mut() {
                full.bytes.shrink_to_fit();
                full.ends.shrink_to_fit();
            }
            self.pages.push_back(ScrollbackPage { first: self.end, ..ScrollbackPage::default() });
        }
        let last = self.pages.len() - 1;
        &mut self.pages[last]
    }

    fn close_row(&mut self, wrapped: bool) {
        if let Some(page) = self.pages.back_mut() {
            let start = page.ends.last().map_or(0, |end| *end as usize);
            self.bytes += page.bytes.len() - start + ROW_COST;
            page.ends.push(page.bytes.len() as u32);
            self.end += 1;
        }
        self.complete += usize::from(!wrapped);
    }

    /// Forgets the oldest rows until both bounds are kept.
    #[inline]
    fn trim(&mut self) {
        while self.complete > self.limit {
            self.forget_oldest();
        }
        self.trim_bytes();
    }

    #[inline]
    fn trim_bytes(&mut self) {
        while self.bytes > self.max_bytes() && self.pages.len() > 1 {
            let second = self.pages[1].first;
            while self.start < second {
                self.forget_oldest();
            }
        }
    }

    fn forget_oldest(&mut self) {
        let Some(page) = self.pages.front() else { return };
        self.complete -= usize::from(!line::is_wrapped(page.line((self.start - page.first) as usize)));
        self.start += 1;
        if page.first + page.ends.len() as u64 <= self.start {
            self.bytes -= page.size();
            self.pages.pop_front();
        }
    }

    /// The encoded line at `i`, 0 being the oldest, and whether its ids are valid.
    fn find(&self, i: usize) -> Option<(&[u8], bool)> {
        let number = self.start + i as u64;
        if number >= self.end {
            return None;
        }
        let page = &self.pages[self.pages.partition_point(|page| page.first <= number) - 1];
        Some((page.line((number - page.first) as usize), !page.ids_lost))
    }

    /// Appends the cells of line `i` to `out`; returns whether its text goes on in the next line.
    pub(crate) fn read(&self, i: usize, out: &mut Vec<Cell>) -> bool {
        let Some((line, ids)) = self.find(i) else { return false };
        line::decode(line, ids, out);
        line::is_wrapped(line)
    }

    pub(crate) fn is_wrapped(&self, i: usize) -> bool {
        self.find(i).is_some_and(|(line, _)| line::is_wrapped(line))
    }

    /// Takes the newest line away again. Returns its cells and whether its text goes on in the next line.
    pub(crate) fn pop(&mut self) -> Option<(Vec<Cell>, bool)> {
        let last = self.len().checked_sub(1)?;
        let mut cells = Vec::new();
        let wrapped = self.read(last, &mut cells);
        self.end -= 1;
        self.complete -= usize::from(!wrapped);
        if let Some(page) = self.pages.back_mut() {
            let before = page.size();
            page.ends.pop();
            page.bytes.truncate(page.ends.last().map_or(0, |end| *end as usize));
            self.bytes -= before - page.size();
            if page.ends.is_empty() {
                self.pages.pop_back();
            }
        }
        Some((cells, wrapped))
    }

    /// Marks the newest line as not going on in the next.
    pub(crate) fn break_last(&mut self) {
        if self.len() > 0
            && let Some(page) = self.pages.back_mut()
        {
            let start = page.ends.iter().rev().nth(1).map_or(0, |end| *end as usize);
            self.complete += usize::from(line::is_wrapped(&page.bytes[start..]));
            line::end(&mut page.bytes[start..]);
            self.trim();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        (self.start, self.complete, self.bytes) = (self.end, 0, 0);
    }

    /// Wraps every line anew for another width.
    pub(crate) fn rewrap(&mut self, cols: usize, first_char: impl Fn(u32) -> char) {
        if cols == self.cols {
            return;
        }
        let old = std::mem::replace(self, Self::new(self.limit, cols));
        let mut logical = Logical::default();
        for i in 0..old.len() {
            let Some((line, ids)) = old.find(i) else { break };
            let wrapped = line::is_wrapped(line);
            match line::plain_text(line) {
                Some(text) if logical.cells.is_empty() => logical.extend_text(text, wrapped, old.cols),
                _ => logical.extend_cells(line, ids, wrapped, old.cols),
            }
            if !wrapped || i + 1 == old.len() {
                self.push_logical(&mut logical, wrapped, &first_char);
                self.trim_bytes();
            }
        }
    }

    fn push_logical(&mut self, logical: &mut Logical, open: bool, first_char: &impl Fn(u32) -> char) {
        let cols = self.cols;
        if logical.cells.is_empty() {
            let mut rest = &logical.text[..];
            while rest.len() > cols {
                let (head, tail) = rest.split_at(cols);
                self.push_plain(head, true);
                rest = tail;
            }
            self.push_plain(rest, open);
        } else {
            let mut rows = crate::screen::reflow::split(&logical.cells, cols).peekable();
            while let Some(row) = rows.next() {
                let wrapped = rows.peek().is_some() || open;
                self.append(RowView { cells: row, wrapped, plain: false }, first_char);
            }
        }
        logical.text.clear();
        logical.cells.clear();
    }

    fn push_plain(&mut self, text: &[u8], wrapped: bool) {
        if self.limit > 0 {
            line::encode_plain(text, wrapped, &mut self.open_page().bytes);
            self.close_row(wrapped);
        }
    }

    /// Every cell of every line that may hold an id still valid.
    pub(crate) fn for_each_cell_with_ids(&self, mut visit: impl FnMut(&Cell)) {
        let mut cells = Vec::new();
        for page in self.pages.iter().filter(|page| page.has_ids && !page.ids_lost) {
            for i in 0..page.ends.len() {
                cells.clear();
                line::decode(page.line(i), true, &mut cells);
                cells.iter().for_each(&mut visit);
            }
        }
    }

    /// Gives up the ids of the older half of the pages that hold any; returns whether there was such a page.
    pub(crate) fn lose_older_ids(&mut self) -> bool {
        let holds_ids = |page: &&mut ScrollbackPage| page.has_ids && !page.ids_lost;
        let count = self.pages.iter_mut().filter(holds_ids).count();
        for page in self.pages.iter_mut().filter(holds_ids).take(count.div_ceil(2)) {
            page.ids_lost = true;
        }
        count > 0
    }

    /// The pages, and how many lines of the first one are already forgotten.
    pub(crate) fn parts(&self) -> (impl ExactSizeIterator<Item = &ScrollbackPage>, usize) {
        let skipped = self.pages.front().map_or(0, |page| self.start - page.first);
        (self.pages.iter(), skipped as usize)
    }

    /// Takes over pages as [`Scrollback::parts`] gave them. Fails if a page does not fit together.
    pub(crate) fn refill(&mut self, pages: Vec<ScrollbackPage>, skipped: usize) -> Option<()> {
        let mut end = 0;
        for mut page in pages {
            let ordered = page.ends.is_sorted() && page.ends.last().copied() == Some(page.bytes.len() as u32);
            if !ordered {
                return None;
            }
            page.first = end;
            end += page.ends.len() as u64;
            self.pages.push_back(page);
        }
        self.end = end;
        self.start = 0;
        self.bytes = self.pages.iter().map(ScrollbackPage::size).sum();
        let ends_line = |page: &ScrollbackPage, i| !line::is_wrapped(page.line(i));
        let complete = |page: &ScrollbackPage| (0..page.ends.len()).filter(|i| ends_line(page, *i)).count();
        self.complete = self.pages.iter().map(complete).sum();
        let skipped = (skipped as u64).min(end);
        while self.start < skipped || (self.limit == 0 && self.start < end) {
            self.forget_oldest();
        }
        self.trim();
        Some(())
    }

    /// Bytes that the lines take up.
    pub(crate) fn memory(&self) -> usize {
        let page = |page: &ScrollbackPage| {
            page.bytes.capacity() + page.ends.capacity() * 4 + size_of::<ScrollbackPage>()
        };
        self.pages.iter().map(page).sum()
    }
}

/// A line as the program wrote it, before it was wrapped: as bytes while it is plain, as cells from then on.
#[derive(Default)]
struct Logical {
    text: Vec<u8>,
    cells: Vec<Cell>,
}

impl Logical {
    fn extend_text(&mut self, text: &[u8], wrapped: bool, cols: usize) {
        self.text.extend_from_slice(text);
        if wrapped {
            // A wrapped line was full; the blanks at its end were only left out in storage.
            self.text.resize(self.text.len() + cols.saturating_sub(text.len()), 0);
        }
    }

    fn extend_cells(&mut self, line: &[u8], ids: bool, wrapped: bool, cols: usize) {
        let text = std::mem::take(&mut self.text);
        self.cells.extend(text.iter().map(|&byte| Cell::default().narrow(u32::from(byte))));
        let start = self.cells.len();
        line::decode(line, ids, &mut self.cells);
        let len = self.cells.len() - start;
        if wrapped {
            self.cells.resize(start + cols.max(len), Cell::default());
        }
        crate::screen::reflow::drop_spacer(&mut self.cells, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(limit: usize, cols: usize, lines: &[(&str, bool)]) -> Scrollback {
        let mut back = Scrollback::new(limit, cols);
        for (text, wrapped) in lines {
            let cells: Vec<Cell> = text.chars().map(|c| Cell::default().narrow(c as u32)).collect();
            back.push(RowView { cells: &cells, wrapped: *wrapped, plain: text.is_ascii() }, |_| '?');
        }
        back
    }

    fn texts(back: &Scrollback) -> Vec<String> {
        (0..back.len())
            .map(|i| {
                let mut cells = Vec::new();
                let wrapped = back.read(i, &mut cells);
                let mut text: String = cells.iter().map(|cell| cell.ch().unwrap_or(' ')).collect();
                text.push_str(if wrapped { "+" } else { "" });
                text
            })
            .collect()
    }

    #[test]
    fn only_the_newest_lines_are_kept() {
        let lines: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
        let pairs: Vec<(&str, bool)> = lines.iter().map(|text| (text.as_str(), false)).collect();
        let back = filled(700, 80, &pairs);
        assert_eq!(texts(&back), lines[4300..]);
        assert!(back.pages.len() <= 3);
        for n in 1..20 {
            assert_eq!(filled(7, 80, &pairs[..n]).len(), n.min(7));
        }
    }

    #[test]
    fn wrapped_lines_are_joined_and_cut_anew() {
        for odd in ["e", "é"] {
            let first = format!("abcd{odd}");
            let mut back = filled(100, 5, &[(&first, true), ("fgh", false), ("xy", false)]);
            back.rewrap(3, |_| '?');
            assert_eq!(texts(&back), ["abc+", &format!("d{odd}f+"), "gh", "xy"]);
            back.rewrap(9, |_| '?');
            assert_eq!(texts(&back), [&format!("{first}fgh"), "xy"]);
        }
    }

    #[test]
    fn the_limit_counts_lines_and_not_the_rows_that_a_width_makes_of_them() {
        let lines: Vec<String> = (0..50).map(|n| format!("{n:02}") + &"x".repeat(38)).collect();
        let pairs: Vec<(&str, bool)> = lines.iter().map(|text| (text.as_str(), false)).collect();
        let mut back = filled(30, 40, &pairs);
        for cols in [2, 7, 39, 80] {
            back.rewrap(cols, |_| '?');
            assert_eq!(back.complete, 30);
        }
        assert_eq!(texts(&back), lines[20..]);
    }

    #[test]
    fn a_line_without_end_is_bounded_by_its_bytes() {
        let row: Vec<Cell> = vec![Cell::default().narrow('x' as u32); 2000];
        let mut back = Scrollback::new(5, 2000);
        for _ in 0..3 * LEAST_MAX_BYTES / 2000 {
            back.push(RowView { cells: &row, wrapped: true, plain: true }, |_| '?');
        }
        assert_eq!(back.bytes, back.pages.iter().map(ScrollbackPage::size).sum::<usize>());
        assert!(back.bytes <= LEAST_MAX_BYTES && back.bytes > LEAST_MAX_BYTES / 2);
        back.push(RowView { cells: &row, wrapped: false, plain: true }, |_| '?');
        assert_eq!(back.complete, 1);
    }

    #[test]
    fn popping_gives_back_the_newest_line() {
        let mut back = filled(100, 5, &[("one", false), ("two", true)]);
        let (cells, wrapped) = back.pop().unwrap();
        assert_eq!((cells.len(), wrapped), (3, true));
        assert_eq!(texts(&back), ["one"]);
        assert!(back.pop().is_some() && back.pop().is_none());
    }
}
