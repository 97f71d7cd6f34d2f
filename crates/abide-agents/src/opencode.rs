//! OpenCode.
//!
//! Its conversations are rows of a database, which is not read here: an id is resumed unseen, and OpenCode says if there is
//! no such conversation.

use std::path::Path;

use abide_model::Timestamp;
use abide_model::conversation::{Candidate, Located};

use crate::activity::Signs;
use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, is_plain_id};
use crate::fatal::Fatal;
use crate::hooks::{Injection, Reporter};

/// OpenCode.
#[derive(Debug)]
pub(crate) struct OpenCode;

static PROFILE: Profile = Profile {
    name: "opencode",
    grammar: Grammar {
        program: "opencode",
        is_id: |word| word.starts_with("ses_") && is_plain_id(word),
        resume: &["--session", "-s"],
        latest: &["--continue", "-c"],
        fork: &["--fork"],
        resuming: &["-s", "{id}"],
        forking: &["-s", "{id}", "--fork"],
        first_turn: &["--prompt"],
        switches: &["--mdns", "--print-logs", "--pure", "--auto", "--mini", "--no-replay"],
        many: &["--cors"],
        // Its one word is the directory of the project.
        commands: &[
            "acp",
            "agent",
            "attach",
            "auth",
            "completion",
            "db",
            "debug",
            "export",
            "github",
            "import",
            "mcp",
            "models",
            "plugin",
            "pr",
            "providers",
            "run",
            "serve",
            "session",
            "stats",
            "uninstall",
            "upgrade",
            "web",
            "plug",
        ],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("XDG_DATA_HOME", "opencode")],
    dir: ".local/share/opencode",
    fatal: &[
        ("Session not found", Fatal::NoConversation),
        ("opencode auth login", Fatal::Auth),
        ("Unknown argument", Fatal::Arguments),
    ],
    signs: Signs { rules: include_str!("rules/opencode.toml"), hooks: Some(hooks), ..Signs::NONE },
    ..Profile::UNKNOWN
};

impl Agent for OpenCode {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn transcript(&self, config_dir: &Path, _cwd: &Path, _id: &str) -> Located {
        Located::Unknown(format!("{} is a database", config_dir.join("opencode.db").display()))
    }

    fn discover(&self, _config_dir: &Path, _cwd: Option<&Path>, _since: Timestamp) -> Vec<Candidate> {
        Vec::new()
    }
}

/// Its hooks are plugins: programs in its own process. Ours calls the hook that others call by themselves, one after the
/// other, for what is not a sub-agent's.
const PLUGIN: &str = include_str!("hooks/opencode.js");

fn hooks(reporter: &Reporter<'_>) -> Injection {
    let file = reporter.dir.join("abide.js");
    let exe = serde_json::Value::from(reporter.exe.to_string_lossy());
    let config = serde_json::json!({ "plugin": [format!("file://{}", file.display())] });
    Injection {
        env: vec![("OPENCODE_CONFIG_CONTENT", config.to_string().into())],
        files: vec![(file, PLUGIN.replace("\"{exe}\"", &exe.to_string()))],
        ..Injection::default()
    }
}
