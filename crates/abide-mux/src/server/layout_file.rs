//! The layout on disk, so that the next mux shows the same tabs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fs, io};

use abide_sys::atomic::{self, Durability};
use abide_wire::instance_dir::InstanceDir;
use abide_wire::mux_options::LiveSettings;
use abide_wire::protocol::Colors;
use abide_wire::session::SessionId;
use serde::{Deserialize, Serialize};

use crate::screen::layout::Layout;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct SavedLayout {
    #[serde(default)]
    pub layout: Layout,
    /// The names that the operator gave.
    #[serde(default)]
    pub names: BTreeMap<SessionId, String>,
    /// The colours of the operator's terminal, for programs that ask before a client is attached.
    #[serde(default)]
    pub colors: Option<Colors>,
    /// What was changed of the launcher's settings, and in which run: the next run has newer ones of its own.
    #[serde(default)]
    pub changed_settings: Option<(u64, LiveSettings)>,
}

/// The file, and what it holds.
#[derive(Debug)]
pub(crate) struct LayoutFile {
    path: PathBuf,
    written: SavedLayout,
}

impl LayoutFile {
    /// Reads what an earlier mux left. A file that cannot be read costs the operator an arrangement and no more.
    pub fn read(instance_dir: &InstanceDir) -> Self {
        let path = instance_dir.layout_file();
        let written = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|err| {
                tracing::warn!("{} is unreadable and will be replaced: {err}", path.display());
                SavedLayout::default()
            }),
            Err(_) => SavedLayout::default(),
        };
        Self { path, written }
    }

    pub fn saved(&self) -> &SavedLayout {
        &self.written
    }

    /// Writes the layout if it differs from what the file holds: whole, or not at all.
    pub fn save(&mut self, now: SavedLayout) {
        if now == self.written {
            return;
        }
        if let Err(err) = self.write(&now) {
            tracing::warn!("{} cannot be written: {err}", self.path.display());
        }
        // Also after an error: a full disk must not be tried at every key.
        self.written = now;
    }

    fn write(&self, now: &SavedLayout) -> io::Result<()> {
        atomic::write_path(&self.path, &serde_json::to_vec(now)?, 0o600, Durability::Unsynced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_read_back_and_a_damaged_file_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let instance_dir = InstanceDir::new(dir.path());
        instance_dir.prepare_state().unwrap();
        let session = SessionId(1);
        let mut saved = SavedLayout::default();
        saved.layout.add(&session);
        saved.names.insert(session, "mine".into());
        LayoutFile::read(&instance_dir).save(saved.clone());
        let mut file = LayoutFile::read(&instance_dir);
        assert_eq!(file.saved(), &saved);

        fs::write(instance_dir.layout_file(), "{").unwrap();
        assert_eq!(LayoutFile::read(&instance_dir).saved(), &SavedLayout::default());
        file.save(SavedLayout::default());
        assert_eq!(LayoutFile::read(&instance_dir).saved(), &SavedLayout::default());
    }
}
