//! Starting an instance in a capsule of abide's own.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use abide_config::Settings;
use abide_keeper::{Config, Launching, OWN_IMAGE};
use abide_model::{Instance, InstanceId};
use abide_places::connect;
use abide_places::host::capsule::mux_settings;
use abide_places::host::scope::{self, ScopeOutcome};
use abide_wire::capsule_part::CapsulePart;
use abide_wire::mux_options::MuxOptions;
use abide_wire::os_text::OsText;
use abide_wire::protocol::{Connection, Spawn};

use crate::conversation::session_traces;
use crate::error::EngineError;
use crate::start::launch::{LaunchContext, LaunchReport, NotStarted, spec};

/// How long a mux that is just being started may take until it starts further sessions. A machine that boots is slow,
/// and a session that is given up here is one that the operator misses.
const TO_START: Duration = Duration::from_secs(30);

/// Starts a keeper for `instance`, and its sessions in it.
pub(super) fn launch(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    report: &mut LaunchReport,
) -> Result<ScopeOutcome, EngineError> {
    let first = instance.sessions.first().ok_or(EngineError::NoSession(instance.id))?;
    let spec = spec(ctx, instance, first, &mut report.warnings)?;
    let instance_dir = connect::instance_dir(ctx.store, instance.id);
    let config = keeper_config(ctx, instance, instance_dir.path());
    session_traces::observe(&instance_dir);
    let argv = argv_of(ctx.exe.as_os_str(), CapsulePart::Keeper);
    let begin = || Launching::begin(&argv, config.clone(), &instance_dir.keeper_log());
    let mut launching = begin()?;
    let isolation = isolate(ctx, instance.id, &launching);
    if matches!(isolation, ScopeOutcome::FellBack { .. }) {
        // systemd may carry out later what it did not answer in time, and would move this keeper alone, away from what it
        // has started by then. Another one has another number.
        launching.abandon();
        launching = begin()?;
    }
    let launched = launching.start(spec)?;
    tracing::info!(id = %instance.id, keeper = %launched.keeper.pid, session = %launched.session_pid, "started");
    start_others(ctx, instance, report);
    Ok(isolation)
}

/// Moves the keeper out of the login before anything runs in it: whatever it starts is then where it is.
fn isolate(ctx: &LaunchContext<'_>, id: InstanceId, launching: &Launching) -> ScopeOutcome {
    let keeper = launching.keeper().pid;
    scope::place(keeper, id, ctx.settings.unit, ctx.settings.linger.into())
}

/// Starts the sessions after the first. One that does not start must not take the others down; it is reported, and the
/// next resume tries it again.
fn start_others(ctx: &LaunchContext<'_>, instance: &Instance, report: &mut LaunchReport) {
    let Some((_, others)) = instance.sessions.split_first().filter(|(_, others)| !others.is_empty()) else {
        return;
    };
    let mut capsule = match Connection::connect(&connect::instance_dir(ctx.store, instance.id), TO_START) {
        Ok(capsule) => capsule,
        Err(why) => {
            let missing = others.iter().map(|session| NotStarted::new(session, &why));
            return report.not_started.extend(missing);
        }
    };
    for session in others {
        let spec = spec(ctx, instance, session, &mut report.warnings);
        let asked = spec.map_err(|e| e.to_string()).and_then(|spec| {
            let spawn = Spawn { spec: Box::new(spec), focus: false };
            capsule.call(&spawn, TO_START).map_err(|e| e.to_string())
        });
        if let Err(why) = asked {
            report.not_started.push(NotStarted::new(session, why));
        }
    }
}

pub(super) fn keeper_config(ctx: &LaunchContext<'_>, instance: &Instance, instance_dir: &Path) -> Config {
    let own = |part| argv_of(OWN_IMAGE.as_ref(), part);
    let mut config = Config::new(instance_dir.as_os_str(), instance.generation, own(CapsulePart::Mux));
    config.on_exit = own(CapsulePart::Finish);
    config.on_exit.push(instance.id.as_str().into());
    config.options = serde_json::to_value(mux_options(ctx.settings, instance)).unwrap_or_default();
    config
}

fn argv_of(program: &OsStr, part: CapsulePart) -> Vec<OsText> {
    std::iter::once(program.into()).chain(part.words().map(OsText::from)).collect()
}

fn mux_options(settings: &Settings, instance: &Instance) -> MuxOptions {
    let name = instance.name.clone().unwrap_or_else(|| instance.id.display_name());
    MuxOptions { name, ..mux_settings(settings) }
}
