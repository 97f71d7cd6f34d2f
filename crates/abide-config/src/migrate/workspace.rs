//! Older shapes of a workspace's file.

use toml_edit::Value;

use super::{policy_from_cleanup, unchanged};
use crate::draft::Draft;
use crate::path::Path;

/// Version 0 had other names, and mounts as `source:target:mode` strings.
pub(crate) fn from_0(draft: &mut Draft) {
    draft.carry("workdir", "dir", unchanged);
    draft.carry("default_agent", "agent", unchanged);
    draft.carry("cleanup", "policy", policy_from_cleanup);
    mounts_from_strings(draft);
}

fn mounts_from_strings(draft: &mut Draft) {
    let path = Path::from_iter(["mounts"]);
    let Some(Value::Array(array)) = draft.value(&path) else { return };
    let Some(words) = array.iter().map(Value::as_str).collect::<Option<Vec<_>>>() else { return };
    let mounts: Vec<_> = words.into_iter().map(mount_from_string).collect();
    draft.attempt(|draft| {
        draft.remove(&path)?;
        draft.push_tables("mounts", &mounts)
    });
}

/// `source`, `source:target` or `source:target:mode`, where the mode is an isolation mode, `rw` or `ro`.
fn mount_from_string(word: &str) -> Vec<(&'static str, Value)> {
    let mut parts = word.splitn(3, ':');
    let mut mount = vec![("source", Value::from(parts.next().unwrap_or_default()))];
    mount.extend(parts.next().map(|target| ("target", Value::from(target))));
    match parts.next() {
        None | Some("rw") => {}
        Some("ro") => mount.push(("read_only", true.into())),
        Some(mode) => mount.push(("isolation", mode.into())),
    }
    mount
}
