//! Drawing: from what a client's terminal shows to what it shall show, in as few bytes as is simple.
//!
//! The painter knows what it sent and nothing of where the new picture comes from. It sends no scrolling and no
//! insertion: a terminal that does those a little differently would stay wrong until the next full repaint.

use std::io::Write;

use abide_term::{Style, style_codes};
use abide_wire::session::TerminalSize;
use unicode_segmentation::UnicodeSegmentation;

use crate::screen::display::{Display, TerminalCharset, ascii};
use crate::screen::glyph::{Glyph, StringId, Strings, Text};
use crate::screen::modes::Outer;

/// Fewer blanks than this are written out rather than erased.
const MIN_ERASE: usize = 6;

const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// What one client's terminal shows, and how to change it.
#[derive(Debug)]
pub(crate) struct Painter {
    size: TerminalSize,
    display: Display,
    /// What the terminal shows; nothing is known where this is not yet there.
    sent: Option<Vec<Glyph>>,
    outer: Option<Outer>,
    cursor: Option<(u16, u16)>,
    cursor_known: bool,
    pen: Style,
    link: Option<StringId>,
    /// Where the terminal's cursor is while drawing, if that is certain.
    at: Option<(u16, u16)>,
    frame: Vec<u8>,
}

impl Painter {
    pub fn new(size: TerminalSize, display: Display) -> Self {
        Self {
            size,
            display,
            sent: None,
            outer: None,
            cursor: None,
            cursor_known: false,
            pen: Style::default(),
            link: None,
            at: None,
            frame: Vec::new(),
        }
    }

    pub fn size(&self) -> TerminalSize {
        self.size
    }

    pub fn set_display(&mut self, display: Display) {
        if self.display != display {
            *self = Self::new(self.size, display);
        }
    }

    /// Forgets what was sent: the terminal may show anything now.
    pub fn forget(&mut self, size: TerminalSize) {
        *self = Self::new(size, self.display);
    }

    /// Forgets the modes, so that they are all sent again.
    pub fn forget_modes(&mut self) {
        self.outer = None;
    }

    /// Where the terminal's cursor was left, if it is visible.
    pub fn cursor(&self) -> Option<(u16, u16)> {
        self.cursor
    }

    /// Whether the next frame draws from nothing.
    pub fn is_blank(&self) -> bool {
        self.sent.is_none()
    }

    /// The row as it was last sent.
    pub fn row(&self, y: u16, row: &mut Vec<Glyph>) {
        let cols = usize::from(self.size.cols);
        row.clear();
        match &self.sent {
            Some(sent) => row.extend_from_slice(&sent[usize::from(y) * cols..][..cols]),
            None => row.resize(cols, Glyph::BLANK),
        }
    }

    pub fn begin(&mut self) {
        self.frame.clear();
        self.frame.extend_from_slice(self.beginning());
        self.at = None;
        if self.sent.is_none() {
            let cells = usize::from(self.size.cols) * usize::from(self.size.rows);
            self.sent = Some(vec![Glyph::BLANK; cells]);
            self.pen = Style::default();
            self.link = None;
            self.frame.extend_from_slice(b"\x1b[m");
            if self.display.extensions {
                self.frame.extend_from_slice(b"\x1b]8;;\x1b\\");
            }
            self.frame.extend_from_slice(b"\x1b[H\x1b[2J");
        }
    }

    /// Draws what differs in one row.
    pub fn draw(&mut self, y: u16, row: &[Glyph], strings: &Strings) {
        let cols = usize::from(self.size.cols);
        let start = usize::from(y) * cols;
        let used = row.iter().rposition(|glyph| !glyph.is_erased()).map_or(0, |last| last + 1);
        let mut x = 0;
        while x < cols {
            let Some(sent) = self.sent.as_ref().and_then(|sent| sent.get(start + x)) else { return };
            if *sent == row[x] {
                x += 1;
                continue;
            }
            let blanks = row[x..].iter().take_while(|glyph| glyph.is_erased()).count();
            let width = if x >= used {
                self.erase(x, y, None);
                cols - x
            } else if blanks >= MIN_ERASE && self.display.extensions {
                self.erase(x, y, Some(blanks));
                blanks
            } else {
                let width = if row[x].wide { 2 } else { 1 };
                self.glyph(x, y, row, strings);
                width
            };
            let width = width.min(cols - x);
            if let Some(sent) = &mut self.sent {
                sent[start + x..start + x + width].copy_from_slice(&row[x..x + width]);
            }
            x += width;
        }
    }

    /// Puts cursor and modes right, and gives the frame; `None` if nothing was to be done.
    pub fn finish(&mut self, cursor: Option<(u16, u16)>, outer: &Outer) -> Option<&[u8]> {
        let drawn = self.frame.len() > self.beginning().len();
        if drawn {
            self.set_link(None, "");
        }
        outer.write_changes(self.outer.as_ref(), &mut self.frame);
        if self.outer.as_ref() != Some(outer) {
            self.outer = Some(outer.clone());
        }
        // The drawing moved the cursor, and hid it.
        if drawn || !self.cursor_known || self.cursor != cursor {
            match cursor {
                Some((x, y)) => {
                    self.move_to(x, y);
                    self.frame.extend_from_slice(b"\x1b[?25h");
                }
                None if !self.cursor_known || self.cursor.is_some() => {
                    self.frame.extend_from_slice(b"\x1b[?25l")
                }
                None => {}
            }
            self.cursor = cursor;
            self.cursor_known = true;
        }
        if self.frame.len() == self.beginning().len() {
            return None;
        }
        if self.display.extensions {
            self.frame.extend_from_slice(END);
        }
        Some(&self.frame)
    }

    /// What every frame begins with.
    fn beginning(&self) -> &'static [u8] {
        if self.display.extensions { BEGIN } else { b"" }
    }

    /// Hides the cursor before the first thing drawn: without synchronized output it would be seen jumping about.
    fn hide_cursor(&mut self) {
        if self.frame.len() == self.beginning().len() && (self.cursor.is_some() || !self.cursor_known) {
            self.frame.extend_from_slice(b"\x1b[?25l");
        }
    }

    fn glyph(&mut self, x: usize, y: u16, row: &[Glyph], strings: &Strings) {
        if self.display.charset == TerminalCharset::Unicode && joins_left(row, x, strings).is_some() {
            return self.apart(x, y, row, strings);
        }
        self.move_to(column(x), y);
        self.write(&row[x], x, strings);
    }

    /// Writes a glyph that would become one with the character to its left: while that is erased, it cannot. The one
    /// to the left may itself be such a glyph, and so on, so they are written from the right.
    fn apart(&mut self, x: usize, y: u16, row: &[Glyph], strings: &Strings) {
        let chain: Vec<usize> = std::iter::successors(Some(x), |at| joins_left(row, *at, strings)).collect();
        let first = chain.last().copied().unwrap_or(x);
        self.erase(first, y, Some(x - first));
        for at in chain {
            self.move_to(column(at), y);
            self.write(&row[at], at, strings);
            self.at = None;
        }
    }

    /// Writes a glyph where the cursor is.
    fn write(&mut self, glyph: &Glyph, x: usize, strings: &Strings) {
        self.set_pen(&glyph.look);
        self.set_link(glyph.link, glyph.link.map_or("", |id| strings.get(id)));
        let certain = match glyph.text {
            Text::Char(_) | Text::Cluster(_) if self.display.charset == TerminalCharset::Ascii => {
                self.write_ascii(glyph);
                true
            }
            Text::Char(ch) => {
                let ch = if ch.is_control() { ' ' } else { ch };
                self.frame.extend_from_slice(ch.encode_utf8(&mut [0; 4]).as_bytes());
                // Terminals disagree about whether these take any place.
                !matches!(ch, '\u{ad}' | '\u{3164}' | '\u{ffa0}')
            }
            // Terminals disagree about the width of these, so the next glyph is placed afresh.
            Text::Cluster(id) => {
                self.frame.extend_from_slice(strings.get(id).as_bytes());
                false
            }
            Text::Tail => {
                self.frame.push(b' ');
                true
            }
        };
        let next = column(x) + if glyph.wide { 2 } else { 1 };
        // At the right edge the cursor is in a state that terminals do not agree about either.
        self.at = self.at.filter(|_| certain && next < self.size.cols).map(|(_, y)| (next, y));
    }

    /// Writes something as wide as the glyph.
    fn write_ascii(&mut self, glyph: &Glyph) {
        let ch = match glyph.text {
            Text::Char(ch) => ascii(if ch.is_control() { ' ' } else { ch }),
            Text::Cluster(_) | Text::Tail => '?',
        };
        _ = write!(self.frame, "{ch}");
        if glyph.wide {
            _ = write!(self.frame, "{ch}");
        }
    }

    /// Erases `count` cells, or the rest of the row, to the default background.
    fn erase(&mut self, x: usize, y: u16, count: Option<usize>) {
        self.move_to(column(x), y);
        self.set_pen(&Style::default());
        match count {
            None => self.frame.extend_from_slice(b"\x1b[K"),
            Some(count) => _ = write!(self.frame, "\x1b[{count}X"),
        }
    }

    fn move_to(&mut self, x: u16, y: u16) {
        if self.at == Some((x, y)) {
            return;
        }
        self.hide_cursor();
        _ = match self.at {
            Some((from, row)) if row == y && from + 1 == x => write!(self.frame, "\x1b[C"),
            Some((from, row)) if row == y && from < x => write!(self.frame, "\x1b[{}C", x - from),
            Some((_, row)) if x == 0 && row + 1 == y => write!(self.frame, "\r\n"),
            _ if x == 0 && y == 0 => write!(self.frame, "\x1b[H"),
            _ if x == 0 => write!(self.frame, "\x1b[{}H", y + 1),
            _ => write!(self.frame, "\x1b[{};{}H", y + 1, x + 1),
        };
        self.at = Some((x, y));
    }

    fn set_pen(&mut self, look: &Style) {
        let look = self.display.look(look);
        style_codes::change(&self.pen, &look, &mut self.frame);
        self.pen = look;
    }

    fn set_link(&mut self, link: Option<StringId>, uri: &str) {
        if self.link != link && self.display.extensions {
            self.link = link;
            _ = write!(self.frame, "\x1b]8;;{uri}\x1b\\");
        }
    }
}

fn column(x: usize) -> u16 {
    u16::try_from(x).unwrap_or(u16::MAX)
}

/// The character to the left of the one at `x`, if a terminal would take the two for one.
fn joins_left(row: &[Glyph], x: usize, strings: &Strings) -> Option<usize> {
    // A terminal gets one code point after the other, so the first decides.
    let right = match row[x].text {
        Text::Char(ch) => ch,
        Text::Cluster(id) => strings.get(id).chars().next()?,
        Text::Tail => return None,
    };
    if right.is_ascii() {
        return None;
    }
    let left = x.checked_sub(1)?;
    let left = if row[left].text == Text::Tail { left.checked_sub(1)? } else { left };
    // Flags and skin tones: of what has a cell of its own, only these ever join a single character before them.
    let seeks_company = matches!(right, '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f3fb}'..='\u{1f3ff}');
    let mut both = match row[left].text {
        Text::Char(ch) if seeks_company => String::from(ch),
        Text::Cluster(id) => strings.get(id).to_owned(),
        Text::Char(_) | Text::Tail => return None,
    };
    both.push(right);
    both.graphemes(true).nth(1).is_none().then_some(left)
}
