//! Network `allow`: a network without a way out, and beside it a container with our own binary as the only way, which goes by names.

pub mod denials;
mod dns;
pub mod presets;
pub mod proxy;
mod request;
mod resolver;
pub mod rules;
mod surroundings;

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use abide_model::InstanceId;
use abide_model::container::{ContainerRecipe, EngineKind, Network};
use abide_model::name::Belonging;
use abide_sys::atomic::{self, Durability};
use abide_wire::capsule_part::CapsulePart;
use abide_wire::instance_dir::InstanceDir;

use self::proxy::{PORT, ProxyFiles};
use self::rules::Rules;
use super::engine::TO_ACT;
use super::network::NetworkView;
use super::{Docker, labels, mounts};
use crate::place::{Access, Bind, BringUp, PlaceError};

/// What the proxy is called in the network of its instance.
const ALIAS: &str = "abide-proxy";
/// How long the proxy may take from its start until it listens.
const TO_SERVE: Duration = Duration::from_secs(15);

/// Writes what the proxy of the instance at `dir` goes by; one that runs reads it for its next request.
pub fn write_rules(dir: &Path, recipe: &ContainerRecipe) -> std::io::Result<()> {
    let files = ProxyFiles::below(&InstanceDir::new(dir).egress_dir());
    fs::create_dir_all(&files.log)?;
    let rules = Rules { hosts: presets::expanded(&recipe.allowed_hosts), local: surroundings::here() };
    atomic::write_path(&files.rules, &serde_json::to_vec(&rules)?, 0o600, Durability::Synced)
}

impl Docker {
    /// Makes sure that the proxy of an instance runs, connected to `inner` and to a network with a way out.
    pub(super) fn have_proxy(&self, wanted: &BringUp<'_>, inner: &NetworkView) -> Result<(), PlaceError> {
        let refused = |error| PlaceError::Refused(format!("{}: {error}", wanted.dir.display()));
        write_rules(wanted.dir, wanted.recipe).map_err(refused)?;
        let files = ProxyFiles::below(&InstanceDir::new(wanted.dir).egress_dir());
        let outer = self.have_network_of(wanted.instance, Belonging::Outgoing, &[])?;
        for old in self.part(wanted.instance.id, Belonging::Proxy)? {
            self.remove_container(&old)?;
        }
        match fs::remove_file(files.serving()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(refused(error)),
            _ => {}
        }
        let id = self.engine.ask(self.proxy_args(wanted, &files, inner)?, TO_ACT)?.text();
        self.engine.ask(["network", "connect", &outer.name, &id], TO_ACT)?;
        self.engine.ask(["start", &id], TO_ACT)?;
        let deadline = Instant::now() + TO_SERVE;
        while !files.serving().exists() {
            if Instant::now() >= deadline {
                return Err(PlaceError::Refused("the proxy of its network does not start".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(10));
            if !files.serving().exists() {
                self.require_running(&id)?;
            }
        }
        Ok(())
    }

    /// The command line that makes the proxy. Its image is that of the instance, of which nothing runs.
    fn proxy_args(
        &self,
        wanted: &BringUp<'_>,
        files: &ProxyFiles,
        inner: &NetworkView,
    ) -> Result<Vec<OsString>, PlaceError> {
        let Some(program) = wanted.argv.first() else {
            return Err(PlaceError::Refused("there is nothing to run as the proxy".to_owned()));
        };
        let dir = InstanceDir::new(wanted.dir).egress_dir();
        let mut args: Vec<OsString> = ["create", "--name"].map(OsString::from).to_vec();
        args.push(labels::name(wanted.instance, Belonging::Proxy).into());
        args.extend(
            labels::of_instance(&self.owner, wanted.instance, Belonging::Proxy).into_iter().map(Into::into),
        );
        let mut push = |words: &[&str]| args.extend(words.iter().map(OsString::from));
        push(&[
            "--user",
            &format!("{}:{}", wanted.recipe.uid, wanted.recipe.gid),
            "--workdir",
            "/",
            "--read-only",
        ]);
        push(&["--pull", "never", "--restart", "no", "--no-healthcheck", "--stop-signal", "SIGKILL"]);
        push(&["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "1024"]);
        push(&self.engine.log_flags());
        if self.engine.maps_users() {
            push(&["--userns", "keep-id"]);
        }
        push(&["--network", &inner.name]);
        if self.engine.choice.kind == EngineKind::Docker {
            push(&["--network-alias", ALIAS]);
        }
        let bind = |path: &Path, access| Bind { source: path.into(), target: path.into(), access };
        for bind in [
            bind(wanted.programs, Access::ReadOnly),
            bind(&dir, Access::ReadOnly),
            bind(&files.log, Access::ReadWrite),
        ] {
            push(&["--mount", &mounts::flag(&bind)?]);
        }
        // The operator's own name servers are asked by the proxy: nothing else may ask any.
        for flag in wanted.recipe.run_flags.iter().filter(|flag| is_for_names(flag)) {
            push(&[flag]);
        }
        push(&["--entrypoint"]);
        args.push(program.clone());
        args.push(wanted.recipe.image.id.clone().into());
        args.extend(CapsulePart::Proxy.words().map(OsString::from));
        args.push(dir.into());
        Ok(args)
    }

    /// The variables by which programs find the proxy.
    pub(super) fn proxy_env(
        &self,
        id: InstanceId,
        recipe: &ContainerRecipe,
    ) -> Result<Vec<(String, String)>, PlaceError> {
        if recipe.network != Network::Allow {
            return Ok(Vec::new());
        }
        let host = match self.engine.choice.kind {
            // It stays the same if the proxy is started again.
            EngineKind::Docker => ALIAS.to_owned(),
            // Its networks may have no names.
            EngineKind::Podman => self.proxy_address(id)?,
        };
        let url = format!("http://{host}:{PORT}");
        let own = "localhost,127.0.0.1,::1".to_owned();
        let pairs = [("http_proxy", &url), ("https_proxy", &url), ("all_proxy", &url), ("no_proxy", &own)];
        let both = |(name, value): (&str, &String)| {
            [name.to_owned(), name.to_ascii_uppercase()].map(|name| (name, value.clone()))
        };
        Ok(pairs.into_iter().flat_map(both).collect())
    }

    fn proxy_address(&self, id: InstanceId) -> Result<String, PlaceError> {
        let inner = self.networks_of(id, Belonging::Network)?;
        let proxies = self.part(id, Belonging::Proxy)?;
        let endpoints = proxies.iter().flat_map(|proxy| proxy.network_settings.networks.iter().flatten());
        let address = endpoints
            .filter(|(name, _)| inner.iter().any(|network| network.name == **name))
            .map(|(_, endpoint)| endpoint.address.clone())
            .find(|address| !address.is_empty());
        address.ok_or_else(|| PlaceError::Refused("the proxy of its network does not run".to_owned()))
    }
}

/// Whether a flag of the engine's `run` is about name servers.
fn is_for_names(flag: &str) -> bool {
    flag.starts_with("--dns")
}

/// The flags of the operator, and those that leave a container no other way out than the proxy.
pub(super) fn run_flags(recipe: &ContainerRecipe, engine: EngineKind) -> Vec<&str> {
    let own = recipe.run_flags.iter().map(String::as_str);
    if recipe.network == Network::Open {
        return own.collect();
    }
    let mut flags: Vec<&str> = own.filter(|flag| !is_for_names(flag)).collect();
    if recipe.network == Network::Allow {
        // Some engines look names up outside for what is in a network without a way out.
        flags.extend(["--dns", "127.0.0.1"]);
        if engine == EngineKind::Podman {
            // This machine has a link-local address in every network.
            flags.extend(["--sysctl", "net.ipv6.conf.eth0.disable_ipv6=1"]);
        }
    }
    flags
}
