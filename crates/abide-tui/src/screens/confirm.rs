//! Yes or no, with a list of what it is about.

use crate::ask::Ask;
use crate::line::{Line, Tone};
use crate::page::{Item, Page, PageChoice};

/// A question to be answered with yes or no.
#[derive(Debug, Clone)]
pub struct Confirm {
    /// What this is about, in a few words.
    pub title: String,
    pub question: String,
    /// What goes, changes or stays.
    pub list: Vec<Item>,
    /// What to bear in mind.
    pub note: Option<String>,
    /// What yes means, as a label: `Empty the trash`.
    pub yes: String,
    /// What no means, as a label: `Keep it`.
    pub no: String,
}

/// The answer to a [`Confirm`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    Yes,
    No,
    /// The dialog was cancelled, or had no terminal. Not a no to be remembered.
    Unanswered,
}

/// Asks. No is the default.
pub fn confirm(ask: &Ask, question: &Confirm) -> Confirmation {
    ask.begin().page(&confirm_page(question))
}

/// The question as a page.
pub fn confirm_page(question: &Confirm) -> Page<Confirmation> {
    let choice = |key, label: &str, answer| PageChoice { key: Some(key), ..PageChoice::new(label, answer) };
    let cancel = (Confirmation::Unanswered, "cancel");
    Page {
        about: vec![Line::toned(Tone::Strong, &question.question)],
        list: question.list.clone(),
        notes: question.note.iter().map(|note| Line::toned(Tone::Warn, note)).collect(),
        choices: vec![
            choice('n', &question.no, Confirmation::No),
            choice('y', &question.yes, Confirmation::Yes),
        ],
        ..Page::new(&question.title, cancel, cancel)
    }
}
