//! The keeper: the parent of an instance's sessions, and the one process that must not fail.
//!
//! It starts sessions on terminals of their own, holds the terminals' masters and the listening socket, reaps
//! (as PID 1 of a container or as child subreaper on a host), keeps a mux running, and writes down how everything
//! ended. It never reads what a session writes: with no data passing through it there is little that can break it.
//!
//! One thread, one poll loop, two descriptors to wait for: signals, and the link to the mux. Everything it is asked to
//! do comes over that link. A mux that died is replaced by another, which gets everything that the first one knew.

mod args;
pub mod daemons;
mod ending;
mod launch;
mod mux_process;
mod reserve;
mod spawn;
mod start;
mod stop;
mod takeover;
mod upgrade;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use abide_model::{Pid, vars};
use abide_sys::poll::{self, PollFd, PollFlags};
use abide_sys::process::{from_rustix, send_signal_to_group};
use abide_sys::signals::{ArrivedSignal, SignalFd};
use abide_wire::exit_record::{ExitRecord, StopReason};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::link::{LINK_VERSION, SessionInfo, ToKeeper, ToMux};
use abide_wire::session::{ProcessExit, SessionId, SpawnSpec, TerminalSize};
use abide_wire::socket::SocketFile;
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus};

pub use args::{ArgsError, Config, KeeperArgs, OWN_IMAGE};
pub use ending::holds_others;
pub use ending::{Ending, EndingScope};
pub use launch::{LaunchError, Launched, Launching};
pub use stop::OperatorStop;
pub use upgrade::probe;

use mux_process::Mux;
use reserve::Reserve;
use spawn::SpawnError;
use stop::{OutsideSignal, Phase, Stop};
use takeover::PendingUpgrade;

/// How long a mux may take to bring its journals to disk and go.
const RETIRE_WITHIN: Duration = Duration::from_secs(2);
/// For how many of its longest pauses a mux may stay away before what ended sessions wrote last is given up.
const LONGEST_ABSENCE: u32 = 30;

/// `SIGUSR1` replaces the mux, for when it no longer answers; `SIGHUP` means nothing to a process without a terminal.
const SIGNALS: [i32; 5] = [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1];

struct Keeper {
    config: Config,
    instance_dir: InstanceDir,
    lock: File,
    listener: OwnedFd,
    socket: SocketFile,
    signals: SignalFd,
    record: ExitRecord,
    /// Room for the last record, should the disk be full by then.
    reserve: Reserve,
    /// In the order in which they were started, which is the order of their tabs.
    sessions: Vec<KeeperSession>,
    had_sessions: bool,
    /// When to give up waiting for the first session.
    first_session_by: Option<Instant>,
    mux: Mux,
    kills: Vec<Ending>,
    /// What ended the mux, if another process did.
    outside: Option<OutsideSignal>,
    stop: Option<Stop>,
    upgrade: Option<PendingUpgrade>,
}

/// A session whose terminal we hold: until its process ended *and* the mux has read what it left.
struct KeeperSession {
    /// What it was started with, also for sessions that are to be like it. Its environment is never sent to clients.
    spec: SpawnSpec,
    pid: Pid,
    master: OwnedFd,
    exit: Option<(ProcessExit, Instant)>,
}

/// Runs a keeper to its end; gives the process's exit code. Call it with one thread: signals are blocked for it alone.
pub fn run(args: KeeperArgs) -> i32 {
    spawn::close_on_exec_all();
    let started = match args {
        KeeperArgs::Serve(config) => Keeper::start_serving(config),
        KeeperArgs::Launched(config) => Keeper::start_launched(config),
        KeeperArgs::Resume(fd) => Keeper::resume(fd),
    };
    match started {
        Ok(keeper) => keeper.serve(),
        Err(err) => {
            tracing::error!("the keeper cannot start: {err}");
            1
        }
    }
}

impl Keeper {
    fn serve(mut self) -> i32 {
        let failed = loop {
            match self.step() {
                Ok(false) => {}
                Ok(true) => break None,
                Err(err) => break Some(err),
            }
        };
        let (reason, note) = match (failed, self.stop.take()) {
            (Some(err), _) => {
                tracing::error!("the keeper cannot go on: {err}");
                (StopReason::Fatal, err.to_string())
            }
            (None, Some(stop)) => (stop.reason, stop.note),
            (None, None) => (StopReason::Fatal, String::new()),
        };
        self.finish(reason, note)
    }

    /// Waits for something to happen and deals with it; true when there is nothing left to keep.
    fn step(&mut self) -> io::Result<bool> {
        self.wait()?;
        while let Some(arrived) = self.signals.next_with_value()? {
            self.on_signal(arrived);
        }
        self.reap()?;
        self.mux.flush();
        self.hear_mux();
        self.on_time(Instant::now())
    }

    fn wait(&self) -> io::Result<()> {
        let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
        if let Some(link) = self.mux.link() {
            let room = if self.mux.wants_to_write() { PollFlags::OUT } else { PollFlags::empty() };
            fds.push(PollFd::from_borrowed_fd(link.as_fd(), PollFlags::IN | room));
        }
        poll::wait(&mut fds, self.deadline()).map(drop)
    }

    fn deadline(&self) -> Option<Instant> {
        let stop = self.stop.as_ref().map(|stop| match &stop.phase {
            Phase::Ending(ending) => ending.deadline(),
            Phase::Draining { until } | Phase::Retiring { until } => *until,
        });
        let upgrade = self.upgrade.as_ref().map(|upgrade| upgrade.retired_by);
        let kills = self.kills.iter().map(Ending::deadline).min();
        let ended = self.sessions.iter().filter_map(|session| session.exit).map(|(_, at)| at).min();
        let unread = ended.zip(self.mux.absent_since()).map(|(a, b)| a.max(b) + self.longest_absence());
        let first = self.first_session_by.filter(|_| !self.had_sessions && self.stop.is_none());
        [self.mux.deadline(), kills, stop, upgrade, unread, first].into_iter().flatten().min()
    }

    fn on_signal(&mut self, arrived: ArrivedSignal) {
        match (arrived.signal, arrived.value.and_then(OperatorStop::from_value)) {
            (libc::SIGTERM, Some(stop)) => self.begin_stop(StopReason::Operator, stop.note().to_owned()),
            (signal @ (libc::SIGTERM | libc::SIGINT), _) => {
                self.begin_stop(StopReason::Sigterm, format!("signal {signal}"));
            }
            (libc::SIGUSR1, _) => self.mux.abandon("asked to by a signal"),
            _ => {}
        }
    }

    /// Reaps everything there is: sessions, muxes, and the orphans that came to us.
    fn reap(&mut self) -> io::Result<()> {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => self.on_exit(from_rustix(pid), status),
                Ok(None) | Err(Errno::CHILD) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(err) => return Err(err.into()),
            }
        }
    }

    fn on_exit(&mut self, pid: Pid, status: WaitStatus) {
        let exit = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ProcessExit::Code(code),
            (None, Some(signal)) => ProcessExit::Signal(signal),
            (None, None) => return,
        };
        if self.mux.pid() == Some(pid) {
            tracing::info!(%pid, %exit, "the mux ended");
            self.mux.was_reaped();
            // What it asked for before it died was promised to a client.
            self.hear_mux();
            self.mux.died(Instant::now());
        }
        let Some(session) = self.sessions.iter_mut().find(|s| s.pid == pid && s.exit.is_none()) else {
            return;
        };
        session.exit = Some((exit, Instant::now()));
        let id = session.spec.id;
        let stopped = self.stop.is_some() || self.outside.is_some_and(OutsideSignal::is_recent);
        self.record.session_ended(&id, exit, stopped);
        self.save_record();
        self.mux.send(ToMux::Exited { id, exit }, None);
    }

    fn hear_mux(&mut self) {
        while let Some(message) = self.mux.receive() {
            self.on_message(message);
        }
    }

    fn on_message(&mut self, message: ToKeeper) {
        match message {
            ToKeeper::Ready => self.mux.got_ready(),
            ToKeeper::Spawn { request, spec } => {
                let spawned = self.spawn(*spec, Some(request));
                self.after_spawn(request, spawned);
            }
            ToKeeper::SpawnLike { request, spec, like } => {
                let spawned = self.spawn_like(*spec, &like, request);
                self.after_spawn(request, spawned);
            }
            ToKeeper::Signal { id, signal } => {
                self.record.session_asked(&id);
                self.signal(&id, signal);
            }
            ToKeeper::Kill { id } => {
                self.record.session_asked(&id);
                self.kill(&id);
            }
            ToKeeper::Drained { id } => self.sessions.retain(|s| s.spec.id != id || s.exit.is_none()),
            ToKeeper::Shutdown { note } => self.begin_stop(StopReason::Operator, note),
            ToKeeper::Signalled { signal } => self.mux_signalled(signal),
            ToKeeper::Upgrade { exe } => self.begin_upgrade(exe),
            ToKeeper::Unknown => tracing::warn!("the mux sent a message of another version"),
        }
    }

    /// Does what is due; true when the capsule has stopped.
    fn on_time(&mut self, now: Instant) -> io::Result<bool> {
        let mux = self.mux.pid();
        self.kills.retain_mut(|kill| !kill.advance(mux, now));
        self.mux.check(now);
        if self.mux.is_due(now) {
            self.start_mux(now);
        }
        self.advance_upgrade(now);
        self.let_go(now);
        if self.had_sessions && self.sessions.is_empty() {
            self.stop_after_last_session();
        } else if !self.had_sessions && self.first_session_by.is_some_and(|by| by <= now) {
            self.begin_stop(StopReason::Fatal, "no session was started in it".to_owned());
        }
        Ok(self.advance_stop(now))
    }

    /// Gives up what ended sessions wrote last: an instance whose mux cannot run must come to its end all the same.
    fn let_go(&mut self, now: Instant) {
        let longest = self.longest_absence();
        let is_late = |since: Instant| since + longest <= now;
        if self.mux.absent_since().is_some_and(is_late) {
            self.sessions.retain(|session| session.exit.is_none_or(|(_, ended)| !is_late(ended)));
        }
    }

    fn longest_absence(&self) -> Duration {
        Duration::from_millis(self.config.mux_pause_ms) * LONGEST_ABSENCE
    }

    fn spawn(&mut self, spec: SpawnSpec, request: Option<u64>) -> Result<Pid, SpawnError> {
        if self.stop.is_some() {
            return Err(SpawnError { errno: 0, text: "the capsule is stopping".to_owned() });
        }
        if self.sessions.iter().any(|session| session.spec.id == spec.id) {
            return Err(SpawnError::new(&format!("session {}", spec.id), Errno::EXIST));
        }
        let (pid, master) = spawn::spawn(&spec)?;
        self.had_sessions = true;
        self.record.session_started(&spec, pid);
        self.sessions.push(KeeperSession { spec, pid, master, exit: None });
        self.announce(self.sessions.len() - 1, request);
        Ok(pid)
    }

    fn spawn_like(&mut self, mut spec: SpawnSpec, like: &SessionId, request: u64) -> Result<Pid, SpawnError> {
        let like = self.sessions.iter().map(|session| &session.spec).find(|spec| spec.id == *like);
        let like = like.ok_or_else(|| SpawnError::new("the session to start another beside", Errno::SRCH))?;
        spec.env.clone_from(&like.env);
        for (_, value) in spec.env.iter_mut().filter(|(name, _)| name.as_os_str() == vars::ABIDE_SESSION) {
            *value = spec.id.to_string().into();
        }
        // A shell beside an agent is no agent.
        spec.env.retain(|(name, _)| name.as_os_str() != vars::ABIDE_AGENT);
        spec.umask = like.umask;
        self.spawn(spec, Some(request))
    }

    fn after_spawn(&mut self, request: u64, spawned: Result<Pid, SpawnError>) {
        match spawned {
            Ok(_) => self.save_record(),
            Err(SpawnError { errno, text }) => {
                self.mux.send(ToMux::SpawnFailed { request, errno, text }, None)
            }
        }
    }

    fn start_mux(&mut self, now: Instant) {
        if !self.mux.start(now) {
            return;
        }
        let hello = ToMux::Hello {
            link: LINK_VERSION,
            generation: self.config.generation,
            instance_dir: self.config.instance_dir.clone(),
            options: self.config.options.clone(),
            sessions: self.sessions.len(),
        };
        self.tell_with(hello, self.listener.try_clone());
        for index in 0..self.sessions.len() {
            self.announce(index, None);
        }
        if let Some(stop) = &self.stop {
            self.mux.send(ToMux::Shutdown { note: stop.note.clone() }, None);
        }
    }

    /// Tells the mux about a session and gives it the terminal.
    fn announce(&mut self, index: usize, request: Option<u64>) {
        let Some(session) = self.sessions.get(index) else { return };
        let SpawnSpec { id, name, argv, meta, .. } = &session.spec;
        let info = SessionInfo {
            request,
            id: *id,
            name: name.clone(),
            program: argv.first().map(|program| program.as_path().display().to_string()).unwrap_or_default(),
            pid: session.pid,
            size: present_size(&session.master),
            exited: session.exit.map(|(exit, _)| exit),
            meta: meta.clone(),
        };
        let master = session.master.try_clone();
        self.tell_with(ToMux::Session(info), master);
    }

    /// A mux that lacks a descriptor is of no use; the next one may get it.
    fn tell_with(&mut self, message: ToMux, fd: io::Result<OwnedFd>) {
        match fd {
            Ok(fd) => self.mux.send(message, Some(fd)),
            Err(err) => self.mux.abandon(&format!("no descriptor for it: {err}")),
        }
    }

    fn signal(&self, id: &SessionId, signal: i32) {
        let Some(session) = self.living(id) else { return };
        let Some(signal) = Signal::from_named_raw(signal) else { return };
        if let Err(err) = send_signal_to_group(session.pid, signal) {
            tracing::warn!(session = %id, "cannot be signalled: {err}");
        }
    }

    fn kill(&mut self, id: &SessionId) {
        let Some(session) = self.living(id) else { return };
        let marks = [vars::ABIDE_INSTANCE, vars::ABIDE_SESSION];
        let own =
            session.spec.env.iter().filter(|(name, _)| marks.iter().any(|mark| name.as_os_str() == *mark));
        let mark = own.map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()).collect();
        let scope = EndingScope::Session { leader: session.pid, mark };
        self.call_off_upgrade();
        let ending = Ending::begin(scope, self.mux.pid(), self.grace(), Instant::now());
        self.record.note_ended_as_well(&ending.daemons);
        self.kills.push(ending);
    }

    fn living(&self, id: &SessionId) -> Option<&KeeperSession> {
        self.sessions.iter().find(|session| session.spec.id == *id && session.exit.is_none())
    }

    fn grace(&self) -> Duration {
        Duration::from_millis(self.config.grace_ms)
    }

    fn save_record(&self) {
        if let Err(err) = self.record.write(&self.instance_dir) {
            tracing::error!("the exit record cannot be written: {err}");
        }
    }
}

/// The size that the terminal has now, which the mux may have changed since the session was started.
fn present_size(master: &OwnedFd) -> TerminalSize {
    let size = rustix::termios::tcgetwinsize(master);
    size.map_or_else(
        |_| TerminalSize::default(),
        |size| TerminalSize { cols: size.ws_col, rows: size.ws_row },
    )
}
