//! A place other than the host, in the words of the ladder. Each is a folder of this crate; the engine crate knows only this trait.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use abide_model::container::{ContainerRecipe, Image};
use abide_model::ladder::{PlaceSight, Tier};
use abide_model::{Instance, InstanceId};
use abide_sys::run::CommandOutput;

/// Why a place did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// It did not answer, or not in time: nothing is known. What was asked for may or may not have happened, and nothing else was changed.
    #[error("{0}")]
    Unknown(String),
    /// It answered, and refused or failed; the text says what to do next.
    #[error("{0}")]
    Refused(String),
    /// Process 1 ended before anything could be started in it.
    #[error("{why}")]
    EndedAtOnce {
        why: String,
        /// The last lines that it wrote.
        output: String,
    },
}

/// A part of a launch, in the order in which they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Resolve,
    Build,
    Network,
    Sidecar,
    Container,
    Sessions,
    Attach,
}

/// What is heard of a launch while it is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageEvent {
    Begun(Stage),
    /// A line that a build printed, or a step that it reached.
    Said(Stage, String),
    Done(Stage, String),
}

/// What a container is made for.
#[derive(Debug)]
pub struct BringUp<'a> {
    pub instance: &'a Instance,
    pub recipe: &'a ContainerRecipe,
    /// The directory of the instance on this machine. Its parts have the same paths inside.
    pub dir: &'a Path,
    /// The directory with our binary, a directory per version: mounted read-only at the same path.
    pub programs: &'a Path,
    /// What runs as process 1. A container keeps it for life: at [`Tier::Start`] the one that it was made with runs again.
    pub argv: Vec<OsString>,
    /// The home of its sessions, inside and outside.
    pub home: PathBuf,
    /// What it sees besides: the parts of a repository that a worktree needs, credentials.
    pub binds: Vec<Bind>,
}

/// A file or directory of this machine that an instance sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    pub source: PathBuf,
    pub target: PathBuf,
    pub access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

/// How far an instance is taken down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeDown {
    /// Its processes end; what they ran in stays.
    Stop,
    /// Besides, what only a running one needs is removed: network, sidecar, certificates.
    Free,
    /// Nothing of it stays.
    Remove,
}

/// Something that abide made in a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedResource {
    pub kind: ResourceKind,
    /// The place's own id of it.
    pub id: String,
    pub name: String,
    /// The instance that it is for, where it is for one.
    pub instance: Option<InstanceId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceKind {
    Container,
    Network,
    Volume,
    Image,
}

/// A place that holds instances. Facts only: `abide_model::ladder` decides.
pub trait Place: Send + Sync {
    /// What is there of each of `instances`, in their order: one question for all of them.
    fn look(&self, instances: &[&Instance]) -> Vec<PlaceSight>;

    /// Makes sure that the image of `recipe` is there, and gives it with everything pinned that builds it again.
    fn prepare(&self, recipe: &ContainerRecipe, told: &dyn Fn(StageEvent)) -> Result<Image, PlaceError>;

    /// Has process 1 run, and returns as soon as it does. What exists is reused as far as `tier` says.
    fn bring_up(&self, wanted: &BringUp<'_>, tier: Tier, told: &dyn Fn(StageEvent))
    -> Result<(), PlaceError>;

    /// The variables that the image sets for what runs in it.
    fn image_env(&self, image: &Image) -> Result<Vec<(String, String)>, PlaceError>;

    /// Runs `argv` inside a running instance, as its user.
    fn run(
        &self,
        instance: &Instance,
        argv: &[OsString],
        limit: Duration,
    ) -> Result<CommandOutput, PlaceError>;

    /// Takes an instance down. What is not there is down already.
    fn take_down(&self, instance: InstanceId, how: TakeDown) -> Result<(), PlaceError>;

    /// Everything that abide made in this place for this home.
    fn owned(&self) -> Result<Vec<OwnedResource>, PlaceError>;
}
