//! Rules for what the configuration says of an agent: commands, and patterns of files and screens.

use std::path::{Path, PathBuf};

use toml_edit::Value;

use super::{HostPath, Leaf, List, Spelling, Text, Wrong, text};

/// A program and its arguments; never a shell line.
pub(crate) struct Argv;

impl Leaf for Argv {
    type Value = Vec<String>;
    const SPELLING: Spelling = Spelling::list("command", || {
        "a list of a program and its arguments, such as [\"make\", \"deps\"]".to_owned()
    });

    fn parse(value: &Value, home: &Path) -> Result<Vec<String>, Vec<Wrong>> {
        let argv = List::<Text>::parse(value, home)?;
        match argv.first() {
            Some(program) if !program.is_empty() => Ok(argv),
            _ => Err(vec![Wrong::because("names no program")]),
        }
    }
}

/// Where a conversation's id goes.
const ID: &str = "{id}";

/// Words of a command line, one of them with the conversation's id in it.
fn with_id(words: Vec<String>) -> Result<Vec<String>, Vec<Wrong>> {
    // Without it the command would mean "the latest", which may be the conversation of another session.
    match words.iter().any(|word| word.contains(ID)) {
        true => Ok(words),
        false => Err(vec![Wrong::because("does not say where the conversation's id goes")]),
    }
}

/// The command that goes on with a conversation of an agent abide does not know.
pub(crate) struct IdArgv;

impl Leaf for IdArgv {
    type Value = Vec<String>;
    const SPELLING: Spelling = Spelling::list("command for a conversation", || {
        "a list of a program and its arguments, one with {id} in it, such as [\"my-agent\", \"--resume\", \"{id}\"]"
            .to_owned()
    });

    fn parse(value: &Value, home: &Path) -> Result<Vec<String>, Vec<Wrong>> {
        with_id(Argv::parse(value, home)?)
    }
}

/// The arguments that give a new conversation its id.
pub(crate) struct IdArgs;

impl Leaf for IdArgs {
    type Value = Vec<String>;
    const SPELLING: Spelling = Spelling::list("list of arguments", || {
        "a list of arguments, one with {id} in it, such as [\"--session-id\", \"{id}\"]".to_owned()
    });

    fn parse(value: &Value, home: &Path) -> Result<Vec<String>, Vec<Wrong>> {
        with_id(List::<Text>::parse(value, home)?)
    }
}

/// A pattern of the files in which an agent keeps its conversations.
pub(crate) struct TranscriptPattern;

impl Leaf for TranscriptPattern {
    type Value = String;
    const SPELLING: Spelling = Spelling::text("pattern of transcripts", || {
        "a path that begins with /, ~/ or {cwd}/, with *, **, {cwd-slug}, and with {id} where the id is, \
         such as ~/.my-agent/sessions/{cwd-slug}/{id}.jsonl"
            .to_owned()
    });

    fn parse(value: &Value, home: &Path) -> Result<String, Vec<Wrong>> {
        let written = text(value, Self::SPELLING.noun)?;
        known_places(written, &[ID, "{cwd}", "{cwd-slug}"])?;
        let below = written.strip_prefix("{cwd}/");
        let path = below.map_or_else(|| HostPath::parse(value, home), |_| Ok(PathBuf::from(written)))?;
        let last = path.file_name().unwrap_or_default().to_string_lossy().matches('*').count();
        let because = |problem: &str| Err(vec![Wrong::because(problem)]);
        match written.matches(ID).count() {
            _ if below.is_some_and(|below| below.contains("..")) => because("has `..` in it"),
            _ if written.trim_start_matches("{cwd}").contains("{cwd}") => because("has {cwd} inside it"),
            1 => Ok(path.to_string_lossy().into_owned()),
            // The one part of a name that is left open is the id.
            0 if last == 1 => Ok(path.to_string_lossy().into_owned()),
            0 => because("does not say where the conversation's id is"),
            _ => because("has the conversation's id in two places"),
        }
    }
}

/// A pattern of text on a screen.
pub(crate) struct Shown;

impl Leaf for Shown {
    type Value = String;
    const SPELLING: Spelling = Spelling::text("pattern of text", || {
        "text within a line, with ^ and $ for its ends, … for anything and {spinner} for one character of an animation"
            .to_owned()
    });

    fn parse(value: &Value, _: &Path) -> Result<String, Vec<Wrong>> {
        let pattern = text(value, Self::SPELLING.noun)?;
        known_places(pattern, &["{spinner}"])?;
        let regex = [".*", ".+", "\\s", "\\d", "\\w", "\\."].into_iter().find(|part| pattern.contains(part));
        match regex {
            Some(part) => Err(vec![Wrong::because(format!(
                "`{part}` is regular expression syntax, which is not supported"
            ))]),
            None if pattern.trim_matches(['^', '$', '…', ' ']).is_empty() => {
                Err(vec![Wrong::because("fits everything")])
            }
            None => Ok(pattern.to_owned()),
        }
    }
}

/// Refuses a `{name}` that is none of `known`.
fn known_places(written: &str, known: &[&str]) -> Result<(), Vec<Wrong>> {
    for (at, _) in written.match_indices('{') {
        let Some(end) = written[at..].find('}') else { continue };
        let place = &written[at..=at + end];
        let is_name = place[1..end].bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        if end > 1 && is_name && !known.contains(&place) {
            let nearest = abide_model::text::nearest(place, known.iter().copied()).map(str::to_owned);
            return Err(vec![Wrong { nearest, ..Wrong::because(format!("`{place}` is not a placeholder")) }]);
        }
    }
    Ok(())
}
