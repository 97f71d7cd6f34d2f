//! The trash: what was removed, until its time is up.

use std::os::fd::OwnedFd;
use std::time::Instant;

use abide_model::{Instance, InstanceId, StatusEvent, Timestamp};
use abide_sys::{atomic, crash};
use rustix::io::Errno;

use crate::damage::Damage;
use crate::error::{IoFailure, Result, StoreError, StoreStep as _};
use crate::instance_dir::{self, LockedDir};
use crate::layout::{INSTANCES, NO_WORK, PURGING, TRASH, TRASH_SIZE, TrashName};
use crate::lock::LockFailure;
use crate::manifest::ManifestTrouble;
use crate::staging::Staging;
use crate::store::Store;
use crate::{dir, tree};

/// An instance directory in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashEntry {
    /// What it is called there, which says whose it is and when it was removed.
    pub name: TrashName,
    /// What is in its manifest, or why that cannot be read.
    pub content: Result<Instance, Damage>,
}

impl Store {
    /// Moves the instance `id` to the trash, if it is ending.
    pub fn trash(&self, id: InstanceId, now: Timestamp) -> Result<TrashName> {
        self.lock(id)?.trash(now)
    }

    /// What is in the trash, oldest first.
    pub fn trashed(&self) -> Result<Vec<TrashEntry>> {
        let Some(trash) = self.open_section_if_there(TRASH)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for name in self.names_in(&trash)? {
            let content = match instance_dir::read(&trash, &name.to_string(), name.id) {
                Ok(instance) => Ok(instance),
                Err(ManifestTrouble::Damaged(damage)) => Err(damage),
                Err(ManifestTrouble::Absent) => continue,
                Err(ManifestTrouble::System(errno)) => {
                    return Err(IoFailure::new("read", self.layout().trashed(&name), errno).into());
                }
            };
            found.push(TrashEntry { name, content });
        }
        Ok(found)
    }

    /// The instance that is called `name` in the trash, if it is there and can be read.
    pub fn trashed_instance(&self, name: &TrashName) -> Option<Instance> {
        let trash = self.open_section_if_there(TRASH).ok()??;
        instance_dir::read(&trash, &name.to_string(), name.id).ok()
    }

    /// What is in the trash, oldest first, by name only.
    pub fn trash_names(&self) -> Result<Vec<TrashName>> {
        let trash = self.open_section_if_there(TRASH)?;
        trash.map_or_else(|| Ok(Vec::new()), |trash| self.names_in(&trash))
    }

    fn names_in(&self, trash: &OwnedFd) -> Result<Vec<TrashName>> {
        let entries = dir::entries(trash).doing("read", self.layout().trash())?;
        let mut names: Vec<TrashName> =
            entries.iter().filter_map(|(name, _)| name.to_str()?.parse().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// How much disk space purging `name` would free, in bytes. Walks the whole tree the first time. With `until`, nothing is
    /// walked after that moment, nor what is damaged, which is left as it is and would be walked at every look; it counts
    /// as nothing then.
    pub fn trash_size(&self, name: &TrashName, until: Option<Instant>) -> Result<u64> {
        let trash = self.open_section(TRASH)?;
        let entry = name.to_string();
        let noted = self.layout().trashed(name).join(TRASH_SIZE);
        if let Some(bytes) = std::fs::read_to_string(&noted).ok().and_then(|text| text.parse().ok()) {
            return Ok(bytes);
        }
        let sound = instance_dir::read(&trash, &entry, name.id).is_ok();
        if until.is_some_and(|until| !sound || Instant::now() >= until) {
            return Ok(0);
        }
        let bytes = tree::size(&trash, entry.as_ref());
        if sound && let Ok(instance_dir) = dir::open(&trash, &entry) {
            // Only worth the walk that it saves.
            let _ = atomic::write(instance_dir, TRASH_SIZE, bytes.to_string().as_bytes(), 0o600);
        }
        Ok(bytes)
    }

    /// Whether `name` may hold something that exists nowhere else.
    pub fn trash_holds_work(&self, name: &TrashName) -> bool {
        !self.layout().trashed(name).join(NO_WORK).exists()
    }

    /// Takes `name` back out of the trash. The manifest is changed first, so that a crash before the move leaves
    /// the instance directory in the trash, and one after it leaves an instance that is whole.
    pub fn restore(&self, name: &TrashName, now: Timestamp) -> Result<InstanceId> {
        let (id, entry) = (name.id, name.to_string());
        let (from, to) = (self.layout().trashed(name), self.layout().instance_dir(id));
        let trash = self.open_section(TRASH)?;
        let instances = self.open_section(INSTANCES)?;
        let trouble_here = |trouble: ManifestTrouble| match trouble {
            ManifestTrouble::Absent => StoreError::NotInTrash(entry.clone()),
            trouble => trouble.with(id, &from).into(),
        };
        // A damaged instance directory is left exactly as it is: not even a missing lock file is made in it.
        instance_dir::read(&trash, &entry, id).map_err(trouble_here)?;
        let held = self.hold_trashed(&trash, name)?;
        let mut instance = instance_dir::read(&trash, &entry, id).map_err(trouble_here)?;
        if dir::stat(&instances, id.as_str()).is_ok() {
            return Err(StoreError::Taken { path: to.clone() });
        }
        if instance.apply(&StatusEvent::TakenFromTrash, "taken back out of the trash", now)? {
            let written = Staging::enter(self)?.write_manifest(&instance, &held.dir, &from);
            written.map_err(|error| match error {
                // What is done is only the first half, and the second does not happen.
                StoreError::NotDurable(failure) => failure.into(),
                error => error,
            })?;
        }
        // It is about to change.
        let _ = std::fs::remove_file(from.join(TRASH_SIZE));
        crash::point("store.restore.stamped");
        match dir::move_to_free(&trash, &entry, &instances, id.as_str()) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(StoreError::Taken { path: to.clone() }),
            Err(errno) => return Err(IoFailure::new("take out of the trash", &from, errno).into()),
        }
        crash::point("store.restore.renamed");
        rustix::fs::fsync(&instances)
            .doing("sync", self.layout().instances())
            .map_err(StoreError::NotDurable)?;
        rustix::fs::fsync(&trash).doing("sync", self.layout().trash()).map_err(StoreError::NotDurable)?;
        tracing::info!(%id, %name, "taken out of the trash");
        Ok(id)
    }

    /// Deletes `name` from the trash for good. It is renamed first, so that what a crash leaves of it never looks like
    /// something to restore; a sweep finishes the deletion.
    pub fn purge(&self, name: &TrashName) -> Result<()> {
        let (entry, doomed) = (name.to_string(), format!("{PURGING}{name}"));
        let (path, trash_path) = (self.layout().trashed(name), self.layout().trash());
        let trash = self.open_section(TRASH)?;
        // It was decided about before it came here, so a damaged entry goes like any other; it just has no lock.
        let _held = match self.hold_trashed(&trash, name) {
            Ok(held) => Some(held),
            Err(locked @ (StoreError::Locked { .. } | StoreError::NotInTrash(_))) => return Err(locked),
            Err(_) => None,
        };
        match dir::move_to_free(&trash, &entry, &trash, &doomed) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(StoreError::NotInTrash(entry)),
            Err(Errno::EXIST) => return Err(StoreError::Taken { path: trash_path.join(doomed) }),
            Err(errno) => return Err(IoFailure::new("delete", path, errno).into()),
        }
        crash::point("store.purge.renamed");
        rustix::fs::fsync(&trash).doing("sync", &trash_path)?;
        tree::remove(&trash, doomed.as_ref()).map_err(|failure| failure.under(&trash_path))?;
        crash::point("store.purge.deleted");
        rustix::fs::fsync(&trash).doing("sync", &trash_path).map_err(StoreError::NotDurable)?;
        tracing::info!(%name, "purged");
        Ok(())
    }

    fn hold_trashed(&self, trash: &OwnedFd, name: &TrashName) -> Result<LockedDir> {
        let entry = name.to_string();
        LockedDir::take(trash, &entry, self.patience()).map_err(|failure| match failure {
            LockFailure::Absent => StoreError::NotInTrash(entry),
            failure => failure.of_unit(name.id, &self.layout().trashed(name), self.patience()),
        })
    }
}
