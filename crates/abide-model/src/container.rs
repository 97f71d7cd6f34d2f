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
    /// What is installed on top of the source, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<ImagePackage>,
    /// The user of the source whose home a new home begins as, where it is not the one that the source runs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What an image is built from, pinned so that a later build starts from the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum ImageSource {
    /// An image that the engine has or can pull.
    Reference(BaseImage),
    /// A Dockerfile in a directory.
    Build(ImageBuild),
}

/// An image that others are built on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseImage {
    pub name: String,
    /// The engine's id of it when it was first used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What a registry gives exactly this image for: `name@sha256:…`. An image that was made on this machine has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

impl BaseImage {
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// Whether `name` can be the name of an image. Engines get it as an argument, where a leading dash would make it an option.
pub fn is_image_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/:@".contains(&b))
}

/// How an image is built from a Dockerfile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageBuild {
    /// Where the directory came from: a path, or the URL of a git repository.
    pub origin: String,
    /// The commit of that repository; of a directory, that of abide's own copy of what was in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The Dockerfile, below the directory.
    pub dockerfile: String,
    /// The build's context, below the directory.
    pub context: String,
    /// Build arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<(String, String)>,
    /// What the Dockerfile starts from, in the order of its stages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bases: Vec<BaseImage>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Default for ImageSource {
    fn default() -> Self {
        Self::Reference(BaseImage::default())
    }
}

/// Something that is installed in an image that lacks it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImagePackage {
    /// The command that it brings: an image that has it is left as it is.
    pub command: String,
    pub manager: PackageManager,
    /// What its manager calls it.
    pub name: String,
    /// The version; the image's own package manager has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Fields of a newer abide.
    #[serde(flatten)]
    pub extra: Extra,
}

choices! {
    /// What installs a package.
    PackageManager, "package manager" {
        System = "system": "the image's own package manager",
        Npm = "npm": "npm, which the image must have",
    }
}
