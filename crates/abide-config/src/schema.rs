//! The schema as data: what a file may say, from which everything else is made.
//!
//! A [`record!`] declares each setting once: its name, its shape, its default and its one-line meaning. The struct that
//! the program reads, decoding, validation, `get`/`set`, suggestions and the settings reference all come from that
//! declaration. What a single value may be is said in `rule`.

use abide_model::text::nearest;

use crate::path::{Path, PathStep};
use crate::rule::{KeyRule, Rule};

/// One setting, or one group of settings.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) shape: SettingShape,
    pub(crate) presence: Presence,
}

/// What a file that does not mention a setting means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Unset,
    Default(&'static str),
}

/// What stands under a key.
#[derive(Clone, Copy)]
pub(crate) enum SettingShape {
    /// One value.
    Leaf(Rule),
    /// A table with these keys.
    Section(&'static [Field]),
    /// A table with keys of the operator's choice, each holding the same shape.
    Map(&'static KeyRule, &'static SettingShape),
    /// A list of tables with these keys, written `[[key]]` or as a list of inline tables.
    Tables(&'static [Field]),
}

/// A struct whose fields are settings; implemented by [`record!`].
pub(crate) trait SettingsRecord: serde::de::DeserializeOwned {
    const FIELDS: &'static [Field];
}

/// Declares a struct together with the schema that it is read by. A setting has a default as `config set` takes it, or
/// is marked `default` if it may be left unset, or is required; a group is there whether the file mentions it or not.
macro_rules! record {
    (
        $(#[$meta:meta])*
        $name:ident {
            $( #[doc = $doc:literal] $key:ident : $type:ty [$shape:expr] $($unset:ident)? $(= $default:literal)? ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
        pub struct $name {
            $( #[doc = $doc] $(#[serde($unset)])? pub $key: $type, )+
        }

        impl $crate::schema::SettingsRecord for $name {
            const FIELDS: &'static [$crate::schema::Field] = &[$(
                $crate::schema::Field {
                    key: stringify!($key),
                    doc: $doc,
                    shape: $shape,
                    presence: $crate::schema::record!(@presence $($unset)? $($default)?),
                }
            ),+];
        }
    };
    (@presence) => { $crate::schema::Presence::Required };
    (@presence default) => { $crate::schema::Presence::Unset };
    (@presence $default:literal) => { $crate::schema::Presence::Default($default) };
}
pub(crate) use record;

/// The keys of a group, for "allowed".
pub(crate) fn keys_of(fields: &[Field]) -> String {
    fields.iter().map(|field| field.key).collect::<Vec<_>>().join(", ")
}

/// A setting named from outside, looked up in the schema.
pub(crate) enum Lookup {
    /// A setting with one value.
    Leaf { rule: Rule, presence: Presence },
    /// A group, which has no value of its own.
    Group { allowed: String },
    /// Nothing of that name.
    Unknown { allowed: String, nearest: Option<String> },
}

/// What `path` is in the schema of `fields`.
pub(crate) fn look_up(fields: &'static [Field], path: &Path) -> Lookup {
    let mut shape = SettingShape::Section(fields);
    let mut presence = Presence::Unset;
    let mut walked = Path::default();
    for step in &path.0 {
        let next = match (shape, step) {
            (SettingShape::Section(fields), PathStep::Key(key)) => {
                let field = fields.iter().find(|field| field.key == key);
                field.map(|field| (field.shape, field.presence))
            }
            (SettingShape::Map(_, each), PathStep::Key(_)) => Some((*each, Presence::Unset)),
            _ => None,
        };
        let Some(next) = next else { return unknown(fields, shape, &walked, step, path) };
        (shape, presence) = next;
        walked.0.push(step.clone());
    }
    match shape {
        SettingShape::Leaf(rule) => Lookup::Leaf { rule, presence },
        group => Lookup::Group { allowed: settings_in(group, &walked) },
    }
}

fn unknown(
    fields: &'static [Field],
    shape: SettingShape,
    walked: &Path,
    step: &PathStep,
    path: &Path,
) -> Lookup {
    let allowed = settings_in(shape, walked);
    let mut nearby = None;
    if let (SettingShape::Section(here), PathStep::Key(key)) = (shape, step) {
        nearby = nearest(key, here.iter().map(|field| field.key)).map(|key| {
            let mut meant = walked.clone();
            meant.0.push(PathStep::Key(key.to_owned()));
            meant.to_string()
        });
    }
    // `keep_days` is what people type for `trash.keep_days`; `keep_max` is only near.
    let by_last_key = || {
        patterns(fields)
            .into_iter()
            .find(|pattern| pattern.rsplit_once('.').is_some_and(|(_, last)| path.to_string() == last))
    };
    Lookup::Unknown { allowed, nearest: by_last_key().or(nearby) }
}

fn settings_in(shape: SettingShape, walked: &Path) -> String {
    let prefix = if walked.0.is_empty() { String::new() } else { format!("{walked}.") };
    match shape {
        SettingShape::Leaf(_) => walked.to_string(),
        SettingShape::Section(fields) | SettingShape::Tables(fields) => {
            fields.iter().map(|field| format!("{prefix}{}", field.key)).collect::<Vec<_>>().join(", ")
        }
        SettingShape::Map(key, _) => format!("{prefix}{}", key.placeholder),
    }
}

/// The pattern of every setting, e.g. `agents.<name>.args`.
pub(crate) fn patterns(fields: &'static [Field]) -> Vec<String> {
    let mut all = Vec::new();
    walk(fields, &mut |pattern, _, _| all.push(pattern.to_owned()));
    all
}

/// Calls `visit` with the pattern, the field that documents it and the rule of every setting, in order.
pub(crate) fn walk(fields: &'static [Field], visit: &mut dyn FnMut(&str, &Field, &Rule)) {
    for field in fields {
        walk_shape(field.key, field, field.shape, visit);
    }
}

fn walk_shape(pattern: &str, field: &Field, shape: SettingShape, visit: &mut dyn FnMut(&str, &Field, &Rule)) {
    match shape {
        SettingShape::Leaf(rule) => visit(pattern, field, &rule),
        SettingShape::Map(key, each) => {
            walk_shape(&format!("{pattern}.{}", key.placeholder), field, *each, visit)
        }
        SettingShape::Section(fields) => {
            fields
                .iter()
                .for_each(|inner| walk_shape(&format!("{pattern}.{}", inner.key), inner, inner.shape, visit));
        }
        SettingShape::Tables(fields) => {
            fields.iter().for_each(|inner| {
                walk_shape(&format!("{pattern}[].{}", inner.key), inner, inner.shape, visit)
            });
        }
    }
}
