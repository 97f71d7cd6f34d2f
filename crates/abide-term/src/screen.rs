//! Cells, lines, screen and scrollback, and everything that changes them.

pub(crate) mod cell;
pub(crate) mod edit;
pub(crate) mod grid;
pub(crate) mod interner;
pub(crate) mod line;
pub(crate) mod motion;
pub(crate) mod print;
pub(crate) mod reflow;
pub(crate) mod resize;
pub(crate) mod scrollback;
pub(crate) mod tables;
pub(crate) mod tabs;
