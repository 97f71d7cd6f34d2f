//! `abide load`

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use abide_capsule::session::Size;
use abide_engine::load::{self, Request};
use abide_engine::start::Surroundings;
use abide_model::{Policy, Safe, vars};

use crate::context::Context;
use crate::error::{CommandError, Outcome};

use super::hardline;

const EXAMPLES: &str = "\
Examples:
  abide load                           the default agent, in this directory
  abide load codex                     codex, in this directory
  abide load shell                     your shell
  abide load htop                      any command
  abide load claude --detach --name review -- --model opus
                                       start it without attaching; what follows `--` goes to the agent

Inside, Ctrl-B d leaves it running and Ctrl-B ? shows all keys.";

/// Start an agent in this directory, and attach to it
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// The agent, `shell`, or any command; default: the configured one, or the first found on PATH
    program: Option<String>,
    /// Do not attach
    #[arg(long, short)]
    detach: bool,
    /// What to call the instance
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Keep the instance when its last session ends, whatever the policy says
    #[arg(long, conflicts_with = "clean")]
    keep: bool,
    /// Clean up when its last session ends, whatever the policy says
    #[arg(long)]
    clean: bool,
    /// Further arguments for the agent or command
    #[arg(last = true, value_name = "ARGS")]
    args: Vec<String>,
}

pub fn run(args: Args, context: &mut Context) -> Outcome {
    if !args.detach && !hardline::has_terminal() {
        return Err(CommandError::usage("there is no terminal to attach to")
            .hint("--detach starts it without attaching"));
    }
    let dir = std::env::current_dir()?;
    let policy = match (args.keep, args.clean) {
        (true, _) => Some(Policy::Keep),
        (_, true) => Some(Policy::Clean),
        _ => None,
    };
    super::check_name(args.name.as_deref(), &context.store)?;
    let loaded = with_surroundings(&dir, context, |around| {
        let request = Request {
            program: args.program,
            args: args.args,
            name: args.name,
            policy,
            workspace: around.workspace.clone(),
            dir: dir.clone(),
            role: around.settings.role.to_string(),
        };
        load::load(around, &request)
    })?;
    let loaded = loaded.map_err(CommandError::failed)?;
    if let Some(warning) = &loaded.warning {
        context.warn(warning);
    }
    if args.detach {
        let name = loaded.program.decision.name();
        return Ok(context.printer.line(format!("{}  {}", loaded.id.display_name(), Safe(name)))?);
    }
    hardline::attach(loaded.id, None, false, context)
}

/// Gathers what a start from `dir` needs, and starts.
pub fn with_surroundings<T>(
    dir: &Path,
    context: &Context,
    start: impl FnOnce(&Surroundings<'_>) -> T,
) -> Outcome<T> {
    let scope = context.config.workspace_for(dir).map_err(CommandError::failed)?;
    let mut settings = context.config.load().map_err(CommandError::failed)?;
    let workspace = scope.workspace.map(|(name, workspace)| {
        settings = settings.clone().overridden_by(&workspace);
        name.to_string()
    });
    let env: BTreeMap<_, _> = std::env::vars_os().collect();
    Ok(start(&Surroundings {
        store: &context.open_store()?,
        settings: &settings,
        workspace,
        home: env.get(OsStr::new(vars::HOME)).map(Into::into).unwrap_or_default(),
        env,
        exe: std::env::current_exe()?,
        size: terminal_size().unwrap_or_default(),
    }))
}

fn terminal_size() -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(Size { cols: size.ws_col, rows: size.ws_row })
}
