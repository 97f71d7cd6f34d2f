//! Why configuration could not be read or changed; every text ends in what to do next.

use std::io;

use crate::mistake::{Mistake, Mistakes};
use crate::name::BadName;

/// Why configuration could not be read or changed. A change that fails has written nothing.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file, or the value given for it, is wrong.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// A word that cannot be a name.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// There is no workspace of that name.
    #[error(
        "there is no workspace {name}{meant}; see `abide workspace list`, or create it with `abide workspace create`"
    )]
    NoSuchWorkspace {
        /// Its name.
        name: String,
        /// The existing one that was probably meant, in parentheses.
        meant: String,
    },
    /// It cannot be done, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The operating system refused.
    #[error(
        "could not {action} {file}: {source}; check its owner, its permissions and the space left on its disk"
    )]
    Io {
        /// What was being done.
        action: &'static str,
        /// To what.
        file: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl From<Mistake> for ConfigError {
    fn from(mistake: Mistake) -> Self {
        Self::Mistakes(mistake.into())
    }
}
