//! The names that the operator gave to sessions, from the file in which the mux keeps its layout.

use std::collections::BTreeMap;

use abide_sys::untrusted;
use serde::Deserialize;

use crate::instance_dir::InstanceDir;
use crate::session::SessionId;

/// The part of the layout file that concerns others than the mux.
#[derive(Default, Deserialize)]
struct NamesInLayout {
    #[serde(default)]
    names: BTreeMap<SessionId, String>,
}

/// The names that the operator gave to the sessions of `instance_dir`. A file that cannot be read holds none.
pub fn given_names(instance_dir: &InstanceDir) -> BTreeMap<SessionId, String> {
    let bytes = untrusted::read(&instance_dir.layout_file()).unwrap_or_default();
    serde_json::from_slice::<NamesInLayout>(&bytes).unwrap_or_default().names
}
