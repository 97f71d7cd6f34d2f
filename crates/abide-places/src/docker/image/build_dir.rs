//! A directory that a build works in. It is removed with its last use, and one that a killed process left, with the next build.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use abide_store::StorePaths;
use abide_sys::atomic;
use rustix::fs::{FlockOperation, flock};

use super::super::Docker;
use super::refused;
use crate::place::PlaceError;

#[derive(Debug)]
pub(super) struct BuildDir {
    path: PathBuf,
    /// Locked for as long as the directory is in use.
    _lock: File,
}

impl Docker {
    pub(super) fn cache_dir(&self) -> PathBuf {
        StorePaths::new(self.owner.home.clone()).cache()
    }

    pub(super) fn build_dir(&self) -> Result<BuildDir, PlaceError> {
        BuildDir::new(&self.cache_dir().join("builds")).map_err(refused)
    }
}

impl BuildDir {
    fn new(builds: &Path) -> std::io::Result<Self> {
        fs::create_dir_all(builds)?;
        for left in fs::read_dir(builds)?.flatten().map(|entry| entry.path()) {
            if File::open(&left)
                .is_ok_and(|dir| flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok())
            {
                let _ = fs::remove_dir_all(&left);
            }
        }
        let path = builds.join(format!("{:016x}", atomic::random()?));
        fs::create_dir(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::create_dir(path.join("tree"))?;
        Ok(Self { path, _lock: lock })
    }

    /// What is built from.
    pub(super) fn tree(&self) -> PathBuf {
        self.path.join("tree")
    }

    /// A file for git to work with.
    pub(super) fn index(&self) -> PathBuf {
        self.path.join("index")
    }

    /// Writes the Dockerfile beside the tree: in it, the name could be a link to a file of the operator's.
    pub(super) fn write_dockerfile(&self, text: &str) -> Result<PathBuf, PlaceError> {
        let path = self.path.join("Dockerfile");
        fs::write(&path, text).map_err(refused)?;
        Ok(path)
    }

    /// `path` below the tree, if it is really there.
    pub(super) fn inside(&self, path: &str) -> Result<PathBuf, PlaceError> {
        let found = self.tree().join(path).canonicalize();
        let found = found.map_err(|error| refused(format!("{path}: {error}; add it to the role")))?;
        let tree = self.tree().canonicalize().map_err(refused)?;
        if found.starts_with(tree) {
            Ok(found)
        } else {
            Err(refused(format!("{path} is a link out of its directory; make it a file of its own")))
        }
    }
}

impl Drop for BuildDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_in_use_stays_and_one_that_was_left_goes() {
        let dir = tempfile::tempdir().unwrap();
        let used = BuildDir::new(dir.path()).unwrap();
        fs::create_dir_all(dir.path().join("left/tree")).unwrap();
        let next = BuildDir::new(dir.path()).unwrap();
        assert!(used.path.exists() && next.path.exists() && !dir.path().join("left").exists());
        drop((used, next));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn nothing_outside_of_the_tree_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let build = BuildDir::new(dir.path()).unwrap();
        fs::write(dir.path().join("secret"), "").unwrap();
        std::os::unix::fs::symlink("../../secret", build.tree().join("Dockerfile")).unwrap();
        for path in ["Dockerfile", "..", "missing"] {
            assert!(build.inside(path).is_err(), "{path}");
        }
        assert_eq!(build.inside(".").unwrap(), build.tree().canonicalize().unwrap());
    }
}
