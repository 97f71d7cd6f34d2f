//! The container of an instance, as `abide explain` shows it: what it is made from, what it sees, how it would come back.

use abide_engine::running::{containers, egress};
use abide_model::container::{ContainerRecipe, Network};
use abide_model::ladder::{self, PlaceSight, Tier};
use abide_model::{Instance, Isolation, Safe};
use abide_store::Store;
use serde_json::{Value, json};

use crate::commands::allow;

/// What survives what, in a line each.
const SURVIVES: [&str; 3] = [
    "  a stop, a crash or a restart of the engine keeps all of it but its processes",
    "  if the container is removed: its home, trees, scrollback and conversations come back; what was written elsewhere in it is lost",
    "  if its image is removed, too: the image is built again from the same inputs, then the same holds",
];

/// What is known of the container of `instance`; nothing where it lives in none.
pub fn lines(instance: &Instance, store: &Store) -> Vec<String> {
    let (Some(recipe), Some(seen)) = (&instance.recipe.container, containers::sight(store, instance)) else {
        return Vec::new();
    };
    let mut lines = vec![format!("container  {} on {}", in_words(&seen), recipe.engine)];
    lines.push(format!("  image {} ({})", Safe(&recipe.image.tag), short(&recipe.image.id)));
    lines.push(format!("  {}, user {}:{}", limits(recipe), recipe.uid, recipe.gid));
    lines.push(match recipe.network {
        Network::Open => "  network open: it reaches what this machine reaches".to_owned(),
        Network::Allow => {
            format!("  network allow: it reaches {} only", Safe(recipe.allowed_hosts.join(", ")))
        }
        Network::None => "  no network".to_owned(),
    });
    lines.extend(allow::refusals(instance, &egress::refused(store, instance.id)));
    for mount in instance.recipe.mounts.iter().filter(|mount| mount.isolation == Isolation::Shared) {
        let access = if mount.read_only { "read-only" } else { "read and write" };
        lines.push(format!("  sees {} at {}, {access}", mount.source.display(), mount.target.display()));
    }
    lines.push(match ladder::tier(&seen) {
        Ok(decided) if decided.decision == Tier::Reconnect => "  tier 0: a resume is not needed".to_owned(),
        Ok(decided) => format!("  {} at a resume, because {}", decided.decision, decided.reason),
        Err(why) => format!("  how it would come back is not known: {}", Safe(why)),
    });
    lines.extend(SURVIVES.map(str::to_owned));
    lines
}

/// The same for programs.
pub fn as_json(instance: &Instance, store: &Store) -> Value {
    let (Some(recipe), Some(seen)) = (&instance.recipe.container, containers::sight(store, instance)) else {
        return Value::Null;
    };
    let tier = ladder::tier(&seen);
    json!({
        "engine": recipe.engine,
        "context": recipe.context,
        "image": recipe.image,
        "network": recipe.network,
        "state": in_words(&seen),
        "tier": tier.as_ref().ok().map(|decided| decided.decision.number()),
        "tier_because": tier.map_or_else(|why| why, |decided| decided.reason.into_owned()),
    })
}

fn in_words(seen: &PlaceSight) -> &'static str {
    match seen {
        PlaceSight::Running => "running",
        PlaceSight::Paused => "paused",
        PlaceSight::Stopped(_) => "stopped",
        PlaceSight::Gone { .. } => "gone",
        PlaceSight::Unknown(_) => "unknown: the engine does not answer",
    }
}

fn limits(recipe: &ContainerRecipe) -> String {
    let memory = recipe.memory.map_or_else(
        || "memory without a limit".to_owned(),
        |bytes| format!("at most {} MiB of memory", bytes >> 20),
    );
    let processes = recipe.processes.map(|count| format!(", at most {count} processes"));
    memory + &processes.unwrap_or_default()
}

fn short(id: &str) -> &str {
    let id = id.trim_start_matches("sha256:");
    id.get(..12).unwrap_or(id)
}
