//! Manifests of every version, as abide wrote them: `tests/fixtures/manifests/README.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use abide_model::Instance;
use abide_model::instance::MANIFEST_VERSION;
use serde_json::Value;

use crate::common::Sandbox;

fn in_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The instance that the store reads from the manifest at `path`, and what the manifest says.
fn read(path: &Path) -> (Instance, Value) {
    let bytes = fs::read(path).unwrap();
    let said: Value = serde_json::from_slice(&bytes).unwrap();
    let sandbox = Sandbox::new();
    let id = said["id"].as_str().unwrap().parse().unwrap();
    let instance_dir = sandbox.store.layout().instance_dir(id);
    fs::create_dir(&instance_dir).unwrap();
    fs::write(instance_dir.join("instance.json"), bytes).unwrap();
    (sandbox.store.read(id).unwrap_or_else(|error| panic!("{}: {error}", path.display())), said)
}

fn everything() -> PathBuf {
    in_crate("tests/fixtures/manifests/everything.json")
}

#[test]
fn a_manifest_of_every_version_is_read() {
    for version in 1..=MANIFEST_VERSION {
        let dir = in_crate(&format!("tests/fixtures/manifests/{version}"));
        let mut states = BTreeSet::new();
        for file in fs::read_dir(dir).unwrap() {
            let (instance, said) = read(&file.unwrap().path());
            assert_eq!(said["version"], version);
            assert_eq!(instance.version, MANIFEST_VERSION);
            states.insert(said["status"]["state"].as_str().unwrap().to_owned());
        }
        assert_eq!(Vec::from_iter(states), ["active", "ending", "restorable", "starting"]);
        let row = format!("| `instances/<id>/instance.json` | {version} | ");
        let page = fs::read_to_string(in_crate("../../docs/schema.md")).unwrap();
        assert!(page.contains(&row), "docs/schema.md has no row `{row}`");
    }
}

#[test]
fn a_manifest_with_every_field_is_understood_whole() {
    let (instance, said) = read(&everything());
    assert_eq!(serde_json::to_value(&instance).unwrap(), said);
    let recipe = &instance.recipe;
    let session = &instance.sessions[0];
    let conversation = session.conversation.as_ref().unwrap();
    let (setup, exit) = (session.setup.as_ref().unwrap(), session.exit.as_ref().unwrap());
    let unknown = [
        &instance.extra, &instance.scope.extra, &instance.status.extra, &recipe.extra,
        &recipe.mounts[0].extra, &session.extra, &conversation.extra, &setup.extra, &exit.extra,
    ];
    assert!(unknown.iter().all(|extra| extra.is_empty()), "{unknown:?}");
}

#[test]
fn a_field_that_is_added_to_the_manifest_joins_the_fixture_with_every_field() {
    let mut present = BTreeSet::new();
    // No one state has a reason and what a starting instance has.
    for path in [everything(), in_crate("tests/fixtures/manifests/1/restorable.json")] {
        collect_keys(&serde_json::from_slice(&fs::read(path).unwrap()).unwrap(), &mut present);
    }
    for file in
        ["instance.rs", "session.rs", "recipe.rs", "status.rs", "differences.rs", "id.rs", "container.rs"]
    {
        let source = fs::read_to_string(in_crate("../abide-model/src").join(file)).unwrap();
        for field in written_fields(&source) {
            assert!(
                present.contains(&field),
                "`{field}` of {file} is not in everything.json: crates/abide-store/tests/fixtures/manifests/README.md says \
                 what a new field needs"
            );
        }
    }
}

fn collect_keys(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            keys.insert(key.clone());
            collect_keys(value, keys);
        }),
        Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
        _ => {}
    }
}

/// The fields of the structs in `source` that are written as they are, without those that stand for others' fields.
fn written_fields(source: &str) -> Vec<String> {
    let (mut fields, mut inside, mut flattened, mut written) = (Vec::new(), false, false, false);
    for line in source.lines().map(str::trim) {
        match line {
            _ if line.starts_with("#[derive(") => written = line.contains("Deserialize"),
            _ if line.starts_with("#[serde(try_from") => written = false,
            _ if line.contains("struct ") && line.ends_with('{') => inside = written,
            "}" => (inside, written) = (false, false),
            "#[serde(flatten)]" => flattened = true,
            _ if inside && !line.starts_with(['/', '#']) => {
                let name = line.trim_start_matches("pub ").split(':').next().unwrap();
                if !std::mem::take(&mut flattened) {
                    fields.push(name.to_owned());
                }
            }
            _ => {}
        }
    }
    assert!(!fields.is_empty(), "no field was found");
    fields
}
