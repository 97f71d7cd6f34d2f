//! Bringing an instance to life: `load` makes a new one, `resume` brings one back, and both come through `launch`, the one
//! start path.

pub mod command_order;
pub mod differences;
pub mod environment;
mod in_capsule;
mod in_container;
mod in_tmux;
pub mod launch;
pub mod load;
pub mod moved;
pub mod resume;
pub mod secrets;
pub mod setup;
pub mod startup_check;
