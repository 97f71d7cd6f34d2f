//! Transcripts kept as `projects/<directory>/…/<id>.jsonl`, the directory's name made from the working directory.
//!
//! That name cannot be read back and two directories may share one, so that what a transcript says of itself decides.

use std::path::{Path, PathBuf};

use abide_model::Timestamp;
use abide_model::conversation::{Located, TranscriptCandidate};
use serde::Deserialize;

use crate::argv::is_uuid;
use crate::files::{About, FileResult, Root, real, records};

/// Names longer than this are cut and end in a hash, where they are cut at all.
const MAX_NAME: usize = 200;

/// How an agent lays its projects out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProjectLayout {
    /// The directory of a project that holds its transcripts; empty if that is the project's own.
    pub(crate) inside: &'static str,
    /// What becomes of a long name.
    pub(crate) long: LongName,
}

/// What becomes of the name of a directory whose path is long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LongName {
    /// It is cut, and ends in a hash of the path.
    Cut,
    Whole,
}

impl ProjectLayout {
    /// The directory of the transcripts of conversations held in `cwd`, below `projects`.
    fn transcripts(self, projects: &Path, cwd: &Path) -> PathBuf {
        let cwd = real(cwd);
        let name = match self.long {
            LongName::Cut => name(&cwd),
            LongName::Whole => whole(&cwd),
        };
        self.below(&projects.join(name))
    }

    fn below(self, project: &Path) -> PathBuf {
        if self.inside.is_empty() { project.to_owned() } else { project.join(self.inside) }
    }
}

fn whole(cwd: &Path) -> String {
    cwd.to_string_lossy().encode_utf16().map(plain).collect()
}

fn plain(unit: u16) -> char {
    match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    }
}

/// The directory's name for `cwd`, which has no links, cut if it is long.
pub(crate) fn name(cwd: &Path) -> String {
    // The agents count in UTF-16: an emoji becomes two dashes.
    let units: Vec<u16> = cwd.to_string_lossy().encode_utf16().collect();
    let name: String = units.iter().copied().take(MAX_NAME).map(plain).collect();
    if units.len() <= MAX_NAME {
        return name;
    }
    let hash = units.iter().fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(*unit)));
    format!("{name}-{}", base36(hash.unsigned_abs()))
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// The record that says where a conversation was held.
#[derive(Deserialize)]
struct LocationRecord {
    cwd: String,
    #[serde(default, rename = "isSidechain")]
    sidechain: bool,
}

fn about(head: &[u8]) -> About {
    // Later records follow the agent from directory to directory; the first says where it began.
    let first = records::<LocationRecord>(head).next();
    first.map_or_else(About::default, |r| About { cwd: Some(r.cwd), sub_agent: r.sidechain, id: None })
}

/// Where the transcript of conversation `id` is.
pub(crate) fn find_transcript(
    config_dir: &Path,
    layout: ProjectLayout,
    cwd: &Path,
    id: &str,
) -> FileResult<Located> {
    let root = Root::open(config_dir)?;
    let projects = root.path().join("projects");
    let file = format!("{id}.jsonl");
    let own = layout.transcripts(&projects, cwd).join(&file);
    let found = root.judge(&own, cwd, about)?;
    if found != Located::Missing {
        return Ok(found);
    }
    // A conversation that was begun elsewhere stays there. Taken for missing, it would be started over.
    for project in root.dirs(&projects)? {
        let other = layout.below(&project).join(&file);
        if other != own && root.judge(&other, cwd, |_| About::default())? != Located::Missing {
            return Err(format!("{} belongs to another directory", other.display()));
        }
    }
    Ok(Located::Missing)
}

/// The conversation of a transcript. Sub-agents write `agent-….jsonl` beside the conversation that started them.
pub(crate) fn named(path: &Path) -> Option<String> {
    path.file_name()?.to_str()?.strip_suffix(".jsonl").filter(|id| is_uuid(id)).map(str::to_owned)
}

/// The transcripts that could be those of a session in `cwd`, or in any directory.
pub(crate) fn discover(
    config_dir: &Path,
    layout: ProjectLayout,
    cwd: Option<&Path>,
    since: Timestamp,
) -> Vec<TranscriptCandidate> {
    let Ok(root) = Root::open(config_dir) else { return Vec::new() };
    let projects = root.path().join("projects");
    let dirs = match cwd {
        Some(cwd) => vec![layout.transcripts(&projects, cwd)],
        None => {
            root.dirs(&projects).unwrap_or_default().iter().map(|project| layout.below(project)).collect()
        }
    };
    let files = dirs.iter().flat_map(|dir| root.files(dir).unwrap_or_default());
    root.candidates(files.filter_map(|path| Some((named(&path)?, path))), cwd, since, about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_that_is_no_letter_or_digit_becomes_a_dash() {
        for (cwd, expected) in [
            ("/home/dev/proj", "-home-dev-proj"),
            ("/home/dev/a.b", "-home-dev-a-b"),
            ("/home/dev/a_b", "-home-dev-a-b"),
            ("/srv/my proj~1", "-srv-my-proj-1"),
            ("/srv/caf\u{e9}", "-srv-caf-"),
            ("/srv/\u{1f980}", "-srv---"),
        ] {
            assert_eq!(name(Path::new(cwd)), expected);
        }
    }

    /// The endings were computed apart from this code, from the description of the rule.
    #[test]
    fn a_long_name_is_cut_and_ends_in_a_hash_of_the_whole_path() {
        let deep = format!("/srv/{}end", "deep_dir.x/".repeat(20));
        let wide = format!("/srv/{}", "\u{e9}\u{1f980}".repeat(80));
        let just = format!("/{}", "a".repeat(199));
        let over = format!("/{}", "a".repeat(200));
        assert_eq!(name(Path::new(&just)), just.replace('/', "-"), "200 units are not cut");
        for (cwd, ending) in [(&deep, "p-dir-ug99n0"), (&wide, "------3afcuf"), (&over, "aaaaa-b6ymvl")] {
            let name = name(Path::new(cwd));
            assert_eq!((name.len(), &name[195..]), (207, ending), "{cwd}");
        }
        let uncut = ProjectLayout { inside: "", long: LongName::Whole }
            .transcripts(Path::new("/p"), Path::new(&over));
        assert_eq!(uncut, Path::new("/p").join(over.replace('/', "-")));
    }
}
