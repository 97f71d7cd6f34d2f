//! The store itself: opening it, and reading and changing single instances.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use abide_model::{Instance, InstanceId};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

use crate::dir;
use crate::error::{IoFailure, ReadError, Result, StoreError, StoreStep as _};
use crate::instance_dir::{self, InstanceLock};
use crate::layout::{INSTANCES, LOG, STAGING, StorePaths, TRASH};
use crate::lock::{self, Hold};

/// How long an operation waits for a lock that another process holds.
const PATIENCE: Duration = Duration::from_secs(10);

/// The instances of one operator. Cheap to clone, and holds nothing open.
#[derive(Debug, Clone)]
pub struct Store {
    layout: Arc<StorePaths>,
    patience: Duration,
}

/// The lock of [`Store::lock_claims`], until this is dropped.
#[derive(Debug)]
pub struct ClaimsLock {
    _lock: OwnedFd,
}

impl Store {
    /// The store at `home`, with its directories made if they are missing. Refuses a home in which another user could
    /// replace what is ours.
    pub fn open(home: PathBuf) -> Result<Self> {
        let home = resolved_home(home)?;
        let store = Self::at(home);
        let fd = match store.try_open_home() {
            Err(Errno::NOTDIR) => {
                return Err(not_a_directory(store.layout().home()));
            }
            opened => opened.doing("open", store.layout().home())?,
        };
        refuse_if_others_may_write(&fd, store.layout().home())?;
        for name in [INSTANCES, TRASH, STAGING, LOG] {
            let path = store.layout().home().join(name);
            let section = match dir::ensure(&fd, name) {
                Ok(section) => section,
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(not_one_of_ours(&fd, name, &path)),
                Err(errno) => return Err(IoFailure::new("make the directory", path, errno).into()),
            };
            refuse_if_others_may_write(&section, &path)?;
        }
        Ok(store)
    }

    /// The store at `home`, wherever links lead, for a verb of this user: refuses what belongs to another one. Touches
    /// nothing.
    pub fn of_this_user(home: &Path) -> Result<Self> {
        refuse_foreign(home, "ABIDE_HOME")?;
        Ok(Self::at(resolved(home)))
    }

    /// The store at `home` as it is, for readers: touches nothing, and one that does not exist lists as empty.
    pub fn at(home: PathBuf) -> Self {
        Self { layout: Arc::new(StorePaths::new(home)), patience: PATIENCE }
    }

    /// The same store, waiting at most `patience` for a lock that another process holds.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    pub fn layout(&self) -> &StorePaths {
        &self.layout
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// What is known about the instance `id`. Never waits for a lock: what is read is whole, if perhaps about to change.
    pub fn read(&self, id: InstanceId) -> Result<Instance, ReadError> {
        let Some(instances) = self.open_section_if_there(INSTANCES)? else {
            return Err(ReadError::NotFound(id));
        };
        instance_dir::read(&instances, id.as_str(), id)
            .map_err(|trouble| trouble.with(id, &self.layout.instance_dir(id)))
    }

    /// Changes the instance `id` under its lock. Writes only if something changed; an error of `change` leaves all as
    /// it was.
    pub fn update<T, E: From<StoreError>>(
        &self,
        id: InstanceId,
        change: impl FnOnce(&mut Instance) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut instance_dir = self.lock(id)?;
        let mut instance = instance_dir.instance().clone();
        let answer = change(&mut instance)?;
        if instance != *instance_dir.instance() {
            instance_dir.write(&instance)?;
        }
        Ok(answer)
    }

    /// Takes the lock of the instance `id`, for work that is longer than one change.
    pub fn lock(&self, id: InstanceId) -> Result<InstanceLock> {
        InstanceLock::take(self, id)
    }

    /// Takes the lock under which it is decided who gets what two could want, such as a conversation. It comes before
    /// the lock of any instance directory, or two who hold one each would wait for each other.
    pub fn lock_claims(&self) -> Result<ClaimsLock> {
        let taken = lock::take(self.open_home()?, Hold::Alone, self.patience);
        let lock = taken.map_err(|failure| failure.at(self.layout.home().to_owned(), self.patience))?;
        Ok(ClaimsLock { _lock: lock })
    }

    /// Refuses a home that nothing can be started in: another user's, or one that others may write to. One that is not there
    /// yet will be neither.
    pub fn check_home(&self) -> Result<()> {
        match self.try_open_home() {
            Err(Errno::NOENT | Errno::LOOP) => resolved_home(self.layout.home().to_owned()).map(drop),
            opened => {
                refuse_if_others_may_write(&opened.doing("open", self.layout.home())?, self.layout.home())
            }
        }
    }

    pub(crate) fn open_home(&self) -> Result<OwnedFd, IoFailure> {
        self.try_open_home().doing("open", self.layout.home())
    }

    fn try_open_home(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, self.layout.home(), flags, Mode::empty())
    }

    /// One of the store's own directories, created again if it was removed.
    pub(crate) fn open_section(&self, name: &'static str) -> Result<OwnedFd, IoFailure> {
        dir::ensure(self.open_home()?, name).doing("open", self.layout.home().join(name))
    }

    /// One of the store's own directories, or `None` where there is no store. Any other failure is one: an unreadable
    /// store that looked empty would have everything in it taken for garbage.
    pub(crate) fn open_section_if_there(&self, name: &'static str) -> Result<Option<OwnedFd>, IoFailure> {
        let opened = self.try_open_home().and_then(|home| dir::open(home, name));
        match opened {
            Err(Errno::NOENT) => Ok(None),
            opened => opened.map(Some).doing("open", self.layout.home().join(name)),
        }
    }
}

/// Makes `home` if it is missing, and says where it really is.
fn resolved_home(home: PathBuf) -> Result<PathBuf> {
    let failed = |doing: &'static str, error: &std::io::Error| {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        StoreError::Io(IoFailure::new(doing, &home, errno))
    };
    match std::fs::canonicalize(&home) {
        Ok(real) => return Ok(real),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("open", &error)),
    }
    if std::fs::symlink_metadata(&home).is_ok_and(|found| found.is_symlink()) {
        let home = home.display();
        return Err(StoreError::Home(format!(
            "{home} is a dangling symbolic link; mount or create its target, or set ABIDE_HOME"
        )));
    }
    if let Some(parent) = home.parent() {
        std::fs::create_dir_all(parent).map_err(|error| failed("make the directory above", &error))?;
    }
    match dir::make(CWD, &home) {
        Ok(_) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(IoFailure::new("make the directory", home, errno).into()),
    }
    std::fs::canonicalize(&home).map_err(|error| failed("open", &error))
}

/// Where `path` really is, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let above = || Some(resolved(path.parent()?).join(path.file_name()?));
    std::fs::canonicalize(path).ok().or_else(above).unwrap_or_else(|| path.to_owned())
}

/// Refuses a directory of another user, or one that would be made in a directory of another user's: whatever this user
/// wrote there, its owner could not read or change. `variable` names another place.
pub fn refuse_foreign(path: &Path, variable: &str) -> Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let found = path.ancestors().find_map(|path| Some((path, std::fs::metadata(path).ok()?)));
    let Some((found, meta)) = found else { return Ok(()) };
    // Directories of the system, such as `/tmp`, are where everyone makes their own.
    let is_shared = found != path && meta.uid() == 0;
    if meta.uid() == own || is_shared {
        return Ok(());
    }
    Err(belongs_to(found, meta.uid(), variable))
}

fn belongs_to(path: &Path, owner: u32, variable: &str) -> StoreError {
    let path = path.display();
    StoreError::Home(format!(
        "{path} belongs to uid {owner}; run abide as that user, or set {variable} to a directory of your own"
    ))
}

fn refuse_if_others_may_write(fd: &OwnedFd, path: &Path) -> Result<()> {
    let stat = rustix::fs::fstat(fd).doing("look at", path)?;
    let (owner, mode) = (stat.st_uid, stat.st_mode & 0o7777);
    if owner != rustix::process::geteuid().as_raw() {
        return Err(belongs_to(path, owner, "ABIDE_HOME"));
    }
    let path = path.display();
    if mode & 0o022 != 0 {
        return Err(StoreError::Home(format!(
            "{path} can be written by other users (mode {mode:04o}); run `chmod 700 {path}`"
        )));
    }
    Ok(())
}

fn not_a_directory(path: &Path) -> StoreError {
    StoreError::Home(format!("{} is not a directory; move it away, or set ABIDE_HOME", path.display()))
}

/// What is wrong with a section of the store that cannot be entered.
fn not_one_of_ours(parent: &OwnedFd, name: &str, path: &Path) -> StoreError {
    match dir::stat(parent, name).map(|s| dir::kind(&s)) {
        Ok(rustix::fs::FileType::Symlink) => StoreError::Home(format!(
            "{} is a symbolic link, but the store must not contain any; move its target there",
            path.display()
        )),
        _ => not_a_directory(path),
    }
}
