//! Kimi Code.
//!
//! It gives a conversation its id at the first message, and a directory of its own with one transcript per agent in it.

use std::path::{Path, PathBuf};

use abide_model::Timestamp;
use abide_model::conversation::{Candidate, Located};
use serde::Deserialize;

use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, is_uuid};
use crate::fatal::Fatal;
use crate::files::{About, Look, Root, located, records};

/// The main agent's transcript in the directory of a conversation. Its sub-agents have others.
const MAIN: &str = "agents/main/wire.jsonl";

/// Kimi Code.
#[derive(Debug)]
pub(crate) struct Kimi;

static PROFILE: Profile = Profile {
    name: "kimi",
    grammar: Grammar {
        program: "kimi",
        is_id,
        resume: &["--session", "-S", "--resume", "-r"],
        latest: &["--continue", "-c", "-C"],
        fork_verb: &["fork"],
        resuming: &["-S", "{id}"],
        forking: &["fork", "{id}", "-y"],
        first_turn: &["--prompt", "-p"],
        switches: &["--auto", "--plan", "--yolo", "-y"],
        commands: &[
            "acp", "doctor", "export", "login", "logout", "mcp", "migrate", "provider", "upgrade", "web",
        ],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("KIMI_CODE_HOME", "")],
    dir: ".kimi-code",
    fatal: &[
        ("Session … not found", Fatal::NoConversation),
        // It offers the command for the directory in which the conversation was held.
        ("cd … && kimi -r", Fatal::NoConversation),
        ("error: unknown option", Fatal::Arguments),
    ],
};

fn is_id(word: &str) -> bool {
    word.strip_prefix("session_").is_some_and(is_uuid)
}

impl Agent for Kimi {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> Located {
        located(look(config_dir, cwd, id))
    }

    fn discover(&self, config_dir: &Path, cwd: &Path, since: Timestamp) -> Vec<Candidate> {
        let Ok(root) = Root::open(config_dir) else { return Vec::new() };
        let named = |dir: PathBuf| {
            let id = dir.file_name()?.to_str().filter(|name| is_id(name))?.to_owned();
            Some((id, dir.join(MAIN)))
        };
        let projects = root.dirs(&root.path().join("sessions")).unwrap_or_default();
        let sessions = projects.iter().flat_map(|project| root.dirs(project).unwrap_or_default());
        root.candidates(sessions.filter_map(named), cwd, since, about)
    }
}

fn look(config_dir: &Path, cwd: &Path, id: &str) -> Look<Located> {
    if !is_id(id) {
        return Err(format!("`{id}` is not an id of this agent"));
    }
    let root = Root::open(config_dir)?;
    for project in root.dirs(&root.path().join("sessions"))? {
        let found = root.judge(&project.join(id).join(MAIN), cwd, about)?;
        if found != Located::Missing {
            return Ok(found);
        }
    }
    Ok(Located::Missing)
}

#[derive(Deserialize)]
struct Bound {
    #[serde(rename = "environmentDisclosure")]
    environment: Environment,
}

#[derive(Deserialize)]
struct Environment {
    cwd: String,
}

fn about(head: &[u8]) -> About {
    let cwd = records::<Bound>(head).next().map(|bound| bound.environment.cwd);
    About { cwd, ..About::default() }
}
