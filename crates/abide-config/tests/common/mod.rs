//! A configuration of its own for each test.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

use abide_config::{ConfigDir, ConfigError, Name};
use tempfile::TempDir;

pub struct Sandbox {
    root: TempDir,
    pub config: ConfigDir,
}

impl Sandbox {
    pub fn new() -> Self {
        let root = TempDir::new().unwrap();
        let config = ConfigDir::new(root.path().join("config"), root.path());
        fs::create_dir_all(root.path().join("config/workspaces")).unwrap();
        Self { root, config }
    }

    pub fn with_settings(text: &str) -> Self {
        let sandbox = Self::new();
        fs::write(sandbox.config.settings_file(), text).unwrap();
        sandbox
    }

    pub fn with_workspace(name: &str, text: &str) -> Self {
        let sandbox = Self::new();
        fs::write(sandbox.config.workspace_file(&named(name)), text).unwrap();
        sandbox
    }

    pub fn home(&self) -> &Path {
        self.root.path()
    }

    pub fn settings_text(&self) -> String {
        fs::read_to_string(self.config.settings_file()).unwrap()
    }

    pub fn workspace_text(&self, name: &str) -> String {
        fs::read_to_string(self.config.workspace_file(&named(name))).unwrap()
    }

    /// Every file below the configuration directory, except the lock.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut dirs = vec![self.config.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    dirs.push(path);
                } else if path.file_name().unwrap() != ".lock" {
                    files.push(path.strip_prefix(self.config.path()).unwrap().to_owned());
                }
            }
        }
        files.sort();
        files
    }
}

pub fn named(name: &str) -> Name {
    name.parse().unwrap()
}

/// The lines of an error.
pub fn lines<T: std::fmt::Debug>(result: Result<T, ConfigError>) -> Vec<String> {
    result.unwrap_err().to_string().lines().map(str::to_owned).collect()
}
