//! Kimi Code.
//!
//! It gives a conversation its id at the first message, and a directory of its own with one transcript per agent in it.
//!
//! Hooks are read from its own directory only, from settings and plugins that are the operator's, so that none are set. Its
//! transcript says all that they would.

use std::path::{Path, PathBuf};

use abide_model::Timestamp;
use abide_model::activity::Says;
use abide_model::conversation::{Located, TranscriptCandidate};
use serde::Deserialize;
use serde_json::Value;

use crate::activity::{ActivitySigns, Statement, backwards};
use crate::agent::{Agent, Profile};
use crate::argv::{Grammar, is_uuid};
use crate::fatal::Fatal;
use crate::files::{About, FileResult, Root, records};
use crate::title::Said;

/// The main agent's transcript in the directory of a conversation. Its sub-agents have others.
const MAIN: &str = "agents/main/wire.jsonl";

#[derive(Debug)]
pub(crate) struct Kimi;

static PROFILE: Profile = Profile {
    name: "kimi",
    grammar: Grammar {
        program: "kimi",
        is_id,
        resume: &["--session", "-S", "--resume", "-r"],
        latest: &["--continue", "-c", "-C"],
        resuming: &["-S", "{id}"],
        // It refuses a profile for a conversation that has one.
        first_turn: &["--prompt", "-p", "--agent", "--agent-file"],
        switches: &["--auto", "--plan", "--yolo", "-y"],
        commands: &[
            "acp", "doctor", "export", "fork", "login", "logout", "mcp", "migrate", "provider", "upgrade",
            "web", "install-desktop", "rc", "remote", "server", "session", "update", "vis",
        ],
        ..Grammar::UNKNOWN
    },
    moved_by: &[("KIMI_CODE_HOME", "")],
    dir: ".kimi-code",
    package: Some(("@moonshot-ai/kimi-code", "2.1.0")),
    fatal: &[
        ("Session … not found", Fatal::NoConversation),
        // It offers the command for the directory in which the conversation was held.
        ("cd … && kimi -r", Fatal::NoConversation),
        ("No model configured", Fatal::Auth),
        ("error: unknown option", Fatal::Arguments),
    ],
    said: Some(Said { at: "/type", is: "turn.prompt", text: "/input" }),
    signs: ActivitySigns { rules: include_str!("rules/kimi.toml"), tail: Some(tail), ..ActivitySigns::NONE },
    ..Profile::UNKNOWN
};

fn id_of(dir: &Path) -> Option<String> {
    dir.file_name()?.to_str().filter(|name| is_id(name)).map(str::to_owned)
}

fn is_id(word: &str) -> bool {
    word.strip_prefix("session_").is_some_and(is_uuid)
}

impl Agent for Kimi {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn find_transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> FileResult<Located> {
        let root = Root::open(config_dir)?;
        for project in root.dirs(&root.path().join("sessions"))? {
            let found = root.judge(&project.join(id).join(MAIN), cwd, about)?;
            if found != Located::Missing {
                return Ok(found);
            }
        }
        Ok(Located::Missing)
    }

    fn discover(&self, config_dir: &Path, cwd: Option<&Path>, since: Timestamp) -> Vec<TranscriptCandidate> {
        let Ok(root) = Root::open(config_dir) else { return Vec::new() };
        let named = |dir: PathBuf| Some((id_of(&dir)?, dir.join(MAIN)));
        let projects = root.dirs(&root.path().join("sessions")).unwrap_or_default();
        let sessions = projects.iter().flat_map(|project| root.dirs(project).unwrap_or_default());
        root.candidates(sessions.filter_map(named), cwd, since, about)
    }

    fn named(&self, path: &Path) -> Option<String> {
        path.ends_with(MAIN).then(|| id_of(&self.belongings(path))).flatten()
    }

    fn belongings(&self, transcript: &Path) -> PathBuf {
        transcript.ancestors().nth(3).unwrap_or(transcript).to_owned()
    }
}

#[derive(Deserialize)]
struct KimiBinding {
    #[serde(rename = "environmentDisclosure")]
    environment: Environment,
}

#[derive(Deserialize)]
struct Environment {
    cwd: String,
}

fn about(head: &[u8]) -> About {
    let cwd = records::<KimiBinding>(head).next().map(|bound| bound.environment.cwd);
    About { cwd, ..About::default() }
}

/// It writes everything down, questions included.
fn tail(end: &[u8]) -> Option<Statement> {
    let mut resolved: Vec<Value> = Vec::new();
    for record in backwards(end) {
        match record["type"].as_str().unwrap_or_default() {
            "turn.ended" | "agent.turn.ended" | "prompt.completed" | "prompt.aborted" => {
                return Statement::of_transcript(Says::Idle, "says that the turn is over");
            }
            "turn.prompt" | "agent.turn.started" => {
                return Statement::of_transcript(Says::Working, "says that a turn has begun");
            }
            "interaction.resolved" => resolved.push(record["id"].clone()),
            "interaction.request" if !resolved.contains(&record["id"]) => {
                let question = record["request"]["action"].as_str().map(str::to_owned);
                let asks = Statement::new(Says::NeedsInput, "its transcript ends with a question");
                return Some(Statement { question, ..asks });
            }
            _ => {}
        }
    }
    None
}
