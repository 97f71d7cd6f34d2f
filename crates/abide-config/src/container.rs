//! What the configuration says of containers.

use abide_model::container::Network;

use crate::rule::{Count, EngineFlag, HostName, ImageName, OneOf, Size};
use crate::schema::{Optional, Several, record};
use crate::value::ByteSize;

/// The most processes that can be asked for: what Linux can number.
const PROCESSES: u32 = 4_194_304;

record! {
    /// How containers are made where neither workspace nor role says otherwise.
    Container {
        /// Image that the role `default` is built on: git and the agent are added where it lacks them.
        image: String as ImageName = "debian:stable-slim".to_owned(),
        /// What the sessions can reach.
        network: Network as OneOf<Network> = Network::Open,
        /// Hosts that can be reached with `network = "allow"`, beside those that agents and package registries need.
        allow: Vec<String> as Several<HostName>,
        /// Memory that a container may use; unset, no limit.
        memory: Option<ByteSize> as Optional<Size>,
        /// Processes that a container may have; 0 is no limit.
        processes: u32 as Count<PROCESSES> = 4096,
        /// Image of a Docker engine that runs beside the container, for sessions that use docker; unset, there is none.
        sidecar: Option<String> as Optional<ImageName>,
        /// Further flags of the engine's `run`, such as `--gpus=all`.
        flags: Vec<String> as Several<EngineFlag>,
    }
}

record! {
    /// How the containers of a workspace are made; what is unset is as in `config.toml`.
    WorkspaceContainer {
        /// Image that the role `default` is built on, instead of the one in config.toml.
        image: Option<String> as Optional<ImageName>,
        /// What the sessions can reach, instead of what the role or config.toml says.
        network: Option<Network> as Optional<OneOf<Network>>,
        /// Hosts that can be reached with `network = "allow"`, beside those of the role and of config.toml.
        allow: Vec<String> as Several<HostName>,
        /// Memory that a container may use, instead of the setting in config.toml.
        memory: Option<ByteSize> as Optional<Size>,
        /// Processes that a container may have, instead of the setting in config.toml; 0 is no limit.
        processes: Option<u32> as Optional<Count<PROCESSES>>,
        /// Image of a Docker engine beside the container, instead of the one in config.toml.
        sidecar: Option<String> as Optional<ImageName>,
        /// Flags of the engine's `run`, beside those in config.toml.
        flags: Vec<String> as Several<EngineFlag>,
    }
}

impl Container {
    pub(crate) fn overridden_by(mut self, over: &WorkspaceContainer) -> Self {
        self.allow.extend_from_slice(&over.allow);
        self.flags.extend_from_slice(&over.flags);
        Self {
            image: over.image.clone().unwrap_or(self.image),
            network: over.network.unwrap_or(self.network),
            memory: over.memory.or(self.memory),
            processes: over.processes.unwrap_or(self.processes),
            sidecar: over.sidecar.clone().or(self.sidecar),
            ..self
        }
    }
}
