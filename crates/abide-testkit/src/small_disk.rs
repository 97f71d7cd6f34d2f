//! A file system of a few megabytes that can be filled: the only honest way to a full disk.

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
        let size = format!("size={mebibytes}m,mode=700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir).status();
        assert!(mounted.unwrap().success(), "a tmpfs cannot be mounted; run the tests as root");
        Self(dir.to_owned())
    }

    /// Takes the space back that a file had reserved, as a file system does that writes every page to a new place.
    pub fn unreserve(&self, file: &str) {
        let file = File::options().write(true).open(self.0.join(file)).unwrap();
        let (start, length) = (4096, file.metadata().unwrap().len() - 4096);
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, punch, start, length).unwrap();
    }

    /// Leaves no room for a single page.
    pub fn fill(&self) {
        let mut file = File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A process of the test may still be in it.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
