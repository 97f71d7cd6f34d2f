//! The host itself as a place: the systemd scope in which what runs outlives its login, and the service that resumes at boot.

pub mod boot_service;
mod bus;
mod cgroup;
mod login;
mod moving;
pub mod scope;

pub(crate) use bus::escaped;
pub use login::{Inspector, Login};
pub(crate) use login::{answers, eventually};
pub use moving::{move_instance, move_server, move_spared};
