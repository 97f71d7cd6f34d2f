//! Every version of the schema is pinned by fixtures: what they are is in `tests/fixtures/README.md`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use toml_edit::{Document, Item};

use crate::file_kind::{ConfigSource, FileKind};
use crate::role::Role;
use crate::schema::{Presence, walk};
use crate::settings::Settings;
use crate::workspace::Workspace;

fn in_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn fixture(kind: &str, version: i64, ending: &str) -> PathBuf {
    in_crate(&format!("tests/fixtures/{kind}/{version}.{ending}"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The settings of a kind of file, one per line, with their defaults.
fn settings<T: FileKind>() -> String {
    let mut lines = String::new();
    walk(T::FIELDS, &mut |pattern, field, _| {
        let presence = match field.presence {
            Presence::Required => " required".to_owned(),
            Presence::Unset => String::new(),
            Presence::Default(value) => format!(" = {value}"),
        };
        writeln!(lines, "{pattern}{presence}").unwrap();
    });
    lines
}

/// Whether `item` holds something at the place that the rest of a pattern spells: `a.<name>.b`, `a[].b`.
fn holds(item: &Item, pattern: &str) -> bool {
    let (step, rest) = pattern.split_once('.').map_or((pattern, None), |(step, rest)| (step, Some(rest)));
    let below = |item: &Item| rest.is_none_or(|rest| holds(item, rest));
    let Some(table) = item.as_table_like() else { return false };
    if step.starts_with('<') {
        return table.iter().any(|(_, item)| below(item));
    }
    let Some(found) = table.get(step.trim_end_matches("[]")) else { return false };
    match found.as_array_of_tables() {
        Some(tables) if step.ends_with("[]") => tables.iter().any(|table| below(&Item::Table(table.clone()))),
        _ => below(found),
    }
}

fn assert_pinned<T: FileKind>(kind: &str) {
    let path = fixture(kind, T::VERSION, "settings");
    let current = settings::<T>();
    if std::env::var_os("ABIDE_BLESS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    assert_eq!(
        current,
        read(&path),
        "the settings of {} are not those of schema version {}: crates/abide-config/tests/fixtures/README.md says \
         what a new or changed setting needs",
        T::TITLE,
        T::VERSION
    );
}

fn assert_fixtures<T: FileKind>(kind: &str) {
    for version in 1..=T::VERSION {
        let path = fixture(kind, version, "toml");
        let text = read(&path);
        let document = Document::parse(text.as_str()).unwrap();
        assert_eq!(document.get("version").and_then(Item::as_integer), Some(version), "{}", path.display());
        for setting in read(&fixture(kind, version, "settings")).lines() {
            let pattern = setting.split(' ').next().unwrap();
            assert!(holds(document.as_item(), pattern), "{} does not set `{pattern}`", path.display());
        }
        let source = ConfigSource::parse::<T>(path.display().to_string(), text.clone().into_bytes()).unwrap();
        source.decode::<T>(Path::new("/home/ada")).unwrap_or_else(|error| panic!("{error}"));
    }
}

fn assert_documented<T: FileKind>() {
    let page = read(&in_crate("../../docs/schema.md"));
    for version in 1..=T::VERSION {
        let row = format!("| `{}` | {version} | ", T::TITLE);
        assert!(page.contains(&row), "docs/schema.md has no row `{row}`");
    }
}

#[test]
fn a_setting_that_is_added_needs_a_version() {
    assert_pinned::<Settings>("config");
    assert_pinned::<Workspace>("workspace");
    assert_pinned::<Role>("role");
}

#[test]
fn a_file_of_every_version_with_every_setting_loads() {
    assert_fixtures::<Settings>("config");
    assert_fixtures::<Workspace>("workspace");
    assert_fixtures::<Role>("role");
}

#[test]
fn every_version_is_on_the_page_of_versions() {
    assert_documented::<Settings>();
    assert_documented::<Workspace>();
    assert_documented::<Role>();
}
