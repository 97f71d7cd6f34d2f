//! How a line is written down once it has left the screen: its text, with marks where the style changes.
//!
//! A line is a header byte and then tokens. In a plain line every byte is a cell: ASCII, or 0 for a blank. In any other
//! line a byte of 0x20 or more starts a character of the current style, and the bytes below are the marks listed here.
//! Trailing blanks are not written.

use crate::options::MAX_SIDE;
use crate::parse::utf8::{Decoded, decode as decode_char};
use crate::screen::cell::{Attrs, CLUSTER_BASE, CODE_END, Cell, Color, MAX_LINK, Style, Underline};
use crate::screen::grid::RowView;

const WRAPPED: u8 = 1;
const PLAIN: u8 = 2;

/// A cell that was erased.
const BLANK: u8 = 0;
/// A new style follows.
const STYLE: u8 = 1;
/// The next character is wide, and its right half follows it without being written.
const WIDE: u8 = 2;
/// The next character is the left half of a wide one whose right half is not there.
const HALF: u8 = 3;
/// A right half on its own.
const TAIL: u8 = 4;
/// An id of a grapheme cluster follows, then its first character.
const CLUSTER: u8 = 5;
/// The last cell again, as many times as the number that follows.
const REPEAT: u8 = 6;

const HAS_FG: u8 = 1;
const HAS_BG: u8 = 1 << 1;
const HAS_UNDERLINE_COLOR: u8 = 1 << 2;
const HAS_ATTRS: u8 = 1 << 3;
const HAS_LINK: u8 = 1 << 4;

/// Runs shorter than this are written out: the mark would cost as much.
const MIN_RUN: usize = 4;

/// Appends a row to `out`. Returns whether it holds ids of clusters or links.
///
/// `first_char` gives the first character of a cluster, which stands for it once its id is no longer known.
pub(crate) fn encode(row: RowView, first_char: impl Fn(u32) -> char, out: &mut Vec<u8>) -> bool {
    let blanks = row.cells.iter().rev().take_while(|cell| cell.is_pristine()).count();
    let cells = &row.cells[..row.cells.len() - blanks];
    let wrapped = u8::from(row.wrapped) * WRAPPED;
    if row.plain {
        out.push(wrapped | PLAIN);
        out.extend(cells.iter().map(|cell| cell.code() as u8));
        return false;
    }
    out.push(wrapped);
    let mut encoder = Encoder { out, pen: Cell::default(), has_ids: false };
    let mut at = 0;
    while at < cells.len() {
        let cell = cells[at];
        encoder.style(cell);
        let ascii = cells[at..].iter().take_while(|cell| cell.is_ascii_in(&encoder.pen)).count();
        if ascii > 0 {
            encoder.out.extend(cells[at..at + ascii].iter().map(|cell| cell.code() as u8));
            at += ascii;
            continue;
        }
        if cell.is_wide() {
            let whole = cells.get(at + 1) == Some(&cell.tail());
            encoder.out.push(if whole { WIDE } else { HALF });
            encoder.text(cell, &first_char);
            at += 1 + usize::from(whole);
            continue;
        }
        encoder.text(cell, &first_char);
        let run = cells[at..].iter().take_while(|other| **other == cell).count();
        if run >= MIN_RUN {
            encoder.out.push(REPEAT);
            put_number(encoder.out, run as u32 - 1);
            at += run;
        } else {
            at += 1;
        }
    }
    encoder.has_ids
}

struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    pen: Cell,
    has_ids: bool,
}

impl Encoder<'_> {
    fn text(&mut self, cell: Cell, first_char: &impl Fn(u32) -> char) {
        if cell.is_continuation() {
            self.out.push(TAIL);
        } else if let Some(id) = cell.cluster() {
            self.has_ids = true;
            self.out.push(CLUSTER);
            put_number(self.out, id);
            self.char(first_char(id));
        } else if let Some(c) = cell.ch() {
            self.char(c);
        } else {
            self.out.push(BLANK);
        }
    }

    fn char(&mut self, c: char) {
        self.out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }

    #[inline]
    fn style(&mut self, cell: Cell) {
        let pen = cell.narrow(0);
        if pen != self.pen {
            self.pen = pen;
            self.new_style(pen);
        }
    }

    fn new_style(&mut self, pen: Cell) {
        self.out.push(STYLE);
        let mask_at = self.out.len();
        self.out.push(0);
        let style = pen.style();
        let attrs = style.attrs.bits() | u16::from(style.underline.sgr()) << 12;
        let mut mask = 0;
        for (bit, color) in
            [(HAS_FG, style.fg), (HAS_BG, style.bg), (HAS_UNDERLINE_COLOR, style.underline_color)]
        {
            match color {
                Color::Default => continue,
                Color::Indexed(n) => self.out.extend_from_slice(&[1, n]),
                Color::Rgb(r, g, b) => self.out.extend_from_slice(&[2, r, g, b]),
            }
            mask |= bit;
        }
        if attrs != 0 {
            mask |= HAS_ATTRS;
            self.out.extend_from_slice(&attrs.to_le_bytes());
        }
        if pen.link_id() != 0 {
            mask |= HAS_LINK;
            self.has_ids = true;
            put_number(self.out, u32::from(pen.link_id()));
        }
        self.out[mask_at] = mask;
    }
}

/// Whether the text of a line goes on in the next one.
pub(crate) fn is_wrapped(line: &[u8]) -> bool {
    line.first().is_some_and(|header| header & WRAPPED != 0)
}

/// Marks a line as not going on in the next one.
pub(crate) fn end(line: &mut [u8]) {
    if let Some(header) = line.first_mut() {
        *header &= !WRAPPED;
    }
}

/// The cells of a plain line, one byte each.
pub(crate) fn plain_text(line: &[u8]) -> Option<&[u8]> {
    let (header, text) = line.split_first()?;
    (header & PLAIN != 0).then_some(text)
}

/// Appends a plain line to `out`.
pub(crate) fn encode_plain(text: &[u8], wrapped: bool, out: &mut Vec<u8>) {
    out.push(if wrapped { WRAPPED | PLAIN } else { PLAIN });
    let blanks = text.iter().rev().take_while(|byte| **byte == 0).count();
    out.extend_from_slice(&text[..text.len() - blanks]);
}

/// Appends the cells of a line to `out`; with `ids` false, clusters show their first character and links are dropped.
///
/// Bytes that no encoder wrote give some cells or other, never a panic and never more than a screen can hold.
pub(crate) fn decode(line: &[u8], ids: bool, out: &mut Vec<Cell>) {
    if let Some(text) = plain_text(line) {
        let text = &text[..text.len().min(usize::from(MAX_SIDE))];
        out.extend(text.iter().map(|&byte| Cell::default().narrow(printable(u32::from(byte)))));
        return;
    }
    let bytes = line.get(1..).unwrap_or_default();
    LineDecoder { bytes, ids, pen: Cell::default(), room: usize::from(MAX_SIDE) + 1 }.run(out);
}

struct LineDecoder<'a> {
    bytes: &'a [u8],
    ids: bool,
    pen: Cell,
    room: usize,
}

impl LineDecoder<'_> {
    fn run(mut self, out: &mut Vec<Cell>) {
        while self.room > 1
            && let Some(mark) = self.next()
        {
            match mark {
                STYLE => self.style(),
                REPEAT => {
                    let n = (self.number() as usize).min(self.room - 1);
                    let last = out.last().copied().unwrap_or_default();
                    self.room -= n;
                    out.extend(std::iter::repeat_n(last, n));
                }
                WIDE => {
                    let code = self.code();
                    out.push(self.pen.wide(code));
                    out.push(self.pen.tail());
                    self.room -= 2;
                }
                HALF => {
                    let code = self.code();
                    self.push(self.pen.wide(code), out);
                }
                TAIL => self.push(self.pen.tail(), out),
                BLANK => self.push(self.pen, out),
                0x20..=0x7e => {
                    let more = self
                        .bytes
                        .iter()
                        .take(self.room - 2)
                        .take_while(|b| matches!(b, 0x20..=0x7e))
                        .count();
                    let (run, rest) = self.bytes.split_at(more);
                    out.push(self.pen.narrow(u32::from(mark)));
                    out.extend(run.iter().map(|byte| self.pen.narrow(u32::from(*byte))));
                    self.bytes = rest;
                    self.room -= 1 + more;
                }
                byte => {
                    let code = self.code_from(byte);
                    self.push(self.pen.narrow(code), out);
                }
            }
        }
    }

    fn push(&mut self, cell: Cell, out: &mut Vec<Cell>) {
        out.push(cell);
        self.room -= 1;
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or_default()
    }

    fn number(&mut self) -> u32 {
        let mut number = 0;
        for shift in [0, 7, 14, 21] {
            let byte = self.byte();
            number |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    fn code(&mut self) -> u32 {
        let first = self.byte();
        self.code_from(first)
    }

    fn code_from(&mut self, first: u8) -> u32 {
        if first == CLUSTER {
            let id = self.number();
            let base = self.byte();
            let base = self.char_from(base);
            let code = CLUSTER_BASE.saturating_add(id);
            return if self.ids && code < CODE_END { code } else { base };
        }
        self.char_from(first)
    }

    fn char_from(&mut self, first: u8) -> u32 {
        if first < 0x80 {
            return printable(u32::from(first));
        }
        let mut buf = [first, 0, 0, 0];
        let more = self.bytes.len().min(3);
        buf[1..=more].copy_from_slice(&self.bytes[..more]);
        match decode_char(&buf[..=more]) {
            Decoded::Char(c, len) => {
                self.bytes = &self.bytes[len - 1..];
                printable(c as u32)
            }
            _ => char::REPLACEMENT_CHARACTER as u32,
        }
    }

    fn color(&mut self) -> Color {
        match self.byte() {
            1 => Color::Indexed(self.byte()),
            2 => Color::Rgb(self.byte(), self.byte(), self.byte()),
            _ => Color::Default,
        }
    }

    fn style(&mut self) {
        let mask = self.byte();
        let mut style = Style::default();
        if mask & HAS_FG != 0 {
            style.fg = self.color();
        }
        if mask & HAS_BG != 0 {
            style.bg = self.color();
        }
        if mask & HAS_UNDERLINE_COLOR != 0 {
            style.underline_color = self.color();
        }
        if mask & HAS_ATTRS != 0 {
            let bits = u16::from_le_bytes([self.byte(), self.byte()]);
            style.attrs = Attrs::from_bits(bits);
            style.underline = Underline::from_sgr(bits >> 12);
        }
        self.pen = Cell::default();
        self.pen.restyle(style);
        if mask & HAS_LINK != 0 {
            let link = self.number().min(u32::from(MAX_LINK)) as u16;
            if self.ids {
                self.pen.set_link(link);
            }
        }
    }
}

/// The code itself, or a blank for a control character: a damaged line must not reach a terminal as commands.
pub(crate) fn printable(code: u32) -> u32 {
    if matches!(code, 0x20..=0x7e | 0xa0..) { code } else { 0 }
}

/// Appends a number, seven bits to a byte.
fn put_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(cells: &[Cell], wrapped: bool) -> Vec<Cell> {
        let mut bytes = Vec::new();
        encode(RowView { cells, wrapped, plain: false }, |_| '?', &mut bytes);
        assert_eq!(is_wrapped(&bytes), wrapped);
        let mut out = Vec::new();
        decode(&bytes, true, &mut out);
        out
    }

    #[test]
    fn a_line_of_every_kind_of_cell_comes_back_as_it_was() {
        let mut styled = Cell::default();
        styled.set_fg(Color::Rgb(1, 2, 3));
        styled.set_bg(Color::Indexed(9));
        styled.set_underline(Underline::Curly);
        styled.set_underline_color(Color::Rgb(7, 8, 9));
        styled.set_attr(Attrs::BOLD | Attrs::OVERLINE, true);
        styled.set_link(300);
        let cluster = Cell::default().wide(CLUSTER_BASE + 5000);
        let mut cells = vec![styled.narrow('x' as u32); 50];
        cells.extend([styled.wide('漢' as u32), styled.tail(), cluster, cluster.tail()]);
        cells.extend([Cell::default(), Cell::default().narrow('é' as u32), styled.tail(), cluster]);
        assert_eq!(round_trip(&cells, true), cells);
    }

    #[test]
    fn trailing_blanks_are_not_stored_but_a_coloured_end_is() {
        let mut bar = Cell::default();
        bar.set_bg(Color::Indexed(4));
        let a = Cell::default().narrow('a' as u32);
        assert_eq!(round_trip(&[a, Cell::default(), Cell::default()], false), [a]);
        assert_eq!(round_trip(&[a, bar, bar], false), [a, bar, bar]);
    }

    #[test]
    fn a_cluster_whose_id_is_forgotten_shows_its_first_character() {
        let cell = Cell::default().narrow(CLUSTER_BASE + 1);
        let mut bytes = Vec::new();
        assert!(encode(RowView { cells: &[cell], wrapped: false, plain: false }, |_| 'e', &mut bytes));
        let mut out = Vec::new();
        decode(&bytes, false, &mut out);
        assert_eq!(out[0].ch(), Some('e'));
    }

    #[test]
    fn bytes_that_were_never_encoded_are_harmless() {
        let mut seed = 1u32;
        for len in 0..200 {
            let bytes: Vec<u8> = std::iter::repeat_with(|| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8 % 9
            })
            .take(len)
            .collect();
            let mut out = Vec::new();
            decode(&bytes, true, &mut out);
            assert!(out.len() <= usize::from(MAX_SIDE) + 1);
        }
    }
}
