//! `abide allow`

use abide_engine::running::egress::{self, RefusedHost};
use abide_engine::target;
use abide_model::{Instance, Safe};
use serde_json::json;

use crate::context::Context;
use crate::error::{CommandError, VerbResult};

const EXAMPLES: &str = "\
Examples:
  abide allow k7p9                  what it may reach, and what was refused last
  abide allow k7p9 example.org      add a host; a running instance may reach it at once
  abide allow k7p9 '*.example.org'  all hosts below example.org
  abide allow k7p9 npm github       the hosts that a registry or an agent needs
  abide allow k7p9 --json           for programs; docs/json.md describes the format";

/// Show or extend the hosts that a container with the network `allow` may reach
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// ID or name
    target: String,
    /// Names, *.NAME for all below it, addresses, or presets: the name of an agent, crates, debian, github, npm, pypi
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, context: &Context) -> VerbResult {
    let id = target::find(&context.store, &args.target)?.instance.id;
    let instance = egress::allow(&context.store, id, &args.hosts).map_err(CommandError::failed)?;
    let refused = egress::refused(&context.store, id);
    if args.json {
        return context.printer.json(&json!({
            "version": 1,
            "id": id,
            "allowed": allowed(&instance),
            "refused": refused,
        }));
    }
    context.printer.line(listed(&instance))?;
    for line in refusals(&instance, &refused) {
        context.printer.line(line)?;
    }
    Ok(())
}

fn allowed(instance: &Instance) -> &[String] {
    instance.recipe.container.as_ref().map_or(&[], |recipe| &recipe.allowed_hosts)
}

fn listed(instance: &Instance) -> String {
    match allowed(instance) {
        [] => format!("{} may reach no host", instance.id.display_name()),
        hosts => format!("{} may reach: {}", instance.id.display_name(), Safe(hosts.join(", "))),
    }
}

/// What was refused, and how to allow it.
pub fn refusals(instance: &Instance, refused: &[RefusedHost]) -> Vec<String> {
    const MOST: usize = 5;
    let is_allowed = |one: &&RefusedHost| !allowed(instance).contains(&one.host);
    let line = |one: &RefusedHost| {
        let times = if one.times == 1 { "once".to_owned() } else { format!("{} times", one.times) };
        let what =
            format!("{}:{} was refused {times}, last at {}: {}", one.host, one.port, one.last, one.why);
        format!("  {}; `abide allow {} {}`", Safe(what), instance.id, Safe(&one.host))
    };
    refused.iter().filter(is_allowed).take(MOST).map(line).collect()
}
