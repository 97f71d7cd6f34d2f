//! What can go wrong in the engine, each with what to do next.

use abide_git::GitError;
use abide_keeper::LaunchError;
use abide_model::InstanceId;
use abide_model::status::StatusRefusal;
use abide_places::place::PlaceError;
use abide_store::{ReadError, ResolveError};

use crate::conversation::adopt::TakeError;
use crate::start::moved::MissingDirectory;
use crate::start::secrets::SecretError;
use crate::start::startup_check::BootFailure;

/// Why a verb was not carried out, or not to its end. Unless it says otherwise, an instance that it is about is as it was.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Store(#[from] abide_store::StoreError),
    /// A word names no instance.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The status of the instance does not allow it.
    #[error(transparent)]
    Refused(#[from] StatusRefusal),
    /// The status of the instance does not allow to bring it back.
    #[error("{} cannot be resumed: {why}", id.display_name())]
    ResumeRefused { id: InstanceId, why: StatusRefusal },
    /// Git, or the file system, refused.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A value that the environment needs cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The conversation that was asked for cannot be taken up.
    #[error(transparent)]
    Take(#[from] TakeError),
    /// The place that the instance lives in did not do what it was asked for.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The set-up command did not succeed; a resume runs it again.
    #[error("the set-up command `{command}` {problem}")]
    Setup {
        command: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// The capsule or the program in it did not start.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The system gave no random number for an id.
    #[error("cannot create an id for the conversation: {0}")]
    Mint(#[from] std::io::Error),
    /// An agent did not come up.
    #[error(transparent)]
    Boot(#[from] BootFailure),
    /// A directory that its sessions need is not there.
    #[error("{0}; {advice}", advice = .0.advice().join("; "))]
    DirectoryMissing(MissingDirectory),
    /// The manifest holds no session to start.
    #[error("{} has no session to start", .0.display_name())]
    NoSession(InstanceId),
    /// It does not stop, so everything stays where it is.
    #[error("ab-{0} does not stop; `abide explain {0}` names its processes")]
    StillRuns(InstanceId),
    /// Whether it runs is not known, so nothing is changed.
    #[error(
        "it is unknown whether {} runs: {why}; nothing was changed. Check on the machine where it was started; \
         if you are sure that it does not run anywhere, use `abide stop {id} --not-running`",
        id.display_name()
    )]
    LivenessUnknown {
        id: InstanceId,
        /// Why it is not known.
        why: String,
    },
    /// Its processes have ended, and that could not be written down.
    #[error("{}: its processes have ended, but that could not be recorded: {error}; the next `abide ls` tries again", id.display_name())]
    EndedUnwritten { id: InstanceId, error: abide_store::StoreError },
    /// Any other failure; no caller matches on it.
    #[error("{0}")]
    Other(String),
}

impl From<ReadError> for EngineError {
    fn from(error: ReadError) -> Self {
        Self::Store(error.into())
    }
}
