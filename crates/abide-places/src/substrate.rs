//! What holds the sessions of an instance on the host, and everything that a verb can ask of it.
//!
//! There are two: abide's own capsule, and a tmux server for those who live in tmux. Which one a run is on is recorded in its
//! exit record; what the operator wished for is in the recipe, and may not have been to be had.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use abide_client::{AttachEnd, AttachOptions, ClientError, OnShown};
use abide_config::Settings;
use abide_keeper::OperatorStop;
use abide_model::liveness::SupervisorLock;
use abide_model::{Instance, InstanceId, Pid, SessionId, Substrate as Wish};
use abide_store::Store;
use abide_sys::run::RunError;
use abide_wire::exit_record::ExitRecord;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::{
    CallError, EvidenceReply, Input, RequestRefusal, Snapshot, SnapshotReply, StatusReply, Until, WaitReply,
};

use crate::connect;
use crate::contained::Contained;
use crate::host::capsule::Capsule;
use crate::tmux::{Tmux, TmuxPane, TmuxServer};

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// The capsule did not.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Nothing could be attached to the capsule.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// It was understood and refused.
    #[error(transparent)]
    Refused(#[from] RequestRefusal),
    #[error("{why}; `tmux -S {} ls` lists the sessions of its server", socket.display())]
    Tmux { why: String, socket: PathBuf },
    /// Nothing could be attached to tmux.
    #[error(transparent)]
    Attach(#[from] RunError),
    /// There is nothing of it there.
    #[error("{} no longer runs in tmux; `abide resume` brings it back", .0.display_name())]
    Gone(InstanceId),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The sessions of one run of an instance. Dropping it, or whatever it gives out, ends none of them.
pub trait Substrate {
    /// The lock of whatever supervises the run. The engine says what it means.
    fn lock(&self) -> SupervisorLock;

    /// The processes that sessions, and whatever left them, are children of.
    fn holders(&self) -> Vec<Pid>;

    /// What the sessions are doing.
    fn status(&self) -> Result<StatusReply, NoAnswer>;

    /// Ends everything and waits until it has ended; whether it has.
    fn stop(&self, reason: OperatorStop) -> bool;

    /// Ends one session for good; the others go on.
    fn end(&self, session: &SessionId) -> Result<(), NoAnswer>;

    /// Types into a session.
    fn send(&self, session: &SessionId, input: Vec<Input>) -> Result<(), NoAnswer>;

    /// What a session shows, or a piece of that.
    fn screen(&self, session: &SessionId, ask: &Snapshot) -> Result<SnapshotReply, NoAnswer>;

    /// What a session is doing, and who says so.
    fn evidence(&self, session: &SessionId) -> Result<EvidenceReply, NoAnswer>;

    /// Waits for something to become true of a session.
    fn wait(&self, session: &SessionId, until: Until, timeout_ms: Option<u64>)
    -> Result<WaitReply, NoAnswer>;

    /// Puts the operator's terminal in front of it, until they leave or it ends.
    fn attach(&self, options: &AttachOptions, on_shown: OnShown<'_>) -> Result<AttachEnd, NoAnswer>;

    /// Has it take over the settings that can change while it runs; false where nothing of it reads them.
    fn configure(&self, settings: &Settings) -> Result<bool, NoAnswer>;

    /// Has it continue on the program at `exe`; false where nothing of it is a program of ours.
    fn upgrade(&self, exe: PathBuf) -> Result<bool, NoAnswer>;
}

/// The substrate that the last run of `id` is on.
pub fn of(store: &Store, id: InstanceId) -> Box<dyn Substrate> {
    match store.read(id) {
        Ok(instance) => Survey::default().of(store, &instance),
        // What cannot be read is not believed to be on tmux either.
        Err(_) => Box::new(Capsule(connect::instance_dir(store, id))),
    }
}

/// What tmux servers were found to hold: each is asked once, however many instances it holds.
#[derive(Debug, Clone, Default)]
pub struct Survey(Arc<Mutex<BTreeMap<PathBuf, ServerPanes>>>);

/// The panes of a server, or why they are not known.
type ServerPanes = Arc<Result<Vec<TmuxPane>, String>>;

impl Survey {
    /// The substrate that the last run of `instance` is on. One that never wished for tmux was never there, which saves
    /// reading its record.
    pub fn of(&self, store: &Store, instance: &Instance) -> Box<dyn Substrate> {
        let instance_dir = connect::instance_dir(store, instance.id);
        match (&instance.recipe.container, instance.recipe.substrate) {
            (Some(recipe), _) => Box::new(Contained::new(store, instance.id, recipe)),
            (None, Wish::Capsule) => Box::new(Capsule(instance_dir)),
            (None, Wish::Tmux) => self.on_the_host(instance_dir),
        }
    }

    /// The substrate on the host that the last run of `instance_dir` is on, by its record.
    fn on_the_host(&self, instance_dir: InstanceDir) -> Box<dyn Substrate> {
        let record = ExitRecord::read(&instance_dir).ok().flatten();
        match record.and_then(|record| Tmux::new(&instance_dir, record, self)) {
            Some(tmux) => Box::new(tmux),
            None => Box::new(Capsule(instance_dir)),
        }
    }

    pub(crate) fn panes(&self, server: &TmuxServer) -> ServerPanes {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let look = || Arc::new(server.panes().map_err(|error| error.to_string()));
        seen.entry(server.socket().to_owned()).or_insert_with(look).clone()
    }
}
