//! What the configuration says of containers.

use abide_model::container::Network;

use crate::rule::{ENGINE_FLAG, HOST_NAME, IMAGE_NAME, SIZE, count, list, one_of};
use crate::schema::SettingShape::Leaf;
use crate::schema::record;
use crate::value::ByteSize;

/// The most processes that can be asked for: what Linux can number.
const PROCESSES: u32 = 4_194_304;

record! {
    /// How containers are made where neither workspace nor role says otherwise.
    Container {
        /// Image that the role `default` is built on: git and the agent are added where it lacks them.
        image: String [Leaf(IMAGE_NAME)] = "debian:stable-slim",
        /// What the sessions can reach.
        network: Network [Leaf(one_of::<Network>())] = "open",
        /// Hosts that can be reached with `network = "allow"`, beside what the agents need: names, addresses, or presets such as `npm`.
        allow: Vec<String> [Leaf(list(&HOST_NAME))] default,
        /// Memory that a container may use; unset, no limit.
        memory: Option<ByteSize> [Leaf(SIZE)] default,
        /// Processes that a container may have; 0 is no limit.
        processes: u32 [Leaf(count(PROCESSES))] = "4096",
        /// Image of a Docker engine that runs beside the container, for sessions that use docker; unset, there is none.
        sidecar: Option<String> [Leaf(IMAGE_NAME)] default,
        /// Further flags of the engine's `run`, such as `--gpus=all`.
        flags: Vec<String> [Leaf(list(&ENGINE_FLAG))] default,
    }
}

record! {
    /// How the containers of a workspace are made; what is unset is as in `config.toml`.
    WorkspaceContainer {
        /// Image that the role `default` is built on, instead of the one in config.toml.
        image: Option<String> [Leaf(IMAGE_NAME)] default,
        /// What the sessions can reach, instead of what the role or config.toml says.
        network: Option<Network> [Leaf(one_of::<Network>())] default,
        /// Hosts that can be reached with `network = "allow"`, beside those of the role and of config.toml.
        allow: Vec<String> [Leaf(list(&HOST_NAME))] default,
        /// Memory that a container may use, instead of the setting in config.toml.
        memory: Option<ByteSize> [Leaf(SIZE)] default,
        /// Processes that a container may have, instead of the setting in config.toml; 0 is no limit.
        processes: Option<u32> [Leaf(count(PROCESSES))] default,
        /// Image of a Docker engine beside the container, instead of the one in config.toml.
        sidecar: Option<String> [Leaf(IMAGE_NAME)] default,
        /// Flags of the engine's `run`, beside those in config.toml.
        flags: Vec<String> [Leaf(list(&ENGINE_FLAG))] default,
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
