//! A capsule in a directory of its own, gone when the test ends.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use abide_keeper::{Config, LaunchError, Launched, Launching};
use abide_model::{Liveness, Pid, ProcessIdentity};
use abide_sys::process;
use abide_wire::exit_record::ExitRecord;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::os_text::OsText;
use abide_wire::protocol::{CallError, Connection, GetStatus, StatusReply};
use abide_wire::session::{SessionId, SpawnSpec, TerminalSize};
use rustix::process::Signal;

const DEADLINE: Duration = Duration::from_secs(20);
pub const CALL: Duration = Duration::from_secs(20);

pub fn exe() -> OsText {
    std::env::current_exe().unwrap().into_os_string().into()
}

/// Waits for `probe` to give something.
pub fn wait_for<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The session that a test calls so: `s1` is what it says, and any other name one that no key opens.
pub fn id(name: &str) -> SessionId {
    let number = name.bytes().fold(0, |number, byte| (number * 31 + u32::from(byte)) % 65_521);
    name.parse().unwrap_or(SessionId(1000 + number))
}

pub fn spec(name: &str, argv: &[&str]) -> SpawnSpec {
    SpawnSpec {
        id: id(name),
        name: name.to_owned(),
        argv: argv.iter().map(OsText::from).collect(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap().into())],
        cwd: "/".into(),
        size: TerminalSize::default(),
        umask: None,
        meta: serde_json::Value::Null,
    }
}

/// A session that plays one of our own parts.
pub fn part(name: &str, args: &[&str]) -> SpawnSpec {
    let mut spec = spec(name, &[]);
    spec.argv = vec![exe(), "session".into()];
    spec.argv.extend(args.iter().map(OsText::from));
    spec
}

pub fn shell(name: &str, script: &str) -> SpawnSpec {
    spec(name, &["sh", "-c", script])
}

pub fn send_signal(pid: Pid, signal: Signal) {
    process::send_signal(pid, signal).unwrap();
}

pub fn is_running(pid: Pid) -> bool {
    process::identity(pid).is_some()
}

pub struct Capsule {
    dir: tempfile::TempDir,
    pub instance_dir: InstanceDir,
    pub config: Config,
    pub keeper: Option<ProcessIdentity>,
}

impl Capsule {
    pub fn new() -> Self {
        Self::below("instance_dir")
    }

    /// A capsule whose instance directory is at this path inside the test's directory.
    pub fn below(path: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let instance_dir = InstanceDir::new(dir.path().join(path));
        std::fs::create_dir_all(instance_dir.path()).unwrap();
        let mut config =
            Config::new(instance_dir.path().as_os_str(), 1, vec![exe(), "capsule".into(), "mux".into()]);
        config.mux_pause_ms = 10;
        Self { dir, instance_dir, config, keeper: None }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn try_launch(&self, first: SpawnSpec) -> Result<Launched, LaunchError> {
        let argv = [exe(), "capsule".into(), "keeper".into()];
        Launching::begin(&argv, self.config.clone(), &self.file("log")).and_then(|keeper| keeper.start(first))
    }

    pub fn launch(&mut self, first: SpawnSpec) -> Launched {
        let launched = self.try_launch(first).unwrap_or_else(|err| panic!("{err}\n{}", self.log()));
        self.keeper = Some(launched.keeper.clone());
        launched
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.file("log")).unwrap_or_default()
    }

    pub fn keeper_pid(&self) -> Pid {
        self.keeper.as_ref().unwrap().pid
    }

    /// A connection to whichever mux runs now or next.
    pub fn connect(&self) -> Connection {
        wait_for("the mux", || match Connection::connect(&self.instance_dir, CALL) {
            Ok(connection) => Some(connection),
            Err(CallError::Closed(_)) => None,
            Err(err) => panic!("{err}\n{}", self.log()),
        })
    }

    /// What the mux that runs now or next says. One that is being replaced may go away before it has answered.
    pub fn status(&self) -> StatusReply {
        wait_for("the status", || match self.connect().call(&GetStatus {}, CALL) {
            Ok(status) => Some(status),
            Err(CallError::Closed(_)) => None,
            Err(err) => panic!("{err}\n{}", self.log()),
        })
    }

    /// Waits for the keeper to end by itself, and gives what it wrote down.
    pub fn ended(&self) -> ExitRecord {
        let keeper = self.keeper.as_ref().unwrap();
        wait_for("the keeper's end", || (process::alive(keeper) == Liveness::Dead).then_some(()));
        ExitRecord::read(&self.instance_dir).unwrap().unwrap()
    }
}

impl Drop for Capsule {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- log of the capsule\n{}---", self.log());
        }
        let Some(keeper) = &self.keeper else { return };
        if process::alive(keeper) == Liveness::Alive {
            let _ = process::send_signal(keeper.pid, Signal::TERM);
            let deadline = Instant::now() + Duration::from_secs(10);
            while process::alive(keeper) == Liveness::Alive && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = process::send_signal(keeper.pid, Signal::KILL);
        }
    }
}
