//! Tab stops.

use crate::options::MAX_SIDE;

const EVERY: usize = 8;
const WORDS: usize = MAX_SIDE as usize / 64;

/// The columns that a tab stops at, for the widest possible screen, so that a resize keeps them.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Tabs(pub(crate) Box<[u64; WORDS]>);

impl Default for Tabs {
    fn default() -> Self {
        let mut tabs = Self::none();
        (0..usize::from(MAX_SIDE)).step_by(EVERY).for_each(|x| tabs.set(x, true));
        tabs
    }
}

impl Tabs {
    pub(crate) fn none() -> Self {
        Self(Box::new([0; WORDS]))
    }

    pub(crate) fn set(&mut self, x: usize, on: bool) {
        if let Some(word) = self.0.get_mut(x / 64) {
            let bit = 1 << (x % 64);
            *word = if on { *word | bit } else { *word & !bit };
        }
    }

    fn is_set(&self, x: usize) -> bool {
        self.0.get(x / 64).is_some_and(|word| word >> (x % 64) & 1 == 1)
    }

    /// The first stop after `x`, but no further than `last`.
    pub(crate) fn next(&self, x: usize, last: usize) -> usize {
        (x + 1..last).find(|&x| self.is_set(x)).unwrap_or(last)
    }

    /// The last stop before `x`, or the first column.
    pub(crate) fn previous(&self, x: usize) -> usize {
        (1..x).rev().find(|&x| self.is_set(x)).unwrap_or(0)
    }
}
