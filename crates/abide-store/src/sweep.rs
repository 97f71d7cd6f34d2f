//! Finishing what crashes cut short.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use abide_sys::crash;

use crate::error::{Result, StoreError, StoreStep as _};
use crate::layout::{LOCK, PURGING, STAGING, TRASH};
use crate::lock::{self, Hold, LockFailure};
use crate::store::Store;
use crate::{dir, tree};

/// What a sweep did.
#[derive(Debug, Default)]
pub struct SweepReport {
    /// Things in the staging directory whose makers are dead, removed.
    pub unstaged: usize,
    /// Deletions from the trash that were cut short, finished.
    pub purged: usize,
    /// What could not be removed. The next sweep tries again.
    pub failed: Vec<StoreError>,
}

impl Store {
    /// Finishes what crashes cut short. Touches nothing that is in use, and no instance directory: what should become of
    /// those is decided elsewhere.
    pub fn sweep(&self) -> Result<SweepReport> {
        let mut report = SweepReport::default();
        if let Some(staging) = self.open_section_if_there(STAGING)? {
            self.sweep_staging(&staging, &mut report)?;
        }
        if let Some(trash) = self.open_section_if_there(TRASH)? {
            self.sweep_trash(&trash, &mut report)?;
        }
        for error in &report.failed {
            tracing::warn!(%error, "left for the next sweep");
        }
        Ok(report)
    }

    fn sweep_staging(&self, staging: &OwnedFd, report: &mut SweepReport) -> Result<()> {
        let path = self.layout().staging();
        let litter = dir::entries(staging).doing("read", &path)?;
        if litter.iter().all(|(name, _)| name == LOCK) {
            return Ok(());
        }
        let _alone = match lock::take(staging, Hold::Alone, Duration::ZERO) {
            Ok(lock) => lock,
            // Another process is staging something; a later sweep finds the place quiet.
            Err(LockFailure::Busy { .. }) => return Ok(()),
            Err(failure) => return Err(failure.at(path, Duration::ZERO)),
        };
        // Read again: what was there a moment ago may have been published since.
        for (name, _) in dir::entries(staging).doing("read", &path)? {
            if name == LOCK {
                continue;
            }
            crash::point("store.sweep.begun");
            match tree::remove(staging, &name) {
                Ok(()) => report.unstaged += 1,
                Err(failure) => report.failed.push(failure.under(&path)),
            }
        }
        Ok(())
    }

    fn sweep_trash(&self, trash: &OwnedFd, report: &mut SweepReport) -> Result<()> {
        let path = self.layout().trash();
        for (name, _) in dir::entries(trash).doing("read", &path)? {
            if !name.as_encoded_bytes().starts_with(PURGING.as_bytes()) || is_being_purged(trash, &name) {
                continue;
            }
            match tree::remove(trash, &name) {
                Ok(()) => report.purged += 1,
                Err(failure) => report.failed.push(failure.under(&path)),
            }
        }
        Ok(())
    }
}

/// Whether another process is deleting `name` right now: it holds the lock of the instance directory.
fn is_being_purged(trash: &OwnedFd, name: &OsStr) -> bool {
    dir::open(trash, name)
        .is_ok_and(|instance_dir| matches!(lock::take_if_free(instance_dir), Err(LockFailure::Busy { .. })))
}
