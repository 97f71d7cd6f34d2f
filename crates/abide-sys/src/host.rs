//! Which machine this is, and what kind of file system something is on.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use abide_model::HostIdentity;
use abide_model::liveness::{HomeFileSystem, ProcessSight};

use crate::process::Stat;

/// Where the machine id is: the system's own place, and the older one of D-Bus.
const MACHINE_ID: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// File systems that one kernel has to itself. Every other one may be mounted by several machines at a time.
const LOCAL: [i64; 14] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x2fc1_2fc1, // zfs
    0xca45_1a4e, // bcachefs
    0xf2f5_2010, // f2fs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x794c_7630, // overlayfs
    0x3153_464a, // jfs
    0x5265_4973, // reiserfs
    0x3434,      // nilfs2
    0x7366_746e, // ntfs3
    0x4d44,      // vfat
];

/// The number of the PID namespace that all others are below, the same on every Linux.
const FIRST_PID_NAMESPACE: u64 = 0xefff_fffc;

/// Where this process runs.
pub fn here() -> &'static HostIdentity {
    static HERE: OnceLock<HostIdentity> = OnceLock::new();
    HERE.get_or_init(|| HostIdentity {
        machine: instead(abide_model::vars::ABIDE_TEST_MACHINE).unwrap_or_else(machine_id),
        boot: boot_id().to_owned(),
        pid_namespace: pid_namespace("self"),
    })
}

/// Whether the processes that run where `start` was made, on this boot, can be seen from here. A namespace shows its own
/// processes and those of the namespaces below it, as far as `/proc` is its own.
pub fn process_sight(start: &HostIdentity) -> ProcessSight {
    static VISIBLE: OnceLock<BTreeSet<u64>> = OnceLock::new();
    let here = here().pid_namespace;
    let all = || Stat::all().map(|process| pid_namespace(process.pid)).filter(|namespace| *namespace != 0);
    let visible = || VISIBLE.get_or_init(|| all().collect());
    let is_seen = [start.pid_namespace, FIRST_PID_NAMESPACE].contains(&here)
        || visible().contains(&start.pid_namespace);
    match is_seen && has_own_proc() {
        true => ProcessSight::Visible,
        false => ProcessSight::Hidden,
    }
}

/// Whether the numbers in `/proc` are those of this PID namespace.
fn has_own_proc() -> bool {
    let own = std::process::id().to_string();
    std::fs::read_link("/proc/self").is_ok_and(|pid| pid.as_os_str() == own.as_str())
}

/// The PID namespace that process `pid` is in; 0 where that cannot be read.
fn pid_namespace(pid: impl std::fmt::Display) -> u64 {
    std::fs::metadata(format!("/proc/{pid}/ns/pid")).map_or(0, |namespace| namespace.ino())
}

/// The id of this boot of the machine; empty where the kernel does not tell.
pub fn boot_id() -> &'static str {
    static BOOT: OnceLock<String> = OnceLock::new();
    BOOT.get_or_init(|| {
        let read = || std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        instead(abide_model::vars::ABIDE_TEST_BOOT).unwrap_or_else(|| read().trim().to_owned())
    })
}

fn machine_id() -> String {
    let read = |path: &&str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    // `uninitialized` is what a system says that has not booted once.
    MACHINE_ID.iter().filter_map(read).find(|id| id.len() == 32).unwrap_or_default()
}

/// What a test puts in the place of a fact, in debug builds.
#[cfg(debug_assertions)]
fn instead(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

#[cfg(not(debug_assertions))]
fn instead(_: &str) -> Option<String> {
    None
}

/// What kind of file system `path` is on.
#[allow(clippy::useless_conversion, reason = "the field is narrower on other machines")]
pub fn file_system(path: &Path) -> HomeFileSystem {
    let kind = rustix::fs::statfs(path).map(|found| i64::from(found.f_type));
    match kind {
        // The field is signed on some systems, so that large numbers come back negative.
        Ok(kind) if LOCAL.contains(&(kind & 0xffff_ffff)) => HomeFileSystem::Local,
        _ => HomeFileSystem::PerhapsShared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_is_local_only_if_it_is_known_to_be() {
        assert_eq!(file_system(Path::new("/proc")), HomeFileSystem::PerhapsShared);
        assert_eq!(file_system(Path::new("/no/such/place")), HomeFileSystem::PerhapsShared);
        assert_eq!(file_system(Path::new("/dev/shm")), HomeFileSystem::Local);
    }

    #[test]
    fn this_process_knows_its_boot_and_its_namespace() {
        assert!(!here().boot.is_empty() && here().pid_namespace != 0);
        assert!(here().shares_processes_with(here()));
    }
}
