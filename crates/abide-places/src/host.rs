//! The host itself as a place: the systemd scope in which what runs outlives its login, and the service that resumes at boot.

pub mod boot_service;
mod bus;
pub mod capsule;
mod cgroup;
pub mod keepers;
mod login;
mod moving;
pub mod scope;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use abide_model::vars;

pub(crate) use bus::escaped;
pub(crate) use login::answers;
pub use login::{Inspector, Login};
pub use moving::{move_instance, move_server, move_spared};

pub fn shell(env: &BTreeMap<OsString, OsString>) -> String {
    let set = env.get(OsStr::new(vars::SHELL)).map(|shell| shell.to_string_lossy().into_owned());
    set.filter(|shell| shell.starts_with('/')).unwrap_or_else(|| "/bin/sh".to_owned())
}
