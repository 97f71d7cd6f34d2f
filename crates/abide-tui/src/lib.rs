//! Questions to the operator: what is asked, how it is drawn, and how it is answered.
//!
//! A question is a [`page::Page`]: plain data that knows its answers. [`draw`] turns it into a picture and [`press`]
//! turns keys into an answer, both without a terminal; `rich` is the thin loop that owns one, and [`plain`] asks the same
//! page as numbered text. [`screens`] makes the pages out of what abide knows. [`Ask`] picks the surface and never
//! fails: where there is no terminal, or it goes away, the page's own harmless answer is given.
//!
//! The picture is a grid of cells of our own ([`canvas`]) and not one of ratatui's: what we draw are boxes of lines, the
//! terminal is already owned by `abide-sys`, and ratatui without any backend would bring two dozen crates, a constraint
//! solver and a second copy of `syn` for it. Rows that did not change are not sent again, which is all the economy that
//! a screen of this kind needs.

mod ask;
pub mod canvas;
pub mod draw;
pub mod line;
pub mod page;
pub mod plain;
pub mod press;
mod rich;
pub mod screens;
pub mod surface;

pub use ask::Ask;
pub use surface::{Surface, SurfaceFacts, surface};
