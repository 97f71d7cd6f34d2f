//! What the configuration says of an agent: how it is run, and of one that abide does not know everything else.

use std::collections::BTreeMap;
use std::path::PathBuf;

use abide_model::EnvRef;
use abide_model::activity::Says;
use abide_model::session::Described;

use crate::name::Name;
use crate::path::{Path, PathStep};
use crate::reader::ConfigReader;
use crate::rule::{
    ARGV, ENV_NAME, FLAG, HOST_PATH, ID_ARGS, ID_ARGV, KNOWN_AGENT, REFERENCE, SHOWN, TEXT,
    TRANSCRIPT_PATTERN, VARIABLE, count, list, one_of,
};
use crate::schema::SettingShape::{Leaf, Map, Section, Tables};
use crate::schema::record;

record! {
    /// How an agent is run; whatever is unset is as abide knows the agent.
    Agent {
        /// Command that starts the agent.
        command: Option<Vec<String>> [Leaf(ARGV)] default,
        /// Known agent that the command is a wrapper of, such as `claude`: it is started, tracked and resumed like that agent.
        like: Option<String> [Leaf(KNOWN_AGENT)] default,
        /// Arguments added to the command.
        args: Option<Vec<String>> [Leaf(list(&TEXT))] default,
        /// Directory for the configuration and conversations of a known agent; gemini's ends in `.gemini`, opencode's in `opencode`, amp's in `amp`.
        config_dir: Option<PathBuf> [Leaf(HOST_PATH)] default,
        /// Environment variable of the agent, and where its value comes from.
        env: BTreeMap<String, EnvRef> [Map(&ENV_NAME, &Leaf(REFERENCE))] default,
        /// Whether abide adds hooks to each launch. Default: yes, except for codex, which asks you about new hooks; `true` approves abide's.
        hooks: Option<bool> [Leaf(FLAG)] default,
        /// Whether a resumed agent continues an interrupted turn. Default: no.
        continue_turn: Option<bool> [Leaf(FLAG)] default,
        /// Command that resumes conversation `{id}`, for an agent that abide does not know.
        resume: Option<Vec<String>> [Leaf(ID_ARGV)] default,
        /// Command that starts a copy of conversation `{id}` with the id `{new}`, for such an agent.
        fork: Option<Vec<String>> [Leaf(ID_ARGV)] default,
        /// Where the ids of its conversations come from, for such an agent.
        id: IdSource [Section(IdSource::FIELDS)],
        /// Messages with which such an agent fails.
        fatal: LastWords [Section(LastWords::FIELDS)],
        /// What its screens mean; checked before abide's own signs.
        screen: Vec<Sign> [Tables(Sign::FIELDS)] default,
        /// What its titles mean.
        title: Vec<Sign> [Tables(Sign::FIELDS)] default,
    }
}

record! {
    /// Where the ids of an agent's conversations come from.
    IdSource {
        /// Arguments that set the id of a new conversation.
        args: Option<Vec<String>> [Leaf(ID_ARGS)] default,
        /// Variable that sets the id, and selects the conversation to resume if there is no `resume`.
        env: Option<String> [Leaf(VARIABLE)] default,
        /// Files that hold its conversations, with the id in their path.
        file: Option<String> [Leaf(TRANSCRIPT_PATTERN)] default,
    }
}

record! {
    /// Messages with which an agent fails, by meaning; `…` is any text.
    LastWords {
        /// It does not know the conversation.
        no_conversation: Vec<String> [Leaf(list(&TEXT))] default,
        /// The conversation is open elsewhere.
        in_use: Vec<String> [Leaf(list(&TEXT))] default,
        /// The agent is not logged in.
        auth: Vec<String> [Leaf(list(&TEXT))] default,
        /// It does not understand its arguments.
        arguments: Vec<String> [Leaf(list(&TEXT))] default,
    }
}

record! {
    /// What a screen or a title means. The first matching sign counts.
    #[derive(serde::Serialize)]
    Sign {
        /// Name of the sign in `abide explain`.
        name: String [Leaf(TEXT)],
        /// What it means if it matches.
        says: Says [Leaf(one_of::<Says>())],
        /// How many lines from the bottom are searched.
        last: u32 [Leaf(count(500))] = "12",
        /// One of these matches the lowest line.
        bottom: Vec<String> [Leaf(list(&SHOWN))] default,
        /// Each of these matches a line.
        all: Vec<String> [Leaf(list(&SHOWN))] default,
        /// One of these matches a line.
        any: Vec<String> [Leaf(list(&SHOWN))] default,
        /// None of these matches a line.
        none: Vec<String> [Leaf(list(&SHOWN))] default,
        /// The lowest line that matches one of these is the question to you.
        question: Vec<String> [Leaf(list(&SHOWN))] default,
    }
}

impl Agent {
    /// How it deals with conversations, if abide does not know it.
    pub fn described(&self) -> Described {
        let words = &self.fatal;
        let fatal = [
            ("no_conversation", &words.no_conversation),
            ("in_use", &words.in_use),
            ("auth", &words.auth),
            ("arguments", &words.arguments),
        ];
        let said = fatal.into_iter().filter(|(_, words)| !words.is_empty());
        Described {
            like: self.like.clone(),
            resume: self.resume.clone(),
            fork: self.fork.clone(),
            id_args: self.id.args.clone(),
            id_env: self.id.env.clone(),
            transcripts: self.id.file.clone(),
            fatal: said.map(|(meaning, words)| (meaning.to_owned(), words.clone())).collect(),
        }
    }

    pub(crate) fn overridden_by(mut self, over: &Self) -> Self {
        self.env.extend(over.env.clone());
        let either = |over: &Vec<String>, own: Vec<String>| if over.is_empty() { own } else { over.clone() };
        let signs = |over: &Vec<Sign>, own: Vec<Sign>| over.iter().cloned().chain(own).collect();
        Self {
            command: over.command.clone().or(self.command),
            like: over.like.clone().or(self.like),
            args: over.args.clone().or(self.args),
            config_dir: over.config_dir.clone().or(self.config_dir),
            env: self.env,
            hooks: over.hooks.or(self.hooks),
            continue_turn: over.continue_turn.or(self.continue_turn),
            resume: over.resume.clone().or(self.resume),
            fork: over.fork.clone().or(self.fork),
            id: IdSource {
                args: over.id.args.clone().or(self.id.args),
                env: over.id.env.clone().or(self.id.env),
                file: over.id.file.clone().or(self.id.file),
            },
            fatal: LastWords {
                no_conversation: either(&over.fatal.no_conversation, self.fatal.no_conversation),
                in_use: either(&over.fatal.in_use, self.fatal.in_use),
                auth: either(&over.fatal.auth, self.fatal.auth),
                arguments: either(&over.fatal.arguments, self.fatal.arguments),
            },
            screen: signs(&over.screen, self.screen),
            title: signs(&over.title, self.title),
        }
    }

    /// Refuses a sign that would fit any screen.
    pub(crate) fn check(&self, name: &Name, at: &mut ConfigReader<'_>) {
        for (key, signs) in [("screen", &self.screen), ("title", &self.title)] {
            let empty =
                |sign: &&Sign| [&sign.bottom, &sign.all, &sign.any].iter().all(|list| list.is_empty());
            for (index, _) in signs.iter().enumerate().filter(|(_, sign)| empty(sign)) {
                let keys = ["agents", name.as_str(), key].map(|key| PathStep::Key(key.to_owned()));
                let place = Path(keys.into_iter().chain([PathStep::Index(index)]).collect());
                at.disagreement(place, "has no pattern".to_owned(), "one of bottom, all, any, or several");
            }
        }
    }
}
