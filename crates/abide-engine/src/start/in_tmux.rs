//! Starting an instance in the tmux server.

use std::ffi::OsString;
use std::io;

use abide_keeper::LaunchError;
use abide_model::{Instance, Liveness, Pid, SessionId, vars};
use abide_places::connect;
use abide_places::host::scope::{self, ScopeOutcome};
use abide_places::tmux::pane_process::{LaunchSocket, Order, WaitingPane};
use abide_places::tmux::{GENERATION, HOME, ID, NewSession, TmuxServer, Window, home_mark};
use abide_sys::process;
use abide_wire::capsule_part::CapsulePart;
use abide_wire::exit_record::ExitRecord;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::session::SpawnSpec;

use crate::error::EngineError;
use crate::start::launch::{LaunchContext, LaunchReport, NotStarted, spec};

/// Starts a tmux session for `instance` with a pane for each of its sessions.
///
/// All panes exist before the first gets its command: a pane that ends at once must not take the session with it,
/// and the server must be where it survives before anything depends on that.
pub(super) fn launch(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    report: &mut LaunchReport,
) -> Result<ScopeOutcome, EngineError> {
    let specs = specs(ctx, instance, report)?;
    let instance_dir = connect::instance_dir(ctx.store, instance.id);
    instance_dir.prepare_state().map_err(failed)?;
    let socket = LaunchSocket::open(&instance_dir).map_err(failed)?;
    let server = TmuxServer::here();
    let lock = server.lock().map_err(failed)?;
    let found = server.runs() != Liveness::Dead;
    if !found {
        server.start().map_err(failed)?;
    }
    let pid = open(ctx, instance, &server, &specs)?;
    // If anything fails from here on, panes without an answer end by themselves.
    let panes = specs.iter().map(|_| socket.admit()).collect::<io::Result<Vec<_>>>();
    let panes = panes.map_err(|error| failed(format!("the panes do not answer: {error}")))?;
    let outcome = place(ctx, pid, found, &panes);
    drop(lock);
    write_down(&instance_dir, instance, &server, pid)?;
    begin(instance, &specs, panes, report)?;
    Ok(outcome)
}

/// Puts a server that was just started where it survives, and looks where one is that was found.
fn place(ctx: &LaunchContext<'_>, server: Pid, found: bool, panes: &[WaitingPane]) -> ScopeOutcome {
    let pids: Vec<Pid> = panes.iter().map(|pane| pane.pid).collect();
    match found {
        true => scope::placement_of(server, ctx.settings.unit),
        false => scope::place_server(server, &pids, ctx.settings.unit, ctx.settings.linger.into()),
    }
}

fn write_down(
    instance_dir: &InstanceDir,
    instance: &Instance,
    server: &TmuxServer,
    pid: Pid,
) -> Result<(), EngineError> {
    let keeper = process::identity(pid).ok_or_else(|| failed("its server exited immediately"))?;
    let mut record = ExitRecord::running(instance.generation, keeper);
    record.tmux = Some(server.socket().into());
    record.begin(instance_dir).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => EngineError::Launch(LaunchError::AlreadyRunning),
        _ => failed(error),
    })
}

fn failed(why: impl ToString) -> EngineError {
    let why = why.to_string();
    EngineError::Other(format!(
        "tmux could not start the sessions: {why}; `--substrate capsule` works without tmux"
    ))
}

/// What the sessions are to run. One that cannot be had must not take the others down, unless it is the first.
fn specs(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    report: &mut LaunchReport,
) -> Result<Vec<SpawnSpec>, EngineError> {
    let mut specs = Vec::new();
    for session in &instance.sessions {
        match spec(ctx, instance, session, &mut report.warnings) {
            Ok(spec) => specs.push(spec),
            Err(error) if specs.is_empty() => return Err(error),
            Err(why) => report.not_started.push(NotStarted::new(session, why)),
        }
    }
    if specs.is_empty() { Err(EngineError::NoSession(instance.id)) } else { Ok(specs) }
}

/// Opens the panes, in which processes of ours wait; gives the server's process.
fn open(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    server: &TmuxServer,
    specs: &[SpawnSpec],
) -> Result<Pid, EngineError> {
    let (name, home) = (instance.id.display_name(), ctx.store.layout().home());
    let enter = |session: Option<SessionId>| -> Vec<OsString> {
        let mut argv = vec![ctx.exe.clone().into_os_string()];
        argv.extend(CapsulePart::Enter.words().map(OsString::from));
        argv.push(instance.id.as_str().into());
        argv.extend(session.map(|session| session.to_string().into()));
        argv
    };
    let mut env = vec![(vars::ABIDE_HOME, home.as_os_str().to_owned())];
    for name in [vars::HOME, vars::XDG_CONFIG_HOME, vars::ABIDE_LOG] {
        env.extend(ctx.env.get(&OsString::from(name)).map(|value| (name, value.clone())));
    }
    let options = [
        (ID, instance.id.to_string()),
        (GENERATION, instance.generation.to_string()),
        (HOME, home_mark(home)),
        // So that what the operator opens by a key is a session too: with the environment of its neighbours, and back
        // again after a resume.
        ("default-command", quoted(&enter(None))),
        ("destroy-unattached", "off".to_owned()),
    ];
    let session = NewSession {
        name: &name,
        options: &options,
        env: &env,
        size: (ctx.size.cols, ctx.size.rows),
        scrollback: ctx.settings.scrollback,
    };
    let mut pid = Pid::default();
    for (index, spec) in specs.iter().enumerate() {
        let argv = enter(Some(spec.id));
        let window = Window { name: &spec.name, cwd: spec.cwd.as_path(), argv: &argv };
        match index {
            0 => pid = server.new_session(&session, &window).map_err(failed)?,
            _ => server.new_window(&name, &window).map_err(failed)?,
        }
    }
    Ok(pid)
}

/// Tells the panes what to run, in the order of the sessions. Only the first has to start.
fn begin(
    instance: &Instance,
    specs: &[SpawnSpec],
    mut panes: Vec<WaitingPane>,
    report: &mut LaunchReport,
) -> Result<(), EngineError> {
    for (index, spec) in specs.iter().enumerate() {
        let Some(place) = panes.iter().position(|pane| pane.session == spec.id) else {
            return Err(failed(format!("no pane for {} was opened", spec.id)));
        };
        let order = Order { generation: instance.generation, spec: spec.clone() };
        match panes.swap_remove(place).start(&order) {
            Ok(pid) => tracing::info!(id = %instance.id, session = %spec.id, %pid, "started in tmux"),
            Err(why) if index == 0 => {
                return Err(LaunchError::Failed { errno: 0, text: why.to_string() }.into());
            }
            Err(why) => {
                let (name, why) = (spec.name.clone(), why.to_string());
                report.not_started.push(NotStarted { session: spec.id, name, why });
            }
        }
    }
    Ok(())
}

/// A command as a shell reads it: what tmux runs in a new window is the one thing that it does not take in words.
fn quoted(argv: &[OsString]) -> String {
    let quote = |word: &OsString| format!("'{}'", word.to_string_lossy().replace('\'', r"'\''"));
    format!("exec {}", argv.iter().map(quote).collect::<Vec<_>>().join(" "))
}
