//! Settings, workspaces and roles on disk.
//!
//! Three kinds of TOML files live in the configuration directory: `config.toml`, `workspaces/<name>.toml` and
//! `roles/<name>/role.toml`. This crate reads them into plain structs, refuses what is wrong with file, line, column
//! and what was probably meant, brings older versions up to date, and changes them without touching what it was not
//! asked to change. It resolves no secret, reads no environment variable and prints nothing.
//!
//! The way in is [`ConfigDir`]. What the files may say is declared in `settings`, `agent`, `workspace` and `role`, once.

mod agent;
mod container;
mod dir;
mod disk;
mod draft;
mod edit;
mod entry;
mod error;
mod file_kind;
mod mistake;
mod name;
mod path;
mod reader;
mod reference;
mod role;
mod rule;
mod schema;
mod settings;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
mod text;
mod value;
mod workspace;

pub use agent::{Agent, IdSource, LastWords, Sign};
pub use container::{Container, WorkspaceContainer};
pub use dir::{ConfigDir, Listing};
pub use edit::WorkspaceEdit;
pub use entry::{Origin, SettingEntry};
pub use error::ConfigError;
pub use mistake::{Mistake, Mistakes};
pub use name::{BadName, Name};
pub use path::Position;
pub use reference::reference;
pub use role::Role;
pub use settings::{Settings, Terminal, Trash};
pub use value::{BadSize, ByteSize, JournalLimit};
pub use workspace::{Mount, Workspace};
