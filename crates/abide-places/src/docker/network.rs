//! The network of an instance: its own, made for a run and removed after it.

use abide_model::container::{ContainerRecipe, Network};
use abide_model::name::Belonging;
use abide_model::{Instance, InstanceId};
use serde::Deserialize;

use super::Docker;
use super::engine::TO_ACT;
use super::labels::{self, Labels};
use super::look::ContainerView;
use crate::place::PlaceError;

/// A network, as `network inspect` has it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct NetworkView {
    #[serde(rename = "Id", alias = "id")]
    pub id: String,
    #[serde(rename = "Name", alias = "name")]
    pub name: String,
    #[serde(default, rename = "Labels", alias = "labels")]
    pub labels: Option<Labels>,
}

impl Docker {
    pub(super) fn networks(&self, instance: Option<InstanceId>) -> Result<Vec<NetworkView>, PlaceError> {
        let mut args: Vec<String> = ["network", "ls", "-q", "--no-trunc"].map(str::to_owned).to_vec();
        args.extend(labels::filters(&self.owner, instance));
        self.engine.inspect("network", &self.engine.ids(args)?)
    }

    /// Makes sure that `instance` has its network; `None` where it is to have none.
    pub(super) fn have_network(
        &self,
        instance: &Instance,
        recipe: &ContainerRecipe,
    ) -> Result<Option<NetworkView>, PlaceError> {
        let internal = match recipe.network {
            Network::None => return Ok(None),
            Network::Open => None,
            Network::Allow => Some("--internal".to_owned()),
        };
        if let Some(network) = self.networks(Some(instance.id))?.pop() {
            return Ok(Some(network));
        }
        let name = labels::name(instance, Belonging::Network);
        let mut args: Vec<String> = ["network", "create", "--driver", "bridge"].map(str::to_owned).to_vec();
        args.extend(internal);
        args.extend(labels::of_instance(&self.owner, instance, Belonging::Network));
        args.push(name.clone());
        let id = self.engine.ask(args, TO_ACT).map_err(|error| match error {
            PlaceError::Refused(why) if why.contains("address pool") => PlaceError::Refused(format!(
                "{why}; every instance that runs has a network: stop some, or give the engine more address pools"
            )),
            other => other,
        })?;
        Ok(Some(NetworkView { id: id.text(), name, labels: None }))
    }

    /// Connects a stopped container to its network. One that was connected to a network since removed can only be started after
    /// this, whatever the new network is called.
    pub(super) fn connect_network(
        &self,
        container: &ContainerView,
        network: &NetworkView,
    ) -> Result<(), PlaceError> {
        let endpoints = container.network_settings.networks.iter().flatten();
        let endpoint =
            endpoints.filter(|(name, _)| **name == network.name).map(|(_, endpoint)| endpoint).next();
        match endpoint {
            // Podman has the name in the place of the id.
            Some(known) if [&network.id, &network.name].contains(&&known.network_id) => return Ok(()),
            Some(_) => self.disconnect_network(container, &network.name)?,
            None => {}
        }
        self.engine.ask(["network", "connect", &network.name, &container.id], TO_ACT)?;
        Ok(())
    }

    fn disconnect_network(&self, container: &ContainerView, name: &str) -> Result<(), PlaceError> {
        self.engine.ask_if_there(["network", "disconnect", "--force", name, &container.id], TO_ACT)?;
        Ok(())
    }

    /// Removes the networks of an instance whose containers do not run.
    pub(super) fn free_networks(
        &self,
        id: InstanceId,
        containers: &[&ContainerView],
    ) -> Result<(), PlaceError> {
        for network in self.networks(Some(id))? {
            for container in containers {
                let connected = container.network_settings.networks.iter().flatten();
                if connected.into_iter().any(|(name, _)| *name == network.name) {
                    self.disconnect_network(container, &network.name)?;
                }
            }
            self.engine.ask_if_there(["network", "rm", &network.name], TO_ACT)?;
        }
        Ok(())
    }
}
