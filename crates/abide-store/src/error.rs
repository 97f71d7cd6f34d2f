//! What can go wrong, each with what to do next.

use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use abide_model::status::StatusRefusal;
use abide_model::{InstanceId, Pid, Safe};
use rustix::io::Errno;

use crate::damage::Damage;

/// The result of most operations on a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why an operation on a store failed. Unless it says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The instance could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store's own directory cannot be used, for this reason.
    #[error("{0}")]
    Home(String),
    /// The state machine does not allow it.
    #[error(transparent)]
    Refused(#[from] StatusRefusal),
    /// Another process is changing it.
    #[error("{} is in use{}", path.display(), in_use(*holder, *waited))]
    Locked {
        path: PathBuf,
        /// Who holds the lock, where that is known.
        holder: Option<Pid>,
        /// How long we waited.
        waited: Duration,
    },
    /// There is no decision to remove it.
    #[error("{} is {status} and cannot go to the trash yet; `abide eject {id}` ends it first", id.display_name())]
    NotEnding { id: InstanceId, status: String },
    /// The trash does not hold it.
    #[error("there is no `{0}` in the trash; `abide trash list` lists it")]
    NotInTrash(String),
    /// The place it would go to is taken.
    #[error("{} already exists and is left alone; move it away, then try again", path.display())]
    Taken { path: PathBuf },
    /// Every id that was tried is taken.
    #[error("no free instance id was found; try again")]
    NoFreeId,
    /// What should be written could not be read back.
    #[error("the manifest of {} would be unreadable ({reason}) and was not written; this is a bug in abide, please report it", id.display_name())]
    Unwritable {
        id: InstanceId,
        /// What is wrong with it.
        reason: String,
    },
    /// Another file system is mounted inside something that should be deleted.
    #[error("{} is a mount point, which abide never deletes; unmount it, then run `abide prune`", path.display())]
    Mounted { path: PathBuf },
    /// The operation is done, but the disk did not confirm it.
    #[error("it is done, but a power cut now could undo it: {0}")]
    NotDurable(IoFailure),
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] IoFailure),
}

impl StoreError {
    /// Whether it failed because there is no space left.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Io(failure) | Self::NotDurable(failure) | Self::Read(ReadError::Io(failure)) => {
                failure.is_full()
            }
            _ => false,
        }
    }
}

fn in_use(holder: Option<Pid>, waited: Duration) -> String {
    let waited = waited.as_secs();
    match holder {
        Some(pid) => format!(
            " by process {pid} (waited {waited} s); try again when it is done, or see what it does with `ps -fp {pid}`"
        ),
        None => format!(" by another process (waited {waited} s); try again when it is done"),
    }
}

/// Why an instance could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("there is no instance {}; `abide ls` lists all, `abide trash list` lists the removed ones", .0.display_name())]
    NotFound(InstanceId),
    /// It is there, and cannot be understood. It may hold work, so nothing touches it.
    #[error("{} is damaged: {reason}. It is left as it is; `abide doctor` shows what can be done", id.display_name())]
    Damaged {
        id: InstanceId,
        /// What is wrong with it.
        reason: Damage,
    },
    /// The system refused something, so nothing is known.
    #[error(transparent)]
    Io(#[from] IoFailure),
}

/// Why a word names no instance.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Nothing is called that.
    #[error("there is no instance `{}`; `abide ls` lists all", Safe(.0))]
    NotFound(String),
    /// It names something that was removed.
    #[error("`{}` is in the trash; `abide trash restore {id}` brings it back", Safe(word))]
    InTrash {
        word: String,
        /// What it names there.
        id: InstanceId,
    },
    /// Several are called that, or begin so.
    #[error("`{}` matches {}; type more of the id", Safe(word), one_of(matches))]
    Ambiguous {
        word: String,
        /// What it could mean.
        matches: Vec<InstanceId>,
    },
    /// The beginning of an id that is too short to mean anything.
    #[error("`{}` is too short; type at least two characters of the id, or the name", Safe(.0))]
    TooShort(String),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn one_of(ids: &[InstanceId]) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<_> = ids.iter().take(SHOWN).map(InstanceId::display_name).collect();
    if ids.len() > SHOWN {
        names.push(format!("{} more", ids.len() - SHOWN));
    }
    names.join(" or ")
}

/// Something that the system refused.
#[derive(Debug)]
pub struct IoFailure {
    doing: &'static str,
    path: PathBuf,
    errno: Errno,
}

impl IoFailure {
    pub(crate) fn new(doing: &'static str, path: impl Into<PathBuf>, errno: Errno) -> Self {
        Self { doing, path: path.into(), errno }
    }

    /// Whether there is no space left: on the disk, in the quota, or for a file of that size.
    pub fn is_full(&self) -> bool {
        matches!(self.errno, Errno::NOSPC | Errno::DQUOT | Errno::FBIG)
    }

    fn next_step(&self) -> &'static str {
        match self.errno {
            _ if self.is_full() => "nothing was written: free some space, then try again",
            Errno::ACCESS | Errno::PERM => {
                "look at its owner and mode with `ls -ld`, and at those of the directories above"
            }
            Errno::ROFS => "the file system is read-only: remount it, then try again",
            Errno::MFILE | Errno::NFILE => "too many files are open: raise `ulimit -n`, then try again",
            Errno::XDEV => "the whole store must be on one file system: move it to one",
            _ => "look at the disk and the system's log, then try again",
        }
    }
}

impl fmt::Display for IoFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { doing, path, errno } = self;
        let said = io::Error::from(*errno);
        write!(f, "could not {doing} {}: {said}; {}", path.display(), self.next_step())
    }
}

impl std::error::Error for IoFailure {}

/// Says what was being done, and to what, when the system refused.
pub(crate) trait StoreStep<T> {
    fn doing(self, what: &'static str, path: impl Into<PathBuf>) -> Result<T, IoFailure>;
}

impl<T> StoreStep<T> for rustix::io::Result<T> {
    fn doing(self, what: &'static str, path: impl Into<PathBuf>) -> Result<T, IoFailure> {
        self.map_err(|errno| IoFailure::new(what, path, errno))
    }
}
