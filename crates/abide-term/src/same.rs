//! Whether two terminals are in the same state.

use crate::cell::Cell;
use crate::grid::Grid;
use crate::state::PARTS;
use crate::term::Term;
use crate::vt::Vt;
use crate::wire::Writer;

impl Term {
    /// Whether the same bytes would from now on have the same effect on both, and both look the same.
    ///
    /// Versions, ids of graphemes and links, and what waits to be taken are not compared: they say how a state was
    /// reached.
    ///
    /// # Errors
    /// The first difference that was found, in words.
    pub fn same_as(&self, other: &Self) -> Result<(), String> {
        if self.size() != other.size() {
            return Err(format!("size: {:?} and {:?}", self.size(), other.size()));
        }
        for part in &PARTS {
            let [ours, theirs] = [self, other].map(|term| {
                let mut w = Writer { resolve: true, ..Writer::default() };
                (part.save)(term, &mut w);
                w.out
            });
            if ours != theirs {
                return Err(format!("{}: {ours:?} and {theirs:?}", part.name));
            }
        }
        same_grid("screen", (&self.vt, &self.vt.grid), (&other.vt, &other.vt.grid))?;
        match (&self.vt.parked, &other.vt.parked) {
            (Some(ours), Some(theirs)) => same_grid("other screen", (&self.vt, ours), (&other.vt, theirs))?,
            (None, None) => {}
            _ => return Err("only one has an alternate screen".into()),
        }
        self.same_scrollback(other)
    }

    fn same_scrollback(&self, other: &Self) -> Result<(), String> {
        if self.scrollback_len() != other.scrollback_len() {
            return Err(format!(
                "scrollback: {} and {} lines",
                self.scrollback_len(),
                other.scrollback_len()
            ));
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for i in 0..self.scrollback_len() {
            let wrapped = self.scrollback_row(i, &mut ours) == other.scrollback_row(i, &mut theirs);
            if !wrapped {
                return Err(format!("scrollback line {i}: wrapped in one only"));
            }
            same_cells(&format!("scrollback line {i}"), (&self.vt, &ours), (&other.vt, &theirs))?;
        }
        Ok(())
    }
}

fn same_grid(what: &str, (a, ours): (&Vt, &Grid), (b, theirs): (&Vt, &Grid)) -> Result<(), String> {
    for y in 0..ours.rows() {
        if ours.is_wrapped(y) != theirs.is_wrapped(y) {
            return Err(format!("{what}, row {y}: wrapped in one only"));
        }
        same_cells(&format!("{what}, row {y}"), (a, ours.row(y)), (b, theirs.row(y)))?;
    }
    Ok(())
}

fn same_cells(what: &str, (a, ours): (&Vt, &[Cell]), (b, theirs): (&Vt, &[Cell])) -> Result<(), String> {
    let resolved = |vt: &Vt, cell: &Cell| {
        let mut w = Writer { resolve: true, ..Writer::default() };
        w.cell(vt, *cell);
        w.out
    };
    if ours.len() != theirs.len() {
        return Err(format!("{what}: {} and {} cells", ours.len(), theirs.len()));
    }
    let has_ids = |cell: &Cell| cell.cluster().is_some() || cell.link_id() != 0;
    for (x, (mine, other)) in ours.iter().zip(theirs).enumerate() {
        let same = if has_ids(mine) && has_ids(other) {
            resolved(a, mine) == resolved(b, other)
        } else {
            mine == other
        };
        if !same {
            return Err(format!("{what}, column {x}: {mine:?} and {other:?}"));
        }
    }
    Ok(())
}
