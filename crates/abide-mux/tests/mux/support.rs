//! A capsule in a directory of its own, gone when the test ends.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use abide_keeper::{Config, Launched, Launching};
use abide_model::{Liveness, Pid, ProcessIdentity};
use abide_sys::process;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::mux_options::{LiveSettings, MuxOptions};
use abide_wire::os_text::OsText;
use abide_wire::protocol::{
    Call, CallError, Connection, GetStatus, Input, Send, Snapshot, SnapshotReply, StatusReply, Until, Wait,
    WaitReply,
};
use abide_wire::session::{SessionId, SpawnSpec, TerminalSize};
use rustix::process::Signal;

const DEADLINE: Duration = Duration::from_secs(20);
pub const CALL: Duration = Duration::from_secs(20);

#[macro_export]
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub const ALL: &[(&str, fn())] = &[$((stringify!($name), $name)),+];
    };
}

pub fn exe() -> OsText {
    std::env::current_exe().unwrap().into_os_string().into()
}

/// Waits for `probe` to give something.
#[track_caller]
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
        meta: serde_json::json!({ "shell": [exe(), "session", "shell"] }),
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

pub struct Capsule {
    dir: tempfile::TempDir,
    pub instance_dir: InstanceDir,
    pub config: Config,
    pub keeper: Option<ProcessIdentity>,
}

impl Capsule {
    pub fn new() -> Self {
        Self::with(MuxOptions { name: "ab-test".into(), ..MuxOptions::default() })
    }

    pub fn with_live(live: LiveSettings) -> Self {
        Self::with(MuxOptions { live, ..MuxOptions::default() })
    }

    pub fn with(options: MuxOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let instance_dir = InstanceDir::new(dir.path().join("instance_dir"));
        std::fs::create_dir_all(instance_dir.path()).unwrap();
        let mut config =
            Config::new(instance_dir.path().as_os_str(), 1, vec![exe(), "capsule".into(), "mux".into()]);
        config.mux_pause_ms = 10;
        config.grace_ms = 2000;
        config.options = serde_json::to_value(options).unwrap();
        Self { dir, instance_dir, config, keeper: None }
    }

    /// A capsule whose first session plays one of our parts.
    pub fn running(args: &[&str]) -> Self {
        let mut capsule = Self::new();
        capsule.launch(part("main", args));
        capsule
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn launch(&mut self, first: SpawnSpec) -> Launched {
        let argv = [exe(), "capsule".into(), "keeper".into()];
        let launched = Launching::begin(&argv, self.config.clone(), &self.file("log"))
            .and_then(|keeper| keeper.start(first));
        let launched = launched.unwrap_or_else(|err| panic!("{err}\n{}", self.log()));
        self.keeper = Some(launched.keeper.clone());
        launched
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.file("log")).unwrap_or_default()
    }

    /// A connection to whichever mux runs now or next.
    pub fn connect(&self) -> Connection {
        wait_for("the mux", || match Connection::connect(&self.instance_dir, CALL) {
            Ok(connection) => Some(connection),
            Err(CallError::Closed(_)) => None,
            Err(err) => panic!("{err}\n{}", self.log()),
        })
    }

    #[track_caller]
    pub fn call<C: Call>(&self, call: &C) -> C::Reply {
        self.connect().call(call, CALL).unwrap()
    }

    pub fn status(&self) -> StatusReply {
        self.call(&GetStatus {})
    }

    pub fn snapshot(&self, session: &str, scrollback: bool) -> SnapshotReply {
        self.call(&Snapshot { session: Some(id(session)), scrollback, ..Snapshot::default() })
    }

    /// Types text and Return into a session.
    pub fn send_line(&self, session: &str, text: &str) {
        let input = vec![Input::Bytes(text.as_bytes().to_vec()), Input::Key("Enter".into())];
        self.call(&Send { session: id(session), input });
    }

    pub fn wait(&self, session: &str, until: Until) -> WaitReply {
        self.call(&Wait { session: id(session), until, timeout_ms: Some(15_000) })
    }

    /// Waits until a session's screen holds `text`.
    #[track_caller]
    pub fn wait_text(&self, session: &str, text: &str) {
        let reply = self.wait(session, Until::Text { pattern: text.to_owned() });
        assert!(
            reply.line.is_some(),
            "`{text}` did not come: {:?}\n{:#?}",
            reply,
            self.snapshot(session, false).lines
        );
    }

    pub fn ended(&self) {
        let keeper = self.keeper.as_ref().unwrap();
        wait_for("the keeper's end", || (process::alive(keeper) == Liveness::Dead).then_some(()));
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
