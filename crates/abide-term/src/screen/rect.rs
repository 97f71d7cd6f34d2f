//! Functions on rectangles of the screen: fill, erase, copy, change attributes, checksum.

use crate::parse::params::Params;
use crate::screen::cell::{Attrs, Cell, Style, Underline};
use crate::screen::grid::sever;
use crate::vt::Vt;

/// A rectangle in cells; the ends are excluded.
#[derive(Clone, Copy, Debug)]
struct CellRect {
    top: usize,
    left: usize,
    bottom: usize,
    right: usize,
}

/// How XTCHECKSUM alters a checksum.
const CHECKSUM_POSITIVE: u8 = 1;
const CHECKSUM_NO_ATTRS: u8 = 1 << 1;
const CHECKSUM_NO_TRIM: u8 = 1 << 2;
const CHECKSUM_ONLY_DRAWN: u8 = 1 << 3;

impl Vt {
    /// The rectangle that four parameters from `i` on describe, cut to the screen; `None` if it is empty.
    fn rect(&self, params: &Params, i: usize) -> Option<CellRect> {
        let area = self.addressable();
        let at = |i: usize| usize::from(params.or(i, 1)) - 1;
        let end = |i: usize, start: usize, last: usize| match params.get(i) {
            0 => last + 1,
            n => (start + usize::from(n)).min(last + 1),
        };
        let rect = CellRect {
            top: area.top + at(i),
            left: area.left + at(i + 1),
            bottom: end(i + 2, area.top, area.bottom),
            right: end(i + 3, area.left, area.right),
        };
        (rect.top < rect.bottom && rect.left < rect.right).then_some(rect)
    }

    /// DECFRA.
    pub(crate) fn fill_rect(&mut self, params: &Params) {
        let code = u32::from(params.get(0));
        let Some(rect) = self.rect(params, 1) else { return };
        if !matches!(code, 0x20..=0x7e | 0xa0..=0xff) {
            return;
        }
        let cell = self.pen.narrow(code);
        for y in rect.top..rect.bottom {
            let row = self.grid.row_mut(y);
            sever(row, rect.left);
            sever(row, rect.right);
            row[rect.left..rect.right].fill(cell);
        }
    }

    /// DECERA, and DECSERA which spares protected cells.
    pub(crate) fn erase_rect(&mut self, params: &Params, selective: bool) {
        let Some(rect) = self.rect(params, 0) else { return };
        for y in rect.top..rect.bottom {
            if selective {
                self.erase_span(y, rect.left, rect.right, true);
            } else {
                self.grid.erase(y, rect.left, rect.right, self.blank());
            }
        }
    }

    /// DECCRA.
    pub(crate) fn copy_rect(&mut self, params: &Params) {
        let Some(from) = self.rect(params, 0) else { return };
        let area = self.addressable();
        let top = area.top + usize::from(params.or(5, 1)) - 1;
        let left = area.left + usize::from(params.or(6, 1)) - 1;
        let cols = self.cols();
        if left >= cols {
            return;
        }
        let copy: Vec<Vec<Cell>> =
            (from.top..from.bottom).map(|y| self.grid.row(y)[from.left..from.right].to_vec()).collect();
        for (y, mut cells) in (top..self.rows()).zip(copy) {
            cells.truncate(cols - left);
            if let Some(first) = cells.first_mut().filter(|cell| cell.is_continuation()) {
                *first = first.erased();
            }
            if let Some(last) = cells.last_mut().filter(|cell| cell.is_wide()) {
                *last = last.erased();
            }
            let row = self.grid.row_mut(y);
            sever(row, left);
            sever(row, left + cells.len());
            row[left..left + cells.len()].copy_from_slice(&cells);
        }
    }

    /// DECCARA and DECRARA: sets or toggles attributes.
    pub(crate) fn restyle_rect(&mut self, params: &Params, toggle: bool) {
        let Some(rect) = self.rect(params, 0) else { return };
        let cols = self.cols();
        for y in rect.top..rect.bottom {
            // As a stream the change goes from the first corner to the last, through whole rows in between.
            let left = if self.rectangle_extent || y == rect.top { rect.left } else { 0 };
            let right = if self.rectangle_extent || y + 1 == rect.bottom { rect.right } else { cols };
            for cell in &mut self.grid.row_mut(y)[left..right.max(left)] {
                let mut style = cell.style();
                for &n in params.values().iter().skip(4) {
                    change_style(&mut style, n, toggle);
                }
                if params.values().len() <= 4 {
                    change_style(&mut style, 0, toggle);
                }
                cell.restyle(style);
            }
        }
    }

    /// DECRQCRA: the sum that xterm computes over a rectangle.
    pub(crate) fn checksum(&self, params: &Params) -> u16 {
        let flags = self.checksum_flags;
        let Some(rect) = self.rect(params, 2) else { return 0 };
        let mut total = 0u16;
        for y in rect.top..rect.bottom {
            // Blanks count only when something follows them, except for the first cell of the row.
            let mut blanks = 0u16;
            for (i, cell) in self.grid.row(y)[rect.left..rect.right].iter().enumerate() {
                if flags & CHECKSUM_ONLY_DRAWN != 0 && cell.is_blank() {
                    continue;
                }
                let value = self.checksum_of(cell, flags);
                if value == u16::from(b' ') && i > 0 && flags & CHECKSUM_NO_TRIM == 0 {
                    blanks = blanks.wrapping_add(value);
                } else {
                    total = total.wrapping_add(blanks).wrapping_add(value);
                    blanks = 0;
                }
            }
        }
        if flags & CHECKSUM_POSITIVE != 0 { total } else { total.wrapping_neg() }
    }

    fn checksum_of(&self, cell: &Cell, flags: u8) -> u16 {
        let mut buf = [0; 4];
        let text = crate::screen::print::cell_text(&self.clusters, cell, &mut buf);
        let mut value = text.chars().next().map_or(u16::from(b' '), |c| c as u32 as u16);
        if flags & CHECKSUM_NO_ATTRS == 0 {
            let style = cell.style();
            for (attr, weight) in [(Attrs::INVERSE, 0x20), (Attrs::BLINK, 0x40), (Attrs::BOLD, 0x80)] {
                value = value.wrapping_add(if style.attrs.contains(attr) { weight } else { 0 });
            }
            value = value.wrapping_add(if style.underline == Underline::None { 0 } else { 0x10 });
        }
        value
    }
}

/// Applies one of the SGR numbers that a VT420 lets rectangles change.
fn change_style(style: &mut Style, n: u16, toggle: bool) {
    let mut attr = |attr: Attrs, on: bool| {
        let on = if toggle { !style.attrs.contains(attr) } else { on };
        style.attrs = style.attrs.with(attr, on);
    };
    match n {
        0 if toggle => [1, 4, 5, 7].into_iter().for_each(|n| change_style(style, n, true)),
        0 => *style = Style::default(),
        1 | 22 => attr(Attrs::BOLD, n == 1),
        5 | 25 => attr(Attrs::BLINK, n == 5),
        7 | 27 => attr(Attrs::INVERSE, n == 7),
        8 | 28 => attr(Attrs::HIDDEN, n == 8),
        4 | 24 => {
            let on = if toggle { style.underline == Underline::None } else { n == 4 };
            style.underline = if on { Underline::Single } else { Underline::None };
        }
        _ => {}
    }
}
