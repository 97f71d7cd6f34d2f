//! The terminal model of a session: bytes of the program in; screen, scrollback, replies and events out.
//!
//! Pure: no I/O, no clock, no threads. The same bytes in any cut give the same state, and the state can be written down
//! and taken up again at any byte, so a session's screen survives the process that kept it.
//!
//! [`Term`] is the whole interface. Inside, the stream is cut by `parser`, each sequence finds its function in
//! `dispatch`, and the functions act on `vt`, one file for each idea.

mod checkpoint;
mod colors;
pub mod input;
mod keyboard;
mod modes;
mod options;
mod outbox;
mod parse;
mod report;
mod screen;
mod status;
pub mod style_codes;
mod switch;
mod term;
mod text;
mod titles;
mod vt;

pub use modes::{Modes, MouseEncoding, MouseMode};
pub use options::{Options, Rgb, Size};
pub use outbox::TermEvent;
pub use screen::cell::{Attrs, Cell, Color, Style, Underline};
pub use status::{ProgramState, ProgramStatus};
pub use term::{Cursor, CursorShape, Term};
pub use text::{base64, row_text};
