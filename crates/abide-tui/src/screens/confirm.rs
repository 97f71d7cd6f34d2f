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

/// Asks. No is the default; `None` means that nobody answered, which is not a no to be remembered.
pub fn confirm(ask: &Ask, question: &Confirm) -> Option<bool> {
    ask.begin().page(&confirm_page(question))
}

/// The question as a page.
pub fn confirm_page(question: &Confirm) -> Page<Option<bool>> {
    let choice =
        |key, label: &str, answer| PageChoice { key: Some(key), ..PageChoice::new(label, Some(answer)) };
    Page {
        about: vec![Line::toned(Tone::Strong, &question.question)],
        list: question.list.clone(),
        notes: question.note.iter().map(|note| Line::toned(Tone::Warn, note)).collect(),
        choices: vec![choice('n', &question.no, false), choice('y', &question.yes, true)],
        ..Page::new(&question.title, (None, "cancel"), (None, "cancel"))
    }
}
