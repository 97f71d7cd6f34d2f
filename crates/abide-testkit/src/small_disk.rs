//! File systems that refuse to be written to: one of a few megabytes that can be filled, the only honest way to a full
//! disk, and one that is read-only.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::FallocateFlags;

/// A tmpfs on a directory, unmounted when the test ends.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Needs root, as the machines that run the tests give it.
    pub fn mount(dir: &Path, mebibytes: u32) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        let size = format!("size={mebibytes}m,nr_inodes=10000,mode=700");
        mount(["-t", "tmpfs", "-o", &size, "tmpfs"], dir);
        Self(dir.to_owned())
    }

    /// Leaves no room for another file, however small.
    pub fn fill_with_files(&self) {
        let dir = self.0.join("files");
        std::fs::create_dir(&dir).unwrap();
        let mut names = 0..;
        while File::create(dir.join(names.next().unwrap_or(0).to_string())).is_ok() {}
    }

    /// Takes away what [`SmallDisk::fill_with_files`] has put there.
    pub fn remove_files(&self) {
        std::fs::remove_dir_all(self.0.join("files")).unwrap();
    }

    /// Takes the space back that a file had reserved, as a file system does that writes every page to a new place.
    pub fn unreserve(&self, file: &str) {
        let file = File::options().write(true).open(self.0.join(file)).unwrap();
        let (start, length) = (4096, file.metadata().unwrap().len() - 4096);
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, punch, start, length).unwrap();
    }

    /// Leaves no room for a single page. Called again, takes what was freed since.
    pub fn fill(&self) {
        let mut file = File::options().append(true).create(true).open(self.0.join("filler")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    /// Takes away what [`SmallDisk::fill`] has put there.
    pub fn empty(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

/// A directory in which nothing can be written, not even by root, until this is dropped.
pub struct ReadOnly(PathBuf);

impl ReadOnly {
    /// Needs root, as the machines that run the tests give it.
    pub fn make(dir: &Path) -> Self {
        mount([OsStr::new("--bind"), dir.as_os_str()], dir);
        let made = Self(dir.to_owned());
        mount(["-o", "remount,bind,ro"], dir);
        made
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        unmount(&self.0);
    }
}

fn mount<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>, dir: &Path) {
    let mounted = Command::new("mount").args(arguments).arg(dir).status();
    assert!(mounted.unwrap().success(), "nothing can be mounted; run the tests as root");
}

fn unmount(dir: &Path) {
    // A process of the test may still be in it.
    let _ = Command::new("umount").arg("--lazy").arg(dir).status();
}
