//! How a keeper begins, in each of the three ways, and how it leaves.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use abide_sys::crash;
use abide_sys::process::own_pid;
use abide_sys::signals::{self, SignalFd};
use abide_wire::exit_record::{ExitRecord, StopReason};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::link::{Link, LinkError};
use abide_wire::{socket, supervisor_lock};
use rustix::process::{DumpableBehavior, getpid};

use crate::args::Config;
use crate::ending::{Ending, EndingScope};
use crate::launch::{LaunchOrder, LaunchReply};
use crate::mux_process::Mux;
use crate::reserve::Reserve;
use crate::spawn::SpawnError;
use crate::{Keeper, KeeperSession, SIGNALS, daemons, upgrade};

/// Why a keeper could not begin.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error("another keeper serves this instance")]
    AlreadyRunning,
    #[error("the launcher went away")]
    Abandoned,
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Keeper {
    /// Serves the instance as a service, with no session yet.
    pub(super) fn start_serving(config: Config) -> Result<Self, StartError> {
        let mut keeper = Self::start(config)?;
        let patience = keeper.config.first_session_ms.map(Duration::from_millis);
        keeper.first_session_by = patience.map(|patience| Instant::now() + patience);
        keeper.save_record();
        Ok(keeper)
    }

    fn start(config: Config) -> Result<Self, StartError> {
        let instance_dir = InstanceDir::new(config.instance_dir.as_path());
        instance_dir.prepare_run()?;
        let lock = supervisor_lock::take(&instance_dir).map_err(|err| match err.kind() {
            io::ErrorKind::WouldBlock => StartError::AlreadyRunning,
            _ => StartError::Io(err),
        })?;
        if let Err(err) = instance_dir.prepare_state() {
            tracing::error!("the state of the capsule cannot be written: {err}");
        }
        let signals = become_parent()?;
        let record = ExitRecord::running(config.generation, abide_sys::process::this());
        let (listener, socket) = socket::bind(&instance_dir.run_dir())?;
        let mux = new_mux(&config);
        let reserve = Reserve::take(&instance_dir);
        Ok(Self {
            config,
            instance_dir,
            lock,
            listener: listener.into(),
            socket,
            signals,
            record,
            reserve,
            sessions: Vec::new(),
            had_sessions: false,
            first_session_by: None,
            mux,
            kills: Vec::new(),
            outside: None,
            stop: None,
            upgrade: None,
        })
    }

    /// Serves the instance and starts the first session under the eyes of a launcher, who hears what goes wrong.
    pub(super) fn start_launched(config: Config) -> Result<Self, StartError> {
        let launcher = take_stdin()?;
        let mut keeper = Self::start(config).map_err(|err| tell(&launcher, err))?;
        match keeper.start_first(&launcher) {
            Ok(()) => Ok(keeper),
            Err(err) => {
                keeper.release();
                keeper.reserve.release();
                // The launcher may try again at once after a failure, and must find the instance free.
                drop(keeper);
                Err(tell(&launcher, err))
            }
        }
    }

    fn start_first(&mut self, launcher: &Link) -> Result<(), StartError> {
        launcher.send(&LaunchReply::Up { pid: own_pid() }, &[])?;
        let (LaunchOrder::Start { spec }, _) = launcher.recv()?.ok_or(StartError::Abandoned)?;
        let pid = self.spawn(*spec, None)?;
        crash::pause("keeper.start.spawned");
        // First of all: the launcher may read the record as soon as it is notified.
        self.save_record();
        // A launcher that is gone by now wanted the session to run, and it runs.
        let _ = launcher.send(&LaunchReply::Started { session_pid: pid }, &[]);
        Ok(())
    }

    /// Takes over from the program that this process ran before.
    pub(super) fn resume(fd: i32) -> Result<Self, StartError> {
        let signals = become_parent()?;
        let mut state = upgrade::read_state(fd)?;
        state.config.use_own_image();
        let mut sessions = Vec::with_capacity(state.sessions.len());
        for saved in state.sessions {
            let master = upgrade::adopt(saved.master)?;
            let exit = saved.exit.map(|exit| (exit, Instant::now()));
            sessions.push(KeeperSession { spec: saved.spec, pid: saved.pid, master, exit });
        }
        tracing::info!(sessions = sessions.len(), version = env!("CARGO_PKG_VERSION"), "took over");
        let instance_dir = InstanceDir::new(state.config.instance_dir.as_path());
        Ok(Self {
            reserve: Reserve::take(&instance_dir),
            instance_dir,
            lock: upgrade::adopt(state.lock)?.into(),
            listener: upgrade::adopt(state.listener)?,
            socket: state.socket,
            signals,
            record: state.record,
            had_sessions: state.had_sessions,
            first_session_by: None,
            sessions,
            mux: new_mux(&state.config),
            config: state.config,
            kills: Vec::new(),
            outside: None,
            stop: None,
            upgrade: None,
        })
    }

    /// Leaves an instance directory in which nothing runs any more, and says how it came to that.
    pub(super) fn finish(mut self, reason: StopReason, note: String) -> i32 {
        if reason == StopReason::Fatal {
            self.kill_all();
        }
        self.record.stopped(reason, note);
        self.release();
        if let Err(err) = self.reserve.write_last(&self.record, &self.instance_dir) {
            tracing::error!("the exit record cannot be written: {err}");
        }
        // The next keeper must find the instance free.
        drop(self.lock);
        if let Err(err) = run_hook(&self.config) {
            tracing::error!("what should follow the end could not be started: {err}");
        }
        match getpid().is_init() {
            true => reason.exit_code(),
            false => i32::from(reason == StopReason::Fatal),
        }
    }

    /// Whatever happened, no process may be left without a parent that knows it.
    fn kill_all(&mut self) {
        let now = Instant::now();
        self.mux.abandon("the keeper ends");
        let scope = EndingScope::Everything { spared: daemons::spared(&self.instance_dir) };
        Ending::begin(scope, None, Duration::ZERO, now).advance(None, now);
    }

    fn release(&self) {
        if let Err(err) = socket::unbind(&self.instance_dir.run_dir(), self.socket) {
            tracing::warn!("the socket cannot be removed: {err}");
        }
    }
}

/// Orphans of our sessions come to us instead of to init, which is how we can end them; PID 1 has them anyway.
fn become_parent() -> io::Result<SignalFd> {
    let signals = SignalFd::block(&SIGNALS)?;
    rustix::process::set_child_subreaper(Some(getpid()))?;
    if getpid().is_init() {
        // Its exit code decides what becomes of the instance, so nothing else in the container may trace it.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(signals)
}

fn new_mux(config: &Config) -> Mux {
    Mux::new(config.mux.clone(), Duration::from_millis(config.mux_pause_ms))
}

/// The launcher's link, out of the way of our own standard input.
fn take_stdin() -> io::Result<Link> {
    let link: OwnedFd = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(Link::from_fd(link))
}

fn tell(launcher: &Link, err: StartError) -> StartError {
    let answer = match &err {
        StartError::AlreadyRunning => LaunchReply::AlreadyRunning,
        StartError::Spawn(spawn) => LaunchReply::Failed { errno: spawn.errno, text: spawn.text.clone() },
        StartError::Io(io) => {
            LaunchReply::Failed { errno: io.raw_os_error().unwrap_or(0), text: io.to_string() }
        }
        StartError::Abandoned | StartError::Link(_) => return err,
    };
    if let Err(link) = launcher.send(&answer, &[]) {
        tracing::warn!("the launcher cannot be notified: {link}");
    }
    err
}

/// Starts what the launcher wanted to follow our end; in a group of its own, because ours may be signalled as a whole.
fn run_hook(config: &Config) -> io::Result<()> {
    let Some((program, arguments)) = config.on_exit.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    signals::start_fresh(&mut command);
    command.spawn()?;
    Ok(())
}
