//! What the container of an instance is made from: captured at the first launch, replayed at every later one.

use serde::{Deserialize, Serialize};

use crate::choice::choices;
use crate::instance::Extra;

choices! {
    /// The operator's command that drives the engine.
    #[derive(Default)]
    EngineKind, "engine" {
        #[default]
        Docker = "docker": "the docker command",
        Podman = "podman": "the podman command",
    }
}

choices! {
    /// What the sessions of a container can reach.
    #[derive(Default)]
    Network, "network" {
        #[default]
        Open = "open": "everything that this machine can reach",
        Allow = "allow": "only the hosts on its list, through a proxy",
        None = "none": "nothing",
    }
}

/// Which engine holds a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineChoice {
    pub kind: EngineKind,
    /// The engine's context, where it is not the operator's current one.
    pub context: Option<String>,
}

/// Everything that a container is made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerRecipe {
    pub engine: EngineKind,
    /// The engine's context, where it is not the operator's current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    pub image: Image,
    /// The user that its sessions run as: the operator.
    pub uid: u32,
    pub gid: u32,
    #[serde(default)]
    pub network: Network,
    /// The hosts that can be reached where the network is `allow`, beside those of the presets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
    /// The image of a Docker engine beside the container, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<String>,
    /// The memory that it may use, in bytes; no limit where unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// How many processes it may have; no limit where unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u32>,
    /// Further flags of the engine's `run`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run_flags: Vec<String>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ContainerRecipe {
    pub fn engine(&self) -> EngineChoice {
        EngineChoice { kind: self.engine, context: self.context.clone() }
    }
}

/// The image that a container is started from, and what builds it again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The tag that abide gave it. Empty until it was built or found.
    #[serde(default)]
    pub tag: String,
    /// The engine's id of its content, which two builds never share. Empty until it was built or found.
    #[serde(default)]
    pub id: String,
    pub source: ImageSource,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What an image is built from, pinned so that a later build starts from the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum ImageSource {
    /// An image that the engine has or can pull.
    Reference {
        name: String,
        /// The engine's id of it when it was first used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Fields of a newer abide.
        #[serde(flatten)]
        extra: Extra,
    },
    /// A Dockerfile in a directory.
    Build {
        /// Where the directory came from: a path, or the URL of a git repository.
        origin: String,
        /// The commit of that repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
        /// The Dockerfile, below the directory.
        dockerfile: String,
        /// The build's context, below the directory.
        context: String,
        /// Build arguments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        args: Vec<(String, String)>,
        /// What the Dockerfile starts from, with the engine's id of it when it was first built.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        bases: Vec<(String, String)>,
        /// Fields of a newer abide.
        #[serde(flatten)]
        extra: Extra,
    },
}

impl Default for ImageSource {
    fn default() -> Self {
        Self::Reference { name: String::new(), id: None, extra: Extra::new() }
    }
}
