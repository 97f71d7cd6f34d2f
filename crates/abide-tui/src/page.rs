//! One question: what is shown, what can be answered, and where the operator is in it.

use crate::line::Line;

/// A question with answers of type `A`.
#[derive(Debug, Clone)]
pub struct Page<A> {
    /// What this is about, in a few words.
    pub title: String,
    /// Who or what is asked about, and the question itself.
    pub about: Vec<Line>,
    /// What there is to see: longer than a screen, perhaps.
    pub list: Vec<Item>,
    /// What to bear in mind.
    pub notes: Vec<Line>,
    /// The answers to choose from.
    pub choices: Vec<PageChoice<A>>,
    /// The choice that is marked at first.
    pub marked: usize,
    /// What Enter answers, where that is not the marked choice.
    pub enter: Option<KeyAnswer<A>>,
    pub esc: KeyAnswer<A>,
    /// What Ctrl-C answers, and what is answered when the terminal goes away or a signal ends us: it must do no harm.
    pub lost: KeyAnswer<A>,
    /// The answer where the terminal goes away, if that is another one than Ctrl-C gives.
    pub unanswered: Option<A>,
}

/// What a key answers, and what the footer says of it.
pub type KeyAnswer<A> = (A, &'static str);

/// A row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// How far it is indented: a row belongs to the nearest one above that is indented less.
    pub level: usize,
    pub line: Line,
}

impl Item {
    pub fn new(level: usize, line: impl Into<Line>) -> Self {
        Self { level, line: line.into() }
    }
}

/// An answer to choose.
#[derive(Debug, Clone)]
pub struct PageChoice<A> {
    pub line: Line,
    /// What is shown of it while it is marked.
    pub detail: Vec<Line>,
    /// A letter that gives this answer at once.
    pub key: Option<char>,
    /// Whether a filter may hide it.
    pub hides: bool,
    pub answer: A,
}

impl<A> PageChoice<A> {
    /// A choice that is always there.
    pub fn new(line: impl Into<Line>, answer: A) -> Self {
        Self { line: line.into(), detail: Vec::new(), key: None, hides: false, answer }
    }
}

/// Where the operator is in a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageView {
    pub marked: usize,
    /// The first row of the list that is shown, among those that pass the filter.
    pub top: usize,
    /// What rows must contain to be shown.
    pub filter: String,
    /// Whether what is typed goes into the filter.
    pub typing: bool,
}

/// From how many rows on a filter is offered.
const MANY: usize = 6;

impl<A> Page<A> {
    /// A page with nothing on it yet.
    pub fn new(title: impl Into<String>, esc: KeyAnswer<A>, lost: KeyAnswer<A>) -> Self {
        let (title, marked, enter) = (title.into(), 0, None);
        let (about, list, notes, choices) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { title, about, list, notes, choices, marked, enter, esc, lost, unanswered: None }
    }

    /// The answer where no operator gives one.
    pub fn without_answer(&self) -> A
    where
        A: Clone,
    {
        self.unanswered.clone().unwrap_or_else(|| self.lost.0.clone())
    }

    /// The page as it is first seen.
    pub fn view(&self) -> PageView {
        PageView { marked: self.marked, ..PageView::default() }
    }

    /// Whether there is enough to make finding worth a key.
    pub fn filters(&self) -> bool {
        self.list.len() >= MANY
            || (self.list.is_empty() && self.choices.iter().filter(|c| c.hides).count() >= MANY)
    }

    /// The rows of the list that pass the filter, with those that they belong to.
    pub fn items(&self, view: &PageView) -> Vec<&Item> {
        let mut shown = Vec::new();
        let mut above = 0;
        for item in self.list.iter().rev() {
            if item.level < above || matches(&item.line, &view.filter) {
                above = item.level;
                shown.push(item);
            }
        }
        shown.reverse();
        shown
    }

    /// The choices that pass the filter, by their place in the page. A filter is for the list where there is one.
    pub fn shown(&self, view: &PageView) -> Vec<usize> {
        let says = |choice: &PageChoice<A>| choice.detail.iter().any(|line| matches(line, &view.filter));
        let passes =
            |choice: &PageChoice<A>| !choice.hides || matches(&choice.line, &view.filter) || says(choice);
        (0..self.choices.len()).filter(|at| !self.list.is_empty() || passes(&self.choices[*at])).collect()
    }
}

fn matches(line: &Line, filter: &str) -> bool {
    filter.is_empty() || line.text().to_lowercase().contains(&filter.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_passes_the_filter_brings_what_it_belongs_to() {
        let rows = [
            (0, "repo one"),
            (1, "files"),
            (2, "a.rs"),
            (2, "b.rs"),
            (0, "repo two"),
            (1, "files"),
            (2, "c.rs"),
        ];
        let list = rows.map(|(level, text)| Item::new(level, text)).into();
        let page = Page { list, ..Page::new("", ((), ""), ((), "")) };
        let shown = |filter: &str| {
            let view = PageView { filter: filter.into(), ..PageView::default() };
            page.items(&view).iter().map(|item| item.line.text()).collect::<Vec<_>>()
        };
        assert_eq!(shown("B.RS"), ["repo one", "files", "b.rs"]);
        assert_eq!(shown("two"), ["repo two"]);
        assert_eq!(shown("nowhere"), [""; 0]);
        assert_eq!(shown("").len(), 7);
    }
}
