//! Instances in containers, on the engine of the operator's own `docker` or `podman` command.

mod container;
pub mod egress;
mod engine;
mod image;
mod labels;
mod look;
mod mounts;
mod network;
mod owned;
mod sidecar;
mod take_down;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use abide_model::container::{ContainerRecipe, EngineChoice, Image};
use abide_model::ladder::{PlaceSight, Tier};
use abide_model::{Instance, InstanceId};

use self::container::LAST_LINES;
use self::engine::Engine;
use crate::owner::Owner;
use crate::place::{BringUp, OwnedResource, Place, PlaceError, SidecarSight, StageEvent, TakeDown};

/// The engine of `choice`, for what `owner` has there.
pub fn place(choice: EngineChoice, owner: Owner) -> impl Place {
    Docker { engine: Engine { choice }, owner }
}

#[derive(Debug)]
struct Docker {
    engine: Engine,
    owner: Owner,
}

impl Place for Docker {
    fn answers(&self) -> Result<(), PlaceError> {
        self.engine.ask(["version", "--format", "{{.Server.Version}}"], engine::TO_ANSWER).map(drop)
    }

    fn look(&self, instances: &[&Instance]) -> Vec<PlaceSight> {
        self.look_at(instances)
            .unwrap_or_else(|error| vec![PlaceSight::Unknown(error.to_string()); instances.len()])
    }

    fn prepare(&self, recipe: &ContainerRecipe, told: &dyn Fn(StageEvent)) -> Result<Image, PlaceError> {
        self.prepare_image(recipe, told)
    }

    fn bring_up(
        &self,
        wanted: &BringUp<'_>,
        tier: Tier,
        told: &dyn Fn(StageEvent),
    ) -> Result<(), PlaceError> {
        self.bring_up_at(wanted, tier, told)
    }

    fn image_env(&self, image: &Image) -> Result<Vec<(String, String)>, PlaceError> {
        let args = ["image", "inspect", "--format", "{{json .Config.Env}}", &image.id];
        let said = self.engine.ask(args, engine::TO_ANSWER)?;
        let variables: Option<Vec<String>> = serde_json::from_slice(&said.stdout)
            .map_err(|error| PlaceError::Refused(format!("the variables of {}: {error}", image.tag)))?;
        let pair =
            |text: String| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(variables.unwrap_or_default().into_iter().filter_map(pair).collect())
    }

    fn network_env(&self, instance: &Instance) -> Result<Vec<(String, String)>, PlaceError> {
        instance
            .recipe
            .container
            .as_ref()
            .map_or(Ok(Vec::new()), |recipe| self.proxy_env(instance.id, recipe))
    }

    fn seed_home(&self, image: &Image, home: &Path) -> Result<(), PlaceError> {
        self.seed(image, home)
    }

    fn sidecar_env(&self, recipe: &ContainerRecipe) -> Vec<(String, String)> {
        sidecar::env(recipe)
    }

    fn look_beside(&self, instance: &Instance) -> SidecarSight {
        self.sidecar_sight(instance)
    }

    fn last_output(&self, instance: InstanceId) -> String {
        let logs = self.container(instance).ok().flatten().and_then(|container| {
            self.engine.output(["logs", "--tail", LAST_LINES, &container.id], engine::TO_ANSWER).ok()
        });
        logs.map(|logs| format!("{}{}", logs.stderr, logs.text())).unwrap_or_default()
    }

    fn exec(&self, instance: &Instance, argv: &[OsString]) -> Result<Command, PlaceError> {
        let Some(container) = self.container(instance.id)?.filter(look::ContainerView::runs) else {
            return Err(PlaceError::Refused(format!("the container of {} does not run", instance.id)));
        };
        let words = ["exec".into(), "--interactive".into(), OsString::from(container.id)];
        Ok(self.engine.command(words.iter().chain(argv)))
    }

    fn take_down(&self, instance: InstanceId, how: TakeDown) -> Result<(), PlaceError> {
        self.take_down_to(instance, how)
    }

    fn remove_image(&self, id: &str) -> Result<(), PlaceError> {
        self.engine.ask_if_there(["rmi", id], engine::TO_ACT).map(drop)
    }

    fn owned(&self) -> Result<Vec<OwnedResource>, PlaceError> {
        self.everything_owned()
    }
}
