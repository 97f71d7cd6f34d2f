//! Lines of text with tones: what a screen is made of before it has a width.
//!
//! Text is made safe on its way in, so that whatever a branch, a path or an agent calls itself can be put into a line.

use std::fmt::Display;

use abide_model::sanitised;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// What a piece of text is to the reader. Colours are an accent on top of words that already say it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    /// What may be overlooked.
    Dim,
    /// What the eye should find first.
    Strong,
    /// Where the operator is: the marked row, a key.
    Accent,
    Good,
    /// Worth a second look.
    Warn,
    /// Work may be lost.
    Bad,
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The text, free of anything that acts on a terminal.
    pub text: String,
    /// What it is to the reader.
    pub tone: Tone,
    /// Loses its middle where the line is too long: both ends of a path say more than its middle.
    elastic: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line(Vec<Span>);

/// What an elastic span keeps at least.
const LEAST: usize = 8;

impl Line {
    /// A line of one piece.
    pub fn toned(tone: Tone, text: impl Display) -> Self {
        Self::default().and(tone, text)
    }

    /// A line of one piece that may lose its middle.
    pub fn elastic(tone: Tone, text: impl Display) -> Self {
        Self::default().and_elastic(tone, text)
    }

    /// The line with more text.
    #[must_use]
    pub fn and(self, tone: Tone, text: impl Display) -> Self {
        self.push(tone, &text.to_string(), false)
    }

    /// The line with more text, which may lose its middle.
    #[must_use]
    pub fn and_elastic(self, tone: Tone, text: impl Display) -> Self {
        self.push(tone, &text.to_string(), true)
    }

    fn push(mut self, tone: Tone, text: &str, elastic: bool) -> Self {
        self.0.push(Span { text: sanitised(text).into_owned(), tone, elastic });
        self
    }

    /// The line with another after it.
    #[must_use]
    pub fn followed_by(mut self, line: &Self) -> Self {
        self.0.extend_from_slice(&line.0);
        self
    }

    /// The line as it is seen when its row is marked.
    #[must_use]
    pub fn raised(&self) -> Self {
        let tone = |tone| if tone == Tone::Plain { Tone::Strong } else { tone };
        Self(self.0.iter().map(|span| Span { tone: tone(span.tone), ..span.clone() }).collect())
    }

    pub fn spans(&self) -> &[Span] {
        &self.0
    }

    pub fn text(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }

    /// How many columns it takes.
    pub fn width(&self) -> usize {
        self.0.iter().map(|span| width(&span.text)).sum()
    }

    /// The line in at most `limit` columns.
    #[must_use]
    pub fn fit(&self, limit: usize) -> Self {
        let mut line = self.clone();
        let excess = line.width().saturating_sub(limit);
        if let Some(span) = line.0.iter_mut().find(|span| span.elastic && excess > 0) {
            let have = width(&span.text);
            if have > LEAST {
                span.text = without_middle(&span.text, have.saturating_sub(excess).max(LEAST));
            }
        }
        if line.width() > limit { line.cut(limit) } else { line }
    }

    fn cut(&self, limit: usize) -> Self {
        let (mut left, mut line) = (limit.saturating_sub(1), Self::default());
        for span in &self.0 {
            let text = head(&span.text, left);
            left -= width(text);
            let whole = text.len() == span.text.len();
            let text = if whole || limit == 0 { text.to_owned() } else { format!("{text}…") };
            line.0.push(Span { text, ..span.clone() });
            if !whole {
                break;
            }
        }
        line
    }

    /// The line as several of at most `limit` columns, broken between words.
    pub fn wrap(&self, limit: usize) -> Vec<Self> {
        let (mut lines, mut line, mut used) = (Vec::new(), Self::default(), 0);
        for span in &self.0 {
            for word in span.text.split_inclusive(' ') {
                if used > 0 && used + width(word.trim_end()) > limit {
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                }
                used += width(word);
                line.0.push(Span { text: word.to_owned(), ..span.clone() });
            }
        }
        lines.push(line);
        lines
    }
}

impl<T: Display + ?Sized> From<&T> for Line {
    fn from(text: &T) -> Self {
        Self::toned(Tone::Plain, text)
    }
}

/// How many columns `text` takes.
pub fn width(text: &str) -> usize {
    text.graphemes(true).map(cell_width).sum()
}

/// How many columns one character as the reader sees it takes.
pub(crate) fn cell_width(grapheme: &str) -> usize {
    grapheme.width().min(2)
}

/// As much of the beginning of `text` as fits into `limit` columns.
fn head(text: &str, limit: usize) -> &str {
    let mut used = 0;
    let fits = |(_, grapheme): &(usize, &str)| {
        used += cell_width(grapheme);
        used <= limit
    };
    let end = text.grapheme_indices(true).take_while(fits).last();
    &text[..end.map_or(0, |(at, grapheme)| at + grapheme.len())]
}

/// As much of the end of `text` as fits into `limit` columns.
fn tail(text: &str, limit: usize) -> &str {
    let mut used = 0;
    let fits = |(_, grapheme): &(usize, &str)| {
        used += cell_width(grapheme);
        used <= limit
    };
    let start = text.grapheme_indices(true).rev().take_while(fits).last();
    &text[start.map_or(text.len(), |(at, _)| at)..]
}

/// `text` in `limit` columns. More is kept of its end: there a path has its file.
fn without_middle(text: &str, limit: usize) -> String {
    let room = limit.saturating_sub(1);
    let end = tail(text, room - room / 3);
    format!("{}…{end}", head(text, room / 3))
}

/// Lines whose parts stand below each other. A column is no wider than its limit; the last has none.
pub fn table<const N: usize>(rows: &[[Line; N]], limits: [usize; N]) -> Vec<Line> {
    let mut widths = [0; N];
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            widths[at] = widths[at].max(cell.width().min(limits[at]));
        }
    }
    let mut lines = Vec::new();
    for row in rows {
        let mut line = Line::default();
        for (at, cell) in row.iter().enumerate() {
            if at + 1 == N {
                line = line.followed_by(cell);
                break;
            }
            let mut cell = cell.fit(widths[at]);
            let gap = widths[at] - cell.width() + 2;
            // What gave way further would no longer stand below the others.
            cell.0.iter_mut().for_each(|span| span.elastic = false);
            line = line.followed_by(&cell).and(Tone::Plain, " ".repeat(gap));
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_keeps_its_beginning_and_its_file() {
        let line =
            Line::toned(Tone::Warn, "M  ").and_elastic(Tone::Plain, "crates/abide-engine/src/launch/mod.rs");
        assert_eq!(line.fit(28).text(), "M  crates/a…rc/launch/mod.rs");
        assert_eq!(line.fit(80).text(), line.text());
        assert_eq!(Line::from("twenty columns wide!").fit(10).text(), "twenty co…");
    }

    #[test]
    fn a_table_stands_in_columns_whatever_is_in_it() {
        let rows = [[Line::from("a"), Line::from("x")], [Line::from("日本語"), Line::from("y")]];
        let texts: Vec<_> = table(&rows, [5, 0]).iter().map(Line::text).collect();
        assert_eq!(texts, ["a      x", "日本…  y"]);
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_it_may_be(a in ".{0,40}", b in ".{0,40}", limit in 0usize..60) {
            let line = Line::from(&a).and_elastic(Tone::Dim, &b);
            prop_assert!(line.fit(limit).width() <= limit);
        }

        #[test]
        fn wrapping_loses_no_word(text in "[a-z ]{0,80}", limit in 1usize..40) {
            let wrapped: String = Line::from(&text).wrap(limit).iter().map(Line::text).collect();
            prop_assert_eq!(wrapped, text);
        }
    }
}
