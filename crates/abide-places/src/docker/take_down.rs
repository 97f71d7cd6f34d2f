//! Taking an instance down: so far as it was asked for, and no further.

use abide_model::InstanceId;
use abide_model::name::Belonging;
use serde::Deserialize;

use super::Docker;
use super::engine::TO_ACT;
use super::labels::{self, Labels};
use super::look::ContainerView;
use crate::place::{PlaceError, TakeDown};

/// How long process 1 may take to end its sessions before the engine kills it, in seconds. The keeper takes 5.
const GRACE: &str = "10";

/// A volume, as `volume inspect` has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct VolumeView {
    pub name: String,
    #[serde(default)]
    pub labels: Option<Labels>,
}

impl Docker {
    pub(super) fn take_down_to(&self, id: InstanceId, how: TakeDown) -> Result<(), PlaceError> {
        let containers = self.containers(Some(id))?;
        for container in &containers {
            self.stop(container)?;
        }
        if how == TakeDown::Stop {
            return Ok(());
        }
        let own = |container: &&ContainerView| labels::is(&container.labels(), Belonging::Container);
        let (own, beside): (Vec<_>, Vec<_>) = containers.iter().partition(own);
        for container in beside {
            self.remove_container(container)?;
        }
        self.free_networks(id, &own)?;
        let stays = how != TakeDown::Remove && !own.is_empty();
        if how == TakeDown::Remove {
            for container in own {
                self.remove_container(container)?;
            }
        }
        for volume in self.volumes(Some(id))? {
            let certificates =
                volume.labels.as_ref().is_some_and(|labels| labels::is(labels, Belonging::Certs));
            // An engine lets go of no volume that a container has, and a stopped one has the certificates.
            if how == TakeDown::Remove || certificates && !stays {
                self.engine.ask_if_there(["volume", "rm", &volume.name], TO_ACT)?;
            }
        }
        Ok(())
    }

    /// Has process 1 end what it runs and itself.
    fn stop(&self, container: &ContainerView) -> Result<(), PlaceError> {
        if container.is_paused() {
            // A frozen process hears nothing.
            self.engine.ask_if_there(["unpause", &container.id], TO_ACT)?;
        } else if !container.runs() {
            return Ok(());
        }
        self.engine.ask_if_there(["stop", "--time", GRACE, &container.id], TO_ACT)?;
        Ok(())
    }

    pub(super) fn remove_container(&self, container: &ContainerView) -> Result<(), PlaceError> {
        self.engine.ask_if_there(["rm", "--force", "--volumes", &container.id], TO_ACT)?;
        Ok(())
    }

    pub(super) fn volumes(&self, instance: Option<InstanceId>) -> Result<Vec<VolumeView>, PlaceError> {
        let mut args: Vec<String> = ["volume", "ls", "-q"].map(str::to_owned).to_vec();
        args.extend(labels::filters(&self.owner, instance));
        self.engine.inspect("volume", &self.engine.ids(args)?)
    }
}
