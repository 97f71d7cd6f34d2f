//! The set-up command: run once in an instance's new directories, with its output shown as it comes.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use abide_model::{Instance, SessionId};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::Error;
use crate::start::{self, Surroundings};

/// How long a set-up may take.
const LIMIT: Duration = Duration::from_secs(60 * 60);
/// How long what it said last may take to be heard, once it has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Lines that wait to be shown; a command that prints faster than that waits.
const LINES: usize = 1000;

/// Runs the set-up command of `instance` where its sessions will run, in their environment.
pub fn run(around: &Surroundings<'_>, instance: &Instance) -> Result<(), Error> {
    let Some((program, args)) = instance.recipe.setup.split_first() else { return Ok(()) };
    let spelled = instance.recipe.setup.join(" ");
    let failed = |problem: String| Error::Setup { command: spelled.clone(), problem };
    let not_run = |error: std::io::Error| {
        failed(format!("can not be run: {error}; correct `setup`, then `abide resume`"))
    };
    let session = instance.sessions.first().map_or(SessionId(0), |session| session.id);
    let env = start::env_of(around, instance, session, &instance.recipe.cwd)?;
    (around.told)(&format!("set-up: {spelled}"));
    let (output, input) = std::io::pipe().map_err(not_run)?;
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(env).current_dir(&instance.recipe.cwd).stdin(Stdio::null());
    command.stdout(input.try_clone().map_err(not_run)?).stderr(input);
    // Of its own, so that all of it can be ended.
    let mut child = command.process_group(0).spawn().map_err(not_run)?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // Ours are the last copies of the pipe's end: while they are open the output has no end.
    drop(command);
    let (heard, news) = mpsc::sync_channel(LINES);
    let ended = heard.clone();
    std::thread::spawn(move || {
        let whole = BufReader::new(output).split(b'\n').map_while(Result::ok);
        whole.for_each(|line| _ = heard.send(News::Said(String::from_utf8_lossy(&line).into_owned())));
    });
    // What it leaves in the background may hold the pipe for ever, so its end is waited for, not the pipe's.
    std::thread::spawn(move || _ = ended.send(News::Ended(child.wait())));
    let mut deadline = Instant::now() + LIMIT;
    let mut status = None;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // What talks without end is not listened to without end.
        match (!left.is_zero()).then(|| news.recv_timeout(left).ok()).flatten() {
            Some(News::Said(line)) => (around.told)(&line),
            Some(News::Ended(how)) => {
                status = Some(how.map_err(not_run)?);
                deadline = Instant::now() + LAST_WORDS;
            }
            None => break,
        }
    }
    match status {
        Some(status) if status.success() => Ok(()),
        Some(status) => {
            Err(failed(format!("failed ({status}); its directory is kept, and `abide resume` runs it again")))
        }
        None => {
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            Err(failed("did not end within an hour and was killed; `abide resume` runs it again".to_owned()))
        }
    }
}

/// What is heard of a set-up command.
enum News {
    Said(String),
    Ended(std::io::Result<ExitStatus>),
}
