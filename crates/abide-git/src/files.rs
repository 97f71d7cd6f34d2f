//! Removing what may be gone already, and moving a directory, also to another file system.

use std::fs::{self, File, FileTimes};
use std::io;
use std::path::Path;

use crate::error::{GitError, GitStep as _};

/// Removes a file or a directory with all it holds; that it is not there is what was wanted.
pub(crate) fn remove(path: &Path) -> Result<(), GitError> {
    let done = match path.symlink_metadata() {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// Moves `from` to `to`, where nothing is yet. What is at `to` afterwards is whole, on the disk, or not there at all; the
/// original may have to be removed by the caller, which is said by `false`. `half` is where a copy grows, on the file
/// system of `to`.
pub(crate) fn move_dir(from: &Path, to: &Path, half: &Path) -> Result<bool, GitError> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy_dir(from, to, half)?;
            Ok(false)
        }
        done => done.map(|()| true).doing("move", from),
    }
}

/// Copies `from` to `to` by way of `half`, so that half a copy never has the right name.
fn copy_dir(from: &Path, to: &Path, half: &Path) -> Result<(), GitError> {
    remove(half)?;
    let copy = || -> io::Result<()> {
        copy_into(from, half)?;
        fs::rename(half, to)?;
        File::open(to.parent().unwrap_or(to))?.sync_all()
    };
    copy().doing("copy", from)
}

fn copy_into(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            copy_into(&source, &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target)?;
            let copy = File::open(&target)?;
            // Git compares the age of its index with that of files.
            copy.set_times(FileTimes::new().set_modified(entry.metadata()?.modified()?))?;
            copy.sync_all()?;
        }
    }
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    File::open(to)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_everything_and_replaces_half_of_an_earlier_one() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::write(from.join("a/b/file"), "text").unwrap();
        std::os::unix::fs::symlink("nowhere", from.join("link")).unwrap();
        fs::create_dir_all(dir.path().join("to.half/litter")).unwrap();
        copy_dir(&from, &to, &dir.path().join("to.half")).unwrap();
        assert_eq!(fs::read_to_string(to.join("a/b/file")).unwrap(), "text");
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("nowhere"));
        assert!(!to.join("litter").exists());
        let age = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(age(&to.join("a/b/file")), age(&from.join("a/b/file")));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
