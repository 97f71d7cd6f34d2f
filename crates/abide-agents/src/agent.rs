//! What every agent answers.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use abide_model::Timestamp;
use abide_model::conversation::{Begin, Candidate, Located, Typed};

use crate::argv::Grammar;
use crate::fatal::{self, Fatal};

/// What is known of an agent that is mere data.
#[derive(Debug)]
pub struct Profile {
    /// What it is called.
    pub name: &'static str,
    /// Its command line.
    pub grammar: Grammar,
    /// Variables that move its directory, the strongest first, each with where below its value the directory is.
    pub moved_by: &'static [(&'static str, &'static str)],
    /// Its directory if none is set, below the home directory.
    pub dir: &'static str,
    /// What it says when it can not go on, and what that means.
    pub fatal: &'static [(&'static str, Fatal)],
}

/// An agent: how it is started and resumed, and where its conversations are.
pub trait Agent: Debug + Sync {
    /// What is known of it that is mere data.
    fn profile(&self) -> &Profile;

    /// Where in `config_dir` the transcript of conversation `id` is, which was held in `cwd`.
    fn transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> Located;

    /// The transcripts in `config_dir` of conversations held in `cwd` and written to since `since`, the newest first.
    /// Those of sub-agents, and those recorded in another directory, are not among them.
    fn discover(&self, config_dir: &Path, cwd: &Path, since: Timestamp) -> Vec<Candidate>;

    /// What it is called.
    fn name(&self) -> &str {
        self.profile().name
    }

    /// What is looked for on PATH.
    fn program(&self) -> &str {
        self.profile().grammar.program
    }

    /// Whether a new conversation can be given its id.
    fn mints(&self) -> bool {
        !self.profile().grammar.preset.is_empty()
    }

    /// What the operator's `argv` says about the conversation.
    fn typed(&self, argv: &[String]) -> Typed {
        self.profile().grammar.typed(argv)
    }

    /// `argv` with the `minted` id for its new conversation, if the agent takes one and `argv` chooses none itself.
    fn fresh(&self, argv: &[String], minted: Option<&str>) -> Vec<String> {
        self.profile().grammar.fresh(argv, minted)
    }

    /// `argv` going on with conversation `id`: every other argument as it was, except the first message, which was said
    /// already. `None` if the agent can not.
    fn resume(&self, argv: &[String], id: &str) -> Option<Vec<String>> {
        let grammar = &self.profile().grammar;
        grammar.resumed(argv, grammar.resuming, id)
    }

    /// Whether it can be told to go on with a conversation.
    fn resumes(&self) -> bool {
        !self.profile().grammar.resuming.is_empty()
    }

    /// `argv` in a new conversation, `minted` if the agent takes an id for it, that begins as a copy of `id`. `None` if
    /// the agent can not.
    fn fork(&self, argv: &[String], id: &str, minted: Option<&str>) -> Option<Vec<String>> {
        let grammar = &self.profile().grammar;
        let forked = grammar.resumed(argv, grammar.forking, id)?;
        Some(match (grammar.preset.first(), minted) {
            (Some(option), Some(minted)) => grammar.append(forked, [*option, minted]),
            _ => forked,
        })
    }

    /// The command line that starts the session as decided. `None` if the agent can not.
    fn command(&self, argv: &[String], begin: &Begin) -> Option<Vec<String>> {
        let anew = |id, prompt| self.fresh(&self.profile().grammar.plain(argv, prompt), id);
        match begin {
            Begin::Fresh { minted, prompt } => Some(anew(minted.as_deref(), *prompt)),
            Begin::Restart { id, prompt } => Some(anew(Some(id), *prompt)),
            Begin::Resume { id } => self.resume(argv, id),
            Begin::AsTyped { .. } => Some(argv.to_vec()),
        }
    }

    /// The directory in which it keeps its conversations: as configured, else as its environment says.
    fn config_dir(
        &self,
        env: &dyn Fn(&str) -> Option<OsString>,
        home: &Path,
        configured: Option<&Path>,
    ) -> PathBuf {
        let profile = self.profile();
        let set = |(var, below): &(&str, &str)| {
            env(var).filter(|value| !value.is_empty()).map(|value| Path::new(&value).join(below))
        };
        let moved = || profile.moved_by.iter().find_map(set);
        configured.map(Path::to_owned).or_else(moved).unwrap_or_else(|| home.join(profile.dir))
    }

    /// The variable that makes the agent use `config_dir`; `None` if it can not be told to.
    fn config_env(&self, config_dir: &Path) -> Option<(&'static str, OsString)> {
        let (var, below) = self.profile().moved_by.first()?;
        let value = if below.is_empty() {
            Some(config_dir)
        } else {
            config_dir.ends_with(below).then(|| config_dir.parent()).flatten()
        };
        value.map(|value| (*var, value.as_os_str().to_owned()))
    }

    /// Why the agent can not go on, if the last `screen` of one that ended says so. A living agent's screen may hold
    /// these words for any reason.
    fn fatal(&self, screen: &str) -> Option<Fatal> {
        fatal::find(self.profile().fatal, screen)
    }

    /// `argv` as the installed version, whose `--help` said `help`, should be run.
    fn adjust_for(&self, _help: &str, argv: Vec<String>) -> Vec<String> {
        argv
    }
}
