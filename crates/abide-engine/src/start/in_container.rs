//! Starting an instance in a container: the ladder says what is reused, the place carries it out, and the sessions are asked
//! for over the capsule's socket.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use abide_model::container::{ContainerRecipe, Image};
use abide_model::ladder::{self, PlaceSight, Tier};
use abide_model::{Decided, Instance, vars};
use abide_places::place::{self, BringUp, Place, PlaceError, Stage, StageEvent, TakeDown};
use abide_places::{connect, programs};
use abide_sys::atomic::{self, Durability};
use abide_wire::capsule_part::CapsulePart;
use abide_wire::instance_dir::InstanceDir;
use abide_wire::protocol::{CallError, Connection, Spawn};

use super::in_capsule;
use crate::conversation::session_traces;
use crate::error::EngineError;
use crate::running::containers;
use crate::start::launch::{Inside, LaunchContext, LaunchReport, NotStarted, spec};
use crate::trees;

/// How long process 1 may wait for its first session, should the process that starts it die.
const FIRST_SESSION: Duration = Duration::from_secs(60);
/// How long the mux in a container that was just started may take to answer.
const TO_ANSWER: Duration = Duration::from_secs(20);
/// How long a container that ended a moment ago may take to be gone for its engine.
const TO_END: Duration = Duration::from_secs(5);
/// What a path is where the image sets none.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Has the container of `instance` run, with its sessions in it.
pub(super) fn launch(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    recipe: &ContainerRecipe,
    report: &mut LaunchReport,
) -> Result<(), EngineError> {
    let told = |event: StageEvent| (ctx.stages)(&event);
    let place = place::of(ctx.store, recipe)?;
    place::remember(ctx.store, recipe)?;
    let Decided { decision: tier, reason } = chosen(&*place, instance, recipe)?;
    let instance = &with_image(ctx, instance, recipe, &*place, tier, &told)?;
    let recipe = instance.recipe.container.as_ref().unwrap_or(recipe);
    if instance.generation > 1 {
        (ctx.progress)(&format!("{tier}, because {reason}"));
    }
    tracing::info!(id = %instance.id, "{tier} because {reason}");
    let instance_dir = connect::instance_dir(ctx.store, instance.id);
    let home = home_of(&instance_dir);
    if !home.exists() {
        place.seed_home(&recipe.image, &home)?;
    }
    let program = programs::install_current(ctx.store, &ctx.exe)?;
    session_traces::observe(&instance_dir);
    let wanted = BringUp {
        instance,
        recipe,
        dir: instance_dir.path(),
        programs: &programs::dir(ctx.store),
        argv: keeper_argv(ctx, instance, &instance_dir, &program)?,
        binds: Vec::new(),
        home: home.clone(),
    };
    let given = [place.image_env(&recipe.image)?, place.sidecar_env(recipe)].concat();
    let mut env = session_env(ctx, &given, &home);
    let up = place.bring_up(&wanted, tier, &told).map_err(EngineError::from).and_then(|()| {
        let network_env = place.network_env(instance)?;
        env.extend(network_env.into_iter().map(|(name, value)| (name.into(), value.into())));
        let inside = Inside { place: &*place, instance, operator_env: &ctx.env, operator_home: &ctx.home };
        let ctx = &ctx.inside(env, home, program, inside);
        set_up(ctx, instance)?;
        told(StageEvent::Begun(Stage::Sessions));
        start_sessions(ctx, instance, &*place, &instance_dir, report)?;
        told(StageEvent::Done(Stage::Sessions, String::new()));
        Ok(())
    });
    if up.is_err() {
        // A container that was just made has nothing in its layer that is worth keeping.
        let how = if tier < Tier::Recreate { TakeDown::Free } else { TakeDown::Remove };
        if let Err(error) = place.take_down(instance.id, how) {
            tracing::warn!(id = %instance.id, "the container of a failed start is left: {error}");
        }
    }
    up
}

/// The home of the sessions of an instance: the same path inside and outside.
pub(crate) fn home_of(instance_dir: &InstanceDir) -> PathBuf {
    instance_dir.path().join("home")
}

/// What the start begins with. A container that has just ended may still be said to run.
fn chosen(
    place: &dyn Place,
    instance: &Instance,
    recipe: &ContainerRecipe,
) -> Result<Decided<Tier>, EngineError> {
    if recipe.image.id.is_empty() {
        return Ok(Decided::new(Tier::Rebuild, "it has no image yet"));
    }
    let deadline = Instant::now() + TO_END;
    loop {
        let seen = containers::look(place, instance);
        match ladder::tier(&seen) {
            Ok(Decided { decision: Tier::Reconnect, .. }) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Ok(Decided { decision: Tier::Reconnect, .. }) => {
                let state = if seen == PlaceSight::Paused { "is paused" } else { "still runs" };
                return Err(EngineError::Other(format!(
                    "the container of {} {state}, but nothing in it holds its lock; `{} stop` it, then try again",
                    instance.id.display_name(),
                    recipe.engine
                )));
            }
            decided => return decided.map_err(|why| containers::silent(instance.id, &why)),
        }
    }
}

/// The instance with the image that its container is made from, which is built if the tier says so.
fn with_image(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    recipe: &ContainerRecipe,
    place: &dyn Place,
    tier: Tier,
    told: &dyn Fn(StageEvent),
) -> Result<Instance, EngineError> {
    if tier < Tier::Rebuild {
        return Ok(instance.clone());
    }
    let image: Image = place.prepare(recipe, told)?;
    ctx.store.update(instance.id, |now| -> Result<Instance, EngineError> {
        if let Some(container) = &mut now.recipe.container {
            container.image = image;
        }
        Ok(now.clone())
    })
}

/// Writes down what the keeper serves, and gives the command line that has it read that.
fn keeper_argv(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    instance_dir: &InstanceDir,
    program: &Path,
) -> io::Result<Vec<OsString>> {
    let mut config = in_capsule::keeper_config(ctx, instance, instance_dir.path());
    // What becomes of the instance is decided outside.
    config.on_exit = Vec::new();
    config.first_session_ms = u64::try_from(FIRST_SESSION.as_millis()).ok();
    instance_dir.prepare_run()?;
    let file = instance_dir.keeper_config();
    atomic::write_path(&file, &serde_json::to_vec(&config)?, 0o600, Durability::Synced)?;
    let [capsule, keeper] = CapsulePart::Keeper.words().map(OsString::from);
    Ok(vec![program.into(), capsule, keeper, "--config-file".into(), file.into()])
}

/// What sessions in a container inherit: what the image says, and nothing of the operator's but how dates and times are told.
fn session_env(
    ctx: &LaunchContext<'_>,
    image: &[(String, String)],
    home: &Path,
) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> =
        [("PATH", PATH), ("LANG", "C.UTF-8")].map(|(name, value)| (name.into(), value.into())).into();
    env.extend(image.iter().map(|(name, value)| (name.into(), value.into())));
    env.insert(vars::HOME.into(), home.into());
    for name in ["TZ", "USER", "LOGNAME"] {
        env.extend(ctx.env.get(OsStr::new(name)).map(|value| (name.into(), value.clone())));
    }
    env
}

/// Runs the set-up command inside, if it has not been run.
fn set_up(ctx: &LaunchContext<'_>, instance: &Instance) -> Result<(), EngineError> {
    if instance.prepared {
        return Ok(());
    }
    trees::set_up(ctx, instance)?;
    ctx.store.update(instance.id, |now| -> Result<(), EngineError> {
        now.prepared = true;
        Ok(())
    })
}

/// Starts the sessions. The first must start; another that does not is reported, and the next resume tries it again.
fn start_sessions(
    ctx: &LaunchContext<'_>,
    instance: &Instance,
    place: &dyn Place,
    instance_dir: &InstanceDir,
    report: &mut LaunchReport,
) -> Result<(), EngineError> {
    let mut capsule = connected(instance, place, instance_dir)?;
    for (index, session) in instance.sessions.iter().enumerate() {
        let spec = spec(ctx, instance, session, &mut report.warnings);
        let asked = spec.and_then(|spec| {
            let spawn = Spawn { spec: Box::new(spec), focus: index == 0 };
            capsule.call(&spawn, TO_ANSWER).map_err(|error| EngineError::Other(error.to_string()))
        });
        match asked {
            Ok(_) => {}
            Err(error) if index == 0 => return Err(error),
            Err(error) => report.not_started.push(NotStarted::new(session, error)),
        }
    }
    match instance.sessions.is_empty() {
        true => Err(EngineError::NoSession(instance.id)),
        false => Ok(()),
    }
}

/// A connection to the mux inside, as soon as it answers.
fn connected(
    instance: &Instance,
    place: &dyn Place,
    instance_dir: &InstanceDir,
) -> Result<Connection, EngineError> {
    let (deadline, mut look_at) = (Instant::now() + TO_ANSWER, Instant::now() + Duration::from_millis(300));
    loop {
        let tried = Connection::connect(instance_dir, TO_ANSWER);
        let now = Instant::now();
        match tried {
            Ok(capsule) => return Ok(capsule),
            Err(CallError::NotRunning) if now < deadline => {}
            Err(error) => return Err(EngineError::Other(format!("the container does not answer: {error}"))),
        }
        // Its engine knows first that it will never answer.
        if now >= look_at {
            if let PlaceSight::Stopped(exit) = containers::look(place, instance) {
                let why = format!(
                    "process 1 of the container ended at once with status {}",
                    exit.code.unwrap_or_default()
                );
                return Err(PlaceError::EndedAtOnce { why, output: place.last_output(instance.id) }.into());
            }
            look_at = now + Duration::from_millis(300);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
