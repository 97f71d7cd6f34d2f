//! The container of an instance: made, started, looked after until process 1 serves.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use abide_model::container::{ContainerRecipe, Network};
use abide_model::ladder::Tier;
use abide_model::liveness::SupervisorLock;
use abide_model::name::Belonging;
use abide_model::vars;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::supervisor_lock::{remove_stale_socket, supervisor_lock};

use super::engine::{Engine, TO_ACT, TO_ANSWER};
use super::look::ContainerView;
use super::network::NetworkView;
use super::{Docker, egress, labels, mounts, sidecar};
use crate::owner::Owner;
use crate::place::{Bind, BringUp, PlaceError, Stage, StageEvent};

/// How long process 1 may take from its start until it serves.
const TO_SERVE: Duration = Duration::from_secs(30);
/// How often the engine is asked meanwhile whether it runs.
const BETWEEN_LOOKS: Duration = Duration::from_millis(150);
/// How many of the last lines of a process 1 that ended are shown.
pub(super) const LAST_LINES: &str = "40";

impl Docker {
    pub(super) fn bring_up_at(
        &self,
        wanted: &BringUp<'_>,
        tier: Tier,
        told: &dyn Fn(StageEvent),
    ) -> Result<(), PlaceError> {
        match tier {
            Tier::Reconnect => self.unpause(wanted),
            Tier::Start => self.start_again(wanted, told),
            Tier::Recreate | Tier::Rebuild => self.make_and_start(wanted, told),
        }
    }

    fn unpause(&self, wanted: &BringUp<'_>) -> Result<(), PlaceError> {
        match self.container(wanted.instance.id)? {
            Some(container) if container.is_paused() => {
                self.engine.ask(["unpause", &container.id], TO_ACT)?;
                Ok(())
            }
            Some(container) if container.runs() => Ok(()),
            _ => Err(PlaceError::Refused("its container does not run any more; try again".to_owned())),
        }
    }

    fn start_again(&self, wanted: &BringUp<'_>, told: &dyn Fn(StageEvent)) -> Result<(), PlaceError> {
        let Some(container) = self.container(wanted.instance.id)? else {
            return Err(PlaceError::Refused("its container is gone; try again to make a new one".to_owned()));
        };
        mounts::prepare(wanted)?;
        mounts::check(&self.owner, wanted, &mounts::binds(wanted)?)?;
        let network = self.network_stage(wanted, told)?;
        self.have_sidecar(wanted, network.as_ref(), told)?;
        if let Some(network) = network {
            self.connect_network(&container, &network)?;
        }
        told(StageEvent::Begun(Stage::Container));
        self.start(&container.id, wanted)?;
        told(StageEvent::Done(Stage::Container, container.name.trim_start_matches('/').to_owned()));
        Ok(())
    }

    fn make_and_start(&self, wanted: &BringUp<'_>, told: &dyn Fn(StageEvent)) -> Result<(), PlaceError> {
        mounts::prepare(wanted)?;
        let binds = mounts::binds(wanted)?;
        mounts::check(&self.owner, wanted, &binds)?;
        let network = self.network_stage(wanted, told)?;
        self.have_sidecar(wanted, network.as_ref(), told)?;
        told(StageEvent::Begun(Stage::Container));
        let args = create_args(&self.owner, wanted, &binds, network.as_ref(), &self.engine)?;
        let made = self.engine.ask(args, TO_ACT)?;
        let is_warning = |line: &&str| !line.trim().is_empty() && !line.contains("Localhost DNS");
        for warning in made.stderr.lines().filter(is_warning) {
            told(StageEvent::Said(Stage::Container, warning.trim().to_owned()));
        }
        let id = made.text();
        if let Err(error) = self.start(&id, wanted) {
            // No session ran in it, and it would be tried again as it is for ever.
            if !matches!(error, PlaceError::Unknown(_)) {
                let _ = self.engine.ask_if_there(["rm", "--force", "--volumes", &id], TO_ACT);
            }
            return Err(error);
        }
        told(StageEvent::Done(Stage::Container, labels::name(wanted.instance, Belonging::Container)));
        Ok(())
    }

    fn network_stage(
        &self,
        wanted: &BringUp<'_>,
        told: &dyn Fn(StageEvent),
    ) -> Result<Option<NetworkView>, PlaceError> {
        told(StageEvent::Begun(Stage::Network));
        let network = self.have_network(wanted.instance, wanted.recipe)?;
        if let (Network::Allow, Some(network)) = (wanted.recipe.network, &network) {
            self.have_proxy(wanted, network)?;
        }
        let name = network.as_ref().map_or("none", |network| &network.name);
        told(StageEvent::Done(Stage::Network, name.to_owned()));
        Ok(network)
    }

    /// Starts a container and waits until its process 1 serves, or has ended.
    fn start(&self, id: &str, wanted: &BringUp<'_>) -> Result<(), PlaceError> {
        let dir = InstanceDir::new(wanted.dir);
        if let Err(error) = remove_stale_socket(&dir) {
            tracing::warn!("an old socket is not removed: {error}");
        }
        self.engine.ask(["start", id], TO_ACT)?;
        let (deadline, mut look_at) = (Instant::now() + TO_SERVE, Instant::now() + BETWEEN_LOOKS);
        while supervisor_lock(&dir) != SupervisorLock::Held || !dir.socket().exists() {
            if Instant::now() >= look_at {
                self.require_running(id)?;
                look_at = Instant::now() + BETWEEN_LOOKS;
            }
            if Instant::now() >= deadline {
                let why = format!("process 1 of the container serves nothing after {} s", TO_SERVE.as_secs());
                return Err(PlaceError::Refused(format!("{why}; `{} logs {id}`", self.engine.program())));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    pub(super) fn require_running(&self, id: &str) -> Result<(), PlaceError> {
        let views: Vec<ContainerView> = self.engine.inspect("container", &[id.to_owned()])?;
        match views.first() {
            Some(view) if view.runs() || view.is_paused() => Ok(()),
            Some(view) => {
                let logs = self.engine.output(["logs", "--tail", LAST_LINES, id], TO_ANSWER)?;
                let why =
                    format!("process 1 of the container ended at once with code {}", view.state.exit_code);
                Err(PlaceError::EndedAtOnce { why, output: format!("{}{}", logs.stderr, logs.text()) })
            }
            None => Err(PlaceError::Refused("the container was removed while it started".to_owned())),
        }
    }
}

/// The command line that makes the container of an instance. It is visible to everyone who may ask the engine: no secrets.
pub(super) fn create_args(
    owner: &Owner,
    wanted: &BringUp<'_>,
    binds: &[Bind],
    network: Option<&NetworkView>,
    engine: &Engine,
) -> Result<Vec<OsString>, PlaceError> {
    let recipe = wanted.recipe;
    let mut args: Vec<OsString> = ["create", "--name"].map(OsString::from).to_vec();
    let mut push = |words: &[&str]| args.extend(words.iter().map(OsString::from));
    push(&[
        &labels::name(wanted.instance, Belonging::Container),
        "--hostname",
        &wanted.instance.id.display_name(),
    ]);
    for flag in labels::of_instance(owner, wanted.instance, Belonging::Container) {
        push(&[&flag]);
    }
    push(&["--user", &format!("{}:{}", recipe.uid, recipe.gid), "--workdir", "/"]);
    push(&["--env", &format!("HOME={}", wanted.home.display())]);
    // It cannot see abide's own log.
    let log = InstanceDir::new(wanted.dir).container_log();
    push(&["--env", &format!("{}={}", vars::ABIDE_LOG_FILE, log.display())]);
    push(&["--pull", "never", "--restart", "no", "--no-healthcheck", "--stop-signal", "SIGTERM"]);
    push(&["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]);
    push(&engine.log_flags());
    if engine.maps_users() {
        push(&["--userns", "keep-id"]);
    }
    for flag in limit_flags(recipe) {
        push(&[&flag]);
    }
    push(&["--network", network.map_or("none", |network| &network.name)]);
    for bind in binds {
        push(&["--mount", &mounts::flag(bind)?]);
    }
    if let Some(mount) = sidecar::mount(wanted) {
        push(&["--mount", &mount]);
    }
    push(&egress::run_flags(recipe, engine.choice.kind));
    let Some((program, rest)) = wanted.argv.split_first() else {
        return Err(PlaceError::Refused("there is nothing to run as process 1".to_owned()));
    };
    push(&["--entrypoint"]);
    args.push(program.clone());
    args.push(recipe.image.id.clone().into());
    args.extend(rest.iter().cloned());
    Ok(args)
}

fn limit_flags(recipe: &ContainerRecipe) -> Vec<String> {
    let memory = recipe.memory.map(|bytes| ["--memory".to_owned(), bytes.to_string()]);
    let processes = recipe.processes.map(|count| ["--pids-limit".to_owned(), count.to_string()]);
    [memory, processes].into_iter().flatten().flatten().collect()
}
