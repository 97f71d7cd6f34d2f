//! The set-up command: run once in an instance's new directories, with its output shown as it comes.

use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::process::Child;
use std::time::{Duration, Instant};

use abide_model::{Instance, SessionId};
use abide_sys::poll::{self, PollFd, PollFlags};
use abide_sys::process::{child_pid, own_pid, send_signal_to_group};
use abide_sys::signals::{self, SignalFd, TerminalSignals};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use crate::error::EngineError;
use crate::running::processes;
use crate::start::command_order::CommandOrder;
use crate::start::launch::{self, LaunchContext};

/// How long a set-up may take.
const LIMIT: Duration = Duration::from_secs(60 * 60);
/// What a pipe holds, so that one read gives all that a command has said before its end.
const PIPE: usize = 64 << 10;

/// Runs the set-up command of `instance` where its sessions will run, in their environment. Whatever ends this process
/// ends the command, too.
pub fn run(ctx: &LaunchContext<'_>, instance: &Instance) -> Result<(), EngineError> {
    if instance.recipe.setup.is_empty() {
        return Ok(());
    }
    let (id, spelled) = (instance.id, instance.recipe.setup.join(" "));
    let failed = |problem: String| EngineError::Setup { command: spelled.clone(), problem };
    let not_run = |error: io::Error| {
        failed(format!("cannot be run: {error}; correct the setting `setup`, then `abide resume {id}`"))
    };
    let session = instance.sessions.first().map_or(SessionId(0), |session| session.id);
    let env = launch::env_of(ctx, instance, session, &instance.recipe.cwd)?;
    (ctx.progress)(&format!("set-up: {spelled}"));
    let (output, input) = io::pipe().map_err(not_run)?;
    let order = CommandOrder { argv: instance.recipe.setup.clone(), env, cwd: instance.recipe.cwd.clone() };
    let mut command = order.command(ctx).map_err(not_run)?;
    command.stdout(input.try_clone().map_err(not_run)?).stderr(input);
    // A group of its own, so that all of it can be ended. That takes it out of reach of the terminal's keys, so what they
    // send is passed on.
    command.process_group(0);
    let ending = [Signal::INT, Signal::QUIT, Signal::HUP, Signal::TERM].map(Signal::as_raw);
    let taken = TerminalSignals::of(&ending).map_err(not_run)?;
    signals::start_fresh(&mut command);
    signals::end_with_us(&mut command);
    let mut child = command.spawn().map_err(not_run)?;
    // Ours are the last copies of the pipe's end: while they are open the output has no end.
    drop(command);
    let cut = listen(&child, output, &taken.fd, ctx.progress)
        .unwrap_or_else(|error| Some(format!("cannot be watched: {error}")));
    if let Some(why) = cut {
        processes::end_set_up(own_pid(), id);
        let _ = send_signal_to_group(child_pid(&child), Signal::KILL);
        let _ = child.wait();
        return Err(failed(format!("{why}; `abide resume {id}` runs it again")));
    }
    match child.wait().map_err(not_run)? {
        status if status.success() => Ok(()),
        status => Err(failed(format!(
            "failed ({status}); its directory is kept, and `abide resume {id}` runs it again"
        ))),
    }
}

/// Tells what the command says until it has ended; or gives why it has to be ended.
fn listen(
    child: &Child,
    output: PipeReader,
    signals: &SignalFd,
    progress: &dyn Fn(&str),
) -> io::Result<Option<String>> {
    let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    rustix::io::ioctl_fionbio(&output, true)?;
    let deadline = Instant::now() + LIMIT;
    let (mut output, mut line) = (Some(output), Vec::new());
    loop {
        let mut fds = vec![PollFd::new(&ended, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        fds.extend(output.iter().map(|output| PollFd::new(output, PollFlags::IN)));
        poll::wait(&mut fds, Some(deadline))?;
        // What it leaves in the background may hold the pipe for ever, so its end is waited for, not the pipe's.
        let over = !fds[0].revents().is_empty();
        drop(fds);
        output = output.map(|output| hear(output, &mut line, progress)).transpose()?.flatten();
        let cut = match () {
            () if over => None,
            () if signals.next()?.is_some() => Some("was stopped".to_owned()),
            () if Instant::now() >= deadline => {
                Some("did not finish within an hour and was killed".to_owned())
            }
            () => continue,
        };
        if !line.is_empty() {
            progress(&String::from_utf8_lossy(&line));
        }
        return Ok(cut);
    }
}

/// Tells the lines that are there, and keeps in `line` what has no end yet. Gives the pipe back while more may come.
fn hear(
    mut output: PipeReader,
    line: &mut Vec<u8>,
    progress: &dyn Fn(&str),
) -> io::Result<Option<PipeReader>> {
    let mut piece = vec![0; PIPE];
    let read = match output.read(&mut piece) {
        Ok(0) => return Ok(None),
        Ok(read) => read,
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
        Err(error) => return Err(error),
    };
    line.extend_from_slice(&piece[..read]);
    // Output without line ends is passed on in pieces.
    if let Some(end) =
        line.iter().rposition(|byte| *byte == b'\n').or((line.len() > PIPE).then_some(line.len()))
    {
        let rest = line.split_off(end);
        line.split(|byte| *byte == b'\n').for_each(|line| progress(&String::from_utf8_lossy(line)));
        *line = rest.strip_prefix(b"\n").unwrap_or(&rest).to_vec();
    }
    Ok(Some(output))
}
