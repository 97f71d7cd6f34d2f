//! Older shapes of `role.toml`.

use super::unchanged;
use crate::draft::Draft;

/// Version 0 had other names.
pub(crate) fn from_0(draft: &mut Draft) {
    draft.carry("base_image", "image", unchanged);
    draft.carry("supported_agents", "agents", unchanged);
}
