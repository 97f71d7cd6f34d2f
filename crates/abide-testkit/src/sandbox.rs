//! A machine of a test's own: its home, its state, its configuration, its runtime directory, its environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Directories and an environment that belong to one test, and vanish with it.
pub struct Sandbox {
    dir: tempfile::TempDir,
    abide: PathBuf,
    env: BTreeMap<OsString, OsString>,
}

/// What a run of a command left.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Run {
    /// Asserts success and gives what was printed.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "failed:\n{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Asserts that it ended with `code` and gives what it complained about.
    #[track_caller]
    pub fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "unexpected end:\n{}{}", self.stdout, self.stderr);
        self.stderr
    }

    /// Asserts success and reads what was printed as JSON.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.ok()).unwrap_or_else(|e| panic!("not JSON: {e}"))
    }
}

impl Sandbox {
    /// A new machine whose `abide` is the program at `abide`.
    pub fn new(abide: impl Into<PathBuf>) -> Self {
        let dir = tempfile::Builder::new().prefix("abide-").tempdir().unwrap();
        let mut env = BTreeMap::new();
        for (name, sub) in [
            ("HOME", "home"),
            ("ABIDE_HOME", "home/.abide"),
            ("XDG_CONFIG_HOME", "home/.config"),
            ("XDG_RUNTIME_DIR", "runtime"),
            ("TMUX_TMPDIR", "runtime"),
            ("TMPDIR", "tmp"),
        ] {
            env.insert(name.into(), dir.path().join(sub).into());
        }
        env.insert("PATH".into(), std::env::var_os("PATH").unwrap_or_default());
        env.insert("TERM".into(), "xterm-256color".into());
        env.insert("SHELL".into(), "/bin/sh".into());
        env.insert("LANG".into(), "C.UTF-8".into());
        for sub in ["home", "runtime", "tmp", "work"] {
            std::fs::create_dir(dir.path().join(sub)).unwrap();
        }
        std::fs::set_permissions(dir.path().join("runtime"), std::fs::Permissions::from_mode(0o700)).unwrap();
        Self { dir, abide: abide.into(), env }
    }

    /// A path in the sandbox.
    pub fn path(&self, sub: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(sub)
    }

    /// The directory commands are run in.
    pub fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// abide's state directory.
    pub fn home(&self) -> PathBuf {
        self.path("home/.abide")
    }

    /// abide's configuration directory.
    pub fn config(&self) -> PathBuf {
        self.path("home/.config/abide")
    }

    /// Sets a variable for everything run from now on.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.env.insert(name.into(), value.into());
    }

    /// Removes a variable for everything run from now on.
    pub fn unset(&mut self, name: &str) {
        self.env.remove(OsStr::new(name));
    }

    /// The environment of the sandbox.
    pub fn env(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.env.iter()
    }

    /// Where the `abide` under test is.
    pub fn program(&self) -> &Path {
        &self.abide
    }

    /// A command in the sandbox's environment and nothing else's.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.env).current_dir(self.work()).stdin(Stdio::null());
        command
    }

    /// Runs abide.
    #[track_caller]
    pub fn abide<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        finish(self.command(&self.abide).args(args))
    }

    /// Writes a file in the sandbox, with the directories above it.
    pub fn write(&self, sub: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(sub);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, contents).unwrap();
        path
    }

    /// Puts a shell script called `name` first on the sandbox's `PATH`.
    pub fn add_program(&mut self, name: &str, script: &str) -> PathBuf {
        let path = self.write(Path::new("bin").join(name), format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let bin = self.path("bin");
        let old = self.env.get(OsStr::new("PATH")).cloned().unwrap_or_default();
        if !std::env::split_paths(&old).any(|dir| dir == bin) {
            let joined =
                std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&old))).unwrap();
            self.set("PATH", joined);
        }
        path
    }
}

/// Runs `command` to its end.
#[track_caller]
fn finish(command: &mut Command) -> Run {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    Run {
        code: out.status.code(),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    }
}
