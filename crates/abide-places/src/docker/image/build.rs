//! Building, and looking into an image: what the engine's own command does, heard line by line.

use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use abide_model::container::{Image, ImageSource};
use abide_sys::run;

use super::super::engine::{TO_ACT, TO_ANSWER};
use super::super::{Docker, labels};
use super::{Told, refused};
use crate::place::{PlaceError, Stage, StageEvent};

/// How long a build may take.
const TO_BUILD: Duration = Duration::from_secs(7200);
/// How many of the last lines of a build that failed are shown.
const LAST_LINES: usize = 20;

/// How a command ended that was heard line by line.
#[derive(Debug)]
pub(super) struct HeardCommand {
    pub status: ExitStatus,
    pub last_lines: VecDeque<String>,
}

/// Why a build failed, before it is known what to do about it.
#[derive(Debug)]
pub(super) enum BuildFailure {
    Place(PlaceError),
    Output(VecDeque<String>),
}

impl BuildFailure {
    pub fn then(self, next: &str) -> PlaceError {
        match self {
            Self::Place(error) => error,
            Self::Output(lines) => {
                let output: Vec<String> = lines.into();
                PlaceError::NotBuilt { next: next.to_owned(), output: output.join("\n") }
            }
        }
    }
}

/// Says what the image has, a word on a line; the user to look for is the first argument. Only what every sh has is used.
const PROBE: &str = r#"
home=${HOME:-}
if [ -n "$1" ]; then
    home=
    while IFS=: read -r name _ _ _ _ dir _; do
        if [ "$name" = "$1" ]; then echo user; home=$dir; fi
    done </etc/passwd
fi
if command -v git >/dev/null 2>&1; then echo git; fi
if [ -d "$home" ] && [ "$home" != / ]; then echo "home $home"; fi
"#;

impl Docker {
    /// Runs the command with `args` and hands over each line that it prints.
    pub(super) fn watched<'a>(
        &self,
        args: impl IntoIterator<Item = &'a str>,
        limit: Duration,
        heard: &dyn Fn(&str),
    ) -> Result<HeardCommand, PlaceError> {
        let mut last_lines = VecDeque::new();
        let mut hear = |line: &str| {
            let line = plain(line);
            heard(&line);
            last_lines.push_back(line);
            if last_lines.len() > LAST_LINES {
                last_lines.pop_front();
            }
        };
        let status = run::watched(&mut self.engine.command(args), limit, &mut hear);
        let status = status.map_err(|error| PlaceError::Unknown(error.to_string()))?;
        Ok(HeardCommand { status, last_lines })
    }

    pub(super) fn run_build(
        &self,
        file: &Path,
        context: &Path,
        tag: &str,
        flags: &[String],
        told: Told<'_>,
    ) -> Result<(), BuildFailure> {
        let (file, context) = (file.to_string_lossy(), context.to_string_lossy());
        let mut args = vec!["build", "--force-rm", "--tag", tag, "--file", &file];
        args.extend(flags.iter().map(String::as_str));
        args.push(&context);
        let said = |line: &str| told(StageEvent::Said(Stage::Build, line.to_owned()));
        let built = self.watched(args, TO_BUILD, &said).map_err(BuildFailure::Place)?;
        if built.status.success() {
            return Ok(());
        }
        // A build fails by itself, or because the engine went away under it.
        self.engine.ask(["version"], TO_ANSWER).map_err(BuildFailure::Place)?;
        Err(BuildFailure::Output(built.last_lines))
    }

    /// Looks into the image `from`, and refuses one in which no instance could live. Gives the directory that a new home begins as.
    pub(super) fn probe(&self, from: &str, image: &Image) -> Result<Option<String>, PlaceError> {
        let user = image.user.as_deref().unwrap_or("");
        let labels = labels::of_owner(&self.owner);
        let args = ["run", "--rm", "--network", "none", "--entrypoint", "/bin/sh"].into_iter();
        let args = args.chain(labels.iter().map(String::as_str)).chain([from, "-c", PROBE, "probe", user]);
        let said = self.engine.output(args, TO_ACT)?;
        let name = match &image.source {
            ImageSource::Reference(base) => base.name.as_str(),
            ImageSource::Build(_) => "the image of the role's Dockerfile",
        };
        // What engines give for a command that is not there, or that cannot be run.
        if matches!(said.status.code(), Some(126 | 127)) {
            return Err(refused(format!(
                "{name} has no /bin/sh, which sessions need; choose an image with sh and git"
            )));
        }
        if !said.status.success() {
            return Err(self.engine.failure(&said));
        }
        let said = said.text();
        let has = |word: &str| said.lines().any(|line| line == word);
        let installs_git = image.packages.iter().any(|package| package.command == "git");
        if !has("git") && !installs_git {
            return Err(refused(format!(
                "{name} has no git, which sessions need; install it there, or choose another image"
            )));
        }
        if !user.is_empty() && !has("user") {
            return Err(refused(format!(
                "{name} has no user {user}, which devcontainer.json names; correct one of them"
            )));
        }
        Ok(said.lines().find_map(|line| line.strip_prefix("home ")).map(str::to_owned))
    }
}

/// A line that is longer than this is cut: a builder repeats each instruction, and some are whole scripts.
const LONGEST_LINE: usize = 200;

/// `line` without the colours and other escape sequences of a terminal.
fn plain(line: &str) -> String {
    let mut rest = line;
    let mut plain = String::with_capacity(line.len());
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        let end = after.strip_prefix('[').and_then(|after| after.find(|c: char| ('@'..='~').contains(&c)));
        rest = end.and_then(|end| after.get(end + 2..)).unwrap_or(after);
    }
    plain.push_str(rest);
    plain.retain(|c| !c.is_control());
    if let Some((end, _)) = plain.char_indices().nth(LONGEST_LINE) {
        plain.truncate(end);
        plain.push('…');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_build_is_text() {
        for (line, expected) in [
            ("\u{1b}[91ma\u{1b}[0m\u{1b}[91mb\u{1b}[0m c", "ab c"),
            ("Step 1/2\r", "Step 1/2"),
            ("\u{1b}]0;title\u{7}x", "]0;titlex"),
            ("cut \u{1b}[9", "cut [9"),
            (&"é".repeat(300), &format!("{}…", "é".repeat(200))),
        ] {
            assert_eq!(plain(line), expected);
        }
    }
}
