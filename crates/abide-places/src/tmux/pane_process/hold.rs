//! The parent of a session's process, in the terminal that both were given.

use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use abide_keeper::daemons::{self, Daemon};
use abide_keeper::{Ending, EndingScope};
use abide_model::Pid;
use abide_sys::poll::{self, PollFd, PollFlags};
use abide_sys::process::{child_pid, from_rustix};
use abide_sys::signals::{self, SignalFd};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::session::{ProcessExit, SpawnSpec};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions, WaitStatus, getpid};

/// Ends the session together with its instance, which is to come back.
pub const STOP: Signal = Signal::USR1;

/// Ends this session alone, for good.
pub const CLOSE: Signal = Signal::USR2;

/// How long a session may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// What keys and jobs do in the terminal is the session's business: parent and session share a process group, because in
/// one of its own the session could be stopped by a key, and no shell is there to continue it.
const OF_THE_TERMINAL: [i32; 5] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCause {
    /// Of its own accord.
    Itself,
    /// The instance was stopped by the operator.
    Stopped,
    /// The operator ended this session.
    Closed,
    /// Its terminal was taken away: the pane was closed, or the server is gone.
    HungUp,
    /// A signal from outside: a logout, a shutdown.
    Terminated,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// The exit of its process.
    pub exit: ProcessExit,
    pub cause: EndCause,
    /// The daemons that were ended with it.
    pub daemons: Vec<Daemon>,
}

/// A session's process, and what is needed to see it end.
#[derive(Debug)]
pub struct PaneSession {
    signals: SignalFd,
    pid: Pid,
    instance_dir: InstanceDir,
}

impl PaneSession {
    /// Starts `spec`, a session of `instance_dir`, in this process's terminal. Call it with one thread: signals are blocked for it alone.
    pub fn start(spec: &SpawnSpec, instance_dir: &InstanceDir) -> Result<Self, String> {
        let (program, arguments) = spec.argv.split_first().ok_or("no program")?;
        let cwd = spec.cwd.as_path();
        let there = std::fs::File::open(cwd).and_then(|dir| dir.metadata());
        if !there.map_err(|err| format!("working directory {}: {err}", cwd.display()))?.is_dir() {
            return Err(format!("working directory {}: not a directory", cwd.display()));
        }
        let mut command = Command::new(program);
        command.args(arguments).current_dir(cwd).env_clear();
        command.envs(spec.env.iter().map(|(name, value)| (name, value)));
        signals::start_fresh(&mut command);
        let mut begin = || -> io::Result<Self> {
            let concerning = [libc::SIGCHLD, libc::SIGTERM, libc::SIGHUP, STOP.as_raw(), CLOSE.as_raw()];
            let signals = SignalFd::block(&[&concerning[..], &OF_THE_TERMINAL].concat())?;
            // What the session leaves behind comes to us, and ends with us.
            rustix::process::set_child_subreaper(Some(getpid()))?;
            let pid = child_pid(&command.spawn()?);
            Ok(Self { signals, pid, instance_dir: instance_dir.clone() })
        };
        begin().map_err(|err| format!("cannot start {}: {err}", program.as_os_str().display()))
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits for the session to end, by itself or by a request, and for all that it started.
    pub fn wait(&self) -> io::Result<End> {
        let (mut exit, mut cause, mut ending) = (None, EndCause::Itself, None::<Ending>);
        loop {
            let until = ending.as_ref().map(Ending::deadline);
            poll::wait(&mut [PollFd::new(&self.signals, PollFlags::IN)], until)?;
            let now = Instant::now();
            if let (Some(asked), None) = (self.asked()?, &ending) {
                cause = asked;
                ending = Some(self.end_all(now));
            }
            exit = self.reap()?.or(exit);
            if exit.is_some() && ending.is_none() {
                ending = Some(self.end_all(now));
            }
            if let Some(ending) = ending.as_mut()
                && ending.advance(None, now)
            {
                // What cannot be killed cannot be waited for either.
                let exit = self.reap()?.or(exit).unwrap_or(ProcessExit::Signal(libc::SIGKILL));
                return Ok(End { exit, cause, daemons: std::mem::take(&mut ending.daemons) });
            }
        }
    }

    fn end_all(&self, now: Instant) -> Ending {
        let scope = EndingScope::Everything { spared: daemons::spared(&self.instance_dir) };
        Ending::begin(scope, None, GRACE, now)
    }

    /// Why the session has to end, if it has to. What ends a login or a machine signals the session and its parent
    /// at the same time, and the session may be faster: the judgement of an end asks again.
    pub fn asked(&self) -> io::Result<Option<EndCause>> {
        let mut asked = None;
        while let Some(signal) = self.signals.next()? {
            asked = match cause_of(signal) {
                // A server that has to end takes its terminals away, and that may be heard first.
                Some(EndCause::Terminated) => Some(EndCause::Terminated),
                cause => asked.or(cause),
            };
        }
        Ok(asked)
    }

    /// Reaps whatever ended; gives the session's exit if that was among it.
    fn reap(&self) -> io::Result<Option<ProcessExit>> {
        let mut exit = None;
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if from_rustix(pid) == self.pid => exit = exit_of(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(Errno::CHILD) => return Ok(exit),
                Err(err) => return Err(err.into()),
            }
        }
    }
}

fn cause_of(signal: i32) -> Option<EndCause> {
    match signal {
        libc::SIGTERM => Some(EndCause::Terminated),
        libc::SIGHUP => Some(EndCause::HungUp),
        signal if signal == STOP.as_raw() => Some(EndCause::Stopped),
        signal if signal == CLOSE.as_raw() => Some(EndCause::Closed),
        _ => None,
    }
}

fn exit_of(status: WaitStatus) -> Option<ProcessExit> {
    let signal = || status.terminating_signal().map(ProcessExit::Signal);
    status.exit_status().map(ProcessExit::Code).or_else(signal)
}
