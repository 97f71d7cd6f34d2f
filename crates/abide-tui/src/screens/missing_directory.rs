//! An instance that cannot be resumed because its directory is not there: what happened, and what can be done.

use std::path::Path;

use super::{Subject, explained};
use crate::ask::Ask;
use crate::line::{Line, Tone};
use crate::page::Page;

/// What to do with an instance whose directory is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingDirectoryAnswer {
    /// Resume it where the directory is now.
    ResumeThere,
    /// Show what is known of it.
    Explain,
    Eject,
    Leave,
}

/// Asks, with `what_happened` and `advice`. The directory is offered only where it was `found`.
pub fn missing_directory(
    ask: &Ask,
    subject: &Subject,
    what_happened: &str,
    advice: &str,
    found: Option<&Path>,
) -> MissingDirectoryAnswer {
    ask.begin().page(&missing_directory_page(subject, what_happened, advice, found))
}

/// The question as a page. Nothing on it changes anything by default but a resume in the very same directory.
pub fn missing_directory_page(
    subject: &Subject,
    what_happened: &str,
    advice: &str,
    found: Option<&Path>,
) -> Page<MissingDirectoryAnswer> {
    use MissingDirectoryAnswer::{Eject, Explain, Leave, ResumeThere};
    let there = found.map(|found| found.display().to_string());
    let mut choices: Vec<(&str, &str, MissingDirectoryAnswer)> = Vec::new();
    choices.extend(there.as_deref().map(|there| ("Resume it there", there, ResumeThere)));
    choices.extend([
        ("Leave it as it is", "nothing is started and nothing is lost", Leave),
        ("Explain", "shows its details", Explain),
        ("Eject", "removes it; asks again first", Eject),
    ]);
    Page {
        about: vec![subject.line(), Line::toned(Tone::Warn, what_happened)],
        notes: if found.is_none() { vec![Line::toned(Tone::Dim, advice)] } else { Vec::new() },
        choices: explained(choices),
        ..Page::new("directory not found", (Leave, "leave it"), (Leave, "leave it"))
    }
}
