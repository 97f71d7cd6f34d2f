//! Where in a tree there are repositories of their own. Git looks into none of them unless it is asked to, and does not
//! even name those in ignored directories, or those whose HEAD is damaged.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::command::GitDeadline;

/// No more directories than this are named among those that could not be read.
const NAMED: usize = 5;

/// The repositories below a tree.
#[derive(Debug, Default)]
pub(crate) struct NestedRepositories {
    /// The directories that hold a `.git`, by their paths in the tree, outer ones before inner ones.
    pub places: Vec<PathBuf>,
    /// Why others may have been missed.
    pub unknown: Vec<String>,
}

impl NestedRepositories {
    /// Looks through all directories of `tree`, until the deadline.
    pub(crate) fn of(tree: &Path, deadline: GitDeadline) -> Self {
        let mut found = Self::default();
        let mut open = vec![PathBuf::new()];
        while let Some(dir) = open.pop() {
            if deadline.left().is_zero() {
                found.unknown.push("not all of its directories could be checked in time".to_owned());
                break;
            }
            if let Err(error) = found.enter(tree, &dir, &mut open)
                && error.kind() != ErrorKind::NotFound
                && found.unknown.len() < NAMED
            {
                found.unknown.push(format!("{}: {error}", dir.display()));
            }
        }
        found.places.sort();
        found
    }

    fn enter(&mut self, tree: &Path, dir: &Path, open: &mut Vec<PathBuf>) -> std::io::Result<()> {
        for entry in fs::read_dir(tree.join(dir))? {
            let entry = entry?;
            if entry.file_name() == ".git" {
                // The tree's own is not in it.
                self.places.extend((!dir.as_os_str().is_empty()).then(|| dir.to_owned()));
            } else if entry.file_type()?.is_dir() {
                open.push(dir.join(entry.file_name()));
            }
        }
        Ok(())
    }

    /// Those below the directory `root` of the tree, by their paths in that.
    pub(crate) fn below(&self, root: &Path) -> Vec<PathBuf> {
        let inside = self.places.iter().filter_map(|place| place.strip_prefix(root).ok());
        inside.filter(|place| !place.as_os_str().is_empty()).map(Path::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn repositories_are_found_however_deep_and_whatever_they_are_in() {
        let dir = tempfile::tempdir().unwrap();
        for place in [".git", "lib/.git", "lib/inner/.git", "target/a/b/c/d/e/.git"] {
            fs::create_dir_all(dir.path().join(place)).unwrap();
        }
        fs::create_dir_all(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/.git"), "gitdir: elsewhere").unwrap();
        let found = NestedRepositories::of(dir.path(), GitDeadline::within(Duration::from_secs(60)));
        assert_eq!(found.places, ["lib", "lib/inner", "sub", "target/a/b/c/d/e"].map(PathBuf::from));
        assert_eq!(found.below(Path::new("lib")), [PathBuf::from("inner")]);
        assert!(found.unknown.is_empty());
        let late = NestedRepositories::of(dir.path(), GitDeadline::within(Duration::ZERO));
        assert_eq!(late.unknown.len(), 1);
    }
}
