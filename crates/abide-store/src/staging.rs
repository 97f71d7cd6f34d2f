//! Where files and instance directories are made before they are moved into place.
//!
//! All processes that stage something share one lock, and a process that gets that lock exclusively knows that everything here was
//! left by the dead. So litter needs no owner's name on it, instance directories never hold any, and a sweep costs what it finds.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use abide_model::Instance;
use abide_sys::{atomic, crash};
use rustix::fs::{AtFlags, Mode};

use crate::error::{IoFailure, Result, StoreError, StoreStep as _};
use crate::layout::{MANIFEST, STAGING};
use crate::lock::{self, Hold};
use crate::store::Store;
use crate::{dir, manifest};

/// A stay in the staging directory. While it lasts, nothing that is made here is taken for litter.
pub(crate) struct Staging {
    dir: OwnedFd,
    path: PathBuf,
    _lock: OwnedFd,
}

impl Staging {
    pub(crate) fn enter(store: &Store) -> Result<Self> {
        let path = store.layout().staging();
        let home = store.open_home()?;
        let dir = dir::ensure(&home, STAGING).doing("open", &path)?;
        let lock = lock::take(&dir, Hold::Shared, store.patience())
            .map_err(|f| f.at(path.clone(), store.patience()))?;
        Ok(Self { dir, path, _lock: lock })
    }

    pub(crate) fn dir(&self) -> impl AsFd {
        self.dir.as_fd()
    }

    /// Replaces the manifest in the directory `instance_dir`, which is at `place`. The caller holds the instance directory's lock.
    pub(crate) fn write_manifest(
        &self,
        instance: &Instance,
        instance_dir: impl AsFd,
        place: &Path,
    ) -> Result<()> {
        let id = instance.id;
        let bytes = manifest::encode(instance).map_err(|reason| StoreError::Unwritable { id, reason })?;
        let random = atomic::random().doing("get random numbers for", &self.path)?;
        let temp = format!("{id}-{random:016x}.json");
        atomic::create(&self.dir, &temp, &bytes, Mode::RUSR | Mode::WUSR)
            .doing("write", self.path.join(&temp))?;
        crash::point("store.write.staged");
        if let Err(errno) = rustix::fs::renameat(&self.dir, &temp, &instance_dir, MANIFEST) {
            self.discard(temp.as_ref());
            return Err(IoFailure::new("replace", place.join(MANIFEST), errno).into());
        }
        crash::point("store.write.renamed");
        rustix::fs::fsync(instance_dir).doing("sync", place).map_err(StoreError::NotDurable)
    }

    /// Removes a staged file that is not wanted. If that fails, a sweep finds it.
    fn discard(&self, name: &OsStr) {
        let _ = rustix::fs::unlinkat(&self.dir, name, AtFlags::empty());
    }
}
