//! Where the transcripts of an agent are that only the configuration describes, as a pattern of paths.
//!
//! `*` stands for any part of one name and `**` for any directories; `{cwd}` is the directory that the agent runs in and
//! `{cwd-slug}` a name made of it; `{id}` is where the conversation's id is, and `*` in the last name if it is nowhere.

use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::Deserializer;

use crate::argv::{ID, is_plain_id, is_uuid};
use crate::files::{About, FileResult, Root, real};
use crate::projects;

/// How deep `**` goes.
const MAX_DEPTH: usize = 8;

/// Directories that one look goes through.
const MAX_DIRS: usize = 2000;

const CWD: &str = "{cwd}";
const SLUG: &str = "{cwd-slug}";

/// Keys under which agents write down where a conversation was held.
const CWD_KEYS: [&str; 5] =
    ["\"cwd\"", "\"directory\"", "\"workdir\"", "\"working_directory\"", "\"workingDirectory\""];

/// A pattern, filled for one directory.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    /// The names below the root of the file system.
    names: Vec<String>,
    /// The directory that a match is of, because the pattern has it.
    of: Option<PathBuf>,
}

impl Pattern {
    /// `pattern` for conversations held in `cwd`, or anywhere.
    pub(crate) fn new(pattern: &str, cwd: Option<&Path>) -> Self {
        let cwd = cwd.map(real);
        let slug = cwd.as_deref().map_or_else(|| "*".to_owned(), projects::name);
        let whole = match (&cwd, pattern.strip_prefix(CWD)) {
            (Some(cwd), Some(rest)) => format!("{}{rest}", cwd.display()),
            _ => pattern.to_owned(),
        };
        let names = |(at, name): (usize, &str)| match name.contains('*') && at == 0 && !whole.contains(ID) {
            true => name.replacen('*', ID, 1),
            false => name.replace(SLUG, &slug),
        };
        let mut names: Vec<String> =
            whole.rsplit('/').filter(|name| !name.is_empty()).enumerate().map(names).collect();
        names.reverse();
        let of = cwd.filter(|_| pattern.contains(CWD) || pattern.contains(SLUG));
        Self { names, of }
    }

    /// The directory that everything which `pattern` fits is in.
    pub(crate) fn base(pattern: &str) -> PathBuf {
        let plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '{']);
        let parts: Vec<_> = Path::new(pattern).components().collect();
        let dirs = parts.split_last().map_or(&[][..], |(_, dirs)| dirs);
        Path::new("/").join(dirs.iter().take_while(|part| plain(part)).collect::<PathBuf>())
    }

    /// The pattern of one conversation's transcript.
    pub(crate) fn of(&self, id: &str) -> Self {
        Self { names: self.names.iter().map(|name| name.replace(ID, id)).collect(), of: self.of.clone() }
    }

    /// The files that it fits below `root`, each with the id in its path.
    pub(crate) fn files(&self, root: &Root) -> FileResult<Vec<(String, PathBuf)>> {
        let plain = self.names.iter().take_while(|name| !name.contains(['*', '{'])).count();
        let plain = plain.min(self.names.len().saturating_sub(1));
        let base: PathBuf = Path::new("/").join(self.names[..plain].iter().collect::<PathBuf>());
        // The root has no links, and the pattern may.
        let Ok(base) = fs::canonicalize(base) else { return Ok(Vec::new()) };
        let mut walk = Walk { root, found: Vec::new(), dirs: 0 };
        walk.below(&base, &self.names[plain..], None, 0)?;
        Ok(walk.found)
    }

    /// What a transcript that it fits says about itself.
    pub(crate) fn about(&self, head: &[u8]) -> About {
        let cwd = recorded(head).or_else(|| Some(self.of.as_ref()?.to_string_lossy().into_owned()));
        About { cwd, ..About::default() }
    }
}

/// A search for files.
struct Walk<'a> {
    root: &'a Root,
    found: Vec<(String, PathBuf)>,
    dirs: usize,
}

impl Walk<'_> {
    fn below(&mut self, dir: &Path, names: &[String], id: Option<&str>, depth: usize) -> FileResult<()> {
        self.dirs += 1;
        if self.dirs > MAX_DIRS {
            return Err(format!("{} holds too many directories", self.root.path().display()));
        }
        let Some((name, rest)) = names.split_first() else { return Ok(()) };
        if name == "**" {
            self.below(dir, rest, id, depth)?;
            if depth < MAX_DEPTH {
                for inner in self.root.dirs(dir)? {
                    self.below(&inner, names, id, depth + 1)?;
                }
            }
            return Ok(());
        }
        let entries = match (rest.is_empty(), name.contains(['*', '{'])) {
            (_, false) => vec![dir.join(name)],
            (true, true) => self.root.files(dir)?,
            (false, true) => self.root.dirs(dir)?,
        };
        for path in entries {
            let Some(own) = path.file_name().and_then(|own| own.to_str()).and_then(|own| fits(name, own))
            else {
                continue;
            };
            let id = own.or(id);
            match rest.is_empty() {
                true => self.found.push((id.unwrap_or_default().to_owned(), path.clone())),
                false => self.below(&path, rest, id, depth)?,
            }
        }
        Ok(())
    }
}

/// Whether `name` is what `pattern` means, and the id in it if the pattern has one. Where the id could begin or end in
/// several places, it is the UUID among them, or else the longest.
fn fits<'a>(pattern: &str, name: &'a str) -> Option<Option<&'a str>> {
    let Some((before, behind)) = pattern.split_once(ID) else { return glob(pattern, name).then_some(None) };
    let ends = || name.char_indices().map(|(at, _)| at).chain([name.len()]);
    let starts = ends().filter(|start| glob(before, &name[..*start]));
    let ids = starts.flat_map(|start| {
        let ends = ends().filter(move |end| *end > start && glob(behind, &name[*end..]));
        ends.map(move |end| &name[start..end])
    });
    let id = ids.filter(|id| is_plain_id(id)).max_by_key(|id| (is_uuid(id), id.len()))?;
    Some(Some(id))
}

/// Whether `name` is what `pattern` means, in which `*` is anything.
fn glob(pattern: &str, name: &str) -> bool {
    let Some((before, behind)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(before) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| glob(behind, &rest[at..]))
}

/// The directory that the transcript beginning with `head` names first, under any of the keys that agents use.
fn recorded(head: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let value = |key: &str, at: usize| {
        // A quote within a quote is something said, and no key.
        let own = !text[..at].ends_with('\\');
        let value = text[at + key.len()..].trim_start().strip_prefix(':').filter(|_| own)?;
        let value = Deserializer::from_str(value).into_iter::<String>().next()?.ok()?;
        value.starts_with('/').then_some((at, value))
    };
    let first = |key: &str| text.match_indices(key).find_map(|(at, _)| value(key, at));
    CWD_KEYS.iter().filter_map(|key| first(key)).min().map(|(_, cwd)| cwd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_what_stands_in_its_place() {
        let uuid = "aaaaaaaa-1111-4111-8111-aaaaaaaaaaaa";
        let rollout = format!("rollout-2026-11-15T03-29-05-{uuid}.jsonl");
        for (pattern, name, id) in [
            ("{id}.json", "one.json", Some("one")),
            ("{id}.json", "one.jsonl", None),
            ("{id}.json", ".json", None),
            ("chat-{id}.json", "chat-one.two.json", Some("one.two")),
            ("chat-{id}", "talk-one", None),
            ("rollout-*-{id}.jsonl", rollout.as_str(), Some(uuid)),
            ("{id}.json", "--help.json", None),
        ] {
            assert_eq!(fits(pattern, name).flatten(), id, "{pattern} {name}");
        }
        assert_eq!(fits("*.json", "x.json"), Some(None));
        assert_eq!(fits("a*b*c", "a.b.b.c"), Some(None));
    }

    #[test]
    fn the_base_is_what_has_no_pattern_in_it() {
        for (pattern, base) in [
            ("/h/.foo/sessions/{cwd-slug}/{id}.jsonl", "/h/.foo/sessions"),
            ("/h/.foo/**/{id}.json", "/h/.foo"),
            ("/h/.foo/x-*/y/{id}", "/h/.foo"),
            ("{cwd}/.foo/{id}.json", "/"),
        ] {
            assert_eq!(Pattern::base(pattern), Path::new(base), "{pattern}");
        }
    }

    #[test]
    fn a_directory_that_is_mentioned_in_a_message_is_not_the_transcripts_own() {
        let said = r#"{"said": "my \"cwd\": \"/elsewhere\""} {"cwd": 5} {"meta": {"cwd" : "/here\u0041"}}"#;
        assert_eq!(recorded(said.as_bytes()).as_deref(), Some("/hereA"));
        assert_eq!(recorded(br#"{"cwd": "relative", "directory": "/x"}"#).as_deref(), Some("/x"));
        assert_eq!(recorded(b"\xff\"cwd\":"), None);
    }
}
