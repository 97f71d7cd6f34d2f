//! `abide stop`: ending what runs of an instance, and keeping the rest.

use std::time::{Duration, Instant};

use abide_config::ConfigDir;
use abide_model::{Instance, InstanceId, Status};
use abide_store::Store;
use abide_sys::process;

use crate::error::Error;
use crate::finish::{self, Outcome};
use crate::substrate::{self, Survey};
use crate::{follow, processes, reconcile};

/// How long a start may take to be over, or to notice that its set-up command has ended.
const TO_START: Duration = Duration::from_secs(10);

/// Ends everything that runs of the instance `id`; what became of it then.
pub fn stop(store: &Store, config: &ConfigDir, id: InstanceId) -> Result<Outcome, Error> {
    let mut instance = after_its_start(store, config, id)?;
    if matches!(instance.status.status, Status::Ending(_)) {
        instance = finish::take_back(store, id, &|notice| tracing::info!(%id, "{notice}"))?;
        if instance.status.status != Status::Active {
            return Ok(Outcome::Kept("its removal was taken back".to_owned()));
        }
    }
    follow::look_closely(store, &instance);
    if !substrate::of(store, id).stop("abide stop") {
        return Err(Error::StillRuns(id));
    }
    match finish::finish(store, id, reconcile::policy(config, &instance))? {
        Outcome::Running => Err(Error::StillRuns(id)),
        ended => Ok(ended),
    }
}

/// The instance once nobody is starting it any more. Its set-up command, which may take long, is ended, whereupon the start
/// is given up.
fn after_its_start(store: &Store, config: &ConfigDir, id: InstanceId) -> Result<Instance, Error> {
    let deadline = Instant::now() + TO_START;
    loop {
        let instance = store.read(id)?;
        let Status::Starting { by, .. } = &instance.status.status else { return Ok(instance) };
        if Instant::now() > deadline {
            let (name, starter, by) = (id.display_name(), process::alive(by), by.pid);
            return Err(Error::Other(match starter {
                Some(false) => format!(
                    "{name} was left half started by process {by}, which is gone, and that can not be settled; \
                     `abide doctor` says what is wrong with the disk"
                ),
                _ => format!(
                    "{name} is still being started, by process {by}; stop it when it is up, or end that process"
                ),
            }));
        }
        if process::alive(by) == Some(true) {
            processes::end_set_up(by.pid, id);
        }
        reconcile::settle(store, config, &instance, &Survey::default());
        std::thread::sleep(Duration::from_millis(50));
    }
}
