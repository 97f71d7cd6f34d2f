//! Settings as `config get` shows them.

use toml_edit::{Item, Value};

use crate::path::{Path, PathStep};
use crate::rule::shown;
use crate::schema::{Field, Presence, SettingShape};

/// A setting and its value, as `config get` shows it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SettingEntry {
    /// The setting.
    pub key: String,
    /// Its value as `config set` would take it; `None` if it is unset and has no default.
    pub value: Option<String>,
    /// Who says so.
    pub origin: Origin,
}

/// Where the value of a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The file does not mention it.
    Default,
    /// The file says so.
    File,
}

impl SettingEntry {
    pub(crate) fn new(path: &Path, value: Option<&Value>, presence: Presence) -> Self {
        let key = path.to_string();
        match (value, presence) {
            (Some(value), _) => Self { key, value: Some(shown(value)), origin: Origin::File },
            (None, Presence::Default(value)) => {
                Self { key, value: Some(value.to_owned()), origin: Origin::Default }
            }
            (None, Presence::Required | Presence::Unset) => {
                Self { key, value: None, origin: Origin::Default }
            }
        }
    }
}

/// Every setting of `fields`; of those under keys of the operator's choice, the ones that `top` holds.
pub(crate) fn list(fields: &'static [Field], top: &Item) -> Vec<SettingEntry> {
    let mut entries = Vec::new();
    list_section(fields, &Path::default(), Some(top), false, &mut entries);
    entries
}

fn list_section(
    fields: &'static [Field],
    path: &Path,
    item: Option<&Item>,
    only_set: bool,
    entries: &mut Vec<SettingEntry>,
) {
    for field in fields {
        let mut path = path.clone();
        path.0.push(PathStep::Key(field.key.to_owned()));
        let item = item.and_then(|item| item.get(field.key));
        list_shape(field.shape, &path, item, field.presence, only_set, entries);
    }
}

fn list_shape(
    shape: SettingShape,
    path: &Path,
    item: Option<&Item>,
    presence: Presence,
    only_set: bool,
    entries: &mut Vec<SettingEntry>,
) {
    match shape {
        SettingShape::Leaf(_) if only_set && item.is_none() => {}
        SettingShape::Leaf(_) => {
            entries.push(SettingEntry::new(path, item.and_then(Item::as_value), presence))
        }
        SettingShape::Section(fields) => list_section(fields, path, item, only_set, entries),
        SettingShape::Map(_, each) => {
            for (key, item) in item.and_then(Item::as_table_like).into_iter().flat_map(|table| table.iter()) {
                let mut path = path.clone();
                path.0.push(PathStep::Key(key.to_owned()));
                list_shape(*each, &path, Some(item), Presence::Unset, true, entries);
            }
        }
        SettingShape::Tables(_) => {}
    }
}
