//! Bringing what is written down in line with what is there. Runs at the start of every verb that looks at instances.

use abide_capsule::keeper::ExitRecord;
use abide_config::ConfigDir;
use abide_model::decide::{self, Sweep};
use abide_model::{Event, Instance, Policy, Status};
use abide_store::{Entry, Error, Store};
use abide_sys::{clock, process};

use crate::{finish, live};

/// The policy that holds for `instance`; `None` where the configuration can not be read.
pub fn policy(config: &ConfigDir, instance: &Instance) -> Option<Policy> {
    let settings = config.load().ok()?;
    let Some(name) = &instance.scope.workspace else { return Some(settings.policy) };
    match config.workspace(&name.parse().ok()?) {
        Ok(workspace) => Some(workspace.policy.unwrap_or(settings.policy)),
        // The workspace was removed since; what holds for all directories holds for this one.
        Err(abide_config::ConfigError::NoSuchWorkspace { .. }) => Some(settings.policy),
        Err(_) => None,
    }
}

/// Looks at every instance, and gives what there is afterwards. A list that can not be read is an error, and then nothing
/// is touched.
pub fn reconcile(store: &Store, config: &ConfigDir) -> Result<Vec<Entry>, Error> {
    let mut changed = false;
    let entries = store.list()?;
    for entry in &entries {
        if let Entry::Sound(instance) = entry {
            changed |= settle(store, config, instance);
        }
    }
    if let Err(error) = store.sweep() {
        tracing::warn!("sweep: {error}");
    }
    // Read again: what was settled has another status now, or is gone.
    if changed { store.list() } else { Ok(entries) }
}

/// Settles one instance; whether anything about it may have changed.
fn settle(store: &Store, config: &ConfigDir, instance: &Instance) -> bool {
    let id = instance.id;
    let settled = match &instance.status.status {
        Status::Active if is_up(store, instance) => return false,
        Status::Active => finish::finish(store, id, policy(config, instance)).map(drop),
        Status::Ending(_) => finish::finish(store, id, None).map(drop),
        Status::Starting { by, .. } => {
            if is_up(store, instance) {
                stamp(
                    store,
                    instance,
                    &Event::CapsuleSeen,
                    "the capsule runs; whoever started it did not say so",
                )
            } else {
                let verdict = finish::at_risk(instance);
                match decide::sweep(&instance.status.status, process::alive(by), verdict).decision {
                    Sweep::StarterDied { at_risk } => stamp(
                        store,
                        instance,
                        &Event::StarterDied { at_risk },
                        "whoever was starting it is dead",
                    )
                    .and_then(|()| finish::finish(store, id, None).map(drop)),
                    Sweep::Leave | Sweep::Finish => return false,
                }
            }
        }
        Status::Restorable(_) | Status::Damaged(_) => return false,
    };
    if let Err(error) = settled {
        tracing::warn!(%id, "reconcile: {error}");
    }
    true
}

/// Whether the capsule of this run lives. What can not be found out counts as living.
fn is_up(store: &Store, instance: &Instance) -> bool {
    match ExitRecord::read(&live::unit(store, instance.id)) {
        Ok(Some(record)) if record.generation == instance.generation => {
            record.reason.is_none() && record.keeper_is_alive().unwrap_or(true)
        }
        Ok(_) => false,
        Err(_) => true,
    }
}

fn stamp(store: &Store, instance: &Instance, event: &Event, because: &str) -> Result<(), Error> {
    store.update(instance.id, |now| -> Result<(), Error> {
        // Somebody else may have settled it meanwhile; what they decided stands.
        if now.generation == instance.generation && now.status == instance.status {
            let _ = now.apply(event, because, clock::now());
        }
        Ok(())
    })
}
