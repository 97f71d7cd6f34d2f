//! What was removed: bringing it back, and letting it go for good when its time is up.

use std::time::{Duration, Instant};

use abide_config::Settings;
use abide_model::retention::{self, Held, Limits};
use abide_model::{Decided, InstanceId};
use abide_store::{Store, TrashName};
use abide_sys::clock;

use crate::error::Error;
use crate::trees;

/// Takes `name` back out of the trash, with the registrations and branches of its trees.
pub fn restore(store: &Store, name: &TrashName, told: &dyn Fn(&str)) -> Result<InstanceId, Error> {
    let id = store.restore(name, clock::now())?;
    let instance = store.read(id)?;
    // A resume tries that once more.
    trees::reconnect(store, &instance, told)
        .map_err(|problem| Error::Other(format!("{} is back, but {problem}", id.display_name())))?;
    tracing::info!(%id, "restored from the trash");
    Ok(id)
}

/// What is in the trash and has had its time, with the reason. With `until`, what is not measured by then counts as small.
pub fn expired(
    store: &Store,
    settings: &Settings,
    until: Option<Instant>,
) -> Result<Vec<Decided<TrashName>>, Error> {
    let names = store.trash_names()?;
    let size = |name| store.trash_size(name, until).unwrap_or(0);
    let held: Vec<Held> = names.iter().map(|name| Held { since: name.when, bytes: size(name) }).collect();
    let limits = Limits {
        keep: Duration::from_secs(u64::from(settings.trash.keep_days) * 86_400),
        bytes: settings.trash.max_size.bytes(),
    };
    let gone = retention::expired(&held, limits, clock::now());
    Ok(gone
        .into_iter()
        .map(|decided| Decided { decision: names[decided.decision], reason: decided.reason })
        .collect())
}

/// Purges what has had its time. Nothing is begun after `patience`; the next call goes on with the rest.
pub fn purge_expired(store: &Store, settings: &Settings, patience: Duration) {
    let deadline = Instant::now() + patience;
    let expired = expired(store, settings, Some(deadline)).unwrap_or_else(|error| {
        tracing::warn!("the trash can not be read: {error}");
        Vec::new()
    });
    for Decided { decision: name, reason } in expired {
        if Instant::now() >= deadline {
            return;
        }
        match store.purge(&name) {
            Ok(()) => tracing::info!(%name, "purged: {reason}"),
            Err(error) => tracing::warn!(%name, "purge: {error}"),
        }
    }
}
