//! What the launcher decides for a mux, as it travels through the keeper.

use abide_model::{KeepAwake, PrefixKey, StatusBar};
use serde::{Deserialize, Serialize};

/// The settings of a mux. A field that the launcher left out has its default; one of a newer version is ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MuxOptions {
    /// What the status bar calls the instance; the instance directory's name where empty.
    pub name: String,
    /// Lines kept after they left the screen, counted as the program wrote them.
    pub scrollback: usize,
    /// The size of each session's journal; 0 keeps none on disk.
    pub journal_bytes: u64,
    /// What can be changed while it runs.
    #[serde(flatten)]
    pub live: LiveSettings,
    /// When the sessions keep the machine from going to sleep.
    pub keep_awake: KeepAwake,
}

impl Default for MuxOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            scrollback: 10_000,
            journal_bytes: 8 << 20,
            live: LiveSettings::default(),
            // A mux that is started for another purpose does not need this.
            keep_awake: KeepAwake::Off,
        }
    }
}

/// The settings that a running mux can change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LiveSettings {
    /// The key that begins a command.
    pub prefix: PrefixKey,
    pub status_bar: StatusBar,
    /// Whether programs may write to the clients' clipboards.
    pub clipboard: bool,
    /// Whether links of every scheme reach the clients, and not only those of the harmless ones.
    pub links: bool,
    /// Whether notifications, progress and titles reach the clients.
    pub notifications: bool,
}

impl Default for LiveSettings {
    fn default() -> Self {
        Self {
            prefix: PrefixKey::DEFAULT,
            status_bar: StatusBar::default(),
            clipboard: false,
            links: false,
            notifications: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_its_default_and_what_is_newer_is_ignored() {
        let options: MuxOptions =
            serde_json::from_str(r#"{"prefix": "C-a", "status_bar": "top", "sparkles": true}"#).unwrap();
        let live = LiveSettings {
            prefix: "C-a".parse().unwrap(),
            status_bar: StatusBar::Top,
            ..LiveSettings::default()
        };
        assert_eq!(options, MuxOptions { live, ..MuxOptions::default() });
    }
}
