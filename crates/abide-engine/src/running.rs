//! What runs: whether an instance lives, which processes belong to it, and reaching it.

pub mod connect;
pub mod daemons;
pub mod keepers;
pub mod liveness;
pub mod processes;
pub mod protection;
