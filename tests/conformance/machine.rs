//! A machine of a test's own, on which a program runs twice: in abide and in tmux.

use std::path::PathBuf;

use abide_testkit::Sandbox;

/// Which of the two terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Abide,
    Tmux,
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Self::Abide => "abide",
            Self::Tmux => "tmux",
        }
    }
}

/// The sandbox; everything that runs in it ends with it.
pub struct Machine {
    pub sandbox: Sandbox,
}

impl Machine {
    pub fn new() -> Self {
        Self { sandbox: Sandbox::new(env!("CARGO_BIN_EXE_abide")) }
    }

    /// Writes a file into the directory that both programs run in.
    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) {
        self.sandbox.write(PathBuf::from("work").join(name), contents);
    }

    /// Writes a file into the home directories of both programs.
    pub fn dotfile(&self, name: &str, contents: impl AsRef<[u8]>) {
        for side in [Side::Abide, Side::Tmux] {
            self.sandbox.write(self.home(side).join(name), contents.as_ref());
        }
    }

    /// A home for each side, so that what one program leaves there does not change what the other shows.
    pub fn home(&self, side: Side) -> PathBuf {
        self.sandbox.path("homes").join(side.name())
    }

    /// The command that starts `argv` as it will run on one side: in the same environment as on the other, and not
    /// before the terminals have their size. When it has ended, `[ended 0]` is left below what it restored.
    pub fn gated(&self, side: Side, argv: &[&str]) -> Vec<String> {
        let home = self.home(side).to_str().unwrap().to_owned();
        std::fs::create_dir_all(&home).unwrap();
        let gate = self.gate().to_str().unwrap().to_owned();
        let script = r#"until [ -e "$0" ]; do sleep 0.01; done; clear; "$@"; echo "[ended $?]"; read x"#;
        let mut command: Vec<String> =
            ["-i", "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8"].map(str::to_owned).into();
        command.extend([
            "TZ=UTC".to_owned(),
            "SHELL=/bin/sh".to_owned(),
            "PATH=/usr/local/bin:/usr/bin:/bin".to_owned(),
            format!("HOME={home}"),
            format!("TMUX_TMPDIR={home}"),
        ]);
        command.extend(["sh", "-c", script, &gate].map(str::to_owned));
        command.extend(argv.iter().map(|arg| (*arg).to_owned()));
        command
    }

    fn gate(&self) -> PathBuf {
        self.sandbox.path("runtime/go")
    }

    /// Lets what was started by [`Machine::gated`] begin.
    pub fn open_gate(&self) {
        std::fs::write(self.gate(), "").unwrap();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let root = self.sandbox.path("");
        let root = root.to_str().unwrap_or_default();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
            let about = [read("cmdline"), read("environ")].concat();
            let pid = entry.file_name();
            if String::from_utf8_lossy(&about).contains(root) && pid != *std::process::id().to_string() {
                let _ = std::process::Command::new("kill")
                    .arg("-KILL")
                    .arg(pid)
                    .stderr(std::process::Stdio::null())
                    .status();
            }
        }
    }
}
