//! A user without root's right to ignore modes: a test of modes that runs as root would test nothing.

use std::path::Path;

/// The user that tests of modes become.
const NOBODY: u32 = 65534;

/// Runs `body`, and the commands that it starts, without root's rights; a user who is not root has none to begin with.
pub fn as_nobody(body: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                let nobody = rustix::fs::Uid::from_raw(NOBODY);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            body();
        });
        thread.join().unwrap();
    });
}

/// Gives `path` and everything below it to the user of [`as_nobody`], where this is root.
pub fn give_to_nobody(path: &Path) {
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::lchown(path, Some(NOBODY), None).unwrap();
        if path.symlink_metadata().unwrap().is_dir() {
            std::fs::read_dir(path).unwrap().for_each(|entry| give_to_nobody(&entry.unwrap().path()));
        }
    }
}
