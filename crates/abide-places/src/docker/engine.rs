//! The operator's own command, `docker` or `podman`, run with a bound. What the two do differently is here.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

use abide_model::container::{EngineChoice, EngineKind};
use abide_sys::run::{self, CommandOutput, RunError};
use serde::de::DeserializeOwned;

use crate::place::PlaceError;

/// How long the engine may take to say what it has.
pub(super) const TO_ANSWER: Duration = Duration::from_secs(10);
/// How long it may take to make, start or remove something.
pub(super) const TO_ACT: Duration = Duration::from_secs(60);

/// What a podman command prints if it could not reach its service.
const PODMAN_SILENCE: [&str; 3] = ["unable to connect", "cannot connect", "connection refused"];
/// How often a listing is tried.
const LISTINGS: usize = 5;
/// What an engine says of what it does not have.
const ABSENT: [&str; 8] = [
    "no such container", "no such object", "no such image", "no such network", "no such volume", "not found",
    "is not connected", "image not known",
];

#[derive(Debug, Clone)]
pub(super) struct Engine {
    pub choice: EngineChoice,
}

impl Engine {
    /// What the command is called.
    pub fn program(&self) -> &'static str {
        match self.choice.kind {
            EngineKind::Docker => "docker",
            EngineKind::Podman => "podman",
        }
    }

    /// Whether the ids of users mean others inside of a container than outside, unless the engine is told otherwise.
    pub fn maps_users(&self) -> bool {
        self.choice.kind == EngineKind::Podman && !rustix::process::geteuid().is_root()
    }

    /// Bounds what is kept of a container's output: what runs inside can write there, too.
    pub fn log_flags(&self) -> [&'static str; 4] {
        match self.choice.kind {
            EngineKind::Docker => ["--log-driver", "json-file", "--log-opt", "max-size=1m"],
            EngineKind::Podman => ["--log-driver", "k8s-file", "--log-opt", "max-size=1mb"],
        }
    }

    /// The command with `args`, not yet run.
    pub fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(self.program());
        if let Some(context) = &self.choice.context {
            let flag = match self.choice.kind {
                EngineKind::Docker => "--context",
                EngineKind::Podman => "--connection",
            };
            command.args([flag, context]);
        }
        command.args(args).env("DOCKER_CLI_HINTS", "false");
        command
    }

    /// Runs the command with `args`, which must succeed.
    pub fn ask<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        limit: Duration,
    ) -> Result<CommandOutput, PlaceError> {
        let output = self.output(args, limit)?;
        if output.status.success() { Ok(output) } else { Err(self.failure(&output)) }
    }

    /// Runs the command with `args` and gives what it printed, whatever its exit status.
    pub fn output<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        limit: Duration,
    ) -> Result<CommandOutput, PlaceError> {
        run::output(&mut self.command(args), limit).map_err(|error| self.silence(&error.to_string()))
    }

    /// Like [`Engine::ask`], for what may be gone by now; whether it was there.
    pub fn ask_if_there<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        limit: Duration,
    ) -> Result<bool, PlaceError> {
        let output = self.output(args, limit)?;
        match output.status.success() {
            true => Ok(true),
            false if self.is_absence(&output.stderr) => Ok(false),
            false => Err(self.failure(&output)),
        }
    }

    /// The ids that a listing command prints, one on a line.
    pub fn ids<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<Vec<String>, PlaceError> {
        let args: Vec<S> = args.into_iter().collect();
        let list = || self.ask(&args, TO_ANSWER);
        // Podman refuses where something goes while it lists.
        let is_settled = |listed: &Result<_, _>| !matches!(listed, Err(PlaceError::Refused(_)));
        let listed = (1..LISTINGS).map(|_| list()).find(is_settled).unwrap_or_else(list)?;
        let mut ids: Vec<String> = listed.text().lines().map(str::to_owned).collect();
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    /// What `<kind> inspect` says of `ids`. What has gone since they were listed is not among the answers.
    pub fn inspect<T: DeserializeOwned>(&self, kind: &str, ids: &[String]) -> Result<Vec<T>, PlaceError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let output =
            self.output([kind, "inspect"].into_iter().chain(ids.iter().map(String::as_str)), TO_ANSWER)?;
        if !output.status.success() && !self.is_absence(&output.stderr) {
            return Err(self.failure(&output));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| {
            self.silence(&format!("{} {kind} inspect: an unexpected answer: {error}", self.program()))
        })
    }

    /// Why the command did not succeed: the engine refused, or it was never reached.
    pub fn failure(&self, output: &CommandOutput) -> PlaceError {
        let said = telling_line(&output.stderr);
        let answered = output.stderr.lines().any(|line| self.is_answer(line));
        if answered && output.status.code().is_some() {
            PlaceError::Refused(format!("{}: {said}", self.program()))
        } else {
            let (program, status, stderr) = (self.program().to_owned(), output.status, said.to_owned());
            self.silence(&RunError::Failed { program, status, stderr }.to_string())
        }
    }

    /// Whether a line is the engine's own word, or a complaint about the command line. A command that reached no engine speaks of
    /// missing files and contexts, too.
    fn is_answer(&self, line: &str) -> bool {
        let line = line.trim().to_ascii_lowercase();
        let line = line.trim_start_matches("docker: ");
        match self.choice.kind {
            EngineKind::Docker => {
                line.starts_with("error response from daemon")
                    || ["see 'docker", "run 'docker"].iter().any(|usage| line.starts_with(usage))
                    || line.starts_with("error: no such ")
            }
            EngineKind::Podman => {
                line.starts_with("error") && !PODMAN_SILENCE.iter().any(|text| line.contains(text))
            }
        }
    }

    /// Whether a command failed because the engine does not have what it was about.
    fn is_absence(&self, stderr: &str) -> bool {
        let mut lines = stderr.lines().filter(|line| !line.trim().is_empty()).peekable();
        let absent = |line: &str| ABSENT.iter().any(|text| line.to_ascii_lowercase().contains(text));
        lines.peek().is_some() && lines.all(|line| self.is_answer(line) && absent(line))
    }

    fn silence(&self, what: &str) -> PlaceError {
        let context = match &self.choice.context {
            Some(context) => format!("--context {context} "),
            None => String::new(),
        };
        PlaceError::Unknown(format!("{what}; see what `{} {context}version` says", self.program()))
    }
}

/// The line of a complaint that says what is wrong; warnings come before it.
fn telling_line(stderr: &str) -> &str {
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let line =
        lines.clone().find(|line| line.to_ascii_lowercase().contains("error")).or_else(|| lines.next());
    let line = line.unwrap_or("it failed without a word");
    line.trim_start_matches("docker: ").trim_start_matches("Error: ")
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn engine(kind: EngineKind) -> Engine {
        Engine { choice: EngineChoice { kind, context: Some("far".to_owned()) } }
    }

    fn failure(kind: EngineKind, stderr: &str) -> PlaceError {
        let status = ExitStatus::from_raw(1 << 8);
        engine(kind).failure(&CommandOutput { status, stdout: Vec::new(), stderr: stderr.to_owned() })
    }

    /// What commands print when no engine was reached.
    const SILENCE: [&str; 6] = [
        "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?",
        "failed to connect to the docker API at unix:///x: dial unix /x: connect: no such file or directory",
        "error during connect: Get \"http://x\": EOF",
        "permission denied while trying to connect to the daemon socket",
        "Failed to initialize: context \"far\": context not found: open /x: no such file or directory",
        "",
    ];

    #[test]
    fn only_an_engine_that_answered_has_refused() {
        let (docker, podman) = (EngineKind::Docker, EngineKind::Podman);
        let refusals = [
            (docker, "Error response from daemon: no space left on device"),
            (docker, "docker: Error response from daemon: Conflict. The name is in use."),
            (docker, "unknown flag: --frob\nSee 'docker create --help'."),
            (
                docker,
                "unknown flag: --frob\n\nUsage: docker …\n\nRun 'docker create --help' for more information",
            ),
            (podman, "Error: the container name \"x\" is already in use"),
        ];
        for (kind, stderr) in refusals {
            assert!(matches!(failure(kind, stderr), PlaceError::Refused(_)), "{stderr}");
        }
        let silence = SILENCE.map(|stderr| (docker, stderr)).into_iter();
        for (kind, stderr) in
            silence.chain([(podman, "Cannot connect to Podman. Please verify your connection")])
        {
            assert!(matches!(failure(kind, stderr), PlaceError::Unknown(_)), "{stderr}");
        }
    }

    #[test]
    fn an_error_says_what_the_engine_said_and_how_to_ask_it() {
        let stderr = "WARNING: limitation discarded.\nError response from daemon: no space left";
        assert_eq!(
            failure(EngineKind::Docker, stderr).to_string(),
            "docker: Error response from daemon: no space left"
        );
        assert_eq!(
            failure(EngineKind::Docker, "Cannot connect to the daemon").to_string(),
            "docker: exit status 1: Cannot connect to the daemon; see what `docker --context far version` says"
        );
    }

    #[test]
    fn what_is_not_there_is_told_from_what_is_not_known() {
        let docker = engine(EngineKind::Docker);
        for absent in [
            "Error: No such container: x\nError: No such container: y\n",
            "Error response from daemon: network x not found",
            "Error response from daemon: No such container: x",
        ] {
            assert!(docker.is_absence(absent), "{absent}");
        }
        for other in SILENCE.into_iter().chain(["Error: No such container: x\nCannot connect"]) {
            assert!(!docker.is_absence(other), "{other}");
        }
        let missing = "Error: no container with name or ID \"x\" found: no such container";
        assert!(engine(EngineKind::Podman).is_absence(missing));
    }
}
