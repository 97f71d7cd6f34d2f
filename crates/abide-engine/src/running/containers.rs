//! Containers of instances: what their engine says about them, and letting go of what is no longer needed.

use std::collections::BTreeMap;

use abide_model::container::{ContainerRecipe, EngineChoice};
use abide_model::ladder::{ContainerExit, MemoryKill, PlaceSight};
use abide_model::{Instance, InstanceId, Status};
use abide_places::place::{self, OwnedResource, Place, ResourceKind, ResourceLifetime, TakeDown};
use abide_store::{Store, StoreEntry, TrashName};
use abide_wire::exit_record::StopReason;

use crate::error::EngineError;

/// What `place` has of `instance`.
pub(crate) fn look(place: &dyn Place, instance: &Instance) -> PlaceSight {
    place.look(&[instance]).pop().unwrap_or_else(|| PlaceSight::Unknown("it said nothing".to_owned()))
}

/// What the engine has of the container of `instance`; `None` where it lives in none.
pub fn sight(store: &Store, instance: &Instance) -> Option<PlaceSight> {
    let recipe = instance.recipe.container.as_ref()?;
    Some(match place::of(store, recipe) {
        Ok(place) => look(&*place, instance),
        Err(error) => PlaceSight::Unknown(error.to_string()),
    })
}

/// The error of a verb that an engine did not answer.
pub(crate) fn silent(id: InstanceId, why: &str) -> EngineError {
    EngineError::Other(format!(
        "the container engine of {} does not answer: {why}; nothing was changed, try again when it does",
        id.display_name()
    ))
}

/// How the run of a container ended: why process 1 stopped, or what happened to it. Its exit record can be forged from
/// inside, so the engine is asked.
pub(crate) fn end_of(store: &Store, instance: &Instance) -> Result<ContainerEnd, EngineError> {
    let Some(recipe) = &instance.recipe.container else { return Ok(ContainerEnd::default()) };
    let place = place::of(store, recipe)?;
    Ok(match look(&*place, instance) {
        PlaceSight::Unknown(why) => return Err(silent(instance.id, &why)),
        PlaceSight::Running | PlaceSight::Paused => return Err(EngineError::StillRuns(instance.id)),
        PlaceSight::Gone { .. } => ContainerEnd::without_reason("its container was removed"),
        PlaceSight::Stopped(exit) => ContainerEnd::of(exit),
    })
}

/// How the run of a container ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ContainerEnd {
    pub reason: Option<StopReason>,
    /// What happened, where process 1 did not stop by itself.
    pub what: Option<String>,
}

impl ContainerEnd {
    fn without_reason(what: &str) -> Self {
        Self { reason: None, what: Some(what.to_owned()) }
    }

    fn of(exit: ContainerExit) -> Self {
        match (exit.by_memory, exit.code, exit.code.and_then(StopReason::of_exit_code)) {
            (MemoryKill::Yes, ..) => Self::without_reason("its container ran out of memory"),
            (MemoryKill::No, _, Some(reason)) => Self { reason: Some(reason), what: None },
            (MemoryKill::No, Some(code), None) => {
                Self::without_reason(&format!("its container was killed (exit status {code})"))
            }
            (MemoryKill::No, None, None) => Self::without_reason("its container was never started"),
        }
    }
}

/// Refuses to begin what could not be carried out: the engine of the container must answer.
pub(crate) fn require_answer(store: &Store, instance: &Instance) -> Result<(), EngineError> {
    let Some(recipe) = made(instance) else { return Ok(()) };
    match look(&*place::of(store, recipe)?, instance) {
        PlaceSight::Unknown(why) => Err(silent(instance.id, &why)),
        _ => Ok(()),
    }
}

/// Takes the container of `instance` down as far as `how` says.
pub(crate) fn take_down(store: &Store, instance: &Instance, how: TakeDown) -> Result<(), EngineError> {
    let Some(recipe) = made(instance) else { return Ok(()) };
    Ok(place::of(store, recipe)?.take_down(instance.id, how)?)
}

/// The recipe of a container that may have been made: one without an image never was.
fn made(instance: &Instance) -> Option<&ContainerRecipe> {
    instance.recipe.container.as_ref().filter(|recipe| !recipe.image.id.is_empty())
}

/// Refuses to make an instance for a container whose engine does not answer.
pub(crate) fn require_engine(store: &Store, recipe: &ContainerRecipe) -> Result<(), EngineError> {
    Ok(place::of(store, recipe)?.answers()?)
}

/// What an engine has that is no longer needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerLeftover {
    pub engine: EngineChoice,
    pub what: LeftoverKind,
    /// What there is, by name.
    pub names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftoverKind {
    /// All that there is of an instance, or what only a running one needs.
    OfInstance(InstanceId, TakeDown),
    /// An image that no instance is made from, by its id.
    Image(String),
}

/// What engines have of instances that are gone, what they have of others that only running ones need, and images that
/// nothing is made from. An engine that does not answer is not looked at.
pub fn leftovers(store: &Store) -> Result<Vec<ContainerLeftover>, EngineError> {
    let mut found = Vec::new();
    for (engine, place) in place::known(store) {
        let owned = match place.owned() {
            Ok(owned) => owned,
            Err(error) => {
                tracing::info!(engine = %engine.kind, "what it has of ours is not known: {error}");
                continue;
            }
        };
        // Read after the engine was asked: an instance that was made meanwhile is known.
        let (entries, trashed) = (store.list()?, store.trash_names()?);
        let mut of: BTreeMap<InstanceId, Vec<OwnedResource>> = BTreeMap::new();
        for resource in owned {
            if let Some(id) = resource.instance {
                of.entry(id).or_default().push(resource);
            } else if resource.kind == ResourceKind::Image
                && !is_used(store, &entries, &trashed, &resource.id)
            {
                let (what, names) = (LeftoverKind::Image(resource.id), vec![resource.name]);
                found.push(ContainerLeftover { engine: engine.clone(), what, names });
            }
        }
        for (id, resources) in of {
            let Some(how) = needed_no_more(id, &entries, &trashed) else { continue };
            let goes = |resource: &&OwnedResource| {
                how == TakeDown::Remove || resource.lifetime == ResourceLifetime::Run
            };
            let names: Vec<String> =
                resources.iter().filter(goes).map(|resource| resource.name.clone()).collect();
            if !names.is_empty() {
                let what = LeftoverKind::OfInstance(id, how);
                found.push(ContainerLeftover { engine: engine.clone(), what, names });
            }
        }
    }
    Ok(found)
}

/// How much of what an engine has of the instance `id` can go; nothing of one that runs, or may.
fn needed_no_more(id: InstanceId, entries: &[StoreEntry], trashed: &[TrashName]) -> Option<TakeDown> {
    match entries.iter().find(|entry| entry.id() == Some(id)).map(StoreEntry::sound) {
        None if trashed.iter().all(|name| name.id != id) => Some(TakeDown::Remove),
        None => Some(TakeDown::Free),
        Some(Some(instance)) if matches!(instance.status.status, Status::Restorable(_)) => {
            Some(TakeDown::Free)
        }
        Some(_) => None,
    }
}

/// Whether an instance is made from the image `id`, or may be: what starts has not written down its own yet, and what
/// cannot be read may have one.
fn is_used(store: &Store, entries: &[StoreEntry], trashed: &[TrashName], id: &str) -> bool {
    let is_made_from = |instance: &Instance| {
        let image = instance.recipe.container.as_ref().map(|recipe| &recipe.image);
        image.is_some_and(|image| image.id == id)
    };
    let uses = |entry: &StoreEntry| {
        entry.sound().is_none_or(|instance| {
            matches!(instance.status.status, Status::Starting { .. }) || is_made_from(instance)
        })
    };
    entries.iter().any(uses)
        || trashed
            .iter()
            .any(|name| store.trashed_instance(name).is_none_or(|instance| is_made_from(&instance)))
}

/// Removes `left` from its engine.
pub fn remove(store: &Store, left: &ContainerLeftover) -> Result<(), EngineError> {
    for (_, place) in place::known(store).into_iter().filter(|(engine, _)| *engine == left.engine) {
        match &left.what {
            LeftoverKind::OfInstance(id, how) => place.take_down(*id, *how)?,
            LeftoverKind::Image(id) => place.remove_image(id)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_process_1_itself_says_that_a_run_is_over() {
        let end = |code, by_memory| ContainerEnd::of(ContainerExit { code: Some(code), by_memory }).reason;
        assert_eq!(end(0, MemoryKill::No), Some(StopReason::LastSessionEnded));
        assert_eq!(end(3, MemoryKill::No), Some(StopReason::Operator));
        assert_eq!(end(143, MemoryKill::No), Some(StopReason::Sigterm));
        assert_eq!(end(1, MemoryKill::No), Some(StopReason::Fatal));
        for code in [137, 255, 2] {
            assert_eq!(end(code, MemoryKill::No), None, "{code}");
        }
        // The engine says 0 where a child was killed and process 1 ended after it.
        assert_eq!(end(0, MemoryKill::Yes), None);
    }
}
