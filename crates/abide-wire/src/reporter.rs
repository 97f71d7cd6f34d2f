//! Who calls a hook.

use abide_model::Pid;
use abide_sys::process::Stat;

/// Programs between an agent and its hook.
const BETWEEN: &[&str] = &["sh", "bash", "dash", "ash", "zsh", "fish", "ksh", "busybox", "env", "timeout"];
/// The most of them.
const MAX_BETWEEN: usize = 4;

/// Whether the process `peer`, a hook, was started by the agent that the session of processes led by `leader` shows.
///
/// What an agent runs has its environment, and may be an agent too. But only the one that the operator sees has the
/// terminal: tools are started in sessions or process groups of their own.
pub fn check(peer: Option<Pid>, leader: Pid) -> Result<(), String> {
    let mut caller = look(peer.ok_or("it comes from outside")?)?;
    for _ in 0..MAX_BETWEEN {
        caller = look(caller.parent)?;
        if !BETWEEN.contains(&caller.name().as_str()) || caller.pid == leader {
            break;
        }
    }
    if caller.session != leader {
        return Err(format!("{} ({}) is not of this session", caller.name(), caller.pid));
    }
    if Some(caller.group) != caller.foreground {
        return Err(format!("{} ({}) does not have the terminal", caller.name(), caller.pid));
    }
    Ok(())
}

fn look(pid: Pid) -> Result<Stat, String> {
    Stat::read(pid).map_err(|err| format!("process {pid} cannot be seen: {err}"))
}
