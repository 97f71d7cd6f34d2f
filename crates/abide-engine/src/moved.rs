//! Directories that are no longer where they were.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use abide_model::instance::DirIdentity;

/// The directory at `path` as the file system knows it, if there is one.
pub(crate) fn identity(path: &Path) -> Option<DirIdentity> {
    let meta = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
    Some(DirIdentity { dev: meta.dev(), ino: meta.ino() })
}
