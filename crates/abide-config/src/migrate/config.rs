//! Older shapes of `config.toml`.

use toml_edit::{Array, Value};

use super::{policy_from_cleanup, unchanged};
use crate::draft::Draft;
use crate::path::Path;

/// Version 0 had one key for each agent it knew, sizes in fixed units, and the policy in a table of its own.
pub(crate) fn from_0(draft: &mut Draft) {
    draft.carry("default_agent", "agent", unchanged);
    draft.carry("default_role", "role", unchanged);
    draft.carry("journal_mb", "journal", size_from_mebibytes);
    draft.carry("exit.cleanup", "policy", policy_from_cleanup);
    draft.attempt(|draft| draft.remove_if_empty(&Path::from_iter(["exit"])));
    draft.carry("trash_days", "trash.keep_days", unchanged);
    draft.carry("claude_args", "agents.claude.args", list_from_words);
    draft.carry("codex_args", "agents.codex.args", list_from_words);
}

fn size_from_mebibytes(value: &Value) -> Option<Value> {
    match value.as_integer()? {
        0 => Some("off".into()),
        count @ 1.. => Some(format!("{count}MiB").into()),
        _ => None,
    }
}

fn list_from_words(value: &Value) -> Option<Value> {
    Some(Value::Array(value.as_str()?.split_whitespace().collect::<Array>()))
}
