//! Putting characters on the screen: wrapping, wide characters, and characters that join the one before them.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::modes::TermMode;
use crate::parse::charset::Charset;
use crate::screen::cell::{CLUSTER_BASE, Cell};
use crate::screen::grid::split_wide;
use crate::vt::Vt;

/// A cluster grows no longer than this; further marks on it are dropped.
const MAX_CLUSTER: usize = 64;

/// How many columns a character takes. Unicode calls these invisible; the C libraries and terminals that programs are
/// written for give them a place, and a program that counts otherwise draws beside its text.
fn width_of(c: char) -> usize {
    match c {
        '\u{ad}' | '\u{ffa0}' => 1,
        '\u{3164}' => 2,
        _ => c.width().unwrap_or(0),
    }
}

impl Vt {
    /// Prints a run of bytes in 0x20..=0x7e.
    #[inline]
    pub(crate) fn print_text(&mut self, text: &[u8]) {
        let charset = self.charsets.current();
        let simple = self.modes.has(TermMode::Autowrap)
            && !self.modes.has(TermMode::Insert)
            && charset == Charset::Ascii;
        if !simple {
            for &byte in text {
                self.print_char(charset.map(byte));
            }
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            if self.caret.pending {
                self.wrap();
            }
            let (run, more) = rest.split_at(rest.len().min(self.cols() - self.caret.x));
            self.grid.write_ascii(self.caret.x, self.caret.y, run, self.pen);
            self.advance(run.len());
            rest = more;
        }
        self.last_char = text.last().map(|byte| char::from(*byte));
    }

    /// Prints any character that is not a control.
    pub(crate) fn print_char(&mut self, c: char) {
        let width = width_of(c);
        if self.may_join(c, width) && self.join(c, width) {
            return;
        }
        if width == 0 {
            return;
        }
        self.put(c as u32, width);
        self.last_char = Some(c);
    }

    /// Prints the last character again, `n` times.
    pub(crate) fn repeat(&mut self, n: usize) {
        let Some(c) = self.last_char else { return };
        // More than a screenful changes nothing that is visible.
        let n = n.min(self.cols() * self.rows());
        for _ in 0..n {
            self.print_char(c);
        }
    }

    #[inline]
    fn advance(&mut self, width: usize) {
        self.caret.x += width;
        if self.caret.x >= self.cols() {
            self.caret.x = self.cols() - 1;
            self.caret.pending = self.modes.has(TermMode::Autowrap);
        }
    }

    /// Goes on at the start of the next row.
    pub(crate) fn wrap(&mut self) {
        let at_edge = self.caret.x + 1 == self.cols();
        let stuck = self.caret.y + 1 == self.rows() && self.caret.y != self.margins.bottom;
        self.grid.set_wrapped(self.caret.y, at_edge && !stuck);
        self.caret.pending = false;
        self.index();
        self.caret.x = 0;
    }

    fn put(&mut self, code: u32, width: usize) {
        if self.caret.pending {
            self.wrap();
        }
        let cols = self.cols();
        if self.caret.x + width > cols {
            if self.modes.has(TermMode::Autowrap) {
                self.grid.erase(self.caret.y, self.caret.x, cols, Cell::default());
                self.wrap();
            }
            self.caret.x = self.caret.x.min(cols.saturating_sub(width));
        }
        if self.modes.has(TermMode::Insert) {
            self.insert_cells(width);
        }
        let (x, y, pen) = (self.caret.x, self.caret.y, self.pen);
        let row = self.grid.row_mut_to(y, x + width);
        split_wide(row, x, x + width);
        if width == 2 {
            row[x] = pen.wide(code);
            row[x + 1] = pen.tail();
        } else {
            row[x] = pen.narrow(code);
        }
        if x + width == cols {
            self.grid.set_wrapped(y, false);
        }
        self.caret.pending = false;
        self.advance(width);
    }

    /// Whether the character might belong to the cell before the cursor: a cheap test that lets nearly all text pass.
    ///
    /// Only emoji join across a character of their own width. Scripts whose letters do so by the rules of Unicode are
    /// left alone, because programs count a column for each of those letters.
    #[inline]
    fn may_join(&self, c: char, width: usize) -> bool {
        if width == 0 {
            return true;
        }
        if c < '\u{a9}' || !self.modes.has(TermMode::Graphemes) {
            return false;
        }
        matches!(c, '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}') || self.is_after_joiner()
    }

    /// Whether the cell before the cursor ends in a zero-width joiner.
    #[inline]
    fn is_after_joiner(&self) -> bool {
        let Some(x) = self.cell_before() else { return false };
        let Some(id) = self.grid.row(self.caret.y)[x].cluster() else { return false };
        self.clusters.get(id).is_some_and(|text| text.ends_with('\u{200d}'))
    }

    /// The column of the character just before the cursor.
    #[inline]
    fn cell_before(&self) -> Option<usize> {
        let last = if self.caret.pending { self.caret.x } else { self.caret.x.checked_sub(1)? };
        let continued = self.grid.row(self.caret.y)[last].is_continuation();
        if continued { last.checked_sub(1) } else { Some(last) }
    }

    /// Adds the character to the cell before the cursor, if the two are one grapheme. Returns whether it is dealt with.
    fn join(&mut self, c: char, width: usize) -> bool {
        let Some(x) = self.cell_before() else { return false };
        let y = self.caret.y;
        let cell = self.grid.row(y)[x];
        if cell.is_blank() {
            return false;
        }
        let (code, wide) = match self.joined(&cell, c, width) {
            Joined::Cluster { code, wide } => (code, wide),
            Joined::Apart => return false,
            Joined::NoRoom => return true,
        };
        if wide && self.modes.has(TermMode::Graphemes) && !cell.is_wide() && x + 2 <= self.cols() {
            let row = self.grid.row_mut_to(y, x + 2);
            split_wide(row, x, x + 2);
            row[x] = cell.wide(code);
            row[x + 1] = cell.tail();
            self.caret.x = x;
            self.caret.pending = false;
            self.advance(2);
        } else {
            self.grid.row_mut_to(y, x + 1)[x] = cell.with_code(code);
        }
        true
    }

    /// What the text of a cell and a character make together.
    fn joined(&mut self, cell: &Cell, c: char, width: usize) -> Joined {
        let memo = JoinMemo::slot(cell.code(), c);
        if let Some(known) = self.joins.0[memo].filter(|known| known.before == cell.code() && known.c == c) {
            return Joined::Cluster { code: known.code, wide: known.wide };
        }
        let mut buf = [0; MAX_CLUSTER];
        let mut first = [0; 4];
        let text = cell_text(&self.clusters, cell, &mut first).as_bytes();
        let len = text.len();
        if len + c.len_utf8() > MAX_CLUSTER {
            return if width == 0 { Joined::NoRoom } else { Joined::Apart };
        }
        buf[..len].copy_from_slice(text);
        let len = len + c.encode_utf8(&mut buf[len..]).len();
        let Ok(joined) = std::str::from_utf8(&buf[..len]) else { return Joined::Apart };
        if width > 0 && joined.graphemes(true).nth(1).is_some() {
            return Joined::Apart;
        }
        let Some(id) = self.cluster_id(joined) else { return Joined::NoRoom };
        let (code, wide) = (CLUSTER_BASE + id, joined.width() > 1);
        self.joins.0[memo] = Some(Join { before: cell.code(), c, code, wide });
        Joined::Cluster { code, wide }
    }
}

/// What two pieces of text make together.
enum Joined {
    /// A grapheme, shown by cells of this code, that wants two columns or one.
    Cluster {
        code: u32,
        wide: bool,
    },
    Apart,
    /// A grapheme that cannot be stored.
    NoRoom,
}

/// A join that was worked out before.
#[derive(Clone, Copy, Debug)]
struct Join {
    before: u32,
    c: char,
    code: u32,
    wide: bool,
}

/// The joins seen lately: text repeats the same few, and working one out takes a hundred times as long as finding it
/// here. Codes change their meaning when the table of clusters is tidied, so it must be emptied then.
#[derive(Clone, Debug)]
pub(crate) struct JoinMemo([Option<Join>; 64]);

impl Default for JoinMemo {
    fn default() -> Self {
        Self([None; 64])
    }
}

impl JoinMemo {
    fn slot(before: u32, c: char) -> usize {
        (before.wrapping_mul(31) ^ c as u32) as usize % 64
    }
}

/// The text of a cell; empty for a blank or for the right half of a wide character.
pub(crate) fn cell_text<'a>(
    clusters: &'a crate::screen::interner::Interner,
    cell: &Cell,
    buf: &'a mut [u8; 4],
) -> &'a str {
    if let Some(id) = cell.cluster() {
        return clusters.get(id).unwrap_or("\u{fffd}");
    }
    match cell.ch() {
        Some(c) => c.encode_utf8(buf),
        None => "",
    }
}
