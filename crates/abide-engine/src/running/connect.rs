//! Reaching what runs: where an instance's unit is, and who serves it.

use std::time::Duration;

use abide_model::InstanceId;
use abide_store::Store;
use abide_wire::instance_dir::Unit;
use abide_wire::protocol::{CallError, Connection, StatusReply};

use crate::substrate;
use crate::substrate::Trouble;

/// How long a capsule may take to answer a question.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The unit of an instance, as its capsule knows it.
pub fn unit(store: &Store, id: InstanceId) -> Unit {
    Unit::new(store.layout().unit(id))
}

/// A connection to the capsule of `unit`.
pub fn connect(unit: &Unit) -> Result<Connection, CallError> {
    Connection::connect(unit, PATIENCE)
}

/// What the sessions of `unit` are doing.
pub fn status(unit: &Unit) -> Result<StatusReply, Trouble> {
    substrate::at(unit.clone()).status()
}
