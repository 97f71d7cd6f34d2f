//! What runs: whether an instance lives, which processes belong to it, and reaching it.

pub mod containers;
pub mod daemons;
pub mod egress;
pub mod liveness;
pub mod processes;
pub mod protection;

pub use abide_places::connect;
pub use abide_places::host::keepers;
