//! A bounded table of strings with small ids: grapheme clusters and hyperlinks.
//!
//! It hands out ids and takes back unused ones; its owner says which are used.

use std::collections::HashMap;
use std::sync::Arc;

/// After a collection that freed little, this many requests are refused before the next is worth its time.
const PATIENCE: u32 = 4096;

/// Strings by id and ids by string.
#[derive(Clone, Debug)]
pub(crate) struct Interner {
    entries: Vec<Option<Arc<str>>>,
    ids: HashMap<Arc<str>, u32>,
    free: Vec<u32>,
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
    /// Requests to refuse before asking for a collection again.
    refuse: u32,
}

/// The answer to a request for an id.
pub(crate) enum Interned {
    Id(u32),
    /// The table is full: collect, then ask again.
    Full,
    /// The table is full of strings in use, or the string alone is too large.
    Refused,
}

impl Interner {
    pub(crate) fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self {
            entries: Vec::new(),
            ids: HashMap::new(),
            free: Vec::new(),
            bytes: 0,
            max_entries,
            max_bytes,
            refuse: 0,
        }
    }

    pub(crate) fn get(&self, id: u32) -> Option<&str> {
        self.entries.get(id as usize)?.as_deref()
    }

    pub(crate) fn intern(&mut self, text: &str) -> Interned {
        if let Some(&id) = self.ids.get(text) {
            return Interned::Id(id);
        }
        if text.len() > self.max_bytes {
            return Interned::Refused;
        }
        let room = self.entries.len() < self.max_entries || !self.free.is_empty();
        if !room || self.bytes + text.len() > self.max_bytes {
            if self.refuse > 0 {
                self.refuse -= 1;
                return Interned::Refused;
            }
            return Interned::Full;
        }
        let text: Arc<str> = text.into();
        self.bytes += text.len();
        let id = self.free.pop().unwrap_or(self.entries.len() as u32);
        if id as usize == self.entries.len() {
            self.entries.push(Some(text.clone()));
        } else {
            self.entries[id as usize] = Some(text.clone());
        }
        self.ids.insert(text, id);
        Interned::Id(id)
    }

    /// Frees every entry that `live` does not name.
    pub(crate) fn retain(&mut self, live: &Marks) {
        for (id, entry) in self.entries.iter_mut().enumerate() {
            if live.contains(id as u32) {
                continue;
            }
            if let Some(text) = entry.take() {
                self.bytes -= text.len();
                self.ids.remove(&text);
                self.free.push(id as u32);
            }
        }
        self.refuse = if self.is_crowded() { PATIENCE } else { 0 };
    }

    /// Whether so much is in use that the next collection would come soon.
    pub(crate) fn is_crowded(&self) -> bool {
        self.ids.len() > self.max_entries / 4 * 3 || self.bytes > self.max_bytes / 4 * 3
    }

    pub(crate) fn marks(&self) -> Marks {
        Marks(vec![0; self.entries.len().div_ceil(64)])
    }

    /// Entries and free ids, in an order that [`Interner::refill`] restores exactly.
    pub(crate) fn parts(&self) -> (impl ExactSizeIterator<Item = Option<&str>>, &[u32], u32) {
        (self.entries.iter().map(Option::as_deref), &self.free, self.refuse)
    }

    /// Takes the place of all entries. Fails if they break the bounds or do not fit together.
    pub(crate) fn refill(&mut self, entries: Vec<Option<String>>, free: Vec<u32>, refuse: u32) -> Option<()> {
        let missing = entries.iter().filter(|entry| entry.is_none()).count();
        if entries.len() > self.max_entries || missing != free.len() {
            return None;
        }
        let mut seen = vec![false; entries.len()];
        for &id in &free {
            let vacant = entries.get(id as usize).is_some_and(Option::is_none);
            if !vacant || std::mem::replace(seen.get_mut(id as usize)?, true) {
                return None;
            }
        }
        *self = Self::new(self.max_entries, self.max_bytes);
        for (id, entry) in entries.into_iter().enumerate() {
            let entry: Option<Arc<str>> = entry.map(Into::into);
            if let Some(text) = &entry {
                self.bytes += text.len();
                if self.ids.insert(text.clone(), id as u32).is_some() || self.bytes > self.max_bytes {
                    return None;
                }
            }
            self.entries.push(entry);
        }
        self.free = free;
        self.refuse = refuse;
        Some(())
    }
}

/// A set of ids.
pub(crate) struct Marks(Vec<u64>);

impl Marks {
    pub(crate) fn insert(&mut self, id: u32) {
        if let Some(word) = self.0.get_mut(id as usize / 64) {
            *word |= 1 << (id % 64);
        }
    }

    fn contains(&self, id: u32) -> bool {
        self.0.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(answer: Interned) -> u32 {
        match answer {
            Interned::Id(id) => id,
            _ => panic!("no id"),
        }
    }

    #[test]
    fn a_string_keeps_its_id_while_it_is_used() {
        let mut table = Interner::new(2, 100);
        let (a, b) = (id(table.intern("a")), id(table.intern("b")));
        assert_eq!(id(table.intern("a")), a);
        assert!(matches!(table.intern("c"), Interned::Full));
        let mut live = table.marks();
        live.insert(b);
        table.retain(&live);
        assert_eq!((table.get(a), table.get(b)), (None, Some("b")));
        assert_eq!(id(table.intern("c")), a);
    }

    #[test]
    fn a_full_table_of_live_strings_refuses_instead_of_collecting_each_time() {
        let mut table = Interner::new(1, 100);
        let a = id(table.intern("a"));
        let mut live = table.marks();
        live.insert(a);
        table.retain(&live);
        assert!(matches!(table.intern("b"), Interned::Refused));
        assert!(matches!(table.intern(&"x".repeat(101)), Interned::Refused));
    }
}
