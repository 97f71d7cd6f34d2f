//! What a preserved tree holds, and what the host did meanwhile, before the tree is used again.

use abide_model::Difference;
pub use abide_model::evidence::HostRepo;
use abide_model::evidence::MountEvidence;

use super::{Subject, evidence_items, explained};
use crate::ask::Ask;
use crate::line::{Line, Tone};
use crate::page::Page;

/// A kept instance with trees of its own, as it is found before a resume.
#[derive(Debug, Clone)]
pub struct PreservedTree {
    /// Whose trees these are.
    pub subject: Subject,
    pub mounts: Vec<MountEvidence>,
    /// What became of the host's repository.
    pub host: HostRepo,
    /// What the configuration says today that it did not say at the launch.
    pub differences: Vec<Difference>,
}

/// Which verb asks, which decides about what there is to choose beside a resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedBy {
    /// One that would start a new instance otherwise.
    Load,
    /// One that was given this very instance.
    Resume,
}

/// What to do with a preserved tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preserved {
    Resume,
    /// Leave it alone, and start new.
    New,
    Back,
    /// Nothing: nothing is started.
    Cancel,
}

/// Shows what a preserved tree holds, and asks whether to use it again.
pub fn preserved(ask: &Ask, tree: &PreservedTree, asked_by: AskedBy) -> Preserved {
    ask.begin().page(&preserved_page(tree, asked_by))
}

/// What the tree holds, what the host's repository did since, and what can be done: where the two have diverged, the
/// tree can only be left alone.
pub fn preserved_page(tree: &PreservedTree, asked_by: AskedBy) -> Page<Preserved> {
    let diverged = matches!(tree.host, HostRepo::Diverged(_));
    let resume = ("Resume", "use this tree as it is", Preserved::Resume);
    let new = ("Start new", "keep this one for later", Preserved::New);
    let back = ("Go back", "choose another", Preserved::Back);
    let leave = ("Leave it alone", "it stays as it is", Preserved::Cancel);
    let rows = match (asked_by, diverged) {
        (AskedBy::Load, false) => vec![resume, new, back],
        (AskedBy::Load, true) => vec![back, new],
        (AskedBy::Resume, false) => vec![resume, leave],
        (AskedBy::Resume, true) => vec![leave],
    };
    let alone = (Preserved::Cancel, "leave it alone");
    let (escape, lost) = match asked_by {
        AskedBy::Load => ((Preserved::Back, "go back"), (Preserved::Cancel, "cancel")),
        AskedBy::Resume => (alone, alone),
    };
    Page {
        about: vec![tree.subject.line()],
        list: evidence_items(&tree.mounts),
        notes: preserved_notes(tree),
        choices: explained(rows),
        ..Page::new(format!("resume {}", tree.subject.id.display_name()), escape, lost)
    }
}

/// What is to be borne in mind about a preserved tree, line by line.
pub fn preserved_notes(tree: &PreservedTree) -> Vec<Line> {
    let (tone, said, how) = match &tree.host {
        HostRepo::Unchanged => (Tone::Good, "The host repository has not changed since.", &[][..]),
        HostRepo::Moved(how) => {
            (Tone::Warn, "The host repository has new commits; they are not pulled:", &how[..])
        }
        HostRepo::Diverged(how) => {
            (Tone::Bad, "The host repository has diverged, so this tree cannot be resumed here:", &how[..])
        }
        HostRepo::Unknown(why) => {
            (Tone::Warn, "It is unknown whether the host repository has changed:", &why[..])
        }
    };
    let item = |text: String| Line::toned(Tone::Dim, "· ").and(Tone::Plain, text);
    let mut notes = vec![Line::toned(tone, said)];
    notes.extend(how.iter().cloned().map(item));
    if matches!(tree.host, HostRepo::Diverged(_)) {
        let verb = format!("`abide resume {} --yes` uses the tree anyway.", tree.subject.id);
        notes.push(Line::toned(Tone::Dim, verb));
    }
    if !tree.differences.is_empty() {
        notes.push(Line::toned(
            Tone::Warn,
            "It resumes with the settings it was launched with. These have changed since:",
        ));
        notes.extend(tree.differences.iter().map(|difference| item(difference.to_string())));
    }
    notes
}
