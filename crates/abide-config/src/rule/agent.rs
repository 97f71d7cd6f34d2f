//! Rules for what the configuration says of an agent: commands, and patterns of files and screens.

use std::path::Path;

use super::{Rule, TEXT, Written, Wrong, host_path};

/// A program and its arguments; never a shell line.
pub(crate) const ARGV: Rule = Rule::new(
    "command",
    "a list of a program and its arguments, such as [\"make\", \"deps\"]",
    Written::List(&TEXT, names_no_program),
);

fn names_no_program(argv: &[&str]) -> Option<&'static str> {
    argv.first().is_none_or(|program| program.is_empty()).then_some("names no program")
}

/// Where a conversation's id goes.
const ID: &str = "{id}";

fn lacks_id(words: &[&str]) -> Option<&'static str> {
    // Without it the command would mean "the latest", which may be the conversation of another session.
    let lacks = !words.iter().any(|word| word.contains(ID));
    lacks.then_some("does not say where the conversation's id goes")
}

/// The command that goes on with a conversation of an agent abide does not know.
pub(crate) const ID_ARGV: Rule = Rule::new(
    "command for a conversation",
    "a list of a program and its arguments, one with {id} in it, such as [\"my-agent\", \"--resume\", \"{id}\"]",
    Written::List(&TEXT, |argv| names_no_program(argv).or_else(|| lacks_id(argv))),
);

/// The arguments that give a new conversation its id.
pub(crate) const ID_ARGS: Rule = Rule::new(
    "list of arguments",
    "a list of arguments, one with {id} in it, such as [\"--session-id\", \"{id}\"]",
    Written::List(&TEXT, lacks_id),
);

/// A pattern of the files in which an agent keeps its conversations.
pub(crate) const TRANSCRIPT_PATTERN: Rule = Rule::text(
    "pattern of transcripts",
    "a path that begins with /, ~/ or {cwd}/, with *, **, {cwd-slug}, and with {id} where the id is, \
     such as ~/.my-agent/sessions/{cwd-slug}/{id}.jsonl",
    transcript_pattern,
);

fn transcript_pattern(written: &str, home: &Path) -> Result<String, Wrong> {
    known_places(written, &[ID, "{cwd}", "{cwd-slug}"])?;
    let below = written.strip_prefix("{cwd}/");
    let path = below.map_or_else(|| host_path(written, home), |_| Ok(written.to_owned()))?;
    let last = path.rsplit('/').next().unwrap_or_default().matches('*').count();
    let because = |problem: &str| Err(Wrong::because(problem));
    match written.matches(ID).count() {
        _ if below.is_some_and(|below| below.contains("..")) => because("has `..` in it"),
        _ if written.trim_start_matches("{cwd}").contains("{cwd}") => because("has {cwd} inside it"),
        1 => Ok(path),
        // The one part of a name that is left open is the id.
        0 if last == 1 => Ok(path),
        0 => because("does not say where the conversation's id is"),
        _ => because("has the conversation's id in two places"),
    }
}

/// A pattern of text on a screen.
pub(crate) const SHOWN: Rule = Rule::text(
    "pattern of text",
    "text within a line, with ^ and $ for its ends, … for anything and {spinner} for one character of an animation",
    |pattern, _| {
        known_places(pattern, &["{spinner}"])?;
        let regex = [".*", ".+", "\\s", "\\d", "\\w", "\\."].into_iter().find(|part| pattern.contains(part));
        match regex {
            Some(part) => {
                Err(Wrong::because(format!("`{part}` is regular expression syntax, which is not supported")))
            }
            None if pattern.trim_matches(['^', '$', '…', ' ']).is_empty() => {
                Err(Wrong::because("fits everything"))
            }
            None => Ok(pattern.to_owned()),
        }
    },
);

/// Refuses a `{name}` that is none of `known`.
fn known_places(written: &str, known: &[&str]) -> Result<(), Wrong> {
    for (at, _) in written.match_indices('{') {
        let Some(end) = written[at..].find('}') else { continue };
        let place = &written[at..=at + end];
        let is_name = place[1..end].bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        if end > 1 && is_name && !known.contains(&place) {
            let nearest = abide_model::text::nearest(place, known.iter().copied()).map(str::to_owned);
            return Err(Wrong { nearest, ..Wrong::because(format!("`{place}` is not a placeholder")) });
        }
    }
    Ok(())
}
