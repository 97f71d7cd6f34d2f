//! Files in which agents publish what they do: a change is noticed though nothing is written to the terminal.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use abide_wire::session::SessionId;
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

/// The files of the sessions, as the kernel watches them.
#[derive(Debug, Default)]
pub(crate) struct FileWatch {
    /// `None` where nothing is watched yet, or cannot be: then only asking helps.
    kernel: Option<OwnedFd>,
    sessions: BTreeMap<i32, SessionId>,
}

impl FileWatch {
    /// Watches the file at `path` for `session`. One that was replaced is watched anew: this is called after every look.
    pub fn watch(&mut self, session: SessionId, path: &Path) {
        if self.kernel.is_none() {
            self.kernel = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok();
        }
        let Some(kernel) = &self.kernel else { return };
        let changes = WatchFlags::CLOSE_WRITE | WatchFlags::ATTRIB | WatchFlags::DELETE_SELF;
        if let Ok(number) = inotify::add_watch(kernel, path, changes | WatchFlags::MOVE_SELF) {
            self.sessions.retain(|known, of| *of != session || *known == number);
            self.sessions.insert(number, session);
        }
    }

    /// The sessions whose file has changed.
    pub fn changed(&mut self) -> Vec<SessionId> {
        let Some(kernel) = &self.kernel else { return Vec::new() };
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut events = Reader::new(kernel, &mut buffer);
        let mut changed = Vec::new();
        while let Ok(event) = events.next() {
            changed.extend(self.sessions.get(&event.wd()));
        }
        changed
    }

    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.kernel.as_ref().map(AsFd::as_fd)
    }
}
