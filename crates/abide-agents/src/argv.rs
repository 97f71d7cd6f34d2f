//! Reading and editing an agent's command line.
//!
//! A [`Grammar`] is what abide knows of an agent's arguments; what it does not know is passed on untouched. Nothing here
//! touches the disk or knows one agent from another.

use abide_model::conversation::{FirstMessage, Typed};

/// Where the id goes in a template.
pub(crate) const ID: &str = "{id}";

/// Where the id of a fork goes in a template.
pub(crate) const NEW: &str = "{new}";

/// What an argument that is no option means to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// The first message. Said once: replayed on a resume it would run again.
    Prompt,
    /// Something that every start needs, such as a directory.
    Kept,
}

/// What is known of an agent's command line. Options are spelled with their dashes.
#[derive(Debug)]
pub struct Grammar {
    /// The word that runs the agent.
    pub program: &'static str,
    /// Whether a word is an id of the agent's, and not a title, a number or `latest`.
    pub is_id: fn(&str) -> bool,
    /// Options that give a new conversation its id; the first is the one abide uses.
    pub preset: &'static [&'static str],
    /// Options that name an existing conversation.
    pub resume: &'static [&'static str],
    /// Options that mean the latest conversation.
    pub latest: &'static [&'static str],
    /// Words in the place of an id that mean the latest conversation.
    pub latest_words: &'static [&'static str],
    /// Options that only a picker of conversations has.
    pub picker: &'static [&'static str],
    /// Options that turn a resume into a fork.
    pub fork: &'static [&'static str],
    /// Sub-commands that name an existing conversation, word by word.
    pub resume_verb: &'static [&'static str],
    /// Sub-commands that fork one.
    pub fork_verb: &'static [&'static str],
    /// What is appended to resume `{id}`; empty if the agent cannot.
    pub resuming: &'static [&'static str],
    /// What is appended to fork `{id}`, as `{new}` if the agent takes an id for that; empty if it cannot.
    pub forking: &'static [&'static str],
    /// Options that belong to the first message only.
    pub first_turn: &'static [&'static str],
    /// Options that take no value. One that is missing here is taken to have the next word for its value.
    pub switches: &'static [&'static str],
    /// Options that take all words up to the next option.
    pub many: &'static [&'static str],
    /// What other arguments mean.
    pub words: Words,
    /// Sub-commands that are no conversation.
    pub commands: &'static [&'static str],
}

impl Grammar {
    pub const UNKNOWN: Self = Self {
        program: "",
        is_id: is_plain_id,
        preset: &[],
        resume: &[],
        latest: &[],
        latest_words: &[],
        picker: &[],
        fork: &[],
        resume_verb: &[],
        fork_verb: &[],
        resuming: &[],
        forking: &[],
        first_turn: &[],
        switches: &[],
        many: &[],
        words: Words::Kept,
        commands: &[],
    };

    /// What `argv` says about the conversation.
    pub fn typed(&self, argv: &[String]) -> Typed {
        let argv = &self.with_short_options_apart(argv);
        let spans = self.spans(argv);
        let with = |role: Role| spans.iter().filter(move |span| span.role == role);
        if with(Role::Command).next().is_some() {
            return Typed::Command;
        }
        let preset = with(Role::Preset).find_map(|span| span.id);
        let forks = with(Role::Fork).next().is_some();
        let resumed = with(Role::Resume).find_map(|span| span.id).filter(|_| !forks);
        let chosen = spans.iter().any(|span| span.role.chooses());
        match preset.or(resumed) {
            Some(id) => Typed::Conversation(Some(id.to_owned())),
            None if !forks && self.means_latest(&spans) => Typed::Latest,
            None if chosen => Typed::Conversation(None),
            None => Typed::Nothing,
        }
    }

    /// Whether `argv` has the first message in it.
    pub fn says(&self, argv: &[String]) -> bool {
        self.spans(&self.with_short_options_apart(argv)).iter().any(|span| span.role == Role::FirstTurn)
    }

    fn means_latest(&self, spans: &[ArgSpan<'_>]) -> bool {
        let word = |span: &ArgSpan<'_>| {
            let value = span.words.last().map_or("", |word| word.rsplit('=').next().unwrap_or_default());
            span.role == Role::Resume && self.latest_words.contains(&value)
        };
        spans.iter().any(|span| span.role == Role::Latest || word(span))
    }

    /// `argv` with conversation `id` in the place where it means the latest one; without a choice if there is none.
    pub fn latest_named(&self, argv: &[String], id: Option<&str>) -> Vec<String> {
        let filled = |id: &str| self.resuming.iter().map(|word| word.replace(ID, id)).collect::<Vec<_>>();
        let mut named = id.filter(|id| (self.is_id)(id)).map(filled);
        let argv = &self.with_short_options_apart(argv);
        let mut words: Vec<String> = argv[..self.head(argv)].to_vec();
        for span in self.spans(argv) {
            match span.role.chooses() {
                true => words.extend(named.take().unwrap_or_default()),
                false => words.extend(span.words.iter().cloned()),
            }
        }
        words
    }

    /// `argv` with `id` for its new conversation, unless it chooses one itself.
    pub fn fresh(&self, argv: &[String], id: Option<&str>) -> Vec<String> {
        match (self.preset.first(), id, self.typed(argv)) {
            (Some(option), Some(id), Typed::Nothing) => self.append(argv.to_vec(), [*option, id]),
            _ => argv.to_vec(),
        }
    }

    /// `argv` without anything that chooses a conversation.
    pub fn plain(&self, argv: &[String], first_message: FirstMessage) -> Vec<String> {
        let left_out = |role| role == Role::FirstTurn && first_message == FirstMessage::LeftOut;
        self.without(argv, |role| role.chooses() || left_out(role))
    }

    /// `argv` going on with conversation `id`, or as `template` says otherwise.
    pub fn resumed(&self, argv: &[String], template: &[&str], id: &str) -> Option<Vec<String>> {
        if template.is_empty() || !(self.is_id)(id) || self.typed(argv) == Typed::Command {
            return None;
        }
        let filled: Vec<String> = template.iter().map(|word| word.replace(ID, id)).collect();
        Some(self.append(self.plain(argv, FirstMessage::LeftOut), filled.iter().map(String::as_str)))
    }

    /// `argv` and `more`, which goes before the agent's own `--`: behind it it would be taken for a prompt.
    pub fn append<'a>(&self, mut argv: Vec<String>, more: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let own = argv.iter().skip(self.head(&argv)).position(|word| word == "--");
        let end = own.map_or(argv.len(), |at| self.head(&argv) + at);
        argv.splice(end..end, more.into_iter().map(str::to_owned));
        argv
    }

    fn without(&self, argv: &[String], dropped: impl Fn(Role) -> bool) -> Vec<String> {
        let argv = &self.with_short_options_apart(argv);
        let (head, _) = argv.split_at(self.head(argv));
        let spans = self.spans(argv);
        let kept = spans.iter().filter(|span| !dropped(span.role)).flat_map(|span| span.words);
        head.iter().chain(kept).cloned().collect()
    }

    /// How many leading words are the command itself: all up to the agent's own name, wherever a wrapper puts that.
    fn head(&self, argv: &[String]) -> usize {
        let named = |word: &String| word.rsplit('/').next() == Some(self.program);
        if let Some(at) = argv.iter().position(named) {
            return at + 1;
        }
        // An unknown wrapper may end its own arguments with `--`; a prompt behind one does not look like an option.
        let ends =
            |at: &usize| argv[*at] == "--" && argv.get(at + 1).is_none_or(|next| next.starts_with('-'));
        if let Some(at) = (1..argv.len()).find(ends) {
            return at + 1;
        }
        // Its first words may be a package or a script; a sentence is neither.
        let command = |word: &&String| !word.starts_with('-') && !word.contains(char::is_whitespace);
        let rest = argv.iter().skip(1).take_while(command).count();
        (1 + rest).min(argv.len())
    }

    /// `argv` with each short option, and each value, as a word of its own: `-cp` is `-c -p`, and `-rID` is `-r ID`.
    fn with_short_options_apart(&self, argv: &[String]) -> Vec<String> {
        let (head, rest) = argv.split_at(self.head(argv));
        let own = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
        let apart = rest[..own].iter().flat_map(|word| self.short_options_apart(word));
        head.iter().cloned().chain(apart).chain(rest[own..].iter().cloned()).collect()
    }

    /// The options in `word`, up to the first that is not known: that may have the rest for its value.
    fn short_options_apart(&self, word: &str) -> Vec<String> {
        let mut words = Vec::new();
        let mut rest = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
        while let Some(letter) = rest.chars().next().filter(|letter| letter.is_ascii_alphabetic()) {
            let (option, behind) = (format!("-{letter}"), &rest[1..]);
            let (role, is_switch) = (self.option_role(&option), self.switches.contains(&option.as_str()));
            let is_known = role != Role::Other || is_switch || self.many.contains(&option.as_str());
            if !is_known || behind.starts_with('=') {
                break;
            }
            words.push(option);
            rest = behind;
            if !is_switch && !matches!(role, Role::Latest | Role::Picker | Role::Fork) {
                words.extend(Some(rest.to_owned()).filter(|value| !value.is_empty()));
                return words;
            }
        }
        match (words.is_empty(), rest.is_empty()) {
            (true, _) => vec![word.to_owned()],
            (_, true) => words,
            (_, false) => words.into_iter().chain([format!("-{rest}")]).collect(),
        }
    }

    fn spans<'a>(&self, argv: &'a [String]) -> Vec<ArgSpan<'a>> {
        let mut rest = &argv[self.head(argv)..];
        let mut spans: Vec<ArgSpan<'a>> = Vec::new();
        while let Some(first) = rest.first() {
            let span = match first.strip_prefix('-') {
                Some("-") => ArgSpan { role: self.word_role(), words: rest, id: None },
                Some(name) if !name.is_empty() => self.option(rest),
                _ => self.word(rest, &spans),
            };
            rest = &rest[span.words.len()..];
            spans.push(span);
        }
        spans
    }

    fn option<'a>(&self, rest: &'a [String]) -> ArgSpan<'a> {
        let (option, joined) = match rest[0].split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (rest[0].as_str(), None),
        };
        let follows = |word: &&String| !word.starts_with('-');
        let values = rest[1..].iter().take_while(follows).count();
        let [switch, many] = [self.switches, self.many].map(|list| list.contains(&option));
        let role = self.option_role(option);
        let values = match role {
            _ if joined.is_some() || switch => 0,
            Role::Latest | Role::Picker | Role::Fork => 0,
            _ if many => values,
            // An option that is not known may as well be a switch before the sub-command.
            _ if self.verb(&rest[1..]).is_some_and(|verb| verb.id.is_some()) => 0,
            _ => values.min(1),
        };
        let words = &rest[..=values];
        let value = joined.or_else(|| words.get(1).map(String::as_str));
        ArgSpan { role, words, id: value.filter(|word| role.names() && (self.is_id)(word)) }
    }

    fn option_role(&self, option: &str) -> Role {
        [
            (self.preset, Role::Preset),
            (self.resume, Role::Resume),
            (self.latest, Role::Latest),
            (self.picker, Role::Picker),
            (self.fork, Role::Fork),
            (self.first_turn, Role::FirstTurn),
        ]
        .into_iter()
        .find_map(|(options, role)| options.contains(&option).then_some(role))
        .unwrap_or(Role::Other)
    }

    fn word<'a>(&self, rest: &'a [String], before: &[ArgSpan<'a>]) -> ArgSpan<'a> {
        let first = rest[0].as_str();
        if before.iter().any(|span| span.is_verb() && span.id.is_none()) && (self.is_id)(first) {
            // The id of a sub-command may come after options.
            return ArgSpan { role: Role::Resume, words: &rest[..1], id: Some(first) };
        }
        let leads = before.iter().all(ArgSpan::is_option);
        match self.verb(rest) {
            Some(verb) if leads || verb.id.is_some() => return verb,
            _ if leads && self.commands.contains(&first) => {
                return ArgSpan { role: Role::Command, words: &rest[..1], id: None };
            }
            _ => {}
        }
        ArgSpan { role: self.word_role(), words: &rest[..1], id: None }
    }

    /// The sub-command that `rest` begins with, if it is one that chooses a conversation.
    fn verb<'a>(&self, rest: &'a [String]) -> Option<ArgSpan<'a>> {
        let begins = |verb: &[&str]| {
            !verb.is_empty() && rest.len() >= verb.len() && verb.iter().zip(rest).all(|(a, b)| a == b)
        };
        let (verb, role) = [(self.resume_verb, Role::Resume), (self.fork_verb, Role::Fork)]
            .into_iter()
            .find(|(verb, _)| begins(verb))?;
        let id = rest.get(verb.len()).map(String::as_str).filter(|word| (self.is_id)(word));
        Some(ArgSpan { role, words: &rest[..verb.len() + usize::from(id.is_some())], id })
    }

    fn word_role(&self) -> Role {
        match self.words {
            Words::Prompt => Role::FirstTurn,
            Words::Kept => Role::Other,
        }
    }
}

/// What a run of arguments is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Preset,
    Resume,
    Latest,
    Picker,
    Fork,
    FirstTurn,
    Command,
    Other,
}

impl Role {
    /// Whether it says which conversation.
    fn chooses(self) -> bool {
        matches!(self, Self::Preset | Self::Resume | Self::Latest | Self::Picker | Self::Fork)
    }

    /// Whether its value is a conversation's id.
    fn names(self) -> bool {
        matches!(self, Self::Preset | Self::Resume)
    }
}

/// An option with its values, a sub-command with its id, or a word.
#[derive(Debug)]
struct ArgSpan<'a> {
    role: Role,
    words: &'a [String],
    id: Option<&'a str>,
}

impl ArgSpan<'_> {
    fn is_option(&self) -> bool {
        self.words[0].starts_with('-')
    }

    fn is_verb(&self) -> bool {
        self.role.chooses() && !self.is_option()
    }
}

/// Whether `word` is a UUID.
pub fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether `word` can be an id at all: one that began with a dash would be an option, one with a slash a path.
pub fn is_plain_id(word: &str) -> bool {
    (1..=128).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && word.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// Whether `help` speaks of `option`.
pub(crate) fn offers(help: &str, option: &str) -> bool {
    help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == option)
}
