//! Sessions in a capsule of abide's own that runs in a container. What the container can write is not believed: neither the
//! process numbers of its exit record nor a substrate that the record names.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use abide_client::{AttachEnd, AttachOptions, OnShown};
use abide_config::Settings;
use abide_keeper::OperatorStop;
use abide_model::container::ContainerRecipe;
use abide_model::liveness::SupervisorLock;
use abide_model::{InstanceId, Pid, SessionId};
use abide_store::Store;
use abide_wire::protocol::{
    Connection, EvidenceReply, Input, Shutdown, Snapshot, SnapshotReply, StatusReply, Until, WaitReply,
};

use crate::connect;
use crate::host::capsule::Capsule;
use crate::place::{self, TakeDown};
use crate::programs;
use crate::substrate::{NoAnswer, Substrate};

/// How long a mux may take to hear that its capsule is to stop.
const TO_HEAR: Duration = Duration::from_secs(2);

/// How long a capsule that was asked to stop may take.
const TO_STOP: Duration = Duration::from_secs(15);

/// How long process 1 may take to be gone once its engine says so.
const TO_RELEASE_LOCK: Duration = Duration::from_secs(3);

/// The capsule in the container of an instance.
pub(crate) struct Contained {
    store: Store,
    id: InstanceId,
    recipe: ContainerRecipe,
    capsule: Capsule,
}

impl Contained {
    pub fn new(store: &Store, id: InstanceId, recipe: &ContainerRecipe) -> Self {
        let capsule = Capsule(connect::instance_dir(store, id));
        Self { store: store.clone(), id, recipe: recipe.clone(), capsule }
    }

    fn is_over_by(&self, deadline: Instant) -> bool {
        while self.lock() != SupervisorLock::Free {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Asks process 1 through the mux, which notifies the attached clients.
    fn ask(&self, reason: OperatorStop) -> bool {
        let request = Shutdown { reason: reason.note().to_owned() };
        let asked = Connection::connect(&self.capsule.0, TO_HEAR)
            .and_then(|mut capsule| capsule.call(&request, TO_HEAR).map(drop));
        if let Err(error) = &asked {
            tracing::warn!(id = %self.id, "the container is not asked through its mux: {error}");
        }
        asked.is_ok()
    }
}

impl Substrate for Contained {
    fn lock(&self) -> SupervisorLock {
        self.capsule.lock()
    }

    /// Nothing of it is a process whose number means anything here.
    fn holders(&self) -> Vec<Pid> {
        Vec::new()
    }

    fn status(&self) -> Result<StatusReply, NoAnswer> {
        self.capsule.status()
    }

    fn stop(&self, reason: OperatorStop) -> bool {
        if self.lock() == SupervisorLock::Free {
            return true;
        }
        if self.ask(reason) && self.is_over_by(Instant::now() + TO_STOP) {
            return true;
        }
        let stopped =
            place::of(&self.store, &self.recipe).and_then(|place| place.take_down(self.id, TakeDown::Stop));
        match stopped {
            Ok(()) => self.is_over_by(Instant::now() + TO_RELEASE_LOCK),
            Err(error) => {
                tracing::warn!(id = %self.id, "the container is not stopped: {error}");
                false
            }
        }
    }

    fn end(&self, session: &SessionId) -> Result<(), NoAnswer> {
        self.capsule.end(session)
    }

    fn send(&self, session: &SessionId, input: Vec<Input>) -> Result<(), NoAnswer> {
        self.capsule.send(session, input)
    }

    fn screen(&self, session: &SessionId, ask: &Snapshot) -> Result<SnapshotReply, NoAnswer> {
        self.capsule.screen(session, ask)
    }

    fn evidence(&self, session: &SessionId) -> Result<EvidenceReply, NoAnswer> {
        self.capsule.evidence(session)
    }

    fn wait(
        &self,
        session: &SessionId,
        until: Until,
        timeout_ms: Option<u64>,
    ) -> Result<WaitReply, NoAnswer> {
        self.capsule.wait(session, until, timeout_ms)
    }

    fn attach(&self, options: &AttachOptions, on_shown: OnShown<'_>) -> Result<AttachEnd, NoAnswer> {
        self.capsule.attach(options, on_shown)
    }

    fn configure(&self, settings: &Settings) -> Result<bool, NoAnswer> {
        self.capsule.configure(settings)
    }

    /// The program must be where the container sees it.
    fn upgrade(&self, exe: PathBuf) -> Result<bool, NoAnswer> {
        let inside = programs::install(&self.store, &exe)?;
        self.capsule.upgrade(inside)
    }
}
