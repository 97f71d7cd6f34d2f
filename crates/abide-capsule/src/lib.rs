//! The capsule: the processes that keep an instance's sessions alive, and what they say to each other.
//!
//! One capsule serves one instance and lives in that instance's unit directory. Its **keeper** is the parent of
//! every session and holds the PTY masters; its **mux** turns their output into screens and may die at any time,
//! because the keeper starts it again and the **journal** holds what it had read. Clients speak the **protocol**
//! to the mux over a socket that the keeper owns. Where the operator wants tmux in their place, a **pane** is what runs there.
//!
//! Nothing here prints, and nothing here knows about instances as a store, engines or agents.

pub mod client;
pub mod daemons;
pub mod journal;
pub mod keeper;
pub mod last_seen;
pub mod link;
pub mod mux;
pub mod pane;
pub mod protocol;
pub mod session;
pub mod socket;
pub mod text;
pub mod unit;

use abide_sys::signals;
