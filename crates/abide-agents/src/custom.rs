//! Any other command that the configuration calls an agent.

use std::path::{Path, PathBuf};

use abide_model::Timestamp;
use abide_model::conversation::{Located, TranscriptCandidate, Typed};
use abide_model::session::Described;

use crate::agent::{Agent, Profile};
use crate::argv::{ID, NEW, is_plain_id};
use crate::fatal::{self, Fatal};
use crate::files::{FileResult, Root};
use crate::pattern::Pattern;
use crate::title;

/// An agent of which abide knows what the configuration says.
#[derive(Debug)]
pub struct Custom {
    name: String,
    described: Described,
}

static PROFILE: Profile = Profile { name: "custom", ..Profile::UNKNOWN };

impl Custom {
    /// The agent that the configuration calls `name` and describes so.
    pub fn new(name: &str, described: Described) -> Self {
        Self { name: name.to_owned(), described }
    }
}

impl Agent for Custom {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn program(&self) -> &str {
        &self.name
    }

    fn mints(&self) -> bool {
        self.described.id_args.is_some() || self.described.id_env.is_some()
    }

    fn id_env(&self) -> Option<&str> {
        self.described.id_env.as_deref()
    }

    /// What the operator typed chooses a conversation if it looks like what the templates would be filled to.
    fn typed(&self, argv: &[String]) -> Typed {
        let Described { id_args, resume, fork, .. } = &self.described;
        let named = [id_args, resume].into_iter().flatten().find_map(|template| given(template, argv));
        let forked = || fork.as_ref().and_then(|template| given(template, argv));
        match named {
            Some(id) => Typed::Conversation(Some(id)),
            None if forked().is_some() => Typed::Conversation(None),
            None => Typed::Nothing,
        }
    }

    fn fresh(&self, argv: &[String], minted: Option<&str>) -> Vec<String> {
        let mut argv = argv.to_vec();
        if let (Some(template), Some(id), Typed::Nothing) =
            (&self.described.id_args, minted, self.typed(&argv))
        {
            argv.extend(filled(template, id, None));
        }
        argv
    }

    /// Nothing is known of its arguments; a sentence among them is something said.
    fn says_at_start(&self, argv: &[String]) -> bool {
        argv.iter().skip(1).any(|word| word.contains(char::is_whitespace))
    }

    /// Its transcripts may be those of an agent that is known.
    fn title(&self, transcript: &Path) -> Option<String> {
        let said = crate::KNOWN.iter().filter_map(|known| known.profile().said);
        said.filter_map(|said| title::of(transcript, said)).next()
    }

    fn is_described(&self) -> bool {
        let Described { resume, id_args, id_env, transcripts, .. } = &self.described;
        resume.is_some() || id_args.is_some() || id_env.is_some() || transcripts.is_some()
    }

    fn resumes(&self) -> bool {
        self.described.resume.is_some() || self.described.id_env.is_some()
    }

    /// The configured command stands for itself: what the operator added to the first start is not appended to it,
    /// because nothing is known of where it would go. Without one, the variable alone says which conversation.
    fn resume(&self, argv: &[String], id: &str) -> Option<Vec<String>> {
        let by_variable = || self.described.id_env.is_some().then(|| argv.to_vec());
        let template = self.described.resume.as_ref().map(|template| filled(template, id, None));
        template.or_else(by_variable).filter(|_| is_plain_id(id))
    }

    fn fork(&self, _argv: &[String], id: &str, minted: Option<&str>) -> Option<Vec<String>> {
        let template = self.described.fork.as_ref().filter(|_| is_plain_id(id))?;
        Some(filled(template, id, minted))
    }

    fn default_dir(&self, home: &Path) -> PathBuf {
        self.described.transcripts.as_deref().map_or_else(|| home.to_owned(), Pattern::base)
    }

    fn fatal(&self, screen: &str) -> Option<Fatal> {
        let of = |(kind, words): (&String, &Vec<String>)| {
            let kind = Fatal::called(kind)?;
            words.iter().find_map(|words| fatal::find(&[(words.as_str(), kind)], screen))
        };
        self.described.fatal.iter().find_map(of)
    }

    fn find_transcript(&self, config_dir: &Path, cwd: &Path, id: &str) -> FileResult<Located> {
        let Some(pattern) = &self.described.transcripts else {
            return Err(format!("it is unknown where {} keeps its conversations", self.name));
        };
        if !config_dir.exists() {
            // It makes that when there is something to put there.
            return Ok(Located::Missing);
        }
        let root = Root::open(config_dir)?;
        let pattern = Pattern::new(pattern, Some(cwd));
        for (_, path) in pattern.of(id).files(&root)? {
            let found = root.judge(&path, cwd, |head| pattern.about(head))?;
            if found != Located::Missing {
                return Ok(found);
            }
        }
        Ok(Located::Missing)
    }

    fn discover(&self, config_dir: &Path, cwd: Option<&Path>, since: Timestamp) -> Vec<TranscriptCandidate> {
        let Some(pattern) = &self.described.transcripts else { return Vec::new() };
        let Ok(root) = Root::open(config_dir) else { return Vec::new() };
        let pattern = Pattern::new(pattern, cwd);
        let named = pattern.files(&root).unwrap_or_default();
        root.candidates(named, cwd, since, |head| pattern.about(head))
    }
}

fn filled(template: &[String], id: &str, new: Option<&str>) -> Vec<String> {
    template.iter().map(|word| word.replace(ID, id).replace(NEW, new.unwrap_or_default())).collect()
}

/// The id that `argv` has in the place where `template` has it, after the same word.
fn given(template: &[String], argv: &[String]) -> Option<String> {
    let at = template.iter().position(|word| word.contains(ID))?;
    let (before, behind) = template[at].split_once(ID)?;
    // An id that is a word of its own is known by what is in front of it.
    let leader = if before.is_empty() { Some(template.get(at.checked_sub(1)?)?) } else { None };
    let id = |(index, word): (usize, &String)| {
        let led = leader.is_none_or(|leader| index > 0 && argv.get(index - 1) == Some(leader));
        let id = word.strip_prefix(before)?.strip_suffix(behind)?;
        (led && is_plain_id(id)).then(|| id.to_owned())
    };
    argv.iter().enumerate().find_map(id)
}
