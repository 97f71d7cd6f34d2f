//! The whole state as bytes, and back.

pub(crate) mod dump;
pub(crate) mod encoding;
pub(crate) mod state;
