//! Checkpoints: the whole state as bytes, and back.
//!
//! Everything that could change what later bytes do is in a checkpoint, to the middle of a sequence or of a character.
//! Replies and events that were not taken are not: they belong to the moment. The scrollback goes in as the pages that
//! it is kept in, so a checkpoint costs little more than copying them. A sum over all bytes guards against damage, and
//! what passes it is still checked piece by piece.

use crate::checkpoint::encoding::{ByteReader, Writer};
use crate::checkpoint::state::SmallState;
use crate::options::{Options, Size};
use crate::parse::parser::MAX_CLIPBOARD;
use crate::screen::grid::Grid;
use crate::screen::interner::Interner;
use crate::screen::line;
use crate::screen::scrollback::ScrollbackPage;
use crate::term::Term;

const MAGIC: &[u8; 8] = b"abterm\0\x05";
const SUM_LEN: usize = 8;

impl Term {
    /// A checkpoint of the state, for [`Term::restore`]. Replies and events not yet taken are not in it.
    pub fn dump(&self) -> Vec<u8> {
        let vt = &self.vt;
        let mut w = Writer::default();
        w.out.reserve(vt.scrollback.memory() + (64 << 10));
        w.out.extend_from_slice(MAGIC);
        w.u16(vt.size.cols);
        w.u16(vt.size.rows);
        for n in [vt.grid.now, self.version, vt.scrolled_off, vt.changes] {
            w.u64(n);
        }
        w.bytes(&serde_json::to_vec(&SmallState::of(self)).unwrap_or_default());
        w.bytes(&self.parser.string);
        save_table(&vt.clusters, &mut w);
        save_table(&vt.links, &mut w);
        save_grid(&vt.grid, &mut w);
        w.option(vt.parked.as_ref(), |w, grid| save_grid(grid, w));
        let (pages, skipped) = vt.scrollback.parts();
        w.usize(pages.len());
        for page in pages {
            w.bytes(&page.bytes);
            w.usize(page.ends.len());
            page.ends.iter().for_each(|end| w.u32(*end));
            w.bool(page.has_ids);
            w.bool(page.ids_lost);
        }
        w.usize(skipped);
        let sum = sum(&w.out);
        w.u64(sum);
        w.out
    }

    /// The terminal that [`Term::dump`] wrote down; `None` if the bytes are damaged or of another version.
    pub fn restore(bytes: &[u8], options: Options) -> Option<Self> {
        let (body, expected) = bytes.split_at_checked(bytes.len().checked_sub(SUM_LEN)?)?;
        if sum(body).to_le_bytes() != *expected {
            return None;
        }
        let mut r = ByteReader::new(body.strip_prefix(MAGIC)?);
        let size = Size { cols: r.u16()?, rows: r.u16()? };
        if size != size.clamped() {
            return None;
        }
        let mut term = Self::new(size, options);
        let now = r.u64()?;
        term.version = r.u64()?;
        term.vt.grid.now = now;
        term.vt.scrolled_off = r.u64()?;
        term.vt.changes = r.u64()?;
        serde_json::from_slice::<SmallState>(r.bytes()?).ok()?.put_into(&mut term)?;
        term.parser.string = Some(r.bytes()?).filter(|bytes| bytes.len() <= MAX_CLIPBOARD)?.to_vec();
        load_table(&mut term.vt.clusters, &mut r)?;
        load_table(&mut term.vt.links, &mut r)?;
        term.vt.grid = load_grid(size, now, &mut r)?;
        term.vt.parked = r.option(|r| load_grid(size, now, r))?;
        if term.vt.alternate && term.vt.parked.is_none() {
            return None;
        }
        let pages = r.list(usize::MAX, load_page)?;
        term.vt.scrollback.refill(pages, r.usize()?)?;
        let mut restored = Self::from_parts(term.parser, term.vt);
        restored.version = term.version;
        r.is_empty().then_some(restored)
    }
}

fn save_table(table: &Interner, w: &mut Writer) {
    let (entries, free, refuse) = table.parts();
    w.usize(entries.len());
    entries.for_each(|entry| w.option(entry, Writer::text));
    w.usize(free.len());
    free.iter().for_each(|id| w.u32(*id));
    w.u32(refuse);
}

fn load_table(table: &mut Interner, r: &mut ByteReader) -> Option<()> {
    let entries = r.list(usize::MAX, |r| r.option(ByteReader::text))?;
    let free = r.list(usize::MAX, ByteReader::u32)?;
    table.refill(entries, free, r.u32()?)
}

/// A screen is written as its rows would be in the scrollback, which is exact and leaves blanks out.
fn save_grid(grid: &Grid, w: &mut Writer) {
    let mut bytes = Vec::new();
    for y in 0..grid.rows() {
        bytes.clear();
        line::encode(grid.view(y), |_| char::REPLACEMENT_CHARACTER, &mut bytes);
        w.bytes(&bytes);
    }
}

fn load_grid(size: Size, now: u64, r: &mut ByteReader) -> Option<Grid> {
    let mut grid = Grid::new(usize::from(size.cols), usize::from(size.rows), now);
    let mut cells = Vec::new();
    for y in 0..grid.rows() {
        let bytes = r.bytes()?;
        cells.clear();
        line::decode(bytes, true, &mut cells);
        grid.set_row(y, &cells, line::is_wrapped(bytes));
    }
    Some(grid)
}

fn load_page(r: &mut ByteReader) -> Option<ScrollbackPage> {
    let bytes = r.bytes()?.to_vec();
    let ends = r.list(usize::MAX, ByteReader::u32)?;
    Some(ScrollbackPage { bytes, ends, has_ids: r.bool()?, ids_lost: r.bool()?, ..ScrollbackPage::default() })
}

/// A sum that changes with any changed byte; it guards against damage, not against malice.
fn sum(bytes: &[u8]) -> u64 {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, tail) = bytes.as_chunks::<8>();
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(K).rotate_left(29);
    let sum = words.iter().fold(bytes.len() as u64, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    tail.iter().fold(sum, |sum, byte| mix(sum, u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::screen::cell::Cell;

    /// A dump with every kind of thing in it, in the middle of a sequence.
    fn sample() -> Vec<u8> {
        let mut term = Term::new(Size { cols: 12, rows: 3 }, Options::default());
        term.feed("\x1b[?1049h\x1b[1;31m漢e\u{301}\x1b]8;;http://x/\x07link\x1b[?1049l".as_bytes());
        term.feed("\x1b]2;title\x07\x1b]4;1;#123\x07\x1b[22t\x1b7\x1b[>1u".as_bytes());
        (0..20).for_each(|n| term.feed(format!("line {n} \x1b[3{}m👍🏽 goes on\r\n", n % 8).as_bytes()));
        term.feed(b"\x1b]7501;state=idle:app=x\x07\x1b[12;3");
        term.dump()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn bytes_that_pass_the_sum_but_make_no_sense_are_harmless(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut bytes = sample();
            let body = bytes.len() - SUM_LEN;
            for (at, byte) in changes {
                bytes[at.index(body)] = byte;
            }
            let sum = sum(&bytes[..body]).to_le_bytes();
            bytes[body..].copy_from_slice(&sum);
            if let Some(mut term) = Term::restore(&bytes, Options::default()) {
                term.feed("x漢\u{301}\x1b[2J\x1b8\n\n\x1b[?1049h\x1b[5b".as_bytes());
                term.resize(Size { cols: 7, rows: 5 });
                prop_assert!(!term.text().chars().any(|c| c.is_control() && c != '\n'));
                let mut cells = Vec::new();
                for i in 0..term.scrollback_len() {
                    term.scrollback_row(i, &mut cells);
                    prop_assert!(!cells.iter().filter_map(Cell::ch).any(char::is_control));
                }
                drop(term.dump());
            }
        }
    }
}
