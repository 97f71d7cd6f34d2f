//! Listing: every instance directory, read with one `open` and one `read` each.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;

use abide_model::{Instance, InstanceId, Timestamp};
use abide_sys::pieces::{QUICK, in_pieces};
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::damage::Damage;
use crate::dir;
use crate::error::{IoFailure, Result, StoreStep as _};
use crate::layout::{INSTANCES, MANIFEST};
use crate::manifest::{ManifestReader, ManifestTrouble};
use crate::store::Store;

/// One instance directory in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreEntry {
    /// It can be read.
    Sound(Box<Instance>),
    /// It cannot. It may hold work, so nothing touches it.
    Damaged {
        /// What it is called in the directory of instance directories.
        name: String,
        /// What is wrong with it.
        reason: Damage,
    },
}

impl StoreEntry {
    /// Whose instance directory it is, if its name says so.
    pub fn id(&self) -> Option<InstanceId> {
        match self {
            Self::Sound(instance) => Some(instance.id),
            Self::Damaged { name, .. } => id_of(name.as_ref()),
        }
    }

    /// The instance, if it can be read.
    pub fn sound(&self) -> Option<&Instance> {
        match self {
            Self::Sound(instance) => Some(instance),
            Self::Damaged { .. } => None,
        }
    }

    /// Oldest first, and the damaged ones, whose age is unknown, after all others.
    fn order(&self) -> std::result::Result<(Timestamp, InstanceId), String> {
        match self {
            Self::Sound(instance) => Ok((instance.created, instance.id)),
            Self::Damaged { name, .. } => Err(name.clone()),
        }
    }
}

impl Store {
    /// Every instance directory, oldest first. A directory that cannot be read is an error and never an empty list.
    pub fn list(&self) -> Result<Vec<StoreEntry>> {
        let Some(instances) = self.open_section_if_there(INSTANCES)? else {
            return Ok(Vec::new());
        };
        let names = dir::entries(&instances).doing("read", self.layout().instances())?;
        let mut found = Vec::with_capacity(names.len());
        for read in in_pieces(&names, QUICK, |names| read_some(&instances, names)) {
            found.extend(read.map_err(|(name, errno)| {
                IoFailure::new("read", self.layout().instances().join(name), errno)
            })?);
        }
        found.sort_by_cached_key(StoreEntry::order);
        Ok(found)
    }
}

type Named = (OsString, FileType);
type ScannedEntries = std::result::Result<Vec<StoreEntry>, (OsString, Errno)>;

fn read_some(instances: &OwnedFd, names: &[Named]) -> ScannedEntries {
    let mut reader = ManifestReader::new();
    let mut found = Vec::with_capacity(names.len());
    for (name, kind) in names {
        found.extend(look(&mut reader, instances, name, *kind).map_err(|errno| (name.clone(), errno))?);
    }
    Ok(found)
}

/// What is called `name` among the instance directories; `None` if it went away while we looked.
fn look(
    reader: &mut ManifestReader,
    instances: &OwnedFd,
    name: &OsStr,
    kind: FileType,
) -> rustix::io::Result<Option<StoreEntry>> {
    let damaged =
        |reason| Ok(Some(StoreEntry::Damaged { name: name.to_string_lossy().into_owned(), reason }));
    let kind = match kind {
        FileType::Unknown => match dir::stat(instances, name) {
            Ok(stat) => dir::kind(&stat),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno),
        },
        known => known,
    };
    match kind {
        FileType::Directory => {}
        FileType::Symlink => return damaged(Damage::LINK),
        _ => return damaged(Damage::NOT_A_DIRECTORY),
    }
    let Some(id) = id_of(name) else {
        return damaged(Damage::NOT_AN_ID);
    };
    match reader.read(instances, format!("{id}/{MANIFEST}"), id) {
        Ok(instance) => Ok(Some(StoreEntry::Sound(Box::new(instance)))),
        Err(ManifestTrouble::Absent) => match dir::stat(instances, name) {
            Ok(_) => damaged(Damage::MISSING),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno),
        },
        Err(ManifestTrouble::Damaged(reason)) => damaged(reason),
        Err(ManifestTrouble::System(errno)) => Err(errno),
    }
}

/// The id that a directory is called by: only in its canonical spelling, or one id could have two instance directories.
fn id_of(name: &OsStr) -> Option<InstanceId> {
    let name = name.to_str()?;
    name.parse().ok().filter(|id: &InstanceId| id.as_str() == name)
}
