//! Talking to running capsules: what their sessions are doing, and asking them to stop.

use std::time::{Duration, Instant};

use abide_capsule::keeper::ExitRecord;
use abide_capsule::protocol::{CallError, Connection, Shutdown, Status, StatusReply};
use abide_capsule::unit::Unit;
use abide_model::InstanceId;
use abide_store::Store;
use abide_sys::process;

/// How long a capsule may take to answer a question.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How long a capsule may take to end its sessions: their grace, and the reading of their last words.
const TO_STOP: Duration = Duration::from_secs(15);

/// The unit of an instance, as its capsule knows it.
pub fn unit(store: &Store, id: InstanceId) -> Unit {
    Unit::new(store.layout().unit(id).dir())
}

/// A connection to the capsule of `unit`.
pub fn connect(unit: &Unit) -> Result<Connection, CallError> {
    Connection::connect(unit, PATIENCE)
}

/// What the sessions of `unit` are doing.
pub fn status(unit: &Unit) -> Result<StatusReply, CallError> {
    connect(unit)?.call(&Status {}, PATIENCE)
}

/// Asks the capsule of `unit` to stop, and waits until it has. Returns whether it has.
pub fn shut_down(unit: &Unit, reason: &str) -> bool {
    let asked =
        connect(unit).and_then(|mut capsule| capsule.call(&Shutdown { reason: reason.to_owned() }, PATIENCE));
    if let Err(error) = asked {
        tracing::warn!(unit = %unit.path().display(), "asking the capsule to stop: {error}");
    }
    let deadline = Instant::now() + TO_STOP;
    while Instant::now() < deadline {
        if !keeper_lives(unit) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Whether the keeper that last served `unit` is still there, if only to say its last words. What can not be found out
/// counts as living.
pub fn keeper_lives(unit: &Unit) -> bool {
    match ExitRecord::read(unit) {
        Ok(Some(record)) => process::alive(&record.keeper).unwrap_or(true),
        Ok(None) => false,
        Err(_) => true,
    }
}
