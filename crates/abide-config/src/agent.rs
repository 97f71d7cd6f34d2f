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
    Argv, Count, EnvName, Flag, HostPath, IdArgs, IdArgv, KnownAgent, List, OneOf, Reference, Shown, Text,
    TranscriptPattern, Variable,
};
use crate::schema::{Map, Optional, Section, Several, Tables, record};

record! {
    /// How an agent is run; whatever is unset is as abide knows the agent.
    Agent {
        /// Command that starts the agent.
        command: Option<Vec<String>> as Optional<Argv>,
        /// Agent that abide knows and that the command ends in, such as a wrapper of `claude`: it is started, followed and resumed like that one.
        like: Option<String> as Optional<KnownAgent>,
        /// Arguments added to the command.
        args: Option<Vec<String>> as Optional<List<Text>>,
        /// Directory in which an agent that abide knows keeps its configuration and conversations; gemini's ends in `.gemini`, opencode's in `opencode`, amp's in `amp`.
        config_dir: Option<PathBuf> as Optional<HostPath>,
        /// Variable given to the agent, and where its value comes from.
        env: BTreeMap<String, EnvRef> as Map<EnvName, Reference>,
        /// Whether abide sets hooks for each launch; unset, it does, except for codex, which asks about hooks: `true` vouches for abide's.
        hooks: Option<bool> as Optional<Flag>,
        /// Whether a resumed agent is told to go on with an interrupted turn; unset, it is not.
        continue_turn: Option<bool> as Optional<Flag>,
        /// Command that resumes conversation `{id}`, for an agent that abide does not know.
        resume: Option<Vec<String>> as Optional<IdArgv>,
        /// Command that begins a copy of conversation `{id}`, with the id `{new}` if it takes one, for such an agent.
        fork: Option<Vec<String>> as Optional<IdArgv>,
        /// Where the ids of its conversations come from, for such an agent.
        id: IdSource as Section<IdSource>,
        /// What such an agent says when it can not go on.
        fatal: LastWords as Section<LastWords>,
        /// What its screens mean; before what abide knows of an agent.
        screen: Vec<Sign> as Tables<Sign>,
        /// What its titles mean.
        title: Vec<Sign> as Tables<Sign>,
    }
}

record! {
    /// Where the ids of an agent's conversations come from.
    IdSource {
        /// Arguments that give a new conversation the id that abide makes for it.
        args: Option<Vec<String>> as Optional<IdArgs>,
        /// Variable that does, and that says which one to resume if there is no `resume`.
        env: Option<String> as Optional<Variable>,
        /// Files that hold its conversations, with the id in their path.
        file: Option<String> as Optional<TranscriptPattern>,
    }
}

record! {
    /// What an agent says when it can not go on, by what that means; `…` stands for anything.
    LastWords {
        /// It does not know the conversation.
        no_conversation: Vec<String> as Several<Text>,
        /// The conversation is open elsewhere.
        in_use: Vec<String> as Several<Text>,
        /// Nobody is logged in.
        auth: Vec<String> as Several<Text>,
        /// It does not understand its arguments.
        arguments: Vec<String> as Several<Text>,
    }
}

record! {
    /// What a screen or a title means. The first sign that fits counts.
    #[derive(serde::Serialize)]
    Sign {
        /// What the sign is called in explanations.
        name: String as Text,
        /// What it means if it fits.
        says: Says as OneOf<Says>,
        /// How many lines from the bottom it looks at.
        last: u32 as Count<500> = 12,
        /// One of these fits the lowest line.
        bottom: Vec<String> as Several<Shown>,
        /// Each of these fits some line.
        all: Vec<String> as Several<Shown>,
        /// One of these fits some line.
        any: Vec<String> as Several<Shown>,
        /// None of these fits any line.
        none: Vec<String> as Several<Shown>,
        /// The lowest line that one of these fits is what the operator is asked.
        question: Vec<String> as Several<Shown>,
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
                at.disagreement(
                    place,
                    "has no pattern to fit".to_owned(),
                    "one of bottom, all, any, or several",
                );
            }
        }
    }
}
