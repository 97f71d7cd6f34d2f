//! From what the operator types to the instance that is meant.

use abide_model::InstanceId;

use crate::error::{ResolveError, Result};
use crate::layout::TrashName;
use crate::list::StoreEntry;
use crate::store::Store;

/// The shortest beginning of an id that is taken for one.
const SHORTEST: usize = 2;

impl Store {
    /// The instance that `word` means: its id, its name, or a beginning of its id that no other has.
    pub fn resolve(&self, word: &str) -> Result<InstanceId, ResolveError> {
        let entries = self.list()?;
        let known: Vec<_> = entries.iter().filter_map(|entry| Some((entry.id()?, name_of(entry)))).collect();
        match pick(word, &known) {
            Err(ResolveError::NotFound(word)) => Err(match self.resolve_trashed(&word) {
                Ok(name) => ResolveError::InTrash { word, id: name.id },
                Err(_) => ResolveError::NotFound(word),
            }),
            picked => picked,
        }
    }

    /// What `word` means in the trash: a name there, or the same as for [`Store::resolve`].
    pub fn resolve_trashed(&self, word: &str) -> Result<TrashName, ResolveError> {
        let entries = self.trashed()?;
        if let Some(exact) = entries.iter().find(|entry| entry.name.to_string() == word) {
            return Ok(exact.name);
        }
        let name_in =
            |content: &Result<abide_model::Instance, _>| content.as_ref().ok().and_then(|i| i.name.clone());
        let known: Vec<_> = entries.iter().map(|entry| (entry.name.id, name_in(&entry.content))).collect();
        let id = pick(word, &known)?;
        // Should one id have been removed twice, the later removal is the one that is remembered.
        let newest = entries.iter().rev().find(|entry| entry.name.id == id);
        newest.map(|entry| entry.name).ok_or_else(|| ResolveError::NotFound(word.to_owned()))
    }
}

fn name_of(entry: &StoreEntry) -> Option<String> {
    match entry {
        StoreEntry::Sound(instance) => instance.name.clone(),
        StoreEntry::Damaged { .. } => None,
    }
}

/// A complete id comes first, then a name, then the beginning of an id. A name comes before a
/// beginning because it is complete: `web` must not change its meaning when a new id happens to begin with it.
fn pick(word: &str, known: &[(InstanceId, Option<String>)]) -> Result<InstanceId, ResolveError> {
    let full: Option<InstanceId> = word.parse().ok();
    if let Some(id) = full
        && known.iter().any(|(other, _)| *other == id)
    {
        return Ok(id);
    }
    let named = known.iter().filter(|(_, name)| name.as_deref() == Some(word));
    if let Some(id) = only(word, named.map(|(id, _)| *id))? {
        return Ok(id);
    }
    let Some(beginning) = canonical_beginning(word) else {
        return Err(ResolveError::NotFound(word.to_owned()));
    };
    if beginning.len() < SHORTEST {
        return Err(ResolveError::TooShort(word.to_owned()));
    }
    let begun = known.iter().filter(|(id, _)| id.as_str().starts_with(&beginning));
    only(word, begun.map(|(id, _)| *id))?.ok_or_else(|| ResolveError::NotFound(word.to_owned()))
}

fn only(word: &str, matches: impl Iterator<Item = InstanceId>) -> Result<Option<InstanceId>, ResolveError> {
    let mut matches: Vec<_> = matches.collect();
    matches.sort_unstable();
    matches.dedup();
    match matches.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        _ => Err(ResolveError::Ambiguous { word: word.to_owned(), matches }),
    }
}

/// The beginning of an id in its canonical spelling: people type `O` for 0 there too.
fn canonical_beginning(word: &str) -> Option<String> {
    let bare = word.strip_prefix("ab-").or_else(|| word.strip_prefix("AB-")).unwrap_or(word);
    let missing = InstanceId::LEN.checked_sub(bare.len())?;
    let filled: InstanceId = format!("{bare}{}", "0".repeat(missing)).parse().ok()?;
    Some(filled.as_str()[..bare.len()].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Vec<(InstanceId, Option<String>)> {
        let named = |id: &str, name: Option<&str>| (id.parse().unwrap(), name.map(str::to_owned));
        vec![
            named("k7p9m2xq", Some("shop")),
            named("k7aaaaaa", None),
            named("w3b00000", Some("twin")),
            named("0abcdefg", Some("twin")),
            named("fr0ntend", Some("k7p9m2xq")),
            named("zzzzzzzz", Some("w3")),
            named("qqqqqqqq", Some("frontend")),
        ]
    }

    fn picked(word: &str) -> String {
        match pick(word, &known()) {
            Ok(id) => id.to_string(),
            Err(ResolveError::Ambiguous { matches, .. }) => format!("ambiguous {}", matches.len()),
            Err(ResolveError::NotFound(_)) => "not found".to_owned(),
            Err(ResolveError::TooShort(_)) => "too short".to_owned(),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn an_id_comes_before_a_name_and_a_name_before_a_beginning() {
        for (word, expected) in [
            ("k7p9m2xq", "k7p9m2xq"),
            ("ab-k7p9m2xq", "k7p9m2xq"),
            ("K7P9M2XQ", "k7p9m2xq"),
            ("shop", "k7p9m2xq"),
            ("k7p", "k7p9m2xq"),
            ("ab-k7p", "k7p9m2xq"),
            ("OA", "0abcdefg"),
            ("w3", "zzzzzzzz"),
            ("w3b", "w3b00000"),
            ("frontend", "fr0ntend"),
            ("twin", "ambiguous 2"),
            ("k7", "ambiguous 2"),
            ("k", "too short"),
            ("ab-k", "too short"),
            ("", "too short"),
            ("ab-", "too short"),
            ("sho", "not found"),
            ("nobody", "not found"),
            ("k7p9m2xqq", "not found"),
            ("../k7", "not found"),
            ("\u{e9}\u{e9}", "not found"),
        ] {
            assert_eq!(picked(word), expected, "{word:?}");
        }
    }
}
