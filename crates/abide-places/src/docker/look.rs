//! What the engine has of instances.

use std::collections::BTreeMap;

use abide_model::container::Image;
use abide_model::ladder::{ContainerExit, ImagePresence, MemoryKill, PlaceSight};
use abide_model::name::Belonging;
use abide_model::{Instance, InstanceId};
use serde::Deserialize;

use super::Docker;
use super::labels::{self, Labels};
use crate::place::PlaceError;

/// A container, as `container inspect` has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ContainerView {
    pub id: String,
    pub name: String,
    pub created: String,
    pub state: StateView,
    pub config: ConfigView,
    #[serde(default)]
    pub network_settings: NetworksView,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct StateView {
    pub status: String,
    #[serde(default)]
    pub exit_code: i32,
    #[serde(default, rename = "OOMKilled")]
    pub out_of_memory: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ConfigView {
    #[serde(default)]
    pub labels: Option<Labels>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NetworksView {
    #[serde(default)]
    pub networks: Option<BTreeMap<String, EndpointView>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct EndpointView {
    #[serde(default, rename = "NetworkID")]
    pub network_id: String,
    #[serde(default, rename = "IPAddress")]
    pub address: String,
}

impl ContainerView {
    pub fn labels(&self) -> Labels {
        self.config.labels.clone().unwrap_or_default()
    }

    pub fn runs(&self) -> bool {
        self.state.status == "running"
    }

    pub fn is_paused(&self) -> bool {
        self.state.status == "paused"
    }

    /// What is said of it in the ladder's words.
    fn sight(&self) -> PlaceSight {
        let exit = |code| {
            let by_memory = if self.state.out_of_memory { MemoryKill::Yes } else { MemoryKill::No };
            PlaceSight::Stopped(ContainerExit { code, by_memory })
        };
        match self.state.status.as_str() {
            "running" => PlaceSight::Running,
            "paused" => PlaceSight::Paused,
            "created" | "configured" | "initialized" => exit(None),
            "exited" | "stopped" => exit(Some(self.state.exit_code)),
            other => {
                PlaceSight::Unknown(format!("the engine says that its container {} is {other}", self.name))
            }
        }
    }
}

impl Docker {
    /// The containers of this home, or of one of its instances: their own and those beside them.
    pub(super) fn containers(&self, instance: Option<InstanceId>) -> Result<Vec<ContainerView>, PlaceError> {
        let mut args: Vec<String> = ["ps", "-aq", "--no-trunc"].map(str::to_owned).to_vec();
        args.extend(labels::filters(&self.owner, instance));
        self.engine.inspect("container", &self.engine.ids(args)?)
    }

    /// The containers that are `what` of an instance: one, or none.
    pub(super) fn part(&self, id: InstanceId, what: Belonging) -> Result<Vec<ContainerView>, PlaceError> {
        let mut all = self.containers(Some(id))?;
        all.retain(|container| labels::is(&container.labels(), what));
        Ok(all)
    }

    /// The container of one instance.
    pub(super) fn container(&self, id: InstanceId) -> Result<Option<ContainerView>, PlaceError> {
        Ok(own(&self.containers(Some(id))?, id).cloned())
    }

    pub(super) fn look_at(&self, instances: &[&Instance]) -> Result<Vec<PlaceSight>, PlaceError> {
        let containers = self.containers(None)?;
        let found: Vec<_> = instances.iter().map(|instance| own(&containers, instance.id)).collect();
        let images = match found.iter().all(Option::is_some) {
            true => Vec::new(),
            false => self.engine.ids(["images", "-aq", "--no-trunc"])?,
        };
        let sights = instances.iter().zip(found).map(|(instance, container)| match container {
            Some(container) => container.sight(),
            None => PlaceSight::Gone { image: presence(instance, &images) },
        });
        Ok(sights.collect())
    }
}

/// The container of an instance among others. There is one, unless something else than abide copied its labels: then one that
/// runs, or the newest.
fn own(containers: &[ContainerView], id: InstanceId) -> Option<&ContainerView> {
    let of_it = containers.iter().filter(|container| {
        let labels = container.labels();
        labels::instance(&labels) == Some(id) && labels::is(&labels, Belonging::Container)
    });
    of_it.max_by_key(|container| (container.runs() || container.is_paused(), &container.created))
}

fn presence(instance: &Instance, images: &[String]) -> ImagePresence {
    let image = instance.recipe.container.as_ref().map(|recipe| &recipe.image);
    let is = |id: &String, image: &Image| !image.id.is_empty() && digest(id) == digest(&image.id);
    match image.is_some_and(|image| images.iter().any(|id| is(id, image))) {
        true => ImagePresence::Present,
        false => ImagePresence::Missing,
    }
}

/// The digest of an id. Podman leaves out what kind of digest it is in some of its answers.
fn digest(id: &str) -> &str {
    id.trim_start_matches("sha256:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(state: serde_json::Value) -> ContainerView {
        let view = serde_json::json!({ "Id": "1", "Name": "/ab-x", "Created": "2026", "State": state, "Config": {} });
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn every_state_of_a_container_is_known_or_unknown_and_none_is_gone() {
        let stopped = |code, by_memory| PlaceSight::Stopped(ContainerExit { code, by_memory });
        for (state, expected) in [
            (serde_json::json!({"Status": "running", "ExitCode": 0}), PlaceSight::Running),
            (serde_json::json!({"Status": "paused"}), PlaceSight::Paused),
            (serde_json::json!({"Status": "created", "ExitCode": 0}), stopped(None, MemoryKill::No)),
            (serde_json::json!({"Status": "exited", "ExitCode": 0}), stopped(Some(0), MemoryKill::No)),
            (
                serde_json::json!({"Status": "exited", "ExitCode": 137, "OOMKilled": true}),
                stopped(Some(137), MemoryKill::Yes),
            ),
        ] {
            assert_eq!(container(state).sight(), expected);
        }
        for odd in ["restarting", "removing", "dead", "stopping", "something new"] {
            let sight = container(serde_json::json!({ "Status": odd })).sight();
            assert!(matches!(&sight, PlaceSight::Unknown(why) if why.contains(odd)), "{sight:?}");
        }
    }
}
