//! Amp.
//!
//! Its threads are kept by its server, so nothing of them can be seen here.

use std::path::Path;

use abide_model::conversation::Located;

use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, is_uuid};
use crate::fatal::Fatal;

#[derive(Debug)]
pub(crate) struct Amp;

static PROFILE: Profile = Profile {
    name: "amp",
    grammar: Grammar {
        program: "amp",
        is_id: |word| word.strip_prefix("T-").is_some_and(is_uuid),
        latest: &["--last"],
        resume_verb: &["threads", "continue"],
        resuming: &["threads", "continue", "{id}"],
        first_turn: &["--execute", "-x"],
        switches: &["--dangerously-allow-all", "--ide", "--no-ide", "--no-color", "--no-notifications"],
        commands: &[
            "doctor", "login", "logout", "mcp", "permissions", "review", "skill", "skills", "threads",
            "tools", "update", "usage",
        ],
        ..Grammar::UNKNOWN
    },
    // Nothing but its settings is kept here.
    moved_by: &[("XDG_CONFIG_HOME", "amp")],
    dir: ".config/amp",
    fatal: &[
        ("Thread not found", Fatal::NoConversation),
        ("getUserInfo failed", Fatal::Auth),
        ("amp login", Fatal::Auth),
        ("unknown option", Fatal::Arguments),
    ],
    ..Profile::UNKNOWN
};

impl Agent for Amp {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn find_transcript(&self, _config_dir: &Path, _cwd: &Path, _id: &str) -> Result<Located, String> {
        Err("threads are kept by the server".to_owned())
    }
}
