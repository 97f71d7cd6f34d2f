//! What may differ between abide and tmux, and why. A difference that is not here is a bug of ours.
//!
//! Differences that no step here provokes, because everything after them would differ too:
//! - Emoji with a modifier (👍🏽) take two columns in abide; tmux 3.3 gives the modifier columns
//!   of its own.
//! - Home and End: tmux sends `CSI 1~` and `CSI 4~` whatever `TERM` is; abide what terminfo says of `xterm-256color`.
//! - vttest's menu of character sets: vttest offers what the terminal says it is, and tmux says VT100. The British set
//!   is one that tmux lacks.
//! - A row whose end was erased: when it is wrapped anew, tmux wraps the erased part too, and an empty row appears.
//!
//! That text which is wrapped anew stays on the screen while there is room is checked by `Pair::reflow`.

use crate::screen::{Cell, Difference};

/// Cells that may differ.
struct AllowedCells {
    /// The program, or `any`.
    program: &'static str,
    /// Why it is right as it is.
    why: &'static str,
    covers: fn(&Cell, &Cell) -> bool,
}

const CELLS: &[AllowedCells] = &[
    AllowedCells {
        program: "any",
        why: "capture-pane leaves out the background of blanks at the end of a row; nested.rs looks at those",
        covers: |abide, tmux| *tmux == Cell::default() && abide.text == " " && abide.look.attrs.is_empty(),
    },
    AllowedCells {
        program: "vttest",
        why: "the border of +: a backspace after the last column was written goes to the column before it, as on a VT100; \
              in tmux to the last column",
        covers: |abide, tmux| abide.text == "+" && *tmux == Cell::default(),
    },
];

/// A screen that is not compared.
struct AllowedScreen {
    program: &'static str,
    menu: &'static str,
    screen: usize,
    /// What abide must show, since it is the one that is right.
    shown: &'static str,
    /// Why abide is.
    why: &'static str,
}

const SCREENS: &[AllowedScreen] = &[
    AllowedScreen {
        program: "vttest",
        menu: "1",
        screen: 4,
        shown: "\nI ",
        why: "letters in order along both edges: tmux goes wrong on a backspace after the last column",
    },
    AllowedScreen {
        program: "vttest",
        menu: "2",
        screen: 11,
        shown: "Push <RETURN>\nOrigin mode test. This line should be at the bottom",
        why: "setting margins puts the cursor home, which in origin mode is within them; tmux goes to the top left",
    },
];

/// Whether this difference is in the list.
pub fn allows(program: &str, difference: &Difference) -> bool {
    let Difference::Cell { abide, tmux, .. } = difference else { return false };
    CELLS.iter().any(|entry| ["any", program].contains(&entry.program) && (entry.covers)(abide, tmux))
}

/// What abide must show on a screen that tmux gets wrong.
pub fn screen(program: &str, menu: &str, screen: usize) -> Option<&'static str> {
    let found = SCREENS.iter().find(|s| (s.program, s.menu, s.screen) == (program, menu, screen))?;
    Some(found.shown)
}

#[test]
fn every_allowed_difference_has_a_reason() {
    let reasons = CELLS.iter().map(|cells| cells.why).chain(SCREENS.iter().map(|screen| screen.why));
    assert!(reasons.into_iter().all(|why| !why.is_empty()));
}
