//! The numeric parameters of a control sequence.

/// More parameters than any sequence in use has; the rest are dropped.
const MAX: usize = 32;

/// Parameters separated by `;`, each with the sub-parameters that followed it after `:`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Params {
    values: [u16; MAX],
    /// Bit `i` is set if `values[i]` came after a colon.
    colons: u32,
    /// Index of the value under construction.
    last: usize,
    /// Whether anything was written at all: `CSI m` has no parameter, `CSI 0 m` has one.
    any: bool,
    /// Whether parameters past the end were dropped.
    full: bool,
}

impl Params {
    pub(crate) fn clear(&mut self) {
        self.values[0] = 0;
        self.colons = 0;
        self.last = 0;
        self.any = false;
        self.full = false;
    }

    #[inline]
    pub(crate) fn digit(&mut self, digit: u8) {
        self.any = true;
        if !self.full {
            let value = &mut self.values[self.last];
            *value = value.saturating_mul(10).saturating_add(u16::from(digit));
        }
    }

    #[inline]
    pub(crate) fn separate(&mut self, colon: bool) {
        self.any = true;
        if self.last + 1 == MAX {
            self.full = true;
            return;
        }
        self.last += 1;
        self.values[self.last] = 0;
        self.colons |= u32::from(colon) << self.last;
    }

    /// All values, sub-parameters among them.
    pub(crate) fn values(&self) -> &[u16] {
        if self.any { &self.values[..=self.last] } else { &[] }
    }

    /// The value at `i`, 0 if it is missing.
    pub(crate) fn get(&self, i: usize) -> u16 {
        self.values().get(i).copied().unwrap_or(0)
    }

    /// The value at `i`, or `default` if it is missing or 0.
    pub(crate) fn or(&self, i: usize, default: u16) -> u16 {
        match self.get(i) {
            0 => default,
            n => n,
        }
    }

    /// A count or distance: missing and 0 mean 1.
    pub(crate) fn count(&self, i: usize) -> usize {
        usize::from(self.or(i, 1))
    }

    /// Each parameter with its sub-parameters: `4:3;1` gives `[4, 3]` and `[1]`.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &[u16]> {
        let values = self.values();
        let mut start = 0;
        std::iter::from_fn(move || {
            if start >= values.len() {
                return None;
            }
            let mut end = start + 1;
            while end < values.len() && self.colons >> end & 1 == 1 {
                end += 1;
            }
            let group = &values[start..end];
            start = end;
            Some(group)
        })
    }

    /// Whether any sub-parameter is present.
    pub(crate) fn has_colons(&self) -> bool {
        self.colons != 0
    }

    /// Without what is left of earlier ones behind the last.
    pub(crate) fn tidy(&mut self) {
        self.values[self.last + 1..].fill(0);
    }

    /// Whether they can have come about.
    pub(crate) fn is_sound(&self) -> bool {
        self.last < MAX
    }
}
