//! What a terminal sends: its bytes cut into tokens, and keys.

pub mod key_stream;
pub mod keys;
pub mod tokens;
