//! Reaching what runs: where the directory of an instance is, and what serves it.

use std::time::Duration;

use abide_model::InstanceId;
use abide_store::Store;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::{CallError, Connection};

/// How long a capsule may take to answer a question.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The directory of an instance, as its capsule knows it.
pub fn instance_dir(store: &Store, id: InstanceId) -> InstanceDir {
    InstanceDir::new(store.layout().instance_dir(id))
}

/// A connection to the capsule of `instance_dir`.
pub fn connect(instance_dir: &InstanceDir) -> Result<Connection, CallError> {
    Connection::connect(instance_dir, PATIENCE)
}
