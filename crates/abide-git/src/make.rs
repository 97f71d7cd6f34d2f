//! Making a tree: `materialise` decides and does it, from a `source`, as a worktree or a `clone`.

pub(crate) mod carry;
pub(crate) mod clone;
pub(crate) mod halfmade;
pub(crate) mod materialise;
pub(crate) mod source;
