//! Sessions in a tmux server: a tmux session for each instance, a pane for each session.

mod waiting;
mod watching;

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use abide_client::{AttachEnd, AttachOptions, OnShown};
use abide_config::Settings;
use abide_journal::snapshot;
use abide_keeper::OperatorStop;
use abide_model::liveness::SupervisorLock;
use abide_model::{InstanceId, Liveness, Pid};
use abide_store::Store;
use abide_sys::clock::eventually;
use abide_sys::process;
use abide_term::input::keys;
use abide_wire::exit_record::{ExitRecord, StopReason};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::{
    EvidenceReply, Input, RequestRefusal, SessionStatus, Snapshot, SnapshotCursor, SnapshotReply,
    StatusReply, Until, WaitReply, error_code,
};
use abide_wire::session::{ProcessExit, SessionId, TerminalSize};
use abide_wire::supervisor_lock::{PaneLock, supervisor_lock};
use rustix::process::Signal;

use crate::substrate::{NoAnswer, Substrate, Survey};
use crate::tmux::pane_process::{CLOSE, STOP};
use crate::tmux::{TmuxPane, TmuxServer, home_mark};

/// How long the sessions may take to end: their grace, and the saving of what they showed.
const TO_STOP: Duration = Duration::from_secs(12);

/// How long a server may take to make its socket anew.
const TO_RETURN: Duration = Duration::from_millis(500);

/// A run of an instance in a tmux server.
pub(crate) struct Tmux {
    home: String,
    server: TmuxServer,
    survey: Survey,
    instance_dir: InstanceDir,
    id: InstanceId,
    record: ExitRecord,
}

impl Tmux {
    /// The run that `record` is about, if tmux holds it.
    pub fn new(instance_dir: &InstanceDir, record: ExitRecord, survey: &Survey) -> Option<Self> {
        let server = TmuxServer::at(record.tmux.as_ref()?.as_path());
        let id = instance_dir.path().file_name()?.to_str()?.parse().ok()?;
        let home = home_mark(instance_dir.path().parent()?.parent()?);
        Some(Self { home, server, survey: survey.clone(), instance_dir: instance_dir.clone(), id, record })
    }

    /// The panes of this instance as they are now.
    fn panes(&self) -> Result<Vec<TmuxPane>, NoAnswer> {
        self.find_socket();
        let panes = self.server.panes().map_err(|error| self.trouble(error))?;
        Ok(panes.into_iter().filter(|pane| self.owns(pane)).collect())
    }

    /// The same, as they were when any of this server's were last asked for.
    fn surveyed(&self) -> Result<Vec<TmuxPane>, NoAnswer> {
        self.find_socket();
        match &*self.survey.panes(&self.server) {
            Ok(panes) => Ok(panes.iter().filter(|pane| self.owns(pane)).cloned().collect()),
            Err(why) => Err(self.trouble(why)),
        }
    }

    fn owns(&self, pane: &TmuxPane) -> bool {
        pane.is_of(self.id, &self.home)
    }

    /// A server whose socket was removed, as cleaners of `/tmp` do, lives on and makes it anew when asked to.
    fn find_socket(&self) {
        if self.server.runs() != Liveness::Dead || process::alive(&self.record.keeper) != Liveness::Alive {
            return;
        }
        tracing::warn!(socket = %self.server.socket().display(), "the socket of the tmux server is gone");
        signal(self.record.keeper.pid, Signal::USR1);
        eventually(TO_RETURN, || self.server.runs() != Liveness::Dead);
    }

    fn pane(&self, session: &SessionId) -> Result<TmuxPane, NoAnswer> {
        let found = self.panes()?.into_iter().find(|pane| pane.session == session.to_string());
        found.ok_or_else(|| {
            let text = format!("{} has no session {session} that runs", self.id.display_name());
            RequestRefusal::new(error_code::NO_SUCH_SESSION, text).into()
        })
    }

    fn trouble(&self, why: impl ToString) -> NoAnswer {
        NoAnswer::Tmux { why: why.to_string(), socket: self.server.socket().to_owned() }
    }

    fn described(&self, pane: &TmuxPane) -> Option<SessionStatus> {
        let id: SessionId = pane.session.parse().ok()?;
        let recorded = self.record.sessions.iter().find(|session| session.id == id);
        let program = recorded.and_then(|session| session.argv.first());
        Some(SessionStatus {
            name: recorded.map_or_else(String::new, |session| session.name.clone()),
            program: program.map_or_else(String::new, |word| word.as_path().display().to_string()),
            id,
            pid: crate::tmux::enter::child(pane.pid).unwrap_or(pane.pid),
            size: size(pane),
            title: abide_model::sanitised(&pane.title).to_string(),
            exit: None,
            activity: self.look(pane).map(|seen| seen.activity),
            quiet_ms: waiting::quiet_ms(pane),
            journaled: false,
            meta: serde_json::Value::Null,
        })
    }

    /// Writes down that the operator stopped it, unless the last session that ended has said so.
    fn note_stop(&self, reason: &str) {
        let noted = ExitRecord::update(&self.instance_dir, self.record.generation, |record| {
            if record.reason.is_none() {
                record.stopped(StopReason::Operator, reason.to_owned());
            }
        });
        if let Err(error) = noted {
            tracing::warn!(id = %self.id, "the stop could not be written down: {error}");
        }
    }

    /// How a session ended, if it has.
    fn exit(&self, session: &SessionId) -> Option<ProcessExit> {
        let record = ExitRecord::read(&self.instance_dir).ok().flatten()?;
        record.sessions.into_iter().find(|recorded| recorded.id == *session)?.exit
    }
}

impl Substrate for Tmux {
    fn lock(&self) -> SupervisorLock {
        let lock = supervisor_lock(&self.instance_dir);
        // There may be more in its session than what we put there. Where its server cannot be seen, there is nothing of
        // ours left that would have to be.
        if lock != SupervisorLock::Free || process::alive(&self.record.keeper) == Liveness::Dead {
            return lock;
        }
        self.find_socket();
        // A server that lives and cannot be asked has not said that the session is gone.
        match (self.server.runs() == Liveness::Alive).then(|| self.surveyed()) {
            Some(Ok(panes)) if panes.is_empty() => SupervisorLock::Free,
            Some(Ok(_)) => SupervisorLock::Held,
            Some(Err(_)) | None => SupervisorLock::Unreadable,
        }
    }

    fn holders(&self) -> Vec<Pid> {
        let panes = self.panes().unwrap_or_default();
        panes.iter().filter(|pane| !pane.session.is_empty()).map(|pane| pane.pid).collect()
    }

    fn status(&self) -> Result<StatusReply, NoAnswer> {
        let panes = self.surveyed()?;
        let first = panes.first().ok_or(NoAnswer::Gone(self.id))?;
        Ok(StatusReply {
            generation: self.record.generation,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            keeper_pid: first.server,
            mux_pid: first.server,
            attached: first.attached,
            focused: None,
            awake: None,
            sessions: panes.iter().filter_map(|pane| self.described(pane)).collect(),
        })
    }

    fn stop(&self, reason: OperatorStop) -> bool {
        let deadline = Instant::now() + TO_STOP;
        let panes = match self.panes() {
            Ok(panes) => panes,
            Err(trouble) => {
                tracing::warn!(id = %self.id, "nothing was stopped: {trouble}");
                return false;
            }
        };
        for pane in panes.iter().filter(|pane| !pane.session.is_empty()) {
            signal(pane.pid, STOP);
        }
        while PaneLock::any(&self.instance_dir).unwrap_or(true) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        // What was opened beside the sessions, or did not hear.
        for pane in self.panes().unwrap_or_default() {
            if let Err(error) = self.server.kill_pane(&pane.id) {
                tracing::warn!(id = %self.id, "ending what is left in tmux: {error}");
            }
        }
        let over = !PaneLock::any(&self.instance_dir).unwrap_or(true)
            && self.panes().is_ok_and(|panes| panes.is_empty());
        if over {
            self.note_stop(reason.note());
        }
        over
    }

    fn end(&self, session: &SessionId) -> Result<(), NoAnswer> {
        signal(self.pane(session)?.pid, CLOSE);
        Ok(())
    }

    fn send(&self, session: &SessionId, input: Vec<Input>) -> Result<(), NoAnswer> {
        let pane = self.pane(session)?;
        for piece in input {
            let sent = match piece {
                Input::Text(text) => {
                    let file = Pasted::write(&self.instance_dir, &text)?;
                    self.server.paste(&pane.id, &file.0)
                }
                Input::Bytes(bytes) => self.server.send(&pane.id, &bytes),
                Input::Key(name) => {
                    let unknown = || {
                        let text = format!("`{}` is not the name of a key", name.escape_default());
                        RequestRefusal::new(error_code::BAD_REQUEST, text)
                    };
                    let bytes = keys::key_bytes(&name, pane.app_cursor_keys).ok_or_else(unknown)?;
                    self.server.send(&pane.id, &bytes)
                }
            };
            sent.map_err(|error| self.trouble(error))?;
        }
        Ok(())
    }

    fn screen(&self, session: &SessionId, ask: &Snapshot) -> Result<SnapshotReply, NoAnswer> {
        let pane = self.pane(session)?;
        let captured = match ask.scrollback {
            true => self.server.capture_scrollback(&pane.id),
            false => self.server.capture(&pane.id),
        };
        let captured = captured.map_err(|error| self.trouble(error))?;
        let drawing = drawing(&captured);
        let mut reply = snapshot::drawn_by(session, size(&pane), &drawing, ask)?;
        reply.cursor =
            SnapshotCursor { col: pane.cursor.0, row: pane.cursor.1, visible: pane.cursor_visible };
        reply.alternate = pane.alternate;
        reply.title = abide_model::sanitised(&pane.title).to_string();
        Ok(reply)
    }

    fn evidence(&self, session: &SessionId) -> Result<EvidenceReply, NoAnswer> {
        let pane = self.pane(session)?;
        Ok(self.look(&pane).unwrap_or_else(|| self.unknown(&pane)))
    }

    fn wait(
        &self,
        session: &SessionId,
        until: Until,
        timeout_ms: Option<u64>,
    ) -> Result<WaitReply, NoAnswer> {
        waiting::wait(self, session, &until, timeout_ms)
    }

    fn attach(&self, options: &AttachOptions, on_shown: OnShown<'_>) -> Result<AttachEnd, NoAnswer> {
        let target = match &options.session {
            Some(session) => self.pane(session)?.id,
            None => self.panes()?.first().ok_or(NoAnswer::Gone(self.id))?.tmux_session.clone(),
        };
        let client = self.server.attach(&target, options.mode)?;
        on_shown(options.session);
        let Some(client) = client else {
            return Ok(AttachEnd::Detached("shown in the attached tmux client".to_owned()));
        };
        // Held open: an instance that ends may be in the trash before we can ask how it ended.
        let dir = std::fs::File::open(self.instance_dir.path())?;
        let left = client.wait()?;
        match self.panes()?.is_empty() {
            false if left.success() => Ok(AttachEnd::Detached("detached".to_owned())),
            false => Ok(AttachEnd::Lost(format!("tmux could not show it ({left})"))),
            true => {
                let instance_dir = InstanceDir::new(format!("/proc/self/fd/{}", dir.as_raw_fd()));
                let record = ExitRecord::read(&instance_dir).ok().flatten();
                let last = record.and_then(|record| {
                    record
                        .sessions
                        .into_iter()
                        .max_by_key(|session| session.ended_ms)
                        .and_then(|last| last.exit)
                });
                let message = last.map_or_else(|| "ended".to_owned(), |exit| exit.to_string());
                Ok(AttachEnd::SessionEnded { exit: last, message })
            }
        }
    }

    fn configure(&self, _: &Settings) -> Result<bool, NoAnswer> {
        Ok(false)
    }

    fn upgrade(&self, _: PathBuf) -> Result<bool, NoAnswer> {
        Ok(false)
    }
}

/// What draws a screen on a terminal, from the lines that tmux captured.
pub(super) fn drawing(captured: &[u8]) -> Vec<u8> {
    let lines = captured.strip_suffix(b"\n").unwrap_or(captured).split(|byte| *byte == b'\n');
    lines.collect::<Vec<_>>().join(&b"\r\n"[..])
}

fn size(pane: &TmuxPane) -> TerminalSize {
    TerminalSize { cols: pane.size.0, rows: pane.size.1 }
}

/// The process may be gone by now, which is as well.
fn signal(pid: Pid, signal: Signal) {
    let _ = process::send_signal(pid, signal);
}

/// Text on its way into a pane: a command line has a limit, and a file has none.
struct Pasted(PathBuf);

impl Pasted {
    fn write(instance_dir: &InstanceDir, text: &str) -> std::io::Result<Self> {
        let path = instance_dir.run_dir().join(format!("paste-{}", std::process::id()));
        let mut options = std::fs::File::options();
        options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?
            .write_all(text.as_bytes())?;
        Ok(Self(path))
    }
}

impl Drop for Pasted {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Ends the panes of instances of `store` whose instance directory is gone. Whatever cannot be read ends nothing.
pub fn sweep(store: &Store, survey: &Survey) {
    let server = TmuxServer::here();
    // A home that is not mounted would have no instance directories either.
    if server.runs() != Liveness::Alive || !store.layout().instances().is_dir() {
        return;
    }
    let Ok(panes) = &*survey.panes(&server) else { return };
    if panes.is_empty() {
        // Its starter died before there was anything in it, or is about to put something there and finds it gone.
        let _ = server.release();
    }
    let home = home_mark(store.layout().home());
    for pane in panes.iter().filter(|pane| pane.home == home) {
        let Ok(id) = pane.instance.parse::<InstanceId>() else { continue };
        // An instance directory is there before its panes are, so one that is missing now will not come.
        let instance_dir = store.layout().instance_dir(id).symlink_metadata();
        if instance_dir.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            tracing::warn!(%id, "ending a pane of tmux whose instance is gone");
            if let Err(error) = server.kill_pane(&pane.id) {
                tracing::warn!(%id, "sweep: {error}");
            }
        }
    }
}
