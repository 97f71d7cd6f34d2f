//! Making an instance directory.

use std::os::fd::OwnedFd;

use abide_model::{Instance, InstanceId};
use abide_sys::{atomic, crash};
use rustix::fs::Mode;
use rustix::io::Errno;

use crate::error::{IoFailure, Result, StoreError, StoreStep as _};
use crate::layout::{INSTANCES, JOURNAL, LOCK, MANIFEST, RUN, STATE, TRASH, TrashName};
use crate::staging::Staging;
use crate::store::Store;
use crate::{dir, manifest, tree};

impl Store {
    /// Makes an instance directory with a new id, which `make` turns into the instance. It appears whole, under its final name.
    pub fn create(&self, make: impl FnOnce(InstanceId) -> Instance) -> Result<Instance> {
        self.create_with(|| Ok(InstanceId::from_bits(atomic::random()?)), make)
    }

    fn create_with(
        &self,
        mint: impl FnMut() -> rustix::io::Result<InstanceId>,
        make: impl FnOnce(InstanceId) -> Instance,
    ) -> Result<Instance> {
        let staging = Staging::enter(self)?;
        let instances = self.open_section(INSTANCES)?;
        let (id, dir) = self.reserve(&staging, &instances, mint)?;
        crash::point("store.create.reserved");
        let instance = make(id);
        let made = self.fill(&dir, &instance, id).and_then(|()| {
            crash::point("store.create.staged");
            self.publish(&staging, &instances, id)
        });
        match made {
            Ok(()) => {}
            // It is published, so it is no longer ours to remove.
            Err(not_durable @ StoreError::NotDurable(_)) => return Err(not_durable),
            Err(error) => {
                let _ = tree::remove(staging.dir(), id.as_str().as_ref());
                return Err(error);
            }
        }
        tracing::info!(%id, role = %instance.role, scope = %instance.scope.dir.display(), "made the instance directory");
        Ok(instance)
    }

    /// A staged directory called like an id that nothing else has. While it exists, no other instance gets that id.
    fn reserve(
        &self,
        staging: &Staging,
        instances: &OwnedFd,
        mut mint: impl FnMut() -> rustix::io::Result<InstanceId>,
    ) -> Result<(InstanceId, OwnedFd)> {
        const TRIES: usize = 32;
        let path = self.layout().staging();
        let trash = self.open_section(TRASH)?;
        for _ in 0..TRIES {
            let id = mint().doing("get random numbers for", &path)?;
            let dir = match dir::make(staging.dir(), id.as_str()) {
                Ok(dir) => dir,
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(IoFailure::new("make a directory in", path, errno).into()),
            };
            // Asked only now: an instance directory of that id could have been published just before we had the reservation.
            if !self.is_taken(id, instances, &trash)? {
                return Ok((id, dir));
            }
            tree::remove(staging.dir(), id.as_str().as_ref()).map_err(|f| f.under(&path))?;
        }
        Err(StoreError::NoFreeId)
    }

    /// Whether there is an instance directory called `id`, in the trash too: it must be possible to take that back.
    fn is_taken(&self, id: InstanceId, instances: &OwnedFd, trash: &OwnedFd) -> Result<bool> {
        match dir::stat(instances, id.as_str()) {
            Ok(_) => return Ok(true),
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(IoFailure::new("look at", self.layout().instance_dir(id), errno).into()),
        }
        let names = dir::entries(trash).doing("read", self.layout().trash())?;
        let ids = names.iter().filter_map(|(name, _)| Some(name.to_str()?.parse::<TrashName>().ok()?.id));
        Ok(ids.into_iter().any(|trashed| trashed == id))
    }

    /// Writes everything that an instance directory consists of.
    fn fill(&self, dir: &OwnedFd, instance: &Instance, id: InstanceId) -> Result<()> {
        let path = self.layout().staging().join(id.as_str());
        let bytes = manifest::encode(instance).map_err(|reason| StoreError::Unwritable { id, reason })?;
        if instance.id != id {
            return Err(StoreError::Unwritable { id, reason: format!("it belongs to {}", instance.id) });
        }
        let mode = Mode::RUSR | Mode::WUSR;
        for name in [RUN, STATE, JOURNAL] {
            dir::make(dir, name).doing("make the directory", path.join(name))?;
        }
        atomic::create_empty(dir, LOCK.as_ref(), mode).doing("write", path.join(LOCK))?;
        atomic::create(dir, MANIFEST, &bytes, mode).doing("write", path.join(MANIFEST))?;
        Ok(rustix::fs::fsync(dir).doing("sync", path)?)
    }

    /// Moves the finished instance directory to where everybody sees it.
    fn publish(&self, staging: &Staging, instances: &OwnedFd, id: InstanceId) -> Result<()> {
        let path = self.layout().instance_dir(id);
        match dir::move_to_free(staging.dir(), id.as_str(), instances, id.as_str()) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(StoreError::Taken { path }),
            Err(errno) => return Err(IoFailure::new("make", path, errno).into()),
        }
        crash::point("store.create.renamed");
        rustix::fs::fsync(instances).doing("sync", self.layout().instances()).map_err(StoreError::NotDurable)
    }
}

#[cfg(test)]
mod tests {
    use abide_model::status::Ending;
    use abide_model::{LaunchScope, ProcessIdentity, Recipe, StatusEvent, Timestamp};

    use super::*;

    fn instance(id: InstanceId) -> Instance {
        let by = ProcessIdentity { pid: abide_model::Pid(1), start: 2, boot: "b".into() };
        let scope = LaunchScope::directory("/work/shop".into());
        Instance::starting(
            id,
            scope,
            "default".into(),
            Recipe::on_host("/work/shop".into()),
            by,
            Timestamp(1000),
        )
    }

    fn ids(bits: &[u64]) -> impl FnMut() -> rustix::io::Result<InstanceId> {
        let mut bits = bits.iter().copied();
        move || Ok(InstanceId::from_bits(bits.next().unwrap()))
    }

    #[test]
    fn an_id_that_anything_has_is_not_given_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("home")).unwrap();
        let [live, trashed, staged, free] = [1, 2, 3, 4].map(InstanceId::from_bits);
        store.create_with(ids(&[1]), instance).unwrap();
        store.create_with(ids(&[2]), instance).unwrap();
        store
            .update(trashed, |i| -> Result<_> {
                i.apply(&StatusEvent::Launched, "", Timestamp(1))?;
                Ok(i.apply(&StatusEvent::Discarded(Ending::Clean), "", Timestamp(2))?)
            })
            .unwrap();
        store.trash(trashed, Timestamp(3)).unwrap();
        std::fs::create_dir(store.layout().staging().join(staged.as_str())).unwrap();

        let made = store.create_with(ids(&[1, 2, 3, 1, 4]), instance).unwrap();

        assert_eq!(made.id, free);
        assert!(store.read(live).is_ok());
        assert_eq!(store.trashed().unwrap().len(), 1);
        assert!(matches!(store.create_with(ids(&[1; 32]), instance), Err(StoreError::NoFreeId)));
        let staging = std::fs::read_dir(store.layout().staging()).unwrap();
        assert_eq!(staging.count(), 2, "the lock, and what another process staged");
    }

    #[test]
    fn an_instance_that_does_not_take_the_id_it_was_given_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("home")).unwrap();
        let made = store.create(|_| instance(InstanceId::from_bits(7)));
        assert!(matches!(made, Err(StoreError::Unwritable { .. })), "{made:?}");
        assert!(store.list().unwrap().is_empty());
        assert_eq!(std::fs::read_dir(store.layout().staging()).unwrap().count(), 1, "only the lock");
    }
}
