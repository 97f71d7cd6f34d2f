//! What a process has open, as the kernel tells.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files::real;
use abide_model::Pid;

/// The files below `dir` that process `pid` has open.
pub(crate) fn below(dir: &Path, pid: Pid) -> Vec<PathBuf> {
    let dir = real(dir);
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let open = descriptors.flatten().filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    open.filter(|path| path.starts_with(&dir)).collect()
}
