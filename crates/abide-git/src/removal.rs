//! Giving a tree up and taking it back: `release` takes it out of the host's repository, `restore` puts it back.

pub(crate) mod beside;
pub(crate) mod registration;
pub(crate) mod release;
pub(crate) mod restore;
