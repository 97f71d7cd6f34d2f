//! What runs in a pane of tmux: it learns what to run, runs it, and writes down how that ended.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use abide_journal::snapshot;
use abide_model::{InstanceId, Pid, Session, vars};
use abide_store::Store;
use abide_sys::atomic::{self, Durability};
use abide_sys::{clock, process, signals};
use abide_wire::capsule_part::CapsulePart;
use abide_wire::exit_record::{ExitRecord, StopReason};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::os_text::OsText;
use abide_wire::protocol::Snapshot;
use abide_wire::session::{SessionId, SpawnSpec, TerminalSize};
use abide_wire::supervisor_lock::PaneLock;

use super::sessions::drawing;
use crate::connect;
use crate::tmux::pane_process::{End, EndCause, InPane, Launcher, Order, PaneSession};
use crate::tmux::{self, HOME, ID, SESSION, TmuxServer, home_mark, pane_process as pane};

/// What tmux says about the terminal that a session is in. It is true, unlike what was inherited from outside.
const OF_THE_PANE: [&str; 5] =
    [vars::TERM, vars::TMUX, vars::TMUX_PANE, "TERM_PROGRAM", "TERM_PROGRAM_VERSION"];

/// Runs session `session` of `id` in this pane, or a new one beside the others; returns when it has ended and `exe` sees
/// to what follows.
pub fn run(store: &Store, id: InstanceId, session: Option<SessionId>, exe: &Path) -> io::Result<()> {
    let instance_dir = connect::instance_dir(store, id);
    let _lock = PaneLock::new(&instance_dir)?;
    let var = |name: &str| std::env::var_os(name).ok_or_else(|| io::Error::other("this is not a tmux pane"));
    let (tmux, name) = (var(vars::TMUX)?, var(vars::TMUX_PANE)?.to_string_lossy().into_owned());
    let server = TmuxServer::around(&tmux).ok_or_else(|| io::Error::other("TMUX names no server"))?;
    let home = home_mark(store.layout().home());
    let mark = |session: &SessionId| {
        let options = [(ID, id.as_str()), (HOME, &home), (SESSION, &session.to_string())];
        server.mark(&name, &options).map_err(io::Error::other)
    };
    let (mut order, launcher) = match session {
        Some(session) => {
            mark(&session)?;
            let (order, launcher) = pane::connect(&instance_dir, session)?;
            (order, Some(launcher))
        }
        None => {
            let order = beside(store, id, &server, &home)?;
            mark(&order.spec.id)?;
            (order, None)
        }
    };
    enter_terminal(&mut order.spec);
    let pane = SessionInPane { instance_dir, server, id, home, name, order };
    if pane.hold(launcher)? {
        follow(id, exe)?;
    }
    Ok(())
}

/// One session, and the pane it is in.
struct SessionInPane {
    instance_dir: InstanceDir,
    server: TmuxServer,
    id: InstanceId,
    home: String,
    name: String,
    order: Order,
}

impl SessionInPane {
    /// Runs the session to its end and writes that down; whether it was the last of this run.
    fn hold(&self, launcher: Option<Launcher>) -> io::Result<bool> {
        let Order { generation, spec } = &self.order;
        self.show_past();
        let held = PaneSession::start(spec, &self.instance_dir);
        if let Ok(held) = &held {
            self.note_launch(held);
            let started = |record: &mut ExitRecord| record.session_started(spec, held.pid());
            ExitRecord::update(&self.instance_dir, *generation, started)?;
        }
        if let Some(launcher) = launcher {
            launcher.tell(held.as_ref().map(PaneSession::pid).map_err(Clone::clone));
        }
        let held = held.map_err(io::Error::other)?;
        let mut end = held.wait()?;
        self.save_past();
        if end.cause == EndCause::Itself {
            end.cause = held.asked()?.unwrap_or(end.cause);
        }
        self.note(end)
    }

    /// Writes down what a verb needs to know to say what the session is doing. The session runs without that, too.
    fn note_launch(&self, held: &PaneSession) {
        let Order { generation, spec } = &self.order;
        let (parent, pid) = (process::own_pid(), held.pid());
        let known = InPane { generation: *generation, parent, pid, meta: spec.meta.clone() };
        if let Err(error) = known.note(&self.instance_dir, &spec.id) {
            tracing::warn!("what it does will not be seen: {error}");
        }
    }

    /// Shows what an earlier run of the session left.
    fn show_past(&self) {
        if let Ok(past) = std::fs::read(self.instance_dir.scrollback(&self.order.spec.id)) {
            let mut terminal = io::stdout().lock();
            // A session without its past still starts.
            let _ = terminal
                .write_all(&past)
                .and_then(|()| terminal.write_all(b"\x1b[m\r\n"))
                .and_then(|()| terminal.flush());
        }
    }

    /// Keeps what the terminal shows for the next run. A pane that was taken away has nothing to show any more.
    fn save_past(&self) {
        let Ok(captured) = self.server.capture_scrollback(&self.name) else { return };
        let drawing = drawing(captured.trim_ascii_end());
        let path = self.instance_dir.scrollback(&self.order.spec.id);
        if let Err(error) = atomic::write_path(&path, &drawing, 0o600, Durability::Synced) {
            tracing::warn!("the scrollback could not be kept: {error}");
        }
    }

    /// Writes down how the session ended; whether it was the last of this run.
    fn note(&self, mut end: End) -> io::Result<bool> {
        let panes = panes_of(&self.server, self.id, &self.home).unwrap_or_default();
        // What ended because its terminal was taken away did not end by itself, even if it was faster than we.
        if end.cause == EndCause::Itself && panes.iter().all(|pane| pane.id != self.name) {
            end.cause = EndCause::HungUp;
        }
        let others: Vec<&tmux::TmuxPane> = panes.iter().filter(|pane| pane.id != self.name).collect();
        let stopped = match end.cause {
            EndCause::Itself | EndCause::Closed => false,
            EndCause::Stopped | EndCause::Terminated => true,
            // A pane that was closed beside others was done with; where all are gone, that is not known.
            EndCause::HungUp => others.is_empty(),
        };
        let Order { generation, spec } = &self.order;
        let last = ExitRecord::update(&self.instance_dir, *generation, |record| {
            record.session_ended(&spec.id, end.exit, stopped);
            record.note_ended_as_well(&end.daemons);
            let runs_on = record.sessions.iter().any(|session| session.exit.is_none());
            // What is no session, and what waits to be one, is there too.
            let ended =
                |pane: &&tmux::TmuxPane| record.sessions.iter().any(|s| s.id.to_string() == pane.session);
            if record.reason.is_some() || runs_on || !others.iter().all(ended) {
                return false;
            }
            let reason = match end.cause {
                EndCause::Stopped => StopReason::Operator,
                EndCause::HungUp | EndCause::Terminated => StopReason::Sigterm,
                _ if record.sessions.iter().any(|session| session.stopped) => StopReason::Sigterm,
                EndCause::Itself | EndCause::Closed => StopReason::LastSessionEnded,
            };
            record.stopped(reason, "the last pane ended".to_owned());
            true
        })?;
        Ok(last.unwrap_or(false))
    }
}

fn panes_of(server: &TmuxServer, id: InstanceId, home: &str) -> io::Result<Vec<tmux::TmuxPane>> {
    let panes = server.panes().map_err(io::Error::other)?;
    Ok(panes.into_iter().filter(|pane| pane.is_of(id, home)).collect())
}

/// The end of what a session showed when it last ended in a pane.
pub fn last_screen(instance_dir: &InstanceDir, session: &SessionId) -> Option<Vec<String>> {
    let past = std::fs::read(instance_dir.scrollback(session)).ok()?;
    let size = TerminalSize { cols: 200, rows: 50 };
    snapshot::drawn_by(session, size, &past, &Snapshot::default()).ok().map(|screen| screen.lines)
}

/// All that an earlier run of a session left, line by line as a pane of `size` shows it.
pub(super) fn past(
    instance_dir: &InstanceDir,
    session: &SessionId,
    size: TerminalSize,
) -> Option<Vec<String>> {
    let past = std::fs::read(instance_dir.scrollback(session)).ok()?;
    let whole = Snapshot { scrollback: true, ..Snapshot::default() };
    let mut lines = snapshot::drawn_by(session, size, &past, &whole).ok()?.lines;
    // What is blank below it is for the next run.
    lines.truncate(lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
    Some(lines)
}

/// A new shell like the sessions that run already, in the directory that tmux chose.
fn beside(store: &Store, id: InstanceId, server: &TmuxServer, home: &str) -> io::Result<Order> {
    let panes = panes_of(server, id, home)?;
    let sessions = panes.iter().filter(|pane| !pane.session.is_empty());
    let mut env = sessions.filter_map(|pane| environment(child(pane.pid)?)).next().unwrap_or_default();
    let (shell, cwd) = (crate::host::shell(&env), std::env::current_dir()?);
    let added = store.update(id, |instance| -> Result<_, abide_store::StoreError> {
        let id = instance.new_session_id();
        let argv = vec![shell.clone()];
        instance.sessions.push(Session::new(id, "shell".to_owned(), argv, cwd.clone(), clock::now()));
        Ok((id, instance.generation))
    });
    let (session, generation) = added.map_err(io::Error::other)?;
    env.insert(vars::ABIDE_SESSION.into(), session.to_string().into());
    env.insert("PWD".into(), cwd.clone().into());
    let spec = SpawnSpec {
        id: session,
        name: "shell".to_owned(),
        argv: vec![shell.into()],
        env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        cwd: cwd.as_os_str().into(),
        size: TerminalSize::default(),
        umask: None,
        meta: serde_json::Value::Null,
    };
    Ok(Order { generation, spec })
}

/// The process that the parent in a pane has started.
pub(super) fn child(parent: Pid) -> Option<Pid> {
    process::children(parent).first().copied()
}

/// What a process was started with.
fn environment(pid: Pid) -> Option<BTreeMap<OsString, OsString>> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let pairs = bytes.split(|byte| *byte == 0).filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (OsStr::from_bytes(&pair[..at]), OsStr::from_bytes(&pair[at + 1..]));
        (at > 0).then(|| (name.to_owned(), value.to_owned()))
    });
    Some(pairs.collect())
}

/// Puts the pane's own terminal in the place of whatever was known of another.
fn enter_terminal(spec: &mut SpawnSpec) {
    spec.env.retain(|(name, _)| !OF_THE_PANE.iter().any(|own| name.as_os_str() == *own));
    let own =
        OF_THE_PANE.iter().filter_map(|name| Some((OsText::from(*name), std::env::var_os(name)?.into())));
    spec.env.extend(own);
    if spec.env.iter().all(|(name, _)| name.as_os_str() != "COLORTERM") {
        // tmux brings colours down to what the terminal outside can show.
        spec.env.push(("COLORTERM".into(), "truecolor".into()));
    }
}

/// Has the finaliser decide what the end means; it outlives this pane.
fn follow(id: InstanceId, exe: &Path) -> io::Result<()> {
    let mut finish = Command::new(exe);
    finish.args(CapsulePart::Finish.words()).arg(id.as_str()).process_group(0);
    finish.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    signals::start_fresh(&mut finish);
    finish.spawn().map(drop)
}
