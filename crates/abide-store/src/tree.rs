//! Deleting and measuring trees, whatever other programs have put into them.
//!
//! Links are removed, never followed. Nothing on another mount is touched, not even another view of the same file
//! system. Directories that their owner may not write to (module caches are often like that) are made writable first.
//! Depth is no problem: what lies too deep is moved up and deleted from there.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::dir;
use crate::error::{IoFailure, StoreError};
use crate::layout::LOCK;
use abide_sys::crash;

/// How many directories are open at once, at most. Each costs a file descriptor and some stack.
const DEPTH: usize = 64;
/// How often a directory is read again because another process still adds files to it.
const ROUNDS: usize = 16;
/// How often the top is read again because something was moved up to it: once per `DEPTH` levels.
const TOP_ROUNDS: usize = 100_000;

/// Why a tree could not be deleted, and where in it.
#[derive(Debug)]
pub(crate) struct TreeFailure {
    path: PathBuf,
    cause: TreeFailureCause,
}

#[derive(Debug)]
enum TreeFailureCause {
    Mounted,
    System(Errno),
}

impl TreeFailure {
    /// The error for a tree whose parent directory is at `parent`.
    pub(crate) fn under(self, parent: &Path) -> StoreError {
        let path = parent.join(self.path);
        match self.cause {
            TreeFailureCause::Mounted => StoreError::Mounted { path },
            TreeFailureCause::System(errno) => IoFailure::new("delete", path, errno).into(),
        }
    }
}

/// Deletes `name` in `parent`, whatever it is. That it is gone already is fine.
pub(crate) fn remove(parent: impl AsFd, name: &OsStr) -> Result<(), TreeFailure> {
    let parent = parent.as_fd();
    let mut remover = Remover { path: PathBuf::from(name), mount: None, root: None, moved: 0 };
    remover.remove(parent, name).map_err(|cause| TreeFailure { path: remover.path, cause })
}

struct Remover {
    /// Where we are, for messages.
    path: PathBuf,
    /// The mount that everything has to be on.
    mount: Option<MountId>,
    /// The top of the tree, to which what lies too deep is moved.
    root: Option<OwnedFd>,
    /// How many directories were moved there.
    moved: u32,
}

impl Remover {
    fn remove(&mut self, parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), TreeFailureCause> {
        match dir::stat(parent, name) {
            Ok(stat) if dir::kind(&stat) == FileType::Directory => {}
            Ok(_) => return unlink(parent, name),
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(TreeFailureCause::System(errno)),
        }
        self.mount = Some(MountId::of(parent)?);
        let Some(root) = self.enter(parent, name)? else { return Ok(()) };
        self.root = Some(root.try_clone().map_err(|_| TreeFailureCause::System(Errno::MFILE))?);
        // Every round empties the tree down to `DEPTH` and moves what is below to the top, for the next round.
        for _ in 0..TOP_ROUNDS {
            if !self.empty_once(root.as_fd(), 0, &|name| name != LOCK)? {
                break;
            }
        }
        crash::point("store.purge.emptied");
        // The lock goes last: as long as anything else exists, it shows that a process is at work here.
        unlink(root.as_fd(), LOCK.as_ref())?;
        remove_dir(parent, name)
    }

    /// Removes what is in `dir` and `wanted`, and says whether there was anything.
    fn empty_once(
        &mut self,
        dir: BorrowedFd<'_>,
        depth: usize,
        wanted: &dyn Fn(&OsStr) -> bool,
    ) -> Result<bool, TreeFailureCause> {
        let mut any = false;
        for (name, kind) in dir::entries(dir).map_err(TreeFailureCause::System)? {
            if !wanted(&name) {
                continue;
            }
            any = true;
            self.path.push(&name);
            self.remove_entry(dir, &name, kind, depth)?;
            self.path.pop();
            crash::point("store.purge.begun");
        }
        Ok(any)
    }

    fn remove_entry(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        kind: FileType,
        depth: usize,
    ) -> Result<(), TreeFailureCause> {
        if !matches!(kind, FileType::Directory | FileType::Unknown) {
            return unlink(dir, name);
        }
        match self.enter(dir, name) {
            Ok(Some(child)) if depth < DEPTH => {
                for _ in 0..ROUNDS {
                    if !self.empty_once(child.as_fd(), depth + 1, &|_| true)? {
                        break;
                    }
                }
                remove_dir(dir, name)
            }
            Ok(Some(child)) => self.move_up(dir, name, &child),
            Ok(None) => Ok(()),
            Err(TreeFailureCause::System(Errno::NOTDIR | Errno::LOOP)) => unlink(dir, name),
            Err(cause) => Err(cause),
        }
    }

    /// Opens a directory that is to be emptied; `None` if it is gone.
    fn enter(&self, parent: BorrowedFd<'_>, name: &OsStr) -> Result<Option<OwnedFd>, TreeFailureCause> {
        let opened = match dir::open(parent, name) {
            Err(Errno::ACCESS) => allow(parent, name).and_then(|()| dir::open(parent, name)),
            opened => opened,
        };
        let dir = match opened {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(TreeFailureCause::System(errno)),
        };
        if self.mount != Some(MountId::of(dir.as_fd())?) {
            return Err(TreeFailureCause::Mounted);
        }
        Ok(Some(dir))
    }

    /// Moves the directory `name`, open as `child`, to the top of the tree.
    fn move_up(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        child: &OwnedFd,
    ) -> Result<(), TreeFailureCause> {
        let Some(root) = &self.root else { return Err(TreeFailureCause::System(Errno::INVAL)) };
        // To move a directory is to change its `..`, which takes the right to write to it.
        let _ = rustix::fs::fchmod(child, Mode::RWXU);
        loop {
            let name_there = format!(".deep-{}", self.moved);
            self.moved += 1;
            match writable(parent, || dir::move_to_free(parent, name, root, &name_there)) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                // Left there by a deletion that was cut short.
                Err(Errno::EXIST | Errno::NOTEMPTY) => {}
                Err(errno) => return Err(TreeFailureCause::System(errno)),
            }
        }
    }
}

fn unlink(dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), TreeFailureCause> {
    gone(writable(dir, || rustix::fs::unlinkat(dir, name, AtFlags::empty())))
}

fn remove_dir(dir: BorrowedFd<'_>, name: &OsStr) -> Result<(), TreeFailureCause> {
    gone(writable(dir, || rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)))
}

fn gone(result: rustix::io::Result<()>) -> Result<(), TreeFailureCause> {
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(TreeFailureCause::System(errno)),
    }
}

/// Does `change` to what is in `dir`, making that writable if it is not.
fn writable(dir: BorrowedFd<'_>, change: impl Fn() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
    match change() {
        Err(Errno::ACCESS) if rustix::fs::fchmod(dir, Mode::RWXU).is_ok() => change(),
        done => done,
    }
}

/// Lets the owner into the directory `name`. It is opened as a mere place and changed through that, because a change by
/// name would follow a link that was put there in the meantime.
fn allow(parent: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let place = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    rustix::fs::chmodat(CWD, format!("/proc/self/fd/{}", place.as_raw_fd()), Mode::RWXU, AtFlags::empty())
}

/// The mount that a directory is on: its id, or the device where the kernel is too old to tell mounts apart.
#[derive(PartialEq, Eq)]
enum MountId {
    Id(u64),
    Device(u32, u32),
}

impl MountId {
    fn of(dir: BorrowedFd<'_>) -> Result<Self, TreeFailureCause> {
        let stat = rustix::fs::statx(dir, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)
            .map_err(TreeFailureCause::System)?;
        Ok(if stat.stx_mask & StatxFlags::MNT_ID.bits() != 0 {
            Self::Id(stat.stx_mnt_id)
        } else {
            Self::Device(stat.stx_dev_major, stat.stx_dev_minor)
        })
    }
}

/// The bytes that `name` in `parent` and all in it take up on the disk. What is gone or may not be read counts nothing,
/// nor does what lies deeper than anything real.
pub(crate) fn size(parent: impl AsFd, name: &OsStr) -> u64 {
    size_of(parent.as_fd(), name, 0)
}

fn size_of(parent: BorrowedFd<'_>, name: &OsStr, depth: usize) -> u64 {
    let Ok(stat) = dir::stat(parent, name) else { return 0 };
    let own = u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
    if dir::kind(&stat) != FileType::Directory || depth > DEPTH {
        return own;
    }
    let Ok(dir) = dir::open(parent, name) else { return own };
    let inside = dir::entries(&dir).unwrap_or_default();
    own + inside.iter().map(|(name, _)| size_of(dir.as_fd(), name, depth + 1)).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use abide_testkit::as_nobody;

    use super::*;

    fn fd(path: &Path) -> fs::File {
        fs::File::open(path).unwrap()
    }

    #[test]
    fn links_are_removed_and_what_they_point_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir_all(outside.join("sub")).unwrap();
        fs::write(outside.join("file"), "precious").unwrap();
        let doomed = dir.path().join("doomed");
        fs::create_dir_all(doomed.join("a/b")).unwrap();
        symlink(&outside, doomed.join("a/dir-link")).unwrap();
        symlink(outside.join("file"), doomed.join("a/b/file-link")).unwrap();
        symlink("../../..", doomed.join("a/b/up")).unwrap();
        symlink("nowhere", doomed.join("dangling")).unwrap();
        fs::hard_link(outside.join("file"), doomed.join("hard")).unwrap();

        remove(fd(dir.path()), "doomed".as_ref()).unwrap();

        assert!(!doomed.exists());
        assert_eq!(fs::read(outside.join("file")).unwrap(), b"precious");
        assert!(outside.join("sub").is_dir());
    }

    #[test]
    fn a_link_in_the_place_of_the_tree_is_removed_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("outside")).unwrap();
        fs::write(dir.path().join("outside/file"), "precious").unwrap();
        symlink("outside", dir.path().join("doomed")).unwrap();
        remove(fd(dir.path()), "doomed".as_ref()).unwrap();
        assert!(fs::symlink_metadata(dir.path().join("doomed")).is_err());
        assert_eq!(fs::read(dir.path().join("outside/file")).unwrap(), b"precious");
        remove(fd(dir.path()), "doomed".as_ref()).unwrap();
    }

    #[test]
    fn directories_that_their_owner_may_not_write_to_or_enter_go_too() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        as_nobody(|| {
            let doomed = dir.path().join("doomed");
            for (name, mode) in [("r-x", 0o555), ("r--", 0o444), ("---", 0o000), ("-wx", 0o300)] {
                let sub = doomed.join(name);
                fs::create_dir_all(sub.join("deeper")).unwrap();
                fs::write(sub.join("deeper/file"), "x").unwrap();
                fs::write(sub.join("file"), "x").unwrap();
                fs::set_permissions(sub.join("deeper"), fs::Permissions::from_mode(mode)).unwrap();
                fs::set_permissions(&sub, fs::Permissions::from_mode(mode)).unwrap();
            }
            fs::set_permissions(&doomed, fs::Permissions::from_mode(0o500)).unwrap();
            assert!(fs::remove_dir_all(&doomed).is_err(), "the test is not testing anything");
            remove(fd(dir.path()), "doomed".as_ref()).unwrap();
            assert!(!doomed.exists());
        });
    }

    #[test]
    fn no_depth_is_too_deep() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("doomed")).unwrap();
        // What a deletion that was cut short left at the top.
        fs::create_dir_all(dir.path().join("doomed/.deep-0/left")).unwrap();
        // Not every file system counts directories and empty files.
        fs::write(dir.path().join("doomed/file"), "contents").unwrap();
        let mut here = OwnedFd::from(fd(&dir.path().join("doomed")));
        for level in 0..1500 {
            atomic_file(&here, level);
            here = dir::make(&here, "a-directory-with-a-rather-long-name").unwrap();
        }
        assert!(size(fd(dir.path()), "doomed".as_ref()) > 0);
        remove(fd(dir.path()), "doomed".as_ref()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    fn atomic_file(dir: &OwnedFd, level: usize) {
        abide_sys::atomic::create_empty(dir, format!("file-{level}").as_ref(), Mode::RUSR).unwrap();
    }

    #[test]
    fn the_size_counts_what_is_there_and_not_what_links_point_to() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("doomed/sub")).unwrap();
        fs::write(dir.path().join("outside"), vec![1; 1 << 20]).unwrap();
        symlink("../../outside", dir.path().join("doomed/sub/link")).unwrap();
        let without = size(fd(dir.path()), "doomed".as_ref());
        assert!(without < 1 << 20);
        fs::write(dir.path().join("doomed/sub/file"), vec![1; 100_000]).unwrap();
        assert!(size(fd(dir.path()), "doomed".as_ref()) >= without + 100_000);
    }
}
