//! The set-up command: run once in an instance's new directories, with its output shown as it comes.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use abide_model::{Instance, SessionId};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::secrets::SecretError;
use crate::start::{self, Surroundings};

/// How long a set-up may take.
const LIMIT: Duration = Duration::from_secs(60 * 60);
/// Lines that wait to be shown; a command that prints faster than that waits.
const LINES: usize = 1000;

/// Why the set-up did not succeed. The instance is kept, and a resume runs it again.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// It could not be run.
    #[error("the set-up command `{command}` can not be run: {source}; correct `setup`, then `abide resume`")]
    NotRun {
        /// The command.
        command: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It failed.
    #[error(
        "the set-up command `{command}` failed ({status}); its directory is kept, and `abide resume` runs it again"
    )]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// It did not end.
    #[error("the set-up command `{command}` did not end within an hour and was killed")]
    TimedOut {
        /// The command.
        command: String,
    },
    /// Its environment could not be made.
    #[error(transparent)]
    Environment(#[from] SecretError),
}

/// Runs the set-up command of `instance` where its sessions will run, in their environment.
pub fn run(around: &Surroundings<'_>, instance: &Instance) -> Result<(), SetupError> {
    let Some((program, args)) = instance.recipe.setup.split_first() else { return Ok(()) };
    let spelled = instance.recipe.setup.join(" ");
    let not_run = |source| SetupError::NotRun { command: spelled.clone(), source };
    let session = instance.sessions.first().map_or(SessionId(0), |session| session.id);
    let env = start::env_of(around, instance, session, &instance.recipe.cwd)?;
    (around.told)(&format!("set-up: {spelled}"));
    let (output, input) = std::io::pipe().map_err(not_run)?;
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(env).current_dir(&instance.recipe.cwd).stdin(Stdio::null());
    command.stdout(input.try_clone().map_err(not_run)?).stderr(input);
    // Of its own, so that all of it can be ended.
    let mut child = command.process_group(0).spawn().map_err(not_run)?;
    // Ours are the last copies of the pipe's end: while they are open the output has no end.
    drop(command);
    let (lines, shown) = mpsc::sync_channel(LINES);
    std::thread::spawn(move || {
        let whole = BufReader::new(output).split(b'\n').map_while(Result::ok);
        whole.for_each(|line| _ = lines.send(String::from_utf8_lossy(&line).into_owned()));
    });
    let deadline = Instant::now() + LIMIT;
    loop {
        match shown.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => (around.told)(&line),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = child.wait();
                return Err(SetupError::TimedOut { command: spelled });
            }
        }
    }
    let status = child.wait().map_err(not_run)?;
    if status.success() { Ok(()) } else { Err(SetupError::Failed { command: spelled, status }) }
}
