//! Starting a keeper from the command line, and giving it its first session.
//!
//! The keeper is started as a daemon whose standard input is a link to the launcher. Over it travels what to start:
//! it may hold secrets, which must be in no argument and no file. The answer says that the session runs, or why not.
#![allow(unsafe_code)] // `pre_exec`: becoming a daemon happens between fork and exec.

use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use abide_model::{Pid, ProcessIdentity};
use abide_sys::poll::{self, PollFd, PollFlags};
use abide_sys::process::{Pidfd, descendants, identity};
use abide_wire::link::{Link, LinkError};
use abide_wire::os_text::OsText;
use abide_wire::session::SpawnSpec;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::args::{Config, KeeperArgs};
use crate::spawn::close_on_exec_all;

const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long a keeper that is not wanted any more may take to end.
const END_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum LaunchOrder {
    Start { spec: Box<SpawnSpec> },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum LaunchReply {
    Up { pid: Pid },
    Started { session_pid: Pid },
    AlreadyRunning,
    Failed { errno: i32, text: String },
}

/// Why a capsule was not started. Nothing runs then.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Another keeper serves the instance.
    #[error("this instance is already running; attach to it with `abide hardline`")]
    AlreadyRunning,
    /// The session could not be started, or the keeper could not serve the instance.
    #[error("{text}")]
    Failed {
        /// The system's error number, 0 where the system was not asked.
        errno: i32,
        /// What went wrong, and with what.
        text: String,
    },
    /// The keeper ended, or was silent for too long.
    #[error("the capsule's keeper {0}; its log is {1}")]
    NoAnswer(&'static str, String),
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The keeper's program could not be started.
    #[error("cannot start the capsule's keeper: {0}")]
    Io(#[from] io::Error),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launched {
    pub keeper: ProcessIdentity,
    /// The first session's process.
    pub session_pid: Pid,
}

/// A keeper that serves the instance and waits for its first session. Dropping this ends it without a trace.
#[derive(Debug)]
pub struct Launching {
    link: Link,
    keeper: ProcessIdentity,
    log: String,
    patience: Duration,
}

impl Launching {
    /// Starts the keeper alone, so that it can be moved where it will survive before anything depends on it. `argv` is its
    /// command line up to its own options, e.g. `[exe, "capsule", "keeper"]`; what it has to say goes to the file `log`.
    pub fn begin(argv: &[OsText], config: Config, log: &Path) -> Result<Self, LaunchError> {
        let link = spawn_keeper(argv, config, log)?;
        let log = log.display().to_string();
        match receive(&link, &log, ANSWER_WITHIN)? {
            LaunchReply::Up { pid } => {
                match identity(pid) {
                    Some(keeper) => Ok(Self { link, keeper, log, patience: ANSWER_WITHIN }),
                    // It is gone already; its next word, if it left one, says why.
                    None => Err(receive(&link, &log, ANSWER_WITHIN).map_or_else(|error| error, refusal)),
                }
            }
            other => Err(refusal(other)),
        }
    }

    pub fn keeper(&self) -> &ProcessIdentity {
        &self.keeper
    }

    /// The same, waiting at most `patience` for the first session.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Ends the keeper, and waits until it has ended.
    pub fn abandon(self) {
        drop(self.link);
        end(&self.keeper);
    }

    /// Starts the first session; returns when it runs. A keeper that does not answer in time is ended: what it would start
    /// later would be supervised by nothing.
    pub fn start(self, spec: SpawnSpec) -> Result<Launched, LaunchError> {
        self.link.send(&LaunchOrder::Start { spec: Box::new(spec) }, &[])?;
        match receive(&self.link, &self.log, self.patience) {
            Ok(LaunchReply::Started { session_pid }) => Ok(Launched { keeper: self.keeper, session_pid }),
            Ok(other) => Err(refusal(other)),
            Err(error) => {
                end(&self.keeper);
                Err(error)
            }
        }
    }
}

/// Ends a keeper: politely, and if it does not hear, by force, with what it has started.
fn end(keeper: &ProcessIdentity) {
    let Ok(process) = Pidfd::open(keeper) else { return };
    let asked = process.send(Signal::TERM).is_ok() && process.ends_within(END_WITHIN);
    if !asked {
        let started = descendants(keeper.pid, |_| false);
        let killed = process.send(Signal::KILL).is_ok() && process.ends_within(END_WITHIN);
        tracing::warn!(keeper = %keeper.pid, killed, "a keeper that does not answer was ended");
        for left in started.iter().filter_map(|stat| identity(stat.pid)) {
            let _ = Pidfd::open(&left).and_then(|left| left.send(Signal::KILL));
        }
    }
}

fn spawn_keeper(argv: &[OsText], config: Config, log: &Path) -> Result<Link, LaunchError> {
    let (program, arguments) = argv.split_first().ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
    if let Some(dir) = log.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let stderr = std::fs::File::options().append(true).create(true).mode(0o600).open(log)?;
    let (link, theirs) = Link::pair()?;
    let mut command = Command::new(program);
    command.args(arguments).args(KeeperArgs::Launched(config).to_argv()).current_dir("/");
    command.stdin(Stdio::from(theirs.into_fd())).stdout(Stdio::null()).stderr(stderr);
    // SAFETY: `become_daemon` makes system calls only; it neither allocates nor takes a lock.
    unsafe { command.pre_exec(become_daemon) };
    let mut between = command.spawn()?;
    between.wait()?;
    Ok(link)
}

/// Leaves the caller's session, job and open files: nothing that ends the caller may end the keeper, and no pipe of
/// the caller may stay open because of it. Forks once more, so that the caller has no child to wait for and the keeper
/// can never get a controlling terminal.
fn become_daemon() -> io::Result<()> {
    close_on_exec_all();
    rustix::process::setsid()?;
    // SAFETY: called in a forked child with one thread, and followed by system calls only.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(()),
        // SAFETY: ends this process at once, without running anything of the caller's.
        _ => unsafe { libc::_exit(0) },
    }
}

fn receive(link: &Link, log: &str, patience: Duration) -> Result<LaunchReply, LaunchError> {
    let deadline = Instant::now() + patience;
    if poll::wait(&mut [PollFd::new(link, PollFlags::IN)], Some(deadline))? == 0 {
        return Err(LaunchError::NoAnswer("does not answer", log.to_owned()));
    }
    let answer = link.recv()?.ok_or_else(|| LaunchError::NoAnswer("ended at once", log.to_owned()))?;
    Ok(answer.0)
}

fn refusal(answer: LaunchReply) -> LaunchError {
    match answer {
        LaunchReply::AlreadyRunning => LaunchError::AlreadyRunning,
        LaunchReply::Failed { errno, text } => LaunchError::Failed { errno, text },
        LaunchReply::Up { .. } | LaunchReply::Started { .. } => {
            LaunchError::Link(LinkError::Malformed("an answer out of turn".to_owned()))
        }
    }
}
