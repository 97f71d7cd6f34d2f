//! The operator's terminal in front of a session: the real client of tmux.
#![allow(unsafe_code)] // `pre_exec`: a client must not stay at a terminal whose operator is gone.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use abide_client::AttachMode;
use abide_model::vars;
use abide_sys::process::{child_pid, send_signal};
use abide_sys::run::RunError;
use rustix::process::Signal;

use super::{TO_TELL, TmuxServer, failed, words};

/// A client that is attached. Dropped, it leaves; what it looked at goes on.
#[derive(Debug)]
pub struct TmuxClient(Child);

impl TmuxServer {
    /// Shows the pane called `pane` to the operator. Inside this very server the client that is there goes to it, and
    /// `None` is given; otherwise it is a client of its own, nested if need be.
    pub fn attach(&self, pane: &str, mode: AttachMode) -> Result<Option<TmuxClient>, RunError> {
        let around = std::env::var_os(vars::TMUX);
        if around.as_deref().and_then(Self::around).as_ref() == Some(self) {
            self.within(around.as_deref(), &words(["switch-client", "-t", pane]))?;
            return Ok(None);
        }
        self.check_place().map_err(failed)?;
        let mut tmux = Command::new("tmux");
        // It refuses to start inside another server, which is not for it to decide.
        tmux.env_remove(vars::TMUX).arg("-S").arg(self.socket()).args(["attach-session", "-t", pane]);
        if mode == AttachMode::ReadOnly {
            tmux.arg("-r");
        }
        TmuxClient::start(&mut tmux).map(Some).map_err(failed)
    }

    /// Asks as the client that this process is shown by.
    fn within(&self, tmux: Option<&OsStr>, command: &[std::ffi::OsString]) -> Result<(), RunError> {
        let mut asked = self.command();
        asked.envs(tmux.map(|value| (vars::TMUX, value)));
        asked.envs(std::env::var_os(vars::TMUX_PANE).map(|pane| (vars::TMUX_PANE, pane)));
        abide_sys::run::succeed(asked.args(command), TO_TELL).map(drop)
    }
}

impl TmuxClient {
    pub(super) fn start(tmux: &mut Command) -> io::Result<Self> {
        let leave_with_us = || Ok(rustix::process::set_parent_process_death_signal(Some(Signal::HUP))?);
        // SAFETY: the closure makes one system call; it neither allocates nor takes a lock.
        unsafe { tmux.pre_exec(leave_with_us) };
        tmux.spawn().map(Self)
    }

    /// Waits until the operator has left, or there is nothing more to see.
    pub fn wait(mut self) -> io::Result<ExitStatus> {
        self.0.wait()
    }
}

impl Drop for TmuxClient {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // Not killed: it has to give the terminal back as it was.
            let _ = send_signal(child_pid(&self.0), Signal::HUP);
            let _ = self.0.wait();
        }
    }
}
