//! The schema as data: what a file may say, from which everything else is made.
//!
//! A [`record!`] declares each setting once: its name, its rule, its default and its one-line meaning. The struct that
//! the program reads, decoding, validation, `get`/`set`, suggestions and the settings reference all come from that
//! declaration. What a single value may be is said in `rule`.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use abide_model::text::nearest;
use toml_edit::{Item, Table, TableLike, Value};

use crate::path::{Path, PathStep};
use crate::reader::ConfigReader;
use crate::rule::{KeyRule, Leaf, List, Spelling};

/// One setting, or one group of settings.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) shape: SettingShape,
    pub(crate) presence: fn() -> Presence,
}

/// What a file that does not mention a setting means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Unset,
    Default(String),
}

/// What stands under a key.
#[derive(Clone, Copy)]
pub(crate) enum SettingShape {
    /// One value.
    Leaf(&'static Spelling),
    /// A table with these keys.
    Section(&'static [Field]),
    /// A table with keys of the operator's choice, each holding the same shape.
    Map { key: &'static str, each: &'static SettingShape },
    /// A list of tables with these keys.
    Tables(&'static [Field]),
}

/// A struct whose fields are settings; implemented by [`record!`].
pub(crate) trait SettingsRecord: Sized {
    const FIELDS: &'static [Field];

    /// Reads every field, even after a mistake, so that all mistakes are found in one go.
    fn read(table: &dyn TableLike, at: &mut ConfigReader<'_>) -> Option<Self>;
}

/// How a field is read.
pub(crate) trait SettingRule {
    type Value;
    const SHAPE: SettingShape;

    /// The value of a field that the file does not mention; `None` if it must.
    fn absent() -> Option<Self::Value>;

    fn read(item: &Item, at: &mut ConfigReader<'_>) -> Option<Self::Value>;
}

/// Declares a struct together with the schema that it is read by.
macro_rules! record {
    (
        $(#[$meta:meta])*
        $name:ident {
            $( #[doc = $doc:literal] $key:ident : $type:ty as $rule:ty $(= $default:expr)? ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $( #[doc = $doc] pub $key: $type, )+
        }

        impl $crate::schema::SettingsRecord for $name {
            const FIELDS: &'static [$crate::schema::Field] = &[$(
                $crate::schema::Field {
                    key: stringify!($key),
                    doc: $doc,
                    shape: <$rule as $crate::schema::SettingRule>::SHAPE,
                    presence: || $crate::schema::record!(@presence $rule $(, $default)?),
                }
            ),+];

            fn read(table: &dyn toml_edit::TableLike, at: &mut $crate::reader::ConfigReader<'_>) -> Option<Self> {
                at.refuse_unknown_keys(table, Self::FIELDS);
                $(
                    let absent = || $crate::schema::record!(@absent $rule $(, $default)?);
                    let $key = at.field::<$rule>(table, stringify!($key), absent);
                )+
                Some(Self { $( $key: $key? ),+ })
            }
        }
    };
    (@presence $rule:ty, $default:expr) => {
        $crate::schema::Presence::Default($default.to_string())
    };
    (@presence $rule:ty) => {
        match <$rule as $crate::schema::SettingRule>::absent() {
            Some(_) => $crate::schema::Presence::Unset,
            None => $crate::schema::Presence::Required,
        }
    };
    (@absent $rule:ty, $default:expr) => { Some($default) };
    (@absent $rule:ty) => { <$rule as $crate::schema::SettingRule>::absent() };
}
pub(crate) use record;

impl<L: Leaf> SettingRule for L {
    type Value = L::Value;
    const SHAPE: SettingShape = SettingShape::Leaf(&L::SPELLING);

    fn absent() -> Option<Self::Value> {
        None
    }

    fn read(item: &Item, at: &mut ConfigReader<'_>) -> Option<Self::Value> {
        at.leaf::<L>(item)
    }
}

/// A setting that may be left out.
pub(crate) struct Optional<R>(PhantomData<R>);

impl<R: SettingRule> SettingRule for Optional<R> {
    type Value = Option<R::Value>;
    const SHAPE: SettingShape = R::SHAPE;

    fn absent() -> Option<Self::Value> {
        Some(None)
    }

    fn read(item: &Item, at: &mut ConfigReader<'_>) -> Option<Self::Value> {
        R::read(item, at).map(Some)
    }
}

/// A list that is empty where it is left out.
pub(crate) struct Several<L>(PhantomData<L>);

impl<L: Leaf> SettingRule for Several<L> {
    type Value = Vec<L::Value>;
    const SHAPE: SettingShape = <List<L> as SettingRule>::SHAPE;

    fn absent() -> Option<Self::Value> {
        Some(Vec::new())
    }

    fn read(item: &Item, at: &mut ConfigReader<'_>) -> Option<Self::Value> {
        at.leaf::<List<L>>(item)
    }
}

/// A group of settings under one key.
pub(crate) struct Section<T>(PhantomData<T>);

impl<T: SettingsRecord> SettingRule for Section<T> {
    type Value = T;
    const SHAPE: SettingShape = SettingShape::Section(T::FIELDS);

    fn absent() -> Option<T> {
        T::read(&Table::new(), &mut ConfigReader::new(std::path::Path::new("/")))
    }

    fn read(item: &Item, at: &mut ConfigReader<'_>) -> Option<T> {
        match item.as_table_like() {
            Some(table) => T::read(table, at),
            None => at.not_a("section", &format!("a table of {}", keys_of(T::FIELDS))),
        }
    }
}

/// A group of entries whose keys the operator chooses.
pub(crate) struct Map<K, R>(PhantomData<(K, R)>);

impl<K: KeyRule, R: SettingRule> SettingRule for Map<K, R> {
    type Value = BTreeMap<K::Key, R::Value>;
    const SHAPE: SettingShape = SettingShape::Map { key: K::PLACEHOLDER, each: &R::SHAPE };

    fn absent() -> Option<Self::Value> {
        Some(BTreeMap::new())
    }

    fn read(item: &Item, at: &mut ConfigReader<'_>) -> Option<Self::Value> {
        let Some(table) = item.as_table_like() else {
            return at.not_a("section", &format!("a table of entries by {}", K::PLACEHOLDER));
        };
        let mut sound = true;
        let mut entries = BTreeMap::new();
        for (key, item) in table.iter() {
            let entry = at.inside(PathStep::Key(key.to_owned()), |at| {
                let key = at.key::<K>(key);
                let value = R::read(item, at);
                Some((key?, value?))
            });
            match entry {
                Some((key, value)) => drop(entries.insert(key, value)),
                None => sound = false,
            }
        }
        sound.then_some(entries)
    }
}

/// A list of groups, written `[[key]]` or as a list of inline tables.
pub(crate) struct Tables<T>(PhantomData<T>);

impl<T: SettingsRecord> SettingRule for Tables<T> {
    type Value = Vec<T>;
    const SHAPE: SettingShape = SettingShape::Tables(T::FIELDS);

    fn absent() -> Option<Vec<T>> {
        Some(Vec::new())
    }

    fn read(item: &Item, at: &mut ConfigReader<'_>) -> Option<Vec<T>> {
        let tables: Vec<Option<&dyn TableLike>> = match item {
            Item::ArrayOfTables(tables) => tables.iter().map(|table| Some(table as &dyn TableLike)).collect(),
            Item::Value(Value::Array(array)) => array
                .iter()
                .map(|value| value.as_inline_table().map(|table| table as &dyn TableLike))
                .collect(),
            _ => return at.not_a("list of tables", &format!("tables of {}", keys_of(T::FIELDS))),
        };
        let read: Vec<Option<T>> = tables
            .into_iter()
            .enumerate()
            .map(|(index, table)| {
                at.inside(PathStep::Index(index), |at| match table {
                    Some(table) => T::read(table, at),
                    None => at.not_a("table", &format!("a table of {}", keys_of(T::FIELDS))),
                })
            })
            .collect();
        read.into_iter().collect()
    }
}

/// The keys of a group, for "allowed".
pub(crate) fn keys_of(fields: &[Field]) -> String {
    fields.iter().map(|field| field.key).collect::<Vec<_>>().join(", ")
}

/// A setting named from outside, looked up in the schema.
pub(crate) enum Lookup {
    /// A setting with one value.
    Leaf { spelling: &'static Spelling, presence: Presence },
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
                field.map(|field| (field.shape, (field.presence)()))
            }
            (SettingShape::Map { each, .. }, PathStep::Key(_)) => Some((*each, Presence::Unset)),
            _ => None,
        };
        let Some(next) = next else { return unknown(fields, shape, &walked, step, path) };
        (shape, presence) = next;
        walked.0.push(step.clone());
    }
    match shape {
        SettingShape::Leaf(spelling) => Lookup::Leaf { spelling, presence },
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
        SettingShape::Map { key, .. } => format!("{prefix}{key}"),
    }
}

/// The pattern of every setting, e.g. `agents.<name>.args`.
pub(crate) fn patterns(fields: &'static [Field]) -> Vec<String> {
    let mut all = Vec::new();
    walk(fields, &mut |pattern, _, _| all.push(pattern.to_owned()));
    all
}

/// Calls `visit` with the pattern, the field that documents it and the spelling of every setting, in order.
pub(crate) fn walk(fields: &'static [Field], visit: &mut dyn FnMut(&str, &Field, &'static Spelling)) {
    for field in fields {
        walk_shape(field.key, field, field.shape, visit);
    }
}

fn walk_shape(
    pattern: &str,
    field: &Field,
    shape: SettingShape,
    visit: &mut dyn FnMut(&str, &Field, &'static Spelling),
) {
    match shape {
        SettingShape::Leaf(spelling) => visit(pattern, field, spelling),
        SettingShape::Map { key, each } => walk_shape(&format!("{pattern}.{key}"), field, *each, visit),
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
