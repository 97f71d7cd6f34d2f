//! Keepers as `/proc` shows them: each is known by the lock file that it holds open, whatever became of its records.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use abide_keeper::OperatorStop;
use abide_model::{InstanceId, Pid, ProcessIdentity};
use abide_store::Store;
use abide_sys::process::{self, Pidfd, Stat, command_line, identity};
use abide_wire::capsule_part::CapsulePart;
use abide_wire::instance_dir::InstanceDir;

/// How long a keeper may take to end its sessions: their grace, and what follows.
const TO_END: Duration = Duration::from_secs(15);

/// What the system adds to the name of an open file that was deleted.
const DELETED: &str = " (deleted)";

/// A keeper of this user, in this view of the file system.
struct KeeperProcess {
    process: ProcessIdentity,
    /// Where its lock file is, or was.
    lock: PathBuf,
    file: (u64, u64),
}

/// A capsule that runs although the directory of its instance is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanedCapsule {
    /// The instance that it was of.
    pub id: InstanceId,
    pub keeper: ProcessIdentity,
    /// The programs that run in it.
    pub programs: Vec<String>,
}

/// Tells the keeper of `instance_dir` to stop, by a signal: it hears that also while its mux does not answer.
pub(crate) fn signal(instance_dir: &InstanceDir, reason: OperatorStop) -> io::Result<()> {
    let file = identify(&instance_dir.keeper_lock())?;
    let keeper = keepers().find(|keeper| keeper.file == file).ok_or(io::ErrorKind::NotFound)?;
    Pidfd::open(&keeper.process)?.queue(reason.signal())
}

/// The capsules of instances of `store` whose directory is gone. Nothing else knows of them.
pub fn orphaned(store: &Store) -> Vec<OrphanedCapsule> {
    let instances = store.layout().instances();
    // A home that is not mounted would have no instances either.
    if !instances.is_dir() {
        return Vec::new();
    }
    let orphan = |keeper: KeeperProcess| {
        let within = keeper.lock.strip_prefix(&instances).ok()?;
        let id = within.components().next()?.as_os_str().to_str()?.parse().ok()?;
        let is_gone = match identify(&keeper.lock) {
            Ok(file) => file != keeper.file,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        is_gone.then(|| OrphanedCapsule {
            id,
            programs: programs(keeper.process.pid),
            keeper: keeper.process,
        })
    };
    keepers().filter_map(orphan).collect()
}

/// Ends an orphaned capsule and everything in it; whether it has ended.
pub fn end(orphan: &OrphanedCapsule) -> io::Result<bool> {
    let keeper = match Pidfd::open(&orphan.keeper) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        opened => opened?,
    };
    keeper.queue(OperatorStop::Remove.signal())?;
    Ok(keeper.ends_within(TO_END))
}

/// The names of the programs that a keeper started, its mux left out.
fn programs(keeper: Pid) -> Vec<String> {
    let is_own = |pid: &Pid| part(*pid) == Some(CapsulePart::Mux);
    let children = process::children(keeper).into_iter().filter(|pid| !is_own(pid));
    children.filter_map(|pid| Stat::read(pid).ok()).map(|stat| stat.name()).collect()
}

/// Which part of abide a process is, if it is one.
fn part(pid: Pid) -> Option<CapsulePart> {
    CapsulePart::of(&command_line(pid))
}

fn keepers() -> impl Iterator<Item = KeeperProcess> {
    let uid = rustix::process::geteuid().as_raw();
    let view = fs::read_link("/proc/self/ns/mnt").ok();
    Stat::all().filter(|stat| !stat.is_dead()).filter_map(move |stat| {
        let dir = PathBuf::from(format!("/proc/{}", stat.pid));
        let is_ours = || fs::metadata(&dir).is_ok_and(|found| found.uid() == uid);
        // Elsewhere the same path is another file.
        let is_here = || view.is_some() && fs::read_link(dir.join("ns/mnt")).ok() == view;
        if part(stat.pid) != Some(CapsulePart::Keeper) || !is_ours() || !is_here() {
            return None;
        }
        let process = identity(stat.pid)?;
        let open = fs::read_dir(dir.join("fd")).ok()?.flatten();
        open.filter_map(|entry| lock_file(&entry.path())).next().map(|(lock, file)| KeeperProcess {
            process,
            lock,
            file,
        })
    })
}

/// The lock file of a keeper, if the descriptor at `path` is one of it.
fn lock_file(path: &Path) -> Option<(PathBuf, (u64, u64))> {
    let target = fs::read_link(path).ok()?;
    let text = target.to_str()?;
    let name = PathBuf::from(text.strip_suffix(DELETED).unwrap_or(text));
    let instance_dir = name.parent()?.parent()?;
    (InstanceDir::new(instance_dir).keeper_lock() == name).then_some(())?;
    let file = fs::metadata(path).ok()?;
    Some((name, (file.dev(), file.ino())))
}

fn identify(path: &Path) -> io::Result<(u64, u64)> {
    let file = fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino()))
}
