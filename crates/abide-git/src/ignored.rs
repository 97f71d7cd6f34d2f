//! Files that git ignores and that appeared, or changed, since the tree was made.
//!
//! The rule: an ignored file counts as work (`.env`, a database, notes), because nothing else has it. What a build or an
//! installation makes again does not: nobody wants to be asked about `target/` at every exit. A directory is such when
//! it says so itself (`CACHEDIR.TAG`) or has one of the names below; a file is, by its ending. What is not asked about
//! is not deleted either: it goes to the trash with its tree.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use abide_model::evidence::FileChange;
use serde::{Deserialize, Serialize};

/// Directories that tools fill and can fill again.
const REBUILT_DIRS: &str = "\
    node_modules bower_components target build dist out _build obj bin vendor Pods DerivedData venv \
    .venv __pycache__ .tox .nox .eggs htmlcov coverage .nyc_output .cache .pytest_cache .mypy_cache \
    .ruff_cache .gradle .next .nuxt .svelte-kit .turbo .parcel-cache .dart_tool .zig-cache zig-cache \
    zig-out elm-stuff deps .terraform .bundle .stack-work dist-newstyle .direnv .idea .vs";

/// Endings of files that tools make and can make again.
const REBUILT_FILES: &str = "\
    .o .obj .a .so .dylib .dll .pyc .pyo .class .gcda .gcno .tsbuildinfo .swp .log .pid .tmp .egg-info \
    .DS_Store Thumbs.db .eslintcache .coverage";

/// A directory with more files than this is one entry.
const WALKED: usize = 1000;

/// What is remembered of a file: enough to see that it was written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    size: u64,
    modified: i64,
    nanos: i64,
}

/// Ignored files by path, with directories that are too large to list as one entry that ends in a slash.
pub(crate) type Ignored = BTreeMap<String, Stamp>;

/// Lists what is worth looking at among the `ignored` entries of the tree at `tree`.
pub(crate) fn list(tree: &Path, ignored: &[PathBuf]) -> Ignored {
    let mut found = Ignored::new();
    for entry in ignored.iter().filter(|path| !is_rebuilt(tree, path)) {
        let mut files = BTreeMap::new();
        match walk(tree, entry, &mut files) {
            true => found.append(&mut files),
            false => {
                let name = format!("{}/", entry.to_string_lossy().trim_end_matches('/'));
                found.insert(name, Stamp { size: 0, modified: 0, nanos: 0 });
            }
        }
    }
    found
}

/// What of `now` was not there, or not the same, in `before`.
pub(crate) fn appeared(now: Ignored, before: &Ignored) -> Vec<FileChange> {
    now.into_iter()
        .filter(|(path, stamp)| before.get(path) != Some(stamp))
        .map(|(path, _)| FileChange { code: "!!".to_owned(), path })
        .collect()
}

/// Collects the files at and below `path`; false if they are too many, or another repository's.
fn walk(tree: &Path, path: &Path, found: &mut Ignored) -> bool {
    let full = tree.join(path);
    // What can not be looked at may be work, and is named.
    let Ok(meta) = full.symlink_metadata() else { return false };
    if !meta.is_dir() {
        let stamp = Stamp { size: meta.size(), modified: meta.mtime(), nanos: meta.mtime_nsec() };
        found.insert(path.to_string_lossy().into_owned(), stamp);
        return found.len() <= WALKED;
    }
    if full.join(".git").exists() {
        return false;
    }
    let Ok(entries) = fs::read_dir(&full) else { return false };
    for entry in entries {
        let Ok(entry) = entry else { return false };
        let child = path.join(entry.file_name());
        if !is_rebuilt(tree, &child) && !walk(tree, &child, found) {
            return false;
        }
    }
    true
}

fn is_rebuilt(tree: &Path, path: &Path) -> bool {
    let in_rebuilt_dir = |path: &Path| {
        path.components().any(|part| REBUILT_DIRS.split(' ').any(|name| part.as_os_str() == name))
    };
    let full = tree.join(path);
    if full.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return in_rebuilt_dir(path) || full.join("CACHEDIR.TAG").exists();
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.parent().is_some_and(in_rebuilt_dir) || REBUILT_FILES.split(' ').any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tree: &Path, entries: &[&str]) -> Vec<String> {
        let entries: Vec<_> = entries.iter().map(PathBuf::from).collect();
        list(tree, &entries).into_keys().collect()
    }

    #[test]
    fn files_count_and_what_a_build_makes_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path();
        for file in
            [".env", "a.pyc", "target/x", "secrets/deep/key", "mine/CACHEDIR.TAG", "src/__pycache__/m.x"]
        {
            fs::create_dir_all(tree.join(file).parent().unwrap()).unwrap();
            fs::write(tree.join(file), "x").unwrap();
        }
        let all = [".env", "a.pyc", "target/", "secrets/", "mine/", "src/__pycache__/m.x"];
        assert_eq!(names(tree, &all), [".env", "secrets/deep/key"]);
        let before = list(tree, &[".env".into(), "secrets/".into()]);
        fs::write(tree.join("secrets/deep/key"), "changed").unwrap();
        fs::write(tree.join("secrets/new"), "new").unwrap();
        let now = list(tree, &[".env".into(), "secrets/".into()]);
        let paths: Vec<_> = appeared(now, &before).into_iter().map(|c| c.path).collect();
        assert_eq!(paths, ["secrets/deep/key", "secrets/new"]);
    }

    #[test]
    fn a_large_directory_and_a_repository_are_one_entry_each() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("data")).unwrap();
        fs::create_dir_all(dir.path().join("other/.git")).unwrap();
        for n in 0..=WALKED {
            fs::write(dir.path().join(format!("data/{n}")), "").unwrap();
        }
        assert_eq!(names(dir.path(), &["data/", "other/"]), ["data/", "other/"]);
    }
}
