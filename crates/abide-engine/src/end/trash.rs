//! What was removed: bringing it back, and letting it go for good when its time is up.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use abide_config::{ConfigDir, Settings};
use abide_model::retention::{self, Limits, TrashContents, TrashedDir};
use abide_model::{Decided, Instance, InstanceId};
use abide_places::place::TakeDown;
use abide_store::{ResolveError, Store, TrashName};
use abide_sys::clock;
use abide_wire::instance_dir::InstanceDir;

use crate::error::EngineError;
use crate::running::containers;
use crate::trees;

/// How long a verb may be held up by letting old removals go for good.
const PURGING: Duration = Duration::from_millis(100);

/// The instance `id` as it was when it was removed, if it is in the trash.
pub fn instance(store: &Store, id: InstanceId) -> Option<Instance> {
    let trashed = store.trashed().ok()?.into_iter().filter_map(|entry| entry.content.ok());
    trashed.into_iter().find(|instance| instance.id == id)
}

/// Takes `name` back out of the trash, with the registrations and branches of its trees. What it was called it is called
/// again, unless another has that name by now.
pub fn restore(store: &Store, name: &TrashName, progress: &dyn Fn(&str)) -> Result<InstanceId, EngineError> {
    // Until it has its name, or none, no new instance gets that.
    let naming = store.lock_claims()?;
    // Nothing is moved that cannot be whole again.
    if let Some(entry) = store.trashed()?.into_iter().find(|entry| entry.name == *name)
        && let Ok(instance) = &entry.content
    {
        trees::check_restore(&store.layout().trashed(name), instance).map_err(|problem| {
            EngineError::Other(format!(
                "{} stays in the trash, and nothing was changed: {problem}",
                name.id.display_name()
            ))
        })?;
    }
    let id = store.restore(name, clock::now())?;
    let called = store.read(id)?.name;
    let taken = called.filter(|called| match store.resolve(called) {
        Ok(other) => other != id,
        Err(error) => matches!(error, ResolveError::Ambiguous { .. }),
    });
    let instance = store.update(id, |instance| -> Result<Instance, EngineError> {
        if taken.is_some() {
            instance.name = None;
        }
        Ok(instance.clone())
    })?;
    drop(naming);
    if let Some(taken) = taken {
        progress(&format!(
            "another instance is named `{taken}` now, so {} comes back without a name",
            id.display_name()
        ));
    }
    // A resume tries that once more.
    trees::reconnect(store, &instance, progress)
        .map_err(|problem| EngineError::Other(format!("{} is back, but {problem}", id.display_name())))?;
    tracing::info!(%id, "restored from the trash");
    Ok(id)
}

/// Lets the first start of `instance`, which failed, go for good, if it is in the trash and certainly holds nothing: no tree
/// was made, nothing was heard of a session, and no set-up, which may have made something, was to be run.
pub(crate) fn forget_blank(store: &Store, instance: &Instance) {
    if instance.generation > 1 || !instance.recipe.setup.is_empty() {
        return;
    }
    let names = store.trash_names().unwrap_or_default();
    for name in names.iter().filter(|name| name.id == instance.id) {
        let instance_dir = InstanceDir::new(store.layout().trashed(name));
        let ours = [
            instance_dir.keeper_log(),
            instance_dir.exit_record(),
            instance_dir.exit_record_reserve(),
            instance_dir.turns(),
        ];
        let holds = |part: PathBuf| match std::fs::read_dir(part) {
            Ok(mut entries) => entries.any(|entry| entry.map_or(true, |entry| !ours.contains(&entry.path()))),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        };
        let parts = ["tree", "git", "vault"].map(|part| instance_dir.path().join(part));
        if parts.into_iter().chain([instance_dir.journal_dir(), instance_dir.state_dir()]).any(holds) {
            continue;
        }
        if let Err(error) = purge(store, name) {
            tracing::warn!(%name, "purge: {error}");
        }
    }
}

/// What the trash has held for long enough, or too much of, with the reason. With `until`, what is not measured by then counts as small.
pub fn expired(
    store: &Store,
    settings: &Settings,
    until: Option<Instant>,
) -> Result<Vec<Decided<TrashName>>, EngineError> {
    let names = store.trash_names()?;
    let held = |name: &TrashName| {
        let bytes = store.trash_size(name, until).unwrap_or(0);
        let contents =
            if store.trash_holds_work(name) { TrashContents::PerhapsWork } else { TrashContents::NoWork };
        TrashedDir { since: name.when, bytes, contents }
    };
    let held: Vec<TrashedDir> = names.iter().map(held).collect();
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

/// Deletes `name` for good, with its container. One whose engine does not answer stays, to be deleted another time.
pub fn purge(store: &Store, name: &TrashName) -> Result<(), EngineError> {
    if let Some(instance) = store.trashed_instance(name) {
        containers::take_down(store, &instance, TakeDown::Remove)?;
    }
    Ok(store.purge(name)?)
}

/// Purges what the trash has held for long enough. Called by verbs that add to the trash or start something; a verb that
/// lists purges nothing.
/// Nothing is begun after `PURGING`; the next call goes on with the rest.
pub fn purge_expired(store: &Store, config: &ConfigDir) {
    let Ok(settings) = config.load() else { return };
    let deadline = Instant::now() + PURGING;
    let expired = expired(store, &settings, Some(deadline)).unwrap_or_else(|error| {
        tracing::warn!("the trash cannot be read: {error}");
        Vec::new()
    });
    for Decided { decision: name, reason } in expired {
        if Instant::now() >= deadline {
            return;
        }
        match purge(store, &name) {
            Ok(()) => tracing::info!(%name, "purged: {reason}"),
            Err(error) => tracing::warn!(%name, "purge: {error}"),
        }
    }
}
