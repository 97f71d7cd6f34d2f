//! What the configuration says about an instance: noted at its launch, and compared with that at a resume.

use std::path::Path;

use abide_config::Role;
use abide_model::differences::{Difference, differences};
use abide_model::program::Program;
use abide_model::{Configured, Extra, Instance, Isolation};

use crate::start::launch::LaunchContext;
use crate::start::load;
use crate::trees::{self, Wish};

/// What the configuration alone, without the flags of a launch, says about an instance of `dir` that runs `program`.
pub fn configured(ctx: &LaunchContext<'_>, dir: &Path, role: &Role, program: &Program) -> Configured {
    let settings = ctx.settings;
    let workspace = ctx.workspace.as_ref().map(|(_, workspace)| workspace);
    let mounts = workspace.map_or(&[][..], |workspace| &workspace.mounts);
    let planned = trees::plan(dir, mounts, &Wish::default(), Path::new(""));
    let own = planned.iter().find(|mount| dir.starts_with(&mount.source));
    let setup = workspace.and_then(|workspace| workspace.setup.clone()).or_else(|| role.setup.clone());
    Configured {
        role: settings.role.to_string(),
        place: settings.place,
        substrate: settings.substrate,
        isolation: own.map_or(Isolation::Shared, |mount| mount.isolation),
        // What a shell or another command is run as is no matter of configuration.
        command: program.agent().map_or_else(Vec::new, |agent| {
            load::argv(&Program::Agent(agent.to_owned()), settings, &ctx.env, &[])
        }),
        setup: setup.unwrap_or_default(),
        extra: Extra::new(),
    }
}

/// What the configuration says about `instance` today that it did not say at its launch. Nothing is known of an instance
/// that an earlier version launched.
pub fn since_launch(ctx: &LaunchContext<'_>, instance: &Instance, role: &Role) -> Vec<Difference> {
    let Some(then) = &instance.recipe.configured else { return Vec::new() };
    let agent = instance.sessions.first().and_then(|session| session.agent.clone());
    let program = agent.map_or(Program::Shell, Program::Agent);
    let now = configured(ctx, &instance.scope.dir, role, &program);
    let env = load::env_of(ctx.settings, &program);
    differences((then, &instance.recipe.env), (&now, &env))
}
