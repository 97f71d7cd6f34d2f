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
    /// The file was written by a newer abide, whose meaning this one can not know.
    #[error("{file}:{line}: written for schema version {found}, this abide knows {known}: upgrade abide")]
    TooNew {
        /// The file.
        file: String,
        /// The line that says so.
        line: usize,
        /// The version of the file.
        found: i64,
        /// The newest version that this abide knows.
        known: i64,
    },
    /// Something other than a file stands in its place.
    #[error("{file}: is {what}, not a file; move it away, or put a file in its place")]
    NotAFile {
        /// The path.
        file: String,
        /// What stands there.
        what: &'static str,
    },
    /// A link whose target is gone. It counts as an error: going on with defaults would ignore what the operator set.
    #[error("{file}: is a link to something that does not exist; restore its target, or remove the link")]
    DanglingLink {
        /// The link.
        file: String,
    },
    /// The file is larger than any configuration.
    #[error("{file}: is larger than {limit} bytes, the most that is read; make it smaller, or move it away")]
    TooLarge {
        /// The file.
        file: String,
        /// The largest size that is read.
        limit: u64,
    },
    /// A word that can not be a name.
    #[error(transparent)]
    BadName(#[from] BadName),
    /// There is no workspace of that name.
    #[error(
        "there is no workspace {name}{}; see `abide workspace list`, or make it with `abide workspace create`",
        did_you_mean(nearest)
    )]
    NoSuchWorkspace {
        /// Its name.
        name: String,
        /// The existing one that was probably meant.
        nearest: Option<String>,
    },
    /// There is no role of that name.
    #[error(
        "there is no role {name}{}; put its file at {file}, or use the role default",
        did_you_mean(nearest)
    )]
    NoSuchRole {
        /// Its name.
        name: String,
        /// The existing one that was probably meant.
        nearest: Option<String>,
        /// Where its file would be.
        file: String,
    },
    /// The workspace is there already.
    #[error(
        "workspace {name} exists already; change it with `abide workspace edit {name}`, or choose another name"
    )]
    Exists {
        /// Its name.
        name: String,
    },
    /// The workspace has no such mount.
    #[error("workspace {name} has no mount at {target}; it has: {known}")]
    NoSuchMount {
        /// The workspace.
        name: String,
        /// The target that was looked for.
        target: String,
        /// The targets that are there.
        known: String,
    },
    /// More than one workspace claims a directory.
    #[error("{dir} is the directory of several workspaces: {}; name the one you mean", names.join(", "))]
    Ambiguous {
        /// The directory.
        dir: String,
        /// The workspaces.
        names: Vec<String>,
    },
    /// Another process holds the lock on the configuration.
    #[error("another abide is changing {dir}; try again when it is done")]
    Busy {
        /// The configuration directory.
        dir: String,
    },
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

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean \"{name}\"?)")).unwrap_or_default()
}
