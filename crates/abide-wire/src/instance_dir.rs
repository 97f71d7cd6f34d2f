//! Where the capsule's files are inside its instance directory: the one place that spells these paths.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::session::SessionId;

/// The name of the listening socket inside [`InstanceDir::run_dir`].
pub const SOCKET_NAME: &str = "sock";

/// The directory of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceDir(PathBuf);

impl InstanceDir {
    /// The instance directory at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The instance directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Holds the socket and the keeper's lock.
    pub fn run_dir(&self) -> PathBuf {
        self.0.join("run")
    }

    /// Where a capsule listens.
    pub fn socket(&self) -> PathBuf {
        self.run_dir().join(SOCKET_NAME)
    }

    /// Locked for as long as a keeper serves the instance.
    pub fn keeper_lock(&self) -> PathBuf {
        self.0.join("run/keeper.lock")
    }

    /// Locked, and shared by them, for as long as a pane of tmux holds a session of the instance.
    pub fn panes_lock(&self) -> PathBuf {
        self.0.join("run/panes.lock")
    }

    /// Locked while panes of tmux change the exit record, which one does at a time.
    pub fn record_lock(&self) -> PathBuf {
        self.0.join("run/record.lock")
    }

    /// Locked for as long as a process starts the instance.
    pub fn starter_lock(&self) -> PathBuf {
        self.0.join("run/starter.lock")
    }

    /// Locked for as long as a process decides what becomes of the instance, whose run is over.
    pub fn finisher_lock(&self) -> PathBuf {
        self.0.join("run/finisher.lock")
    }

    /// What the keeper of a container serves. Its command line is that of its first start for ever, so it is read from here.
    pub fn keeper_config(&self) -> PathBuf {
        self.0.join("run/keeper.json")
    }

    /// What the proxy of its network goes by, and what it refused. Sessions do not see it.
    pub fn egress_dir(&self) -> PathBuf {
        self.0.join("egress")
    }

    /// Every lock that a process on the host tests or takes.
    pub fn locks(&self) -> [PathBuf; 5] {
        [self.keeper_lock(), self.panes_lock(), self.record_lock(), self.starter_lock(), self.finisher_lock()]
    }

    /// How the mux arranges the sessions, and the names that the operator gave them.
    pub fn layout_file(&self) -> PathBuf {
        self.state_dir().join("layout.json")
    }

    /// Holds the exit record.
    pub fn state_dir(&self) -> PathBuf {
        self.0.join("state")
    }

    /// Says how the capsule's last run ended, or that it has not.
    pub fn exit_record(&self) -> PathBuf {
        self.0.join("state/exit.json")
    }

    /// The processes that outlive the instance because the operator spared them.
    pub fn spared(&self) -> PathBuf {
        self.0.join("state/spared.json")
    }

    /// What its sessions were last seen doing.
    pub fn last_seen(&self) -> PathBuf {
        self.0.join("state/last-seen.json")
    }

    /// Room for the exit record, should the disk be full when the run ends.
    pub fn exit_record_reserve(&self) -> PathBuf {
        self.0.join("state/exit.reserve")
    }

    /// Where the processes of abide in a container log, which cannot see abide's own log.
    pub fn container_log(&self) -> PathBuf {
        self.0.join("state/capsule.log")
    }

    /// Where the keeper's standard error goes.
    pub fn keeper_log(&self) -> PathBuf {
        self.0.join("state/keeper.log")
    }

    /// The conversations that hooks reported, a JSON object per line.
    pub fn conversations(&self) -> PathBuf {
        self.0.join("state/conversations.jsonl")
    }

    /// When something was first entered in each session of each run, a JSON object per line.
    pub fn turns(&self) -> PathBuf {
        self.0.join("state/turns.jsonl")
    }

    /// What a session in a pane of tmux was launched with, for commands that ask what it is doing.
    pub fn watched(&self, session: &SessionId) -> PathBuf {
        self.0.join("state").join(format!("{session}.pane.json"))
    }

    /// What its agent's hooks said last.
    pub fn heard(&self, session: &SessionId) -> PathBuf {
        self.0.join("state").join(format!("{session}.heard.json"))
    }

    pub fn journal_dir(&self) -> PathBuf {
        self.0.join("journal")
    }

    /// The journal of one session.
    pub fn journal(&self, session: &SessionId) -> PathBuf {
        self.0.join("journal").join(format!("{session}.ring"))
    }

    /// What a session's terminal held when it ended, where tmux and not a journal kept it.
    pub fn scrollback(&self, session: &SessionId) -> PathBuf {
        self.0.join("journal").join(format!("{session}.ansi"))
    }

    /// Creates the directory that the socket is in, for our eyes only.
    pub fn prepare_run(&self) -> io::Result<()> {
        private_dir(&self.run_dir())
    }

    /// Creates the directories that the capsule writes to while it runs, likewise.
    pub fn prepare_state(&self) -> io::Result<()> {
        private_dir(&self.state_dir())?;
        private_dir(&self.journal_dir())
    }
}

/// Makes sure that `dir` is a real directory of ours that no other user can enter: one who can replace a name in it
/// can put their own socket where we expect ours.
fn private_dir(dir: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(err) if err.kind() != io::ErrorKind::AlreadyExists => return Err(err),
        _ => {}
    }
    let meta = fs::symlink_metadata(dir)?;
    if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
        let text = format!("{} is not a directory owned by this user", dir.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    if meta.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}
