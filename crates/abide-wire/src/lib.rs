//! What the processes of an instance say to each other, and the files that they share.
//!
//! Clients speak the **protocol** to the mux over a **socket** that the keeper owns; keeper and mux speak over a **link** that
//! carries descriptors. The **exit record** says how a run ended. Nothing here knows a terminal model, a store or an agent.

pub mod capsule_part;
pub mod exit_record;
pub mod given_names;
pub mod hook_report_file;
pub mod instance_dir;
pub mod last_seen;
pub mod link;
pub mod mux_options;
pub mod os_text;
pub mod protocol;
pub mod reporter;
pub mod session;
pub mod socket;
pub mod supervisor_lock;
