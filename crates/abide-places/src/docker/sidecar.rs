//! An engine beside the container of an instance, for what its sessions build and run. It is reached with TLS over the instance's
//! network; its certificates and what it holds are volumes.

use std::time::{Duration, Instant};

use abide_model::container::{ContainerRecipe, Network};
use abide_model::name::Belonging;
use abide_model::{Instance, InstanceId};

use super::Docker;
use super::engine::{TO_ACT, TO_ANSWER};
use super::labels;
use super::look::ContainerView;
use super::network::NetworkView;
use crate::place::{BringUp, PlaceError, SidecarSight, Stage, StageEvent};

/// What the engine is called on the network; its certificates are for this name.
const ALIAS: &str = "docker";
/// Where the certificates are, in both containers.
const CERTIFICATES: &str = "/certs";
/// How long its image may take to be pulled.
const TO_PULL: Duration = Duration::from_secs(600);
/// How long it may take from its start until it serves.
const TO_SERVE: Duration = Duration::from_secs(60);

/// What tells the clients of sessions where the engine is.
pub(super) fn env(recipe: &ContainerRecipe) -> Vec<(String, String)> {
    let host = format!("tcp://{ALIAS}:2376");
    let client = format!("{CERTIFICATES}/client");
    let variables =
        [("DOCKER_HOST", host), ("DOCKER_TLS_VERIFY", "1".to_owned()), ("DOCKER_CERT_PATH", client)];
    let pair = |(name, value): (&str, String)| (name.to_owned(), value);
    recipe.sidecar.iter().flat_map(|_| variables.clone().map(pair)).collect()
}

/// The value of `--mount` by which the container of an instance sees the certificates.
pub(super) fn mount(wanted: &BringUp<'_>) -> Option<String> {
    let volume = labels::name(wanted.instance, Belonging::Certs);
    wanted
        .recipe
        .sidecar
        .as_ref()
        .map(|_| format!("type=volume,source={volume},target={CERTIFICATES},readonly"))
}

impl Docker {
    /// Makes sure that the sidecar of an instance serves, where it is to have one.
    pub(super) fn have_sidecar(
        &self,
        wanted: &BringUp<'_>,
        network: Option<&NetworkView>,
        told: &dyn Fn(StageEvent),
    ) -> Result<(), PlaceError> {
        let Some(image) = &wanted.recipe.sidecar else { return Ok(()) };
        // It has every privilege, and no list of hosts would hold it.
        let (Network::Open, Some(network)) = (wanted.recipe.network, network) else {
            let why = "an engine beside the container needs `network = \"open\"`; unset `container.sidecar`";
            return Err(PlaceError::Refused(why.to_owned()));
        };
        told(StageEvent::Begun(Stage::Sidecar));
        match self.sidecar_of(wanted.instance.id)? {
            Some(sidecar) if sidecar.runs() => {}
            // What it holds is in its volumes.
            Some(sidecar) => {
                self.remove_container(&sidecar)?;
                self.start_sidecar(wanted.instance, image, network)?;
            }
            None => self.start_sidecar(wanted.instance, image, network)?,
        }
        self.wait_for_sidecar(wanted)?;
        told(StageEvent::Done(Stage::Sidecar, labels::name(wanted.instance, Belonging::Dind)));
        Ok(())
    }

    fn start_sidecar(
        &self,
        instance: &Instance,
        image: &str,
        network: &NetworkView,
    ) -> Result<(), PlaceError> {
        let name = |what| labels::name(instance, what);
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        for what in [Belonging::Certs, Belonging::DindData] {
            let mut args = words(&["volume", "create"]);
            args.extend(labels::of_instance(&self.owner, instance, what));
            args.push(name(what));
            self.engine.ask(args, TO_ACT)?;
        }
        // An engine needs every privilege there is.
        let mut args =
            words(&["run", "--detach", "--privileged", "--restart", "no", "--name", &name(Belonging::Dind)]);
        args.extend(labels::of_instance(&self.owner, instance, Belonging::Dind));
        args.extend(words(&["--network", &network.name, "--network-alias", ALIAS]));
        args.extend(words(&["--env", &format!("DOCKER_TLS_CERTDIR={CERTIFICATES}")]));
        for (what, target) in [(Belonging::Certs, CERTIFICATES), (Belonging::DindData, "/var/lib/docker")] {
            args.extend(words(&["--mount", &format!("type=volume,source={},target={target}", name(what))]));
        }
        args.push(image.to_owned());
        self.engine.ask(args, TO_PULL)?;
        Ok(())
    }

    fn wait_for_sidecar(&self, wanted: &BringUp<'_>) -> Result<(), PlaceError> {
        let deadline = Instant::now() + TO_SERVE;
        loop {
            let Some(sidecar) = self.sidecar_of(wanted.instance.id)?.filter(ContainerView::runs) else {
                let name = labels::name(wanted.instance, Belonging::Dind);
                let logs = self.engine.output(["logs", "--tail", "40", &name], TO_ANSWER)?;
                let why = "the engine beside the container ended at once".to_owned();
                return Err(PlaceError::EndedAtOnce {
                    why,
                    output: format!("{}{}", logs.stderr, logs.text()),
                });
            };
            if self.engine.output(["exec", &sidecar.id, "docker", "version"], TO_ANSWER)?.status.success() {
                // The keys are root's, and only the sessions' user may have them besides.
                let user = format!("{}:{}", wanted.recipe.uid, wanted.recipe.gid);
                let client = format!("{CERTIFICATES}/client");
                self.engine.ask(["exec", &sidecar.id, "chown", "-R", &user, &client], TO_ACT)?;
                return Ok(());
            }
            if Instant::now() >= deadline {
                let why =
                    format!("the engine beside the container serves nothing after {} s", TO_SERVE.as_secs());
                let program = self.engine.program();
                return Err(PlaceError::Refused(format!("{why}; see `{program} logs {}`", sidecar.id)));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(super) fn sidecar_sight(&self, instance: &Instance) -> SidecarSight {
        match self.sidecar_of(instance.id) {
            Ok(Some(sidecar)) if sidecar.runs() => SidecarSight::Running,
            Ok(Some(_)) => SidecarSight::Stopped,
            Ok(None) => SidecarSight::Gone,
            Err(error) => SidecarSight::Unknown(error.to_string()),
        }
    }

    fn sidecar_of(&self, id: InstanceId) -> Result<Option<ContainerView>, PlaceError> {
        Ok(self.part(id, Belonging::Dind)?.pop())
    }
}
