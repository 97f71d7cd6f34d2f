//! One instance directory: reading it where it lies, and holding its lock.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use abide_model::{Instance, InstanceId, Status, Timestamp};
use abide_sys::{atomic, crash};
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::damage::Damage;
use crate::dir;
use crate::error::{IoFailure, Result, StoreError, StoreStep as _};
use crate::layout::{INSTANCES, MANIFEST, NO_WORK, TRASH, TrashName};
use crate::lock::{self, Hold, LockFailure};
use crate::manifest::{ManifestReader, ManifestTrouble};
use crate::staging::Staging;
use crate::store::Store;

/// Opens an instance directory, which must be a directory and not a link to one.
fn open(shelf: &OwnedFd, name: &str) -> Result<OwnedFd, ManifestTrouble> {
    dir::open(shelf, name).map_err(|errno| match errno {
        Errno::NOENT => ManifestTrouble::Absent,
        Errno::NOTDIR | Errno::LOOP => {
            ManifestTrouble::Damaged(match dir::stat(shelf, name).map(|s| dir::kind(&s)) {
                Ok(FileType::Symlink) => Damage::LINK,
                _ => Damage::NOT_A_DIRECTORY,
            })
        }
        Errno::ACCESS | Errno::PERM => ManifestTrouble::Damaged(Damage::unreadable("the directory", errno)),
        errno => ManifestTrouble::System(errno),
    })
}

/// The manifest of the instance directory `name` on `shelf`, which belongs to the instance `id`.
pub(crate) fn read(shelf: &OwnedFd, name: &str, id: InstanceId) -> Result<Instance, ManifestTrouble> {
    let instance_dir = open(shelf, name)?;
    match ManifestReader::new().read(&instance_dir, MANIFEST, id) {
        // While we looked it was either emptied, which is damage, or taken away, which is not.
        Err(ManifestTrouble::Absent) => match dir::is_still(&instance_dir, shelf, name) {
            Ok(true) => Err(ManifestTrouble::Damaged(Damage::MISSING)),
            Ok(false) => Err(ManifestTrouble::Absent),
            Err(errno) => Err(ManifestTrouble::System(errno)),
        },
        read => read,
    }
}

/// An instance directory whose lock is held, on whichever shelf it lies.
#[derive(Debug)]
pub(crate) struct LockedDir {
    pub(crate) dir: OwnedFd,
    _lock: OwnedFd,
}

impl LockedDir {
    /// Takes the lock of the instance directory `name` on `shelf`.
    pub(crate) fn take(shelf: &OwnedFd, name: &str, patience: Duration) -> Result<Self, LockFailure> {
        let dir = open(shelf, name).map_err(|trouble| match trouble {
            ManifestTrouble::Absent => LockFailure::Absent,
            ManifestTrouble::Damaged(damage) => LockFailure::Damaged(damage),
            ManifestTrouble::System(errno) => LockFailure::System(errno),
        })?;
        let lock = lock::take(&dir, Hold::Alone, patience).map_err(|failure| match failure {
            // The directory was deleted under us.
            LockFailure::System(Errno::NOENT) => LockFailure::Absent,
            failure => failure,
        })?;
        // The previous holder of the lock may have moved the instance directory away: then this lock belongs to something else.
        match dir::is_still(&dir, shelf, name) {
            Ok(true) => Ok(Self { dir, _lock: lock }),
            Ok(false) => Err(LockFailure::Absent),
            Err(errno) => Err(LockFailure::System(errno)),
        }
    }
}

/// The lock of an instance. No other process changes or removes it until this is dropped.
#[derive(Debug)]
pub struct InstanceLock {
    store: Store,
    shelf: OwnedFd,
    held: LockedDir,
    instance: Instance,
}

impl InstanceLock {
    pub(crate) fn take(store: &Store, id: InstanceId) -> Result<Self> {
        // A damaged instance directory is left exactly as it is: not even a missing lock file is made in it.
        store.read(id)?;
        let path = store.layout().instance_dir(id);
        let shelf = store.open_section(INSTANCES)?;
        let held = LockedDir::take(&shelf, id.as_str(), store.patience())
            .map_err(|failure| failure.of_unit(id, &path, store.patience()))?;
        let instance = read(&shelf, id.as_str(), id).map_err(|trouble| trouble.with(id, &path))?;
        Ok(Self { store: store.clone(), shelf, held, instance })
    }

    /// Whose lock it is.
    pub fn id(&self) -> InstanceId {
        self.instance.id
    }

    /// What is in the manifest.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Where the instance directory is.
    fn path(&self) -> PathBuf {
        self.store.layout().instance_dir(self.id())
    }

    pub fn write(&mut self, instance: &Instance) -> Result<()> {
        let id = self.id();
        if instance.id != id {
            let reason = format!("it belongs to {}", instance.id);
            return Err(StoreError::Unwritable { id, reason });
        }
        let staging = Staging::enter(&self.store)?;
        let written = staging.write_manifest(instance, &self.held.dir, &self.path());
        if matches!(written, Ok(()) | Err(StoreError::NotDurable(_))) {
            self.instance = instance.clone();
        }
        written
    }

    /// Writes down, before the instance directory goes to the trash, whether it holds work. Without that record it counts as work.
    pub fn note_work(&self, work: bool) -> Result<()> {
        match rustix::fs::unlinkat(&self.held.dir, NO_WORK, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(IoFailure::new("remove", self.path().join(NO_WORK), errno).into()),
        }
        if !work {
            // Without it, the instance directory only stays longer.
            let _ = atomic::write(&self.held.dir, NO_WORK, b"", 0o600);
        }
        Ok(())
    }

    /// Moves the instance directory to the trash, if it is [`Status::Ending`]. The move is the moment of removal: before it the
    /// instance is there, after it it is not.
    pub fn trash(self, now: Timestamp) -> Result<TrashName> {
        let id = self.id();
        let Status::Ending(_) = &self.instance.status.status else {
            return Err(StoreError::NotEnding { id, status: self.instance.status.status.to_string() });
        };
        let trash = self.store.open_section(TRASH)?;
        crash::point("store.trash.locked");
        let name = self.move_to(&trash, now)?;
        crash::point("store.trash.renamed");
        let layout = self.store.layout();
        rustix::fs::fsync(&trash).doing("sync", layout.trash()).map_err(StoreError::NotDurable)?;
        rustix::fs::fsync(&self.shelf).doing("sync", layout.instances()).map_err(StoreError::NotDurable)?;
        tracing::info!(%id, %name, "moved to the trash");
        Ok(name)
    }

    fn move_to(&self, trash: &OwnedFd, now: Timestamp) -> Result<TrashName> {
        /// A clock that was turned back may find its names taken; a thousand of them are not taken by accident.
        const TRIES: i64 = 1000;
        let id = self.id();
        for later in 0..TRIES {
            let name = TrashName::new(id, Timestamp(now.0.saturating_add(later)));
            match dir::move_to_free(&self.shelf, id.as_str(), trash, name.to_string()) {
                Ok(()) => return Ok(name),
                Err(Errno::EXIST) => {}
                Err(errno) => {
                    return Err(IoFailure::new("move to the trash", self.path(), errno).into());
                }
            }
        }
        Err(StoreError::Taken { path: self.store.layout().trashed(&TrashName::new(id, now)) })
    }
}
