//! What an installed agent offers, by its own `--help`. It is asked once, as its answer takes longer than all the rest of a
//! start.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use abide_agents::Agent;
use abide_model::vars;

use crate::conversation::agent_environment;
use crate::doctor::Machine;
use crate::start::command_order::CommandOrder;
use crate::start::launch::LaunchContext;

/// How long an agent may take to print its help.
const WITHIN: Duration = Duration::from_secs(5);

/// How long an answer holds. What is on the path may choose between versions, and stay the same file.
const HOLDS: Duration = Duration::from_secs(24 * 60 * 60);

/// What the agent that `argv` runs says to `--help`; nothing if that makes no difference or cannot be had. A wrapper is not
/// asked: what it does with `--help` is its own affair.
pub(crate) fn of(
    ctx: &LaunchContext<'_>,
    agent: &dyn Agent,
    argv: &[String],
    env: &BTreeMap<OsString, OsString>,
    cwd: &Path,
) -> String {
    let direct = argv.first().filter(|word| word.rsplit('/').next() == Some(agent.program()));
    let Some(program) = direct.filter(|_| agent.profile().asked_for_help) else { return String::new() };
    let kept = ctx.store.layout().cache().join(format!("help.{}", agent.program()));
    let asked = match &ctx.inside {
        // An image is what it is.
        Some(inside) => {
            inside.instance.recipe.container.as_ref().map(|recipe| recipe.image.id.clone() + "\n")
        }
        None => identity(program, env, cwd),
    };
    if let Some(help) = asked.as_ref().and_then(|asked| read(&kept, asked)) {
        return help;
    }
    let argv = vec![program.clone(), "--help".to_owned()];
    let order = CommandOrder { argv, env: env.clone(), cwd: cwd.to_owned() };
    match order.output(ctx, WITHIN) {
        Ok(help) => {
            let help = help.text();
            if let Some(Err(error)) = asked.map(|asked| agent_environment::put(&kept, &(asked + &help))) {
                tracing::warn!("{}: {error}", kept.display());
            }
            help
        }
        Err(error) => {
            tracing::warn!("started as it is, without what its help may offer: {error}");
            String::new()
        }
    }
}

/// Which file it is that would be run, in a line. Package managers give all versions the same time, but not the same file.
fn identity(program: &str, env: &BTreeMap<OsString, OsString>, cwd: &Path) -> Option<String> {
    let path = env.get(OsStr::new(vars::PATH)).cloned().unwrap_or_default();
    let found = match program.contains('/') {
        true => cwd.join(program),
        false => Machine { path, ..Machine::here() }.find(program)?,
    };
    let file = found.canonicalize().ok()?;
    let seen = fs::metadata(&file).ok()?;
    let (ino, size, changed) = (seen.ino(), seen.size(), (seen.ctime(), seen.ctime_nsec()));
    Some(format!("{:?} {ino} {size} {changed:?}\n", file.as_os_str()))
}

fn read(kept: &Path, asked: &str) -> Option<String> {
    let age = fs::metadata(kept).ok()?.modified().ok()?.elapsed().ok()?;
    let text = fs::read_to_string(kept).ok().filter(|_| age < HOLDS)?;
    text.strip_prefix(asked).map(str::to_owned)
}
