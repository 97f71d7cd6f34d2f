//! The network of an instance: its own, made for a run and removed after it.

use abide_model::container::{ContainerRecipe, EngineKind, Network};
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
    /// Whether it has no way out.
    #[serde(default, rename = "Internal", alias = "internal")]
    pub internal: bool,
}

impl Docker {
    pub(super) fn networks(&self, instance: Option<InstanceId>) -> Result<Vec<NetworkView>, PlaceError> {
        let mut args: Vec<String> = ["network", "ls", "-q", "--no-trunc"].map(str::to_owned).to_vec();
        args.extend(labels::filters(&self.owner, instance));
        self.engine.inspect("network", &self.engine.ids(args)?)
    }

    pub(super) fn networks_of(
        &self,
        id: InstanceId,
        what: Belonging,
    ) -> Result<Vec<NetworkView>, PlaceError> {
        let mut all = self.networks(Some(id))?;
        all.retain(|network| network.labels.as_ref().is_some_and(|labels| labels::is(labels, what)));
        Ok(all)
    }

    /// Makes sure that `instance` has the network of its sessions; `None` where it is to have none.
    pub(super) fn have_network(
        &self,
        instance: &Instance,
        recipe: &ContainerRecipe,
    ) -> Result<Option<NetworkView>, PlaceError> {
        let flags = match (recipe.network, self.engine.choice.kind) {
            (Network::None, _) => return Ok(None),
            (Network::Open, _) => &[][..],
            // Without an address of this machine in it, which would be one to reach its services at.
            (Network::Allow, EngineKind::Docker) => {
                &["--internal", "--opt", "com.docker.network.bridge.inhibit_ipv4=true"]
            }
            (Network::Allow, EngineKind::Podman) => &["--internal", "--disable-dns"],
        };
        let network = self.have_network_of(instance, Belonging::Network, flags)?;
        if recipe.network == Network::Allow && !network.internal {
            let why = format!("the network {} has a way out; remove it, then try again", network.name);
            return Err(PlaceError::Refused(why));
        }
        Ok(Some(network))
    }

    /// Makes sure that `instance` has the network that is `what` of it, made with `flags`.
    pub(super) fn have_network_of(
        &self,
        instance: &Instance,
        what: Belonging,
        flags: &[&str],
    ) -> Result<NetworkView, PlaceError> {
        if let Some(network) = self.networks_of(instance.id, what)?.pop() {
            return Ok(network);
        }
        let name = labels::name(instance, what);
        let mut args: Vec<String> = ["network", "create", "--driver", "bridge"].map(str::to_owned).to_vec();
        args.extend(flags.iter().map(|&flag| flag.to_owned()));
        args.extend(labels::of_instance(&self.owner, instance, what));
        args.push(name.clone());
        let id = self.engine.ask(args, TO_ACT).map_err(|error| match error {
            PlaceError::Refused(why) if why.contains("address pool") => PlaceError::Refused(format!(
                "{why}; every instance that runs has a network: stop some, or give the engine more address pools"
            )),
            other => other,
        })?;
        Ok(NetworkView { id: id.text(), name, labels: None, internal: flags.contains(&"--internal") })
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
