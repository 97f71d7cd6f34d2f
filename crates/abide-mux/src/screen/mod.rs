//! What a client sees. A frame is made in this order: `show` says that one is due, `frame` gathers what it is made of,
//! `placement` gives every pane of the `layout` its rectangle, `compose` fills a grid of glyphs, `paint` writes what the
//! client's terminal lacks.

pub(crate) mod bar;
pub(crate) mod chrome;
pub(crate) mod compose;
pub(crate) mod display;
pub(crate) mod frame;
pub(crate) mod glyph;
pub(crate) mod layout;
pub(crate) mod modes;
pub(crate) mod paint;
pub(crate) mod placement;
pub(crate) mod scroll;
pub(crate) mod show;
pub(crate) mod view;
