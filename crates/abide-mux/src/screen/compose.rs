//! The picture that a client shall see, row by row: panes, the lines between them, the status bar, what lies over them.
//!
//! Composing is a function of the models, the layout and the client's own state. What has not changed since the last
//! frame is not composed again: [`DrawnVersions`] remembers by the models' version numbers what that is.

use abide_model::StatusBar;
use abide_term::{Attrs, Style, Term};
use abide_wire::session::TerminalSize;

use crate::screen::bar::Bar;
use crate::screen::chrome::Chrome;
use crate::screen::glyph::{Glyph, Strings, Text};
use crate::screen::paint::Painter;
use crate::screen::placement::{PlacedPane, TabPlacement};
use crate::screen::scroll::Scroll;

/// Where everything is. As long as this stays the same, only cells change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SceneShape {
    pub size: TerminalSize,
    pub bar: StatusBar,
    pub placement: TabPlacement,
    /// The first column and row of the tab that the client sees; not 0 where the tab is larger than the client.
    pub pan: (u16, u16),
    /// The focused pane shows the past.
    pub scroll: Option<Scroll>,
    /// Lines over the middle of the screen.
    pub overlay: Vec<String>,
    /// A message covers the last row, because there is no status bar for it.
    pub covered: bool,
}

impl SceneShape {
    /// The row of the screen that the status bar is in.
    pub fn bar_row(&self) -> Option<u16> {
        match self.bar {
            StatusBar::Bottom => Some(self.size.rows.saturating_sub(1)),
            StatusBar::Top => Some(0),
            StatusBar::Off => self.covered.then(|| self.size.rows.saturating_sub(1)),
        }
    }

    /// The first row of the screen that belongs to the tab.
    pub fn first_row(&self) -> u16 {
        u16::from(self.bar == StatusBar::Top)
    }

    /// Where a point of the tab is on the screen, if it is on the screen.
    pub fn on_screen(&self, x: u16, y: u16) -> Option<(u16, u16)> {
        let x = x.checked_sub(self.pan.0).filter(|x| *x < self.size.cols)?;
        let y = y.checked_sub(self.pan.1)?.checked_add(self.first_row()).filter(|y| *y < self.size.rows)?;
        (self.bar_row() != Some(y)).then_some((x, y))
    }

    /// Which point of the tab is at a point of the screen.
    pub fn in_tab(&self, x: u16, y: u16) -> Option<(u16, u16)> {
        if self.bar_row() == Some(y) {
            return None;
        }
        Some((x + self.pan.0, y.checked_sub(self.first_row())? + self.pan.1))
    }
}

/// The part of a screen that the tab has: all but the status bar.
pub(crate) fn tab_area(size: TerminalSize, bar: StatusBar) -> TerminalSize {
    let taken = u16::from(bar != StatusBar::Off);
    TerminalSize { rows: size.rows.saturating_sub(taken).max(1), ..size }
}

/// What a pane shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PaneSource<'a> {
    pub term: &'a Term,
    /// The program is in the middle of an update: what is on the screen stays there.
    pub held: bool,
}

/// What one client shall see.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub shape: SceneShape,
    /// One for each pane of the placement.
    pub sources: Vec<PaneSource<'a>>,
    /// The status bar, or the message in its place.
    pub bar: Bar,
    pub chrome: Chrome,
}

/// What a client has seen: which version of each row of each pane, and which bar.
#[derive(Debug, Default)]
pub(crate) struct DrawnVersions {
    shape: Option<SceneShape>,
    generation: u64,
    panes: Vec<Vec<u64>>,
    bar: Option<Bar>,
}

impl Scene<'_> {
    /// Draws whatever differs from what the client has.
    pub fn draw(&self, painter: &mut Painter, seen: &mut DrawnVersions, strings: &mut Strings) {
        let generation = strings.generation();
        if seen.generation != generation {
            painter.forget(painter.size());
            seen.generation = generation;
        }
        let anew = painter.is_blank() || seen.shape.as_ref() != Some(&self.shape);
        let mut row = Vec::new();
        painter.begin();
        let bar_changed = seen.bar.as_ref() != Some(&self.bar);
        for y in 0..self.shape.size.rows {
            let is_bar = self.shape.bar_row() == Some(y);
            if anew || (is_bar && bar_changed) || (!is_bar && self.row_changed(y, seen)) {
                painter.row(y, &mut row);
                self.compose(y, &mut row, if anew { None } else { Some(seen) }, strings);
                painter.draw(y, &row, strings);
            }
        }
        self.remember(seen, anew);
    }

    fn remember(&self, seen: &mut DrawnVersions, anew: bool) {
        if anew {
            seen.shape = Some(self.shape.clone());
            seen.panes = vec![Vec::new(); self.sources.len()];
        }
        if anew || seen.bar.as_ref() != Some(&self.bar) {
            seen.bar = Some(self.bar.clone());
        }
        for (index, (pane, source)) in self.panes().enumerate() {
            if anew || !source.held {
                seen.panes[index].clear();
                seen.panes[index].extend((0..pane.rect.rows).map(|y| self.row_version(pane, source, y)));
            }
        }
    }

    fn panes(&self) -> impl Iterator<Item = (&PlacedPane, &PaneSource<'_>)> {
        self.shape.placement.panes.iter().zip(&self.sources)
    }

    fn row_version(&self, pane: &PlacedPane, source: &PaneSource<'_>, y: u16) -> u64 {
        let version =
            if self.scroll_of(pane).is_some() { source.term.version() } else { source.term.row_version(y) };
        // Reverse video changes the look of every row without touching one.
        version << 1 | u64::from(source.term.modes().reverse_video)
    }

    fn scroll_of(&self, pane: &PlacedPane) -> Option<&Scroll> {
        self.shape.scroll.as_ref().filter(|_| pane.session == self.shape.placement.focused)
    }

    /// The row of the tab that is in a row of the screen.
    fn tab_row(&self, y: u16) -> u16 {
        y.saturating_sub(self.shape.first_row()).saturating_add(self.shape.pan.1)
    }

    fn row_changed(&self, y: u16, seen: &DrawnVersions) -> bool {
        let y = self.tab_row(y);
        self.panes()
            .enumerate()
            .any(|(index, (pane, source))| self.pane_changed(index, pane, source, y, seen))
    }

    fn pane_changed(
        &self,
        index: usize,
        pane: &PlacedPane,
        source: &PaneSource<'_>,
        y: u16,
        seen: &DrawnVersions,
    ) -> bool {
        let Some(y) = y.checked_sub(pane.rect.y).filter(|y| *y < pane.rect.rows) else { return false };
        let known = seen.panes.get(index).and_then(|rows| rows.get(usize::from(y)));
        !source.held && known != Some(&self.row_version(pane, source, y))
    }

    /// Puts into `row`, which holds what was there before, what has changed since `seen`; everything where nothing
    /// has been seen.
    pub fn compose(&self, y: u16, row: &mut [Glyph], seen: Option<&DrawnVersions>, strings: &mut Strings) {
        if self.shape.bar_row() == Some(y) {
            let bar = self.bar.glyphs(self.shape.size.cols, &self.chrome);
            let shared = row.len().min(bar.len());
            row[..shared].copy_from_slice(&bar[..shared]);
            return;
        }
        let tab_y = self.tab_row(y);
        if seen.is_none() {
            self.compose_ground(tab_y, row);
        }
        for (index, (pane, source)) in self.panes().enumerate() {
            if seen.is_none_or(|seen| self.pane_changed(index, pane, source, tab_y, seen)) {
                self.compose_pane(pane, source.term, tab_y, row, strings);
            }
        }
        self.compose_overlay(y, row);
    }

    /// What is behind the panes: the lines between them, and a pattern where the tab ends before the screen does.
    fn compose_ground(&self, tab_y: u16, row: &mut [Glyph]) {
        let chrome = &self.chrome;
        let size = self.shape.placement.size;
        for (x, glyph) in row.iter_mut().enumerate() {
            let x = u16::try_from(x).unwrap_or(u16::MAX).saturating_add(self.shape.pan.0);
            *glyph = if x >= size.cols || tab_y >= size.rows {
                Glyph::new(chrome.character('·'), chrome.line)
            } else if let Some((ch, focused)) = self.shape.placement.line_at(x, tab_y) {
                Glyph::new(chrome.character(ch), if focused { chrome.focused_line } else { chrome.line })
            } else {
                Glyph::BLANK
            };
        }
    }

    fn compose_pane(
        &self,
        pane: &PlacedPane,
        term: &Term,
        tab_y: u16,
        row: &mut [Glyph],
        strings: &mut Strings,
    ) {
        let rect = pane.rect;
        let Some(y) = tab_y.checked_sub(rect.y).filter(|y| *y < rect.rows) else { return };
        let mut line = Vec::new();
        let (cells, marked) = match self.scroll_of(pane) {
            None => (term.row(y), Vec::new()),
            Some(scroll) => {
                scroll.line(term, y, &mut line);
                (line.as_slice(), scroll.matches_in(term, y))
            }
        };
        // The part of the pane's row that is on the screen, in columns of the pane.
        let first = self.shape.pan.0.saturating_sub(rect.x);
        let left = (rect.x + first).saturating_sub(self.shape.pan.0);
        let count = rect.cols.saturating_sub(first).min(self.shape.size.cols.saturating_sub(left));
        let inverse = term.modes().reverse_video;
        for offset in 0..count {
            let (column, x) = (usize::from(first + offset), usize::from(left + offset));
            let cell = cells.get(column).copied().unwrap_or_default();
            let mut glyph = Glyph::of(term, &cell, strings);
            // Half a wide character cannot be drawn.
            let cut = (glyph.wide && offset + 1 == count) || (glyph.text == Text::Tail && offset == 0);
            if cut {
                glyph = glyph.emptied();
            }
            // The halves of a wide character belong together.
            let head = column.saturating_sub(usize::from(cell.is_continuation()));
            if inverse != marked.iter().any(|range| range.contains(&head)) {
                let inverse = glyph.look.attrs.contains(Attrs::INVERSE);
                glyph.look.attrs = glyph.look.attrs.with(Attrs::INVERSE, !inverse);
            }
            row[x] = glyph;
        }
    }

    fn compose_overlay(&self, y: u16, row: &mut [Glyph]) {
        let lines = &self.shape.overlay;
        let top = usize::from(self.shape.size.rows).saturating_sub(lines.len()) / 2;
        let Some(line) = usize::from(y).checked_sub(top).and_then(|at| lines.get(at)) else { return };
        let mut glyphs = Vec::new();
        push_text(line, self.chrome.overlay, row.len(), &mut glyphs);
        let left = (row.len() - glyphs.len()) / 2;
        blank_halves(row, left, left + glyphs.len());
        row[left..left + glyphs.len()].copy_from_slice(&glyphs);
    }
}

/// Blanks the halves of wide characters that writing over `from..to` would leave.
fn blank_halves(row: &mut [Glyph], from: usize, to: usize) {
    if from > 0 && row.get(from).is_some_and(|glyph| glyph.text == Text::Tail) {
        row[from - 1] = row[from - 1].emptied();
    }
    if let Some(glyph) = row.get_mut(to).filter(|glyph| glyph.text == Text::Tail) {
        *glyph = glyph.emptied();
    }
}

/// Appends text of ours until `glyphs` is `limit` columns wide. What cannot be shown in a cell of its own is left out.
pub(crate) fn push_text(text: &str, look: Style, limit: usize, glyphs: &mut Vec<Glyph>) {
    use unicode_width::UnicodeWidthChar;
    for ch in text.chars() {
        let width = ch.width().unwrap_or(0);
        if width == 0 {
            continue;
        }
        if glyphs.len() + width > limit {
            return;
        }
        glyphs.push(Glyph { wide: width == 2, ..Glyph::new(ch, look) });
        if width == 2 {
            glyphs.push(Glyph { text: Text::Tail, ..Glyph::new(' ', look) });
        }
    }
}
