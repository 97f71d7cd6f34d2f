//! What every agent answers.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use abide_model::conversation::{Begin, Located, TranscriptCandidate, Typed};
use abide_model::{Pid, Timestamp};

use crate::activity::ActivitySigns;
use crate::argv::{self, Grammar};
use crate::fatal::{self, Fatal};
use crate::open;
use crate::projects::{self, ProjectLayout};
use crate::title::{self, Said};

/// What is known of an agent that is mere data.
#[derive(Debug)]
pub struct Profile {
    /// What it is called.
    pub name: &'static str,
    pub grammar: Grammar,
    /// Variables that move its directory, the strongest first, each with where below its value the directory is.
    pub moved_by: &'static [(&'static str, &'static str)],
    /// Its directory if none is set, below the home directory.
    pub dir: &'static str,
    /// The npm package that has it, and the version that is known to work; `None` if it is not installed that way.
    pub package: Option<(&'static str, &'static str)>,
    /// What it says when it cannot go on, and what that means.
    pub fatal: &'static [(&'static str, Fatal)],
    /// The record of its transcript that holds what the operator said.
    pub said: Option<Said>,
    /// The variable that makes it go on by itself with a turn that was cut.
    pub continues: Option<(&'static str, &'static str)>,
    /// Whether it goes on with a conversation in another directory than the one in which it was held.
    pub resumes_anywhere: bool,
    /// Whether how it is run depends on what its `--help` offers.
    pub asked_for_help: bool,
    /// How it shows what it is doing.
    pub signs: ActivitySigns,
    /// How one conversation is taken out of the file that holds all of them; `None` if each has files of its own.
    pub shared: Option<Shared>,
    /// How its transcripts are laid out, where they are by project.
    pub(crate) projects: Option<ProjectLayout>,
}

/// How a conversation is kept whose transcript holds others too.
#[derive(Debug, Clone, Copy)]
pub struct Shared {
    /// The transcript, in the agent's directory.
    pub file: &'static str,
    /// Takes the conversation out of the transcript, in a form that the agent takes back.
    pub extract: fn(&Path, &str) -> Result<Vec<u8>, String>,
    /// Endings of names beside the transcript, of files that are part of it.
    pub beside: &'static [&'static str],
    /// The arguments with which the agent takes `{file}` back.
    pub give_back: &'static [&'static str],
}

impl Profile {
    pub const UNKNOWN: Self = Self {
        name: "",
        grammar: Grammar::UNKNOWN,
        moved_by: &[],
        dir: "",
        package: None,
        fatal: &[],
        said: None,
        continues: None,
        resumes_anywhere: false,
        asked_for_help: false,
        signs: ActivitySigns::NONE,
        shared: None,
        projects: None,
    };
}

/// An agent: how it is started and resumed, and where its conversations are.
pub trait Agent: Debug + Sync {
    /// What is known of it that is mere data.
    fn profile(&self) -> &Profile;

    /// Where in `config_dir` the transcript of conversation `id` is, which was held in `cwd`.
    fn transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> Located {
        if !(self.profile().grammar.is_id)(id) {
            return Located::Unknown(format!("`{id}` is not an id of this agent"));
        }
        self.find_transcript(config_dir, cwd, id).unwrap_or_else(Located::Unknown)
    }

    /// The same for what is an id of this agent; an error says why it cannot be known.
    fn find_transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> Result<Located, String> {
        let layout = self.profile().projects.ok_or("it is not known where its conversations are")?;
        projects::find_transcript(config_dir, layout, cwd, id)
    }

    /// The transcripts in `config_dir` of conversations held in `cwd`, or in any directory, and written to since `since`,
    /// the newest first. Those of sub-agents, and those recorded in another directory, are not among them.
    fn discover(&self, config_dir: &Path, cwd: Option<&Path>, since: Timestamp) -> Vec<TranscriptCandidate> {
        let layout = self.profile().projects;
        layout.map(|layout| projects::discover(config_dir, layout, cwd, since)).unwrap_or_default()
    }

    /// The conversation that a file below its directory belongs to, as far as the name says.
    fn named(&self, path: &Path) -> Option<String> {
        self.profile().projects.and_then(|_| projects::named(path))
    }

    /// What is kept of a conversation besides its `transcript`: the file itself, or the directory that it is in.
    fn belongings(&self, transcript: &Path) -> PathBuf {
        transcript.to_owned()
    }

    /// Whether `file`, which is among what belongs to a conversation, only says that the agent runs: it is gone with it.
    fn is_passing(&self, _file: &Path) -> bool {
        false
    }

    /// The conversations that process `pid` has open: usually one, or none as it keeps nothing open.
    fn open_in(&self, config_dir: &Path, pid: Pid) -> Vec<String> {
        open::below(config_dir, pid).iter().filter_map(|path| self.named(path)).collect()
    }

    /// What the operator said first in the conversation of `transcript`.
    fn title(&self, transcript: &Path) -> Option<String> {
        title::of(transcript, self.profile().said?)
    }

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

    /// The variable that sets its conversation, if there is one.
    fn id_env(&self) -> Option<&str> {
        None
    }

    /// What the operator's `argv` says about the conversation.
    fn typed(&self, argv: &[String]) -> Typed {
        self.profile().grammar.typed(argv)
    }

    /// Whether `argv` has the first message in it.
    fn says_at_start(&self, argv: &[String]) -> bool {
        self.profile().grammar.says(argv)
    }

    /// `argv` with conversation `id` where it means the latest one; in a new one if there is none.
    fn latest_named(&self, argv: &[String], id: Option<&str>) -> Vec<String> {
        self.profile().grammar.latest_named(argv, id)
    }

    /// The conversations that its running processes say they are in, each with the process. What a process of another
    /// program that has the same number by now would be in is not among them.
    fn published(&self, _config_dir: &Path) -> Vec<(String, Pid)> {
        Vec::new()
    }

    /// `argv` with the `minted` id for its new conversation, if the agent takes one and `argv` chooses none itself.
    fn fresh(&self, argv: &[String], minted: Option<&str>) -> Vec<String> {
        self.profile().grammar.fresh(argv, minted)
    }

    /// `argv` going on with conversation `id`: every other argument as it was, except the first message, which was said
    /// already. `None` if the agent cannot.
    fn resume(&self, argv: &[String], id: &str) -> Option<Vec<String>> {
        let grammar = &self.profile().grammar;
        grammar.resumed(argv, grammar.resuming, id)
    }

    /// Whether it has an option to continue a conversation.
    fn resumes(&self) -> bool {
        !self.profile().grammar.resuming.is_empty()
    }

    /// Whether anything is known of its conversations: how one gets its id, where they are, or how one is resumed.
    fn is_described(&self) -> bool {
        true
    }

    /// `argv` in a new conversation, `minted` if the agent takes an id for it, that begins as a copy of `id`. `None` if
    /// the agent cannot.
    fn fork(&self, argv: &[String], id: &str, minted: Option<&str>) -> Option<Vec<String>> {
        let grammar = &self.profile().grammar;
        let words: Vec<String> =
            grammar.forking.iter().map(|word| word.replace(argv::NEW, minted.unwrap_or_default())).collect();
        grammar.resumed(argv, &words.iter().map(String::as_str).collect::<Vec<_>>(), id)
    }

    /// The command line that starts the session as decided. `None` if the agent cannot.
    fn command(&self, argv: &[String], begin: &Begin) -> Option<Vec<String>> {
        let anew = |id, first_message| self.fresh(&self.profile().grammar.plain(argv, first_message), id);
        match begin {
            Begin::Fresh { minted, first_message } => Some(anew(minted.as_deref(), *first_message)),
            Begin::Restart { id, first_message } => Some(anew(Some(id), *first_message)),
            Begin::Resume { id } => self.resume(argv, id),
            Begin::AsTyped { .. } => Some(argv.to_vec()),
        }
    }

    /// The directory in which it keeps its conversations as its environment says; `None` if that says nothing.
    fn moved_to(&self, env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let set = |(var, below): &(&str, &str)| {
            env(var).filter(|value| !value.is_empty()).map(|value| Path::new(&value).join(below))
        };
        self.profile().moved_by.iter().find_map(set)
    }

    /// The directory in which it keeps its conversations if nothing says otherwise.
    fn default_dir(&self, home: &Path) -> PathBuf {
        home.join(self.profile().dir)
    }

    /// The variable that makes the agent use `config_dir`, or why there is none and what to do about that.
    fn config_env(&self, config_dir: &Path) -> Result<(&'static str, OsString), String> {
        let name = self.name();
        let Some((var, below)) = self.profile().moved_by.first() else {
            return Err(format!(
                "abide has no way to pass `config_dir` to {name}; remove it, and set `id.file` to where its conversations are"
            ));
        };
        let value = if below.is_empty() {
            Some(config_dir)
        } else {
            config_dir.ends_with(below).then(|| config_dir.parent()).flatten()
        };
        let value = value.ok_or_else(|| format!("`config_dir` of {name} must end in `{below}`"))?;
        Ok((*var, value.as_os_str().to_owned()))
    }

    /// Why the agent cannot go on, if the last `screen` of one that ended says so. A living agent's screen may hold
    /// these words for any reason.
    fn fatal(&self, screen: &str) -> Option<Fatal> {
        fatal::find(self.profile().fatal, screen)
    }

    /// `argv` as the installed version, whose `--help` said `help`, should be run.
    fn adjust_for(&self, _help: &str, argv: Vec<String>) -> Vec<String> {
        argv
    }
}

#[cfg(test)]
mod tests {
    use crate::KNOWN;

    #[test]
    fn what_is_installed_is_what_the_tests_run() {
        let pinned = include_str!("../../../tests/agents/package.json");
        let pinned: serde_json::Value = serde_json::from_str(pinned).unwrap();
        let packages: Vec<_> = KNOWN.iter().filter_map(|agent| agent.profile().package).collect();
        assert!(!packages.is_empty());
        for (name, version) in packages {
            assert_eq!(pinned["dependencies"][name], version, "{name}");
        }
    }
}
