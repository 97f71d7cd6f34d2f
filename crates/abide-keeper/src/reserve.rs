//! Room on the disk for the last record of a run, taken while there is some.
//!
//! A stop on a full disk must not be read as a crash later, and the record is what says that it was a stop.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use abide_wire::exit_record::ExitRecord;
use abide_wire::instance_dir::InstanceDir;
use rustix::fs::FallocateFlags;

/// As much as a record with many sessions needs.
const ROOM: u64 = 64 << 10;

/// The room, as far as it could be had.
pub(super) struct Reserve(Option<(File, PathBuf)>);

impl Reserve {
    /// Takes the room in `instance_dir`.
    pub fn take(instance_dir: &InstanceDir) -> Self {
        let path = instance_dir.exit_record_reserve();
        let taken = || -> io::Result<File> {
            let mut options = File::options();
            let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path)?;
            rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, ROOM)?;
            Ok(file)
        };
        match taken() {
            Ok(file) => Self(Some((file, path))),
            Err(err) => {
                tracing::warn!("no room could be set aside for the exit record: {err}");
                Self(None)
            }
        }
    }

    /// Gives the room back.
    pub fn release(&mut self) {
        if let Some((_, path)) = self.0.take() {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Writes the last record of the run, into the room where there is none elsewhere.
    pub fn write_last(self, record: &ExitRecord, instance_dir: &InstanceDir) -> io::Result<()> {
        let written = record.write(instance_dir);
        let Some((mut file, path)) = self.0 else { return written };
        match written {
            Err(err)
                if err.kind() == io::ErrorKind::StorageFull || err.kind() == io::ErrorKind::QuotaExceeded =>
            {
                let bytes = serde_json::to_vec(record)?;
                file.rewind()?;
                file.write_all(&bytes)?;
                file.set_len(u64::try_from(bytes.len()).unwrap_or(ROOM))?;
                file.sync_all()?;
                std::fs::rename(path, instance_dir.exit_record())
            }
            written => {
                let _ = std::fs::remove_file(path);
                written
            }
        }
    }
}
