//! Git as a command: bounded in time, in an environment of our own, and never running what a repository asks for.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use abide_sys::run::{self, CommandOutput, RunError};
use rustix::fs::MemfdFlags;

use crate::error::GitError;

/// When everything that one question asks of git has to be answered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GitDeadline {
    end: Instant,
    limit: Duration,
}

impl GitDeadline {
    pub(crate) fn within(limit: Duration) -> Self {
        Self { end: Instant::now() + limit, limit }
    }

    /// Half of what is left: for a question whose answer is not needed, so that it cannot use up all the time.
    pub(crate) fn half(self) -> Self {
        let left = self.left();
        Self { end: self.end - left / 2, ..self }
    }

    pub(crate) fn left(self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}

/// The arguments of a command.
pub(crate) trait GitArgs: IntoIterator<Item: AsRef<OsStr>> {}
impl<T: IntoIterator<Item: AsRef<OsStr>>> GitArgs for T {}

/// Which configuration is read is the operator's choice; every other `GIT_*` of theirs would redirect us.
const KEPT: [&str; 4] = ["GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL", "GIT_EXEC_PATH"];

/// Settings that hold for every call. Hooks and the monitor are programs that anything which writes to the repository
/// chooses, and an agent may; a collection of garbage in the background would outlive the bound.
const SETTINGS: [&str; 6] = [
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false",
    "submodule.recurse=false", "worktree.useRelativePaths=false",
];

/// Git in one directory, until a deadline.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    dir: PathBuf,
    deadline: GitDeadline,
    trusted: bool,
    lazy_fetch: bool,
    env: Vec<(String, OsString)>,
    /// Settings that overrule all others. By the environment: on the command line, a name with an equals sign in it would
    /// be another name.
    config: Vec<(String, OsString)>,
}

impl Git {
    /// Git in a directory of the operator's.
    pub(crate) fn at(dir: impl Into<PathBuf>, deadline: GitDeadline) -> Self {
        let (env, config) = (Vec::new(), Vec::new());
        Self { dir: dir.into(), deadline, trusted: false, lazy_fetch: false, env, config }
    }

    /// Git in the git directory `dir`, which the operator's git was in before, or which is in a tree of our own. It is
    /// named instead of looked for: one of another user's, or a bare one, may be trusted under another path only.
    pub(crate) fn of_repository(dir: impl Into<PathBuf>, deadline: GitDeadline) -> Self {
        let dir = dir.into();
        Self::at(&dir, deadline).with("GIT_DIR", dir)
    }

    /// Git in a tree of our own, whatever user its files belong to: a container may have written them as another user.
    pub(crate) fn in_tree(dir: impl Into<PathBuf>, deadline: GitDeadline) -> Self {
        Self { trusted: true, ..Self::at(dir, deadline) }
    }

    /// Allows fetching objects that a partial clone left out, which a checkout needs and a question must not do.
    pub(crate) fn fetching(self) -> Self {
        Self { lazy_fetch: true, ..self }
    }

    /// Turns off the filters that the settings of this repository alone define. In a clone only who worked there can have
    /// put them there, perhaps in a container, and git would run them out here to compare files.
    pub(crate) fn without_own_filters(mut self) -> Result<Self, RunError> {
        let out = self.try_run(["config", "-z", "--show-scope", "--get-regexp", r"^filter\."])?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let fields: Vec<_> = text.split('\0').collect();
        let own = fields.chunks_exact(2).filter(|pair| matches!(pair[0], "local" | "worktree"));
        let own: Vec<_> = own.filter_map(|pair| pair[1].split('\n').next()).collect();
        for key in own {
            self = self.configured(key, "");
        }
        Ok(self)
    }

    /// The same with half of the time that is left.
    pub(crate) fn hurried(&self) -> Self {
        Self { deadline: self.deadline.half(), ..self.clone() }
    }

    pub(crate) fn with(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The same with the setting `key`, whatever the configuration says.
    pub(crate) fn configured(mut self, key: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.config.push((key.into(), value.into()));
        self
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn deadline(&self) -> GitDeadline {
        self.deadline
    }

    /// What git prints and how it ends, whatever that is.
    pub(crate) fn try_run(&self, args: impl GitArgs) -> Result<CommandOutput, RunError> {
        self.run_fed(args, Stdio::null())
    }

    /// What git prints; an error if it fails.
    pub(crate) fn run(&self, args: impl GitArgs) -> Result<CommandOutput, RunError> {
        succeeded(self.try_run(args)?)
    }

    /// What git prints as text, without the line break at its end.
    pub(crate) fn text(&self, args: impl GitArgs) -> Result<String, RunError> {
        let mut text = String::from_utf8_lossy(&self.run(args)?.stdout).into_owned();
        if text.ends_with('\n') {
            text.pop();
        }
        Ok(text)
    }

    /// The path that git prints.
    pub(crate) fn path(&self, args: impl GitArgs) -> Result<PathBuf, RunError> {
        let mut bytes = self.run(args)?.stdout;
        bytes.pop_if(|last| *last == b'\n');
        Ok(OsString::from_vec(bytes).into())
    }

    /// The settings in the `file` (an option of `git config`) whose names match `pattern`.
    pub(crate) fn settings(&self, file: &str, pattern: &str) -> Result<Vec<(String, String)>, RunError> {
        let out = self.try_run(["config", "-z", file, "--get-regexp", pattern])?;
        let text = String::from_utf8_lossy(&out.stdout);
        let pairs = text.split('\0').filter_map(|entry| entry.split_once('\n'));
        Ok(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    /// What git prints when given `input`; an error if it fails.
    pub(crate) fn fed(&self, args: impl GitArgs, input: &[u8]) -> Result<CommandOutput, GitError> {
        Ok(succeeded(self.try_fed(args, input)?)?)
    }

    /// What git prints when given `input` and how it ends, whatever that is.
    pub(crate) fn try_fed(&self, args: impl GitArgs, input: &[u8]) -> Result<CommandOutput, GitError> {
        let file = || -> std::io::Result<File> {
            let mut file = File::from(rustix::fs::memfd_create("abide-git", MemfdFlags::CLOEXEC)?);
            file.write_all(input)?;
            file.rewind()?;
            Ok(file)
        };
        let file = file().map_err(|source| GitError::io("hold the input of", Path::new("git"), source))?;
        Ok(self.run_fed(args, file.into())?)
    }

    /// What git prints when given the contents of `input`; an error if it fails.
    pub(crate) fn fed_file(&self, args: impl GitArgs, input: File) -> Result<CommandOutput, RunError> {
        succeeded(self.run_fed(args, input.into())?)
    }

    fn run_fed(&self, args: impl GitArgs, input: Stdio) -> Result<CommandOutput, RunError> {
        let left = self.deadline.left();
        let late = |program| RunError::TimedOut { program, limit: self.deadline.limit };
        if left.is_zero() {
            return Err(late("git".to_owned()));
        }
        run::output_fed(&mut self.command(args), input, left).map_err(|error| match error {
            RunError::TimedOut { program, .. } => late(program),
            error => error,
        })
    }

    fn command(&self, args: impl GitArgs) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.as_bytes().starts_with(b"GIT_") && !KEPT.iter().any(|kept| name == *kept) {
                command.env_remove(name);
            }
        }
        command.arg("-C").arg(&self.dir).arg("--no-pager");
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        if self.trusted {
            let mut setting = OsString::from("safe.directory=");
            setting.push(&self.dir);
            command.arg("-c").arg(setting);
            // If the tree is broken, a repository that happens to be around it must not answer in its place.
            command.env("GIT_CEILING_DIRECTORIES", self.dir.parent().unwrap_or(&self.dir));
        }
        command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0");
        command.env("GIT_LFS_SKIP_SMUDGE", "1").env("GIT_EDITOR", "true").env("GIT_ASKPASS", "true");
        if !self.lazy_fetch {
            command.env("GIT_NO_LAZY_FETCH", "1");
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.env("GIT_CONFIG_COUNT", self.config.len().to_string());
        for (n, (key, value)) in self.config.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{n}"), key).env(format!("GIT_CONFIG_VALUE_{n}"), value);
        }
        command.args(args);
        command
    }
}

fn succeeded(output: CommandOutput) -> Result<CommandOutput, RunError> {
    if output.status.success() {
        return Ok(output);
    }
    Err(RunError::Failed { program: "git".to_owned(), status: output.status, stderr: output.stderr })
}

/// `path` as git wants it in a list of directories, where a colon would end it.
pub(crate) fn quoted(path: &Path) -> OsString {
    let mut bytes = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'\n' => bytes.extend_from_slice(b"\\n"),
            b'"' | b'\\' => bytes.extend_from_slice(&[b'\\', *byte]),
            _ => bytes.push(*byte),
        }
    }
    bytes.push(b'"');
    OsString::from_vec(bytes)
}
