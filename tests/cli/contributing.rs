//! What CONTRIBUTING.md says about tests is true.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of every test of the workspace that runs whole instances.
fn tests() -> String {
    let (mut dirs, mut text) = (vec![root().join("tests")], String::new());
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.extension() {
                _ if entry.is_dir() => dirs.push(entry),
                Some(rust) if rust == "rs" => text += &fs::read_to_string(entry).unwrap(),
                _ => {}
            }
        }
    }
    text
}

#[test]
fn every_test_that_persistence_depends_on_exists_by_its_name() {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let table = page.split_once("### The tests").unwrap().1.split_once("### When they run").unwrap().0;
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let names: Vec<_> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    assert!(names.len() > 10, "{names:?}");
    let tests = tests();
    for name in names {
        let defined = [format!("fn {name}()"), format!(" {name}: \"")];
        assert!(defined.iter().any(|defined| tests.contains(defined)), "there is no test `{name}`");
    }
}

#[test]
fn what_agents_read_first_points_to_the_rule() {
    for file in ["AGENTS.md", "CLAUDE.md"] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains("CONTRIBUTING.md") && text.contains("Session persistence"), "{file}");
    }
}
