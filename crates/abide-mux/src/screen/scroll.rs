//! Looking back: a client's view of what a session has scrolled off, and searching in it.

use std::ops::Range;

use abide_term::{Cell, Term, row_text};
use abide_wire::session::SessionId;

/// Where a client is looking. Lines are counted from the session's beginning, so that new output does not move it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scroll {
    /// Whose past it is. The view ends when another session gets the focus.
    pub session: SessionId,
    top: u64,
    query: String,
    /// The line that was found last, until the view moves otherwise: several may be in view at once.
    found: Option<u64>,
    pending: Option<PendingSearch>,
}

/// How many lines are searched before everything else has a turn.
const SEARCH_SLICE: u64 = 4096;

/// In which way a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Back,
    On,
}

/// The rest of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PendingSearch {
    /// The line before which, or from which on, nothing has been looked at.
    at: u64,
    way: Way,
    /// Where to look after that.
    then_on_from: Option<u64>,
    /// What it is if nothing is found.
    otherwise: SearchStep,
}

/// What came of a part of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchStep {
    Goes,
    Found,
    NotFound,
    /// It is nowhere beyond what was found last.
    NoneFurther,
}

impl Scroll {
    /// The present screen, about to move.
    pub fn at_end(session: SessionId, term: &Term) -> Self {
        Self { session, top: last_top(term), query: String::new(), found: None, pending: None }
    }

    /// Moves by this many lines; down is positive.
    pub fn by(&mut self, term: &Term, lines: i64) {
        self.go_to(self.top.saturating_add_signed(lines).clamp(oldest(term), last_top(term)));
    }

    /// Moves by a part of the screen: 1 is a whole screen down.
    pub fn by_pages(&mut self, term: &Term, pages: i64) {
        self.by(term, pages * i64::from(term.size().rows.saturating_sub(1).max(1)));
    }

    pub fn go_to_start(&mut self, term: &Term) {
        self.go_to(oldest(term));
    }

    pub fn go_to_end(&mut self, term: &Term) {
        self.go_to(last_top(term));
    }

    fn go_to(&mut self, top: u64) {
        (self.top, self.found) = (top, None);
    }

    /// Whether nothing of the past is visible.
    pub fn is_at_end(&self, term: &Term) -> bool {
        self.first(term) == last_top(term)
    }

    /// How far back the view is, and how far back it could be.
    pub fn position(&self, term: &Term) -> (u64, u64) {
        (last_top(term) - self.first(term), last_top(term) - oldest(term))
    }

    pub fn query(&self) -> &str {
        &self.query
    }

    /// The first line in view; lines that were looked at may be gone by now.
    fn first(&self, term: &Term) -> u64 {
        self.top.clamp(oldest(term), last_top(term))
    }

    /// The cells of row `y` of the view.
    pub fn line(&self, term: &Term, y: u16, cells: &mut Vec<Cell>) {
        read_line(term, self.first(term) + u64::from(y), cells);
    }

    /// The columns of row `y` of the view in which what is searched for is.
    pub fn matches_in(&self, term: &Term, y: u16) -> Vec<Range<usize>> {
        if self.query.is_empty() {
            return Vec::new();
        }
        let line = self.first(term) + u64::from(y);
        let (mut from, mut cells) = (line, Vec::new());
        // No further back than what is searched for can reach.
        let furthest = line.saturating_sub(self.query.len() as u64).max(oldest(term));
        while from > furthest && read_line(term, from - 1, &mut cells) {
            from -= 1;
        }
        let (text, places) = joined(term, from, line, &self.query);
        let found = find_all(&text, &self.query);
        found
            .filter_map(|found| {
                let columns = places[found].iter().filter(|(of, _)| *of == line).map(|(_, column)| *column);
                Some(columns.clone().min()?..columns.max()? + 1)
            })
            .collect()
    }

    /// Begins to search for `query` from the view backwards, or else forwards.
    pub fn begin_search(&mut self, term: &Term, query: &str) {
        self.query = query.to_owned();
        let below = self.first(term) + u64::from(term.size().rows);
        self.pending = Some(PendingSearch {
            at: below,
            way: Way::Back,
            then_on_from: Some(below),
            otherwise: SearchStep::NotFound,
        });
    }

    /// Begins to search on, from what was found last.
    pub fn begin_next(&mut self, term: &Term, way: Way) {
        let from = self.found.unwrap_or(self.first(term));
        let at = if way == Way::Back { from } else { from + 1 };
        self.pending =
            Some(PendingSearch { at, way, then_on_from: None, otherwise: SearchStep::NoneFurther });
    }

    pub fn is_searching(&self) -> bool {
        self.pending.is_some()
    }

    pub fn stop_searching(&mut self) {
        self.pending = None;
    }

    /// Searches the next lines, a bounded number of them, and brings the nearest one with the text to the top of the view.
    pub fn search_step(&mut self, term: &Term) -> SearchStep {
        let Some(pending) = self.pending.take().filter(|_| !self.query.is_empty()) else {
            return SearchStep::NoneFurther;
        };
        let (first, end) = (oldest(term), last_top(term) + u64::from(term.size().rows));
        let lines = match pending.way {
            Way::Back => {
                let to = pending.at.min(end);
                to.saturating_sub(SEARCH_SLICE).max(first)..to
            }
            Way::On => {
                let from = pending.at.max(first);
                from..from.saturating_add(SEARCH_SLICE).min(end)
            }
        };
        let has_it = |line: &u64| {
            let (text, places) = joined(term, *line, *line, &self.query);
            find_all(&text, &self.query).next().is_some_and(|found| places[found.start].0 == *line)
        };
        let (found, rest) = match pending.way {
            Way::Back => (lines.clone().rev().find(has_it), (lines.start > first).then_some(lines.start)),
            Way::On => (lines.clone().find(has_it), (lines.end < end).then_some(lines.end)),
        };
        if let Some(line) = found {
            (self.top, self.found) = (line.min(last_top(term)), Some(line));
            return SearchStep::Found;
        }
        let other_way = |at| PendingSearch { at, way: Way::On, then_on_from: None, ..pending };
        let same_way = rest.map(|at| PendingSearch { at, ..pending });
        self.pending = same_way.or(pending.then_on_from.map(other_way));
        if self.is_searching() { SearchStep::Goes } else { pending.otherwise }
    }

    #[cfg(test)]
    pub fn search(&mut self, term: &Term, query: &str) -> bool {
        self.begin_search(term, query);
        self.search_to_the_end(term)
    }

    #[cfg(test)]
    fn search_next(&mut self, term: &Term, backwards: bool) -> bool {
        self.begin_next(term, if backwards { Way::Back } else { Way::On });
        self.search_to_the_end(term)
    }

    #[cfg(test)]
    fn search_to_the_end(&mut self, term: &Term) -> bool {
        loop {
            match self.search_step(term) {
                SearchStep::Goes => {}
                ended => return ended == SearchStep::Found,
            }
        }
    }
}

/// The number of the oldest line that is still there.
fn oldest(term: &Term) -> u64 {
    term.scrolled_off().saturating_sub(term.scrollback_len() as u64)
}

/// The number of the line at the top of the present screen.
fn last_top(term: &Term) -> u64 {
    oldest(term) + term.scrollback_len() as u64
}

/// Reads a line, and says whether the next one continues it.
fn read_line(term: &Term, line: u64, cells: &mut Vec<Cell>) -> bool {
    cells.clear();
    let index = usize::try_from(line.saturating_sub(oldest(term))).unwrap_or(usize::MAX);
    let Some(y) = index.checked_sub(term.scrollback_len()) else { return term.scrollback_row(index, cells) };
    let y = u16::try_from(y).unwrap_or(u16::MAX);
    cells.extend_from_slice(term.row(y));
    term.row_wrapped(y) && y.saturating_add(1) < term.size().rows
}

/// The text of the lines `from..=to` and of as much of what continues them as `query` can reach into; with the line and
/// the column in which each of its bytes begins.
fn joined(term: &Term, from: u64, to: u64, query: &str) -> (String, Vec<(u64, usize)>) {
    let (mut text, mut places, mut cells) = (String::new(), Vec::new(), Vec::new());
    for line in from..=to + query.len() as u64 {
        let goes_on = read_line(term, line, &mut cells);
        let (more, columns) = row_text(term, &cells);
        text.push_str(&more);
        places.extend(columns.into_iter().map(|column| (line, column)));
        if !goes_on {
            break;
        }
    }
    (text, places)
}

/// Where `query` is in `text`. Without a capital letter in it, case does not matter.
fn find_all<'a>(text: &'a str, query: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let exact = query.chars().any(char::is_uppercase);
    let matches_at = move |at: usize| -> Option<Range<usize>> {
        let rest = text.get(at..)?;
        let mut chars = rest.char_indices();
        for wanted in query.chars() {
            let (_, found) = chars.next()?;
            let same = found == wanted || (!exact && found.to_lowercase().eq(wanted.to_lowercase()));
            if !same {
                return None;
            }
        }
        Some(at..at + chars.next().map_or(rest.len(), |(end, _)| end))
    };
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() && !query.is_empty() {
            if let Some(found) = matches_at(at) {
                at = found.end;
                return Some(found);
            }
            at += 1;
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_term::{Options, Size};

    fn numbered(lines: usize) -> Term {
        let mut term =
            Term::new(Size { cols: 20, rows: 5 }, Options { scrollback: 100, ..Options::default() });
        for n in 0..lines {
            term.feed(format!("line {n}\r\n").as_bytes());
        }
        term
    }

    fn top(scroll: &Scroll, term: &Term) -> String {
        let mut cells = Vec::new();
        scroll.line(term, 0, &mut cells);
        row_text(term, &cells).0.trim_end().to_owned()
    }

    #[test]
    fn the_view_stays_on_its_lines_while_output_goes_on() {
        let mut term = numbered(50);
        let mut scroll = Scroll::at_end(SessionId(1), &term);
        scroll.by(&term, -10);
        let before = top(&scroll, &term);
        assert_eq!(before, "line 36");
        for _ in 0..20 {
            term.feed(b"more\r\n");
        }
        assert_eq!(top(&scroll, &term), before);
        assert_eq!(scroll.position(&term).0, 30);
    }

    #[test]
    fn the_view_goes_no_further_than_there_are_lines() {
        let term = numbered(50);
        let mut scroll = Scroll::at_end(SessionId(1), &term);
        scroll.by_pages(&term, -1000);
        assert_eq!(top(&scroll, &term), "line 0");
        scroll.by_pages(&term, 1000);
        assert!(scroll.is_at_end(&term));
    }

    #[test]
    fn lines_that_are_gone_meanwhile_do_not_break_the_view() {
        let mut term = numbered(50);
        let mut scroll = Scroll::at_end(SessionId(1), &term);
        scroll.go_to_start(&term);
        for n in 0..500 {
            term.feed(format!("new {n}\r\n").as_bytes());
        }
        assert!(top(&scroll, &term).starts_with("new"));
        scroll.by(&term, 1);
        assert!(top(&scroll, &term).starts_with("new"));
    }

    #[test]
    fn a_search_finds_the_nearest_line_back_and_goes_on_in_both_directions() {
        let term = numbered(50);
        let mut scroll = Scroll::at_end(SessionId(1), &term);
        assert!(!scroll.search(&term, "LINE 1"));
        assert!(scroll.search(&term, "line 1"));
        assert_eq!(top(&scroll, &term), "line 19");
        assert!(scroll.search_next(&term, true));
        assert_eq!(top(&scroll, &term), "line 18");
        assert!(scroll.search_next(&term, false));
        assert_eq!(top(&scroll, &term), "line 19");
        assert!(!scroll.search(&term, "nowhere"));
        assert!(scroll.search(&term, "line 33"), "further on than the view");
        assert_eq!(top(&scroll, &term), "line 33");
    }

    #[test]
    fn a_long_history_is_searched_in_parts() {
        let options = Options { scrollback: 20_000, ..Options::default() };
        let mut term = Term::new(Size { cols: 20, rows: 5 }, options);
        for n in 0..20_000 {
            term.feed(format!("line {n}\r\n").as_bytes());
        }
        let mut scroll = Scroll::at_end(SessionId(1), &term);
        scroll.begin_search(&term, "nowhere");
        let steps = std::iter::repeat_with(|| scroll.search_step(&term));
        assert_eq!(steps.take_while(|step| *step == SearchStep::Goes).count(), 5);
        assert!(!scroll.is_searching());
        scroll.begin_search(&term, "line 7");
        assert_eq!(scroll.search_step(&term), SearchStep::Goes);
        scroll.stop_searching();
        assert!(!scroll.is_searching());
        assert!(scroll.search(&term, "line 3"));
        assert_eq!(top(&scroll, &term), "line 3999");
    }

    #[test]
    fn matches_are_marked_in_columns_and_not_in_bytes() {
        let mut term = Term::new(Size { cols: 20, rows: 2 }, Options::default());
        term.feed("漢字 Foo ééfoo".as_bytes());
        let mut scroll = Scroll::at_end(SessionId(1), &term);
        scroll.search(&term, "foo");
        assert_eq!(scroll.matches_in(&term, 0), [5..8, 11..14]);
    }

    #[test]
    fn a_search_goes_on_from_match_to_match_where_all_are_in_view() {
        let term = numbered(50);
        let mut scroll = Scroll::at_end(SessionId(1), &term);
        assert!(scroll.search(&term, "line 4"));
        assert!(!scroll.search_next(&term, false), "there is none after the last");
        for n in (40..49).rev() {
            assert!(scroll.search_next(&term, true));
            assert_eq!(scroll.found, Some(n));
        }
        assert!(scroll.search_next(&term, false));
        scroll.go_to_end(&term);
        assert!(scroll.search_next(&term, true), "after a move, from the view on");
        assert_eq!(scroll.found, Some(45));
    }

    #[test]
    fn what_is_wrapped_is_found_and_marked_in_both_lines() {
        let mut term = Term::new(Size { cols: 10, rows: 4 }, Options::default());
        term.feed(b"12345678needle\r\nneed\r\nle");
        let mut scroll = Scroll::at_end(SessionId(1), &term);
        assert!(scroll.search(&term, "needle"));
        assert_eq!(scroll.found, Some(0));
        assert!(!scroll.search_next(&term, true) && !scroll.search_next(&term, false));
        let marked = [0, 1, 2, 3].map(|y| scroll.matches_in(&term, y));
        assert_eq!(format!("{marked:?}"), "[[8..10], [0..4], [], []]");
    }
}
