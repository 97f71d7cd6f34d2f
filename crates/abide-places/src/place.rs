//! A place other than the host, in the words of the ladder. Each is a folder of this crate; the engine crate knows only this trait.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fmt, io};

use abide_model::container::{ContainerRecipe, EngineChoice, EngineKind, Image};
use abide_model::ladder::{PlaceSight, Tier};
use abide_model::{Instance, InstanceId};
use abide_store::Store;
use abide_sys::atomic::{self, Durability};

use crate::docker;
use crate::owner::Owner;

/// Why a place did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// It did not answer, or not in time: nothing is known. What was asked for may or may not have happened, and nothing else was changed.
    #[error("{0}")]
    Unknown(String),
    /// It answered, and refused or failed; the text says what to do next.
    #[error("{0}")]
    Refused(String),
    /// An image was not built.
    #[error("the image was not built; {next}. The last lines of the build:\n{output}")]
    NotBuilt { next: String, output: String },
    /// Process 1 ended before anything could be started in it.
    #[error("{why}{}", last_words(output))]
    EndedAtOnce {
        why: String,
        /// The last lines that it wrote.
        output: String,
    },
}

fn last_words(output: &str) -> String {
    match output.trim() {
        "" => "; it said nothing".to_owned(),
        said => format!("; it said last:\n{said}"),
    }
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

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Resolve => "looking for the image",
            Self::Build => "building the image",
            Self::Network => "making the network",
            Self::Sidecar => "starting the engine beside it",
            Self::Container => "starting the container",
            Self::Sessions => "starting the sessions",
            Self::Attach => "attaching",
        })
    }
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

/// What there is of the engine beside an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SidecarSight {
    Running,
    Stopped,
    Gone,
    Unknown(String),
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
    pub lifetime: ResourceLifetime,
}

/// How long something in a place is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceLifetime {
    /// While its instance runs.
    Run,
    /// While its instance exists, or for ever.
    Instance,
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
    /// Whether it can be reached at all.
    fn answers(&self) -> Result<(), PlaceError>;

    /// What is there of each of `instances`, in their order: one question for all of them.
    fn look(&self, instances: &[&Instance]) -> Vec<PlaceSight>;

    /// Makes sure that the image of `recipe` is there, and gives it with everything pinned that builds it again.
    fn prepare(&self, recipe: &ContainerRecipe, told: &dyn Fn(StageEvent)) -> Result<Image, PlaceError>;

    /// Has process 1 run, and returns as soon as it does. What exists is reused as far as `tier` says.
    fn bring_up(&self, wanted: &BringUp<'_>, tier: Tier, told: &dyn Fn(StageEvent))
    -> Result<(), PlaceError>;

    /// The variables that the image sets for what runs in it.
    fn image_env(&self, image: &Image) -> Result<Vec<(String, String)>, PlaceError>;

    /// The variables that lead what runs in `instance` to what its network lets through. It must be up.
    fn network_env(&self, instance: &Instance) -> Result<Vec<(String, String)>, PlaceError>;

    /// Makes `home`, the home of the sessions of a new instance, with what the image has in the home of its user.
    fn seed_home(&self, image: &Image, home: &Path) -> Result<(), PlaceError>;

    /// The variables by which what runs in an instance finds the engine beside it; none where it has none.
    fn sidecar_env(&self, recipe: &ContainerRecipe) -> Vec<(String, String)>;

    /// What there is of the engine beside an instance that is to have one.
    fn look_beside(&self, instance: &Instance) -> SidecarSight;

    /// The last lines that process 1 wrote, as far as they can be had.
    fn last_output(&self, instance: InstanceId) -> String;

    /// The command that runs `argv` inside a running instance, as its user, with the command's own streams and exit status.
    fn exec(&self, instance: &Instance, argv: &[OsString]) -> Result<Command, PlaceError>;

    /// Takes an instance down. What is not there is down already.
    fn take_down(&self, instance: InstanceId, how: TakeDown) -> Result<(), PlaceError>;

    /// Removes an image that abide built, by its id. One that a container is made from stays.
    fn remove_image(&self, id: &str) -> Result<(), PlaceError>;

    /// Everything that abide made in this place for this home.
    fn owned(&self) -> Result<Vec<OwnedResource>, PlaceError>;
}

/// The place that the container of `recipe` is in.
pub fn of(store: &Store, recipe: &ContainerRecipe) -> Result<Box<dyn Place>, PlaceError> {
    at(store, recipe.engine())
}

fn at(store: &Store, choice: EngineChoice) -> Result<Box<dyn Place>, PlaceError> {
    let home = store.layout().home();
    let owner =
        Owner::of_home(home).map_err(|error| PlaceError::Refused(format!("{}: {error}", home.display())))?;
    Ok(Box::new(docker::place(choice, owner)))
}

/// Where it is written down which engines this home has had containers on.
fn engines_file(store: &Store) -> PathBuf {
    store.layout().home().join("engines.json")
}

fn engines(store: &Store) -> Vec<EngineChoice> {
    let text = std::fs::read(engines_file(store)).ok();
    let known: Option<Vec<(EngineKind, Option<String>)>> =
        text.and_then(|text| serde_json::from_slice(&text).ok());
    known.unwrap_or_default().into_iter().map(|(kind, context)| EngineChoice { kind, context }).collect()
}

/// Writes down that this home has containers on the engine of `recipe`: before anything is made there, so that nothing is
/// forgotten.
pub fn remember(store: &Store, recipe: &ContainerRecipe) -> io::Result<()> {
    let mut all = engines(store);
    if all.contains(&recipe.engine()) {
        return Ok(());
    }
    all.push(recipe.engine());
    let all: Vec<_> = all.iter().map(|choice| (choice.kind, &choice.context)).collect();
    atomic::write_path(&engines_file(store), &serde_json::to_vec(&all)?, 0o600, Durability::Synced)
}

/// The engines that this home has ever had containers on.
pub fn known(store: &Store) -> Vec<(EngineChoice, Box<dyn Place>)> {
    engines(store).into_iter().filter_map(|choice| Some((choice.clone(), at(store, choice).ok()?))).collect()
}
