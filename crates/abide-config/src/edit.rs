//! Changes that come as words from a command line.

use toml_edit::Value;

use abide_model::{Choice, Isolation};

use crate::error::ConfigError;
use crate::file_kind::{ConfigSource, FileKind};
use crate::mistake::Mistake;
use crate::path::{Path, PathStep};
use crate::reader::VERSION;
use crate::rule::Rule;
use crate::schema::{Field, Lookup, Presence, SettingShape, look_up};
use crate::text::printable;

/// One change to a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspaceEdit {
    /// Set a setting to a value, both as they are typed.
    Set {
        /// The setting, e.g. `policy` or `agents.claude.args`.
        key: String,
        /// The value, e.g. `keep` or `["--model", "opus"]`.
        value: String,
    },
    /// Take a setting, or a group of them, out of the file.
    Unset {
        /// The setting.
        key: String,
    },
    /// Add a mount of a directory of the host, given as it is typed.
    AddMount {
        /// The directory.
        source: String,
        /// How it is given.
        isolation: Isolation,
    },
    /// Take out the mount with this target.
    RemoveMount {
        /// Where the instance sees it.
        target: String,
    },
}

/// What the file has to say of a new mount; defaults are left out.
pub(crate) fn mount_entries(source: &str, isolation: Isolation) -> Vec<(&'static str, Value)> {
    let mut entries = vec![("source", Value::from(source))];
    if isolation != Isolation::default() {
        entries.push(("isolation", isolation.as_str().into()));
    }
    entries
}

/// The path that `key` spells, and the setting there; a mistake if there is none.
pub(crate) fn setting<T: FileKind>(key: &str) -> Result<(Path, Rule, Presence), ConfigError> {
    let mistake = |problem: &str, allowed: String, nearest| {
        let (setting, problem) = (printable(key), problem.to_owned());
        ConfigError::from(Mistake { setting, problem, allowed: Some(allowed), nearest, ..Mistake::default() })
    };
    if key == VERSION {
        return Err(mistake("is managed by abide", "any other setting".to_owned(), None));
    }
    let Some(path) = Path::parse(key) else {
        return Err(mistake(
            "not a setting",
            "names joined by dots, such as trash.keep_days".to_owned(),
            None,
        ));
    };
    let first = |field: &&Field| matches!(path.0.first(), Some(PathStep::Key(key)) if key == field.key);
    if let Some(SettingShape::Tables(_)) = T::FIELDS.iter().find(first).map(|field| field.shape) {
        let ways = "the flags --mount, --isolation and --unmount, and the file itself".to_owned();
        return Err(mistake("is a setting of each mount, not of all", ways, None));
    }
    match look_up(T::FIELDS, &path) {
        Lookup::Leaf { rule, presence } => Ok((path, rule, presence)),
        Lookup::Group { allowed } => Err(mistake("is a group of settings, name one", allowed, None)),
        Lookup::Unknown { allowed, nearest } => Err(mistake("not a setting", allowed, nearest)),
    }
}

impl ConfigSource {
    pub(crate) fn set<T: FileKind>(&mut self, key: &str, word: &str) -> Result<(), ConfigError> {
        let (path, rule, _) = setting::<T>(key)?;
        let value = rule.value_of(word);
        self.draft.set(&path, &value).map_err(|error| self.no_place(error).into())
    }

    /// Whether there was anything to take out.
    pub(crate) fn unset<T: FileKind>(&mut self, key: &str) -> Result<bool, ConfigError> {
        // A key that is none may be what is wrong with the file; taking it out must work.
        match Path::parse(key) {
            Some(path) if key != VERSION && self.draft.contains(&path) => {
                self.draft.remove(&path).map_err(|error| self.no_place(error))?;
                Ok(true)
            }
            _ => setting::<T>(key).map(|_| false),
        }
    }
}
