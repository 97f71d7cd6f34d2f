//! Which text on a session's screen an earlier run left there. A wait for a text ignores it.

use abide_journal::rebuild::ProgramContinuity;
use abide_term::Term;

/// What an earlier run left on a screen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EarlierRun {
    /// Rows that nothing was written into since are its rows.
    last_written: u64,
}

impl EarlierRun {
    /// What is on the screen of a program that was just started, or found running by another mux.
    pub fn on(term: &Term, program: ProgramContinuity) -> Self {
        match program {
            ProgramContinuity::New => Self { last_written: newest(term) },
            ProgramContinuity::Same => Self { last_written: 0 },
        }
    }

    /// Whether the program that runs now has changed the row.
    pub fn is_over_in(self, term: &Term, y: u16) -> bool {
        term.row_written(y) > self.last_written
    }

    /// How many rows at the top it has left. Those from the cursor on are for the next program to write.
    pub fn rows(self, term: &Term) -> u64 {
        (0..term.cursor().y).take_while(|y| !self.is_over_in(term, *y)).map(|_| 1).sum()
    }

    /// Resizes the terminal, which writes all rows anew. Where something new was among them, all count as new.
    pub fn resize(&mut self, term: &mut Term, size: abide_term::Size) {
        let is_all = newest(term) <= self.last_written;
        term.resize(size);
        self.last_written = if is_all { newest(term) } else { 0 };
    }
}

fn newest(term: &Term) -> u64 {
    (0..term.size().rows).map(|y| term.row_written(y)).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use abide_term::{Options, Size};

    use super::*;

    fn new_rows(earlier: EarlierRun, term: &Term) -> Vec<u16> {
        (0..term.size().rows).filter(|y| earlier.is_over_in(term, *y)).collect()
    }

    #[test]
    fn rows_of_an_earlier_run_are_distinguished_from_newer_ones() {
        let mut term = Term::new(Size { cols: 20, rows: 4 }, Options::default());
        term.feed(b"old\r\nolder\r\n");
        let mut earlier = EarlierRun::on(&term, ProgramContinuity::New);
        assert_eq!(new_rows(earlier, &term), [0_u16; 0]);
        earlier.resize(&mut term, Size { cols: 30, rows: 4 });
        assert_eq!(new_rows(earlier, &term), [0_u16; 0], "a resize is nothing new");
        term.feed(b"new\r\nnewer\r\n");
        assert_eq!((new_rows(earlier, &term), earlier.rows(&term)), (vec![1, 2, 3], 1), "moved up by one");
        term.feed(b"\x1b[2J\x1b[Hold");
        assert_eq!(new_rows(earlier, &term), [0, 1, 2, 3], "the same text, but written by another");
        let same = EarlierRun::on(&term, ProgramContinuity::Same);
        assert_eq!(same.rows(&term), 0);
    }
}
