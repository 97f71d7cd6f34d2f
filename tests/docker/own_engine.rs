//! An engine of a test's own, which may be killed.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use abide_model::container::{EngineKind, Network};
use abide_testkit::{Sandbox, eventually, require_containers};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::contained::{Contained, again, is_again, run};

/// Runs `body` as the test called `name`, in a process for which the engine of a new directory is the engine.
pub fn with_own_engine(name: &str, body: impl FnOnce(&mut OwnEngine)) {
    require_containers();
    if is_again() {
        let host = std::env::var("DOCKER_HOST").unwrap();
        let dir = Path::new(host.trim_start_matches("unix://")).parent().unwrap().to_owned();
        // What a killed engine leaves comes to this process, which waits for it.
        set_child_subreaper(Some(getpid())).unwrap();
        return body(&mut OwnEngine { dir, daemon: None });
    }
    let shared = std::env::var("DOCKER_HOST").unwrap_or_default();
    let sandbox = Sandbox::new("unused");
    let host = format!("unix://{}", sandbox.path("sock").display());
    again(name, &[("DOCKER_HOST", Path::new(&host)), (SHARED, Path::new(&shared))]);
}

/// Where the engine is that tests share.
const SHARED: &str = "ABIDE_TEST_SHARED_ENGINE";

pub struct OwnEngine {
    dir: PathBuf,
    daemon: Option<Child>,
}

impl OwnEngine {
    /// Where it keeps images and containers.
    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// A file that is `/etc/resolv.conf` for the engine, if it is there.
    pub fn resolv_conf(&self) -> PathBuf {
        self.dir.join("resolv.conf")
    }

    pub fn start(&mut self, flags: &[&str]) {
        let log = File::create(self.dir.join("log")).unwrap();
        // In a network of its own: an engine that has no bridge removes that of another.
        let mut command = Command::new("unshare");
        command.arg("--net");
        if self.resolv_conf().exists() {
            let script = "ip link set lo up; mount --bind \"$0\" /etc/resolv.conf; exec dockerd \"$@\"";
            command.args(["--mount", "sh", "-c", script]).arg(self.resolv_conf());
        } else {
            command.arg("dockerd");
        }
        for (flag, name) in [("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")] {
            command.arg(flag).arg(self.dir.join(name));
        }
        command.args([
            "--bridge",
            "none",
            "--iptables=false",
            "--host",
            &std::env::var("DOCKER_HOST").unwrap(),
        ]);
        command.args(flags).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.daemon = Some(command.spawn().unwrap());
        eventually("the engine to answer", || {
            let ended = self.daemon.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "{}", fs::read_to_string(self.dir.join("log")).unwrap());
            (run(EngineKind::Docker, &["version"]).code == Some(0)).then_some(())
        });
    }

    /// Kills it and leaves what it runs.
    pub fn kill(&mut self) {
        let helper = fs::read_to_string(self.dir.join("exec/containerd/containerd.pid")).unwrap();
        let mut daemon = self.daemon.take().unwrap();
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        // It ends with the daemon. Its successor would take one that was not waited for to be alive.
        let helper = Pid::from_raw(helper.trim().parse().unwrap());
        eventually("its helper to end", || waitpid(helper, WaitOptions::NOHANG).unwrap());
    }

    /// Ends it, and with it what it runs.
    pub fn stop(&mut self) {
        let Some(mut daemon) = self.daemon.take() else { return };
        let _ = kill_process(Pid::from_child(&daemon), Signal::TERM);
        let _ = daemon.wait();
    }

    /// Has `serve` answer the datagrams that are sent to an address in the network of the engine.
    pub fn serve(&self, at: &'static str, serve: impl Fn(&UdpSocket) + Send + 'static) {
        let daemon = self.daemon.as_ref().unwrap().id();
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let network = File::open(format!("/proc/{daemon}/ns/net")).unwrap();
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            let socket = UdpSocket::bind(at).unwrap();
            ready.send(()).unwrap();
            serve(&socket);
        });
        is_ready.recv().unwrap();
    }

    /// The image of tests, from the engine that they share.
    pub fn test_image(&self) -> String {
        let name = format!("abide-test-box:{}", require_containers());
        let mut shared = Command::new("docker");
        if let Some(host) = std::env::var_os(SHARED).filter(|host| !host.is_empty()) {
            shared.env("DOCKER_HOST", host);
        } else {
            shared.env_remove("DOCKER_HOST");
        }
        let mut saved = shared.args(["save", &name]).stdout(Stdio::piped()).spawn().unwrap();
        let loaded = Command::new("docker").args(["load", "-q"]).stdin(saved.stdout.take().unwrap()).status();
        assert!(saved.wait().unwrap().success() && loaded.unwrap().success());
        run(EngineKind::Docker, &["image", "inspect", "--format", "{{.Id}}", &name]).ok().trim().to_owned()
    }

    /// An instance whose image is empty: its process 1 needs nothing.
    pub fn contained(&self) -> Contained {
        let archive = self.dir.join("empty.tar");
        let made = Command::new("tar").arg("-cf").arg(&archive).args(["-T", "/dev/null"]).status();
        assert!(made.unwrap().success());
        let id = run(EngineKind::Docker, &["import", archive.to_str().unwrap()]).ok();
        let mut it = Contained::from_image(EngineKind::Docker, id.trim());
        it.recipe().network = Network::None;
        it
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        self.stop();
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let below = mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(1))
            .filter(|at| Path::new(at).starts_with(&self.dir));
        for mount in below.collect::<Vec<_>>().into_iter().rev() {
            let _ = Command::new("umount").arg("--lazy").arg(mount).status();
        }
    }
}
