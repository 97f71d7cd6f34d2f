//! Keeping the tables of clusters and links small: finding out which entries are still in use, and dropping the rest.

use crate::screen::cell::Cell;
use crate::screen::interner::{Interned, Interner};
use crate::screen::print::JoinMemo;
use crate::vt::Vt;

impl Vt {
    /// The number of a cluster in the table; `None` if there is no room for it.
    pub(crate) fn cluster_id(&mut self, text: &str) -> Option<u32> {
        self.intern(text, |vt| &mut vt.clusters)
    }

    /// The number that cells of this link carry; 0 if the table has no room for it.
    pub(crate) fn link_number(&mut self, id: &str, uri: &str) -> u16 {
        // The same address under another id is another link, so the id is part of the entry.
        let key = format!("{}:{id}{uri}", id.len());
        self.intern(&key, |vt| &mut vt.links).map_or(0, |id| id as u16 + 1)
    }

    /// The address of a link by the number that its cells carry.
    pub(crate) fn link_uri(&self, number: u16) -> Option<&str> {
        let key = self.links.get(u32::from(number.checked_sub(1)?))?;
        let (id_len, rest) = key.split_once(':')?;
        rest.get(id_len.parse().ok()?..)
    }

    fn intern(&mut self, text: &str, table: impl Fn(&mut Self) -> &mut Interner) -> Option<u32> {
        if let Interned::Full = table(self).intern(text) {
            self.collect();
        }
        match table(self).intern(text) {
            Interned::Id(id) => Some(id),
            Interned::Full | Interned::Refused => None,
        }
    }

    /// Drops the entries that no cell uses; if that does not make room, old scrollback loses its links and clusters.
    fn collect(&mut self) {
        // The pages that hold ids are halved each time, so this ends after a few rounds.
        for _ in 0..usize::BITS {
            self.sweep();
            let crowded = self.clusters.is_crowded() || self.links.is_crowded();
            if !crowded || !self.scrollback.lose_older_ids() {
                break;
            }
        }
        self.joins = JoinMemo::default();
    }

    fn sweep(&mut self) {
        let mut clusters = self.clusters.marks();
        let mut links = self.links.marks();
        let mut mark = |cell: &Cell| {
            if let Some(id) = cell.cluster() {
                clusters.insert(id);
            }
            if let Some(id) = cell.link_id().checked_sub(1) {
                links.insert(u32::from(id));
            }
        };
        self.grid.all_cells().iter().for_each(&mut mark);
        if let Some(parked) = &self.parked {
            parked.all_cells().iter().for_each(&mut mark);
        }
        self.scrollback.for_each_cell_with_ids(&mut mark);
        mark(&self.pen);
        for saved in self.saved.iter().flatten() {
            mark(&saved.pen);
        }
        self.clusters.retain(&clusters);
        self.links.retain(&links);
    }
}
