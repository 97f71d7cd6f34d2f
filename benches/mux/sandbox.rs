//! A machine of its own for one multiplexer during one measurement, and nothing left of it afterwards.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Result;
use crate::clock::Moment;
use crate::control::Control;
use crate::inner;
use crate::processes::{Process, belonging_to, kill_belonging_to};
use crate::rows::Mux;
use crate::sweeper::Sweeper;
use crate::terminal::{COLUMNS, ROWS, ends_within};

/// The directory of a run, with a sandbox per measurement in it.
pub struct Root {
    // Swept while the benchmark still waits, so that nothing is left when the prompt is back.
    _sweeper: Sweeper,
    dir: PathBuf,
    made: std::cell::Cell<u32>,
}

impl Root {
    /// A new directory, looked after by a sweeper.
    pub fn new() -> Result<Self> {
        // A socket's path must fit 107 bytes: short names, here and below.
        let dir = tempfile::Builder::new().prefix("mux-").tempdir()?.keep();
        let sweeper = Sweeper::start(&dir)?;
        Ok(Self { _sweeper: sweeper, dir, made: 0.into() })
    }

    /// A sandbox in which `mux` is used.
    pub fn sandbox<'a>(&self, mux: &'a Mux) -> Result<Sandbox<'a>> {
        self.made.set(self.made.get() + 1);
        Sandbox::new(mux, self.dir.join(self.made.get().to_string()))
    }
}

/// Private directories, the multiplexer's configuration in them, and the line to the programs inside its sessions.
pub struct Sandbox<'a> {
    /// The multiplexer.
    pub mux: &'a Mux,
    /// Commands the programs inside.
    pub control: Control,
    dir: PathBuf,
    bench: PathBuf,
    server: Option<Child>,
}

impl<'a> Sandbox<'a> {
    fn new(mux: &'a Mux, dir: PathBuf) -> Result<Self> {
        for sub in ["home", "work", "run", "ctl", "tmp"] {
            fs::create_dir_all(dir.join(sub))?;
            // screen and others refuse a runtime directory that somebody else could enter.
            fs::set_permissions(dir.join(sub), fs::Permissions::from_mode(0o700))?;
        }
        for (path, contents) in mux.row.files {
            fs::write(dir.join(path), contents)?;
        }
        let control = Control::listen(&dir.join("ctl"))?;
        let mut sandbox = Self { mux, control, dir, bench: std::env::current_exe()?, server: None };
        if !mux.row.server.is_empty() {
            sandbox.start_server()?;
        }
        Ok(sandbox)
    }

    fn start_server(&mut self) -> Result<()> {
        let mut command = self.command(self.mux.row.server, "")?;
        self.server = Some(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let run = self.dir.join("run");
        let listens = |entry: std::io::Result<fs::DirEntry>| Ok(entry?.file_type()?.is_socket());
        let deadline = Moment::after(Duration::from_secs(10));
        while !fs::read_dir(&run)?.map(listens).collect::<Result<Vec<_>>>()?.contains(&true) {
            if deadline.remaining().is_zero() {
                return Err("the server opened no socket".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// What marks everything that belongs to this sandbox: with the final slash, lest `…/1` mean `…/10` as well.
    fn mark(&self) -> String {
        format!("{}/", self.dir.display())
    }

    /// The command that `template` makes for session `name`, in the sandbox's environment and nothing else's.
    pub fn command(&self, template: &[&str], name: &str) -> Result<Command> {
        let mut argv = Vec::new();
        for &word in template {
            match word {
                "{args}" => argv.extend(self.program_args(name)),
                "{script}" => argv.push(self.script(name)?),
                _ => argv.push(self.fill_in(word, name)),
            }
        }
        let (program, args) = argv.split_first().ok_or("an empty command")?;
        let mut command = Command::new(program);
        command.args(args).current_dir(self.dir.join("work")).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs([
            ("TERM", "xterm-256color"),
            ("COLORTERM", "truecolor"),
            ("LANG", "C.UTF-8"),
            ("SHELL", "/bin/sh"),
        ]);
        command.env("HOME", self.dir.join("home")).env("TMPDIR", self.dir.join("tmp"));
        command.env("XDG_RUNTIME_DIR", self.dir.join("run")).env("MUX_BENCH", self.mark());
        command.envs(self.mux.row.env.iter().map(|(key, value)| (key, self.fill_in(value, name))));
        Ok(command)
    }

    /// Runs the command that `template` makes to its end.
    pub fn run(&self, template: &[&str], name: &str) -> Result<()> {
        let errors = self.dir.join("errors");
        let mut command = self.command(template, name)?;
        // To a file: a server that inherits a pipe would keep it open for as long as it lives.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(fs::File::create(&errors)?);
        let mut child = command.spawn().map_err(|err| format!("{command:?}: {err}"))?;
        if !ends_within(&child, Duration::from_secs(20)) {
            child.kill()?;
            child.wait()?;
            return Err(format!("{template:?} did not end").into());
        }
        let status = child.wait()?;
        if !status.success() {
            let said = fs::read_to_string(&errors).unwrap_or_default();
            return Err(format!("{template:?}: {status}: {}", said.trim()).into());
        }
        Ok(())
    }

    /// The multiplexer's processes, without the programs inside its sessions.
    pub fn processes(&self) -> Result<Vec<Process>> {
        let mut found = belonging_to(&self.mark())?;
        found.retain(|process| !process.runs(&self.bench));
        Ok(found)
    }

    fn fill_in(&self, word: &str, name: &str) -> String {
        let path = |path: &Path| path.display().to_string();
        word.replace("{mux}", &path(&self.mux.program))
            .replace("{program}", &path(&self.bench))
            .replace("{dir}", &path(&self.dir))
            .replace("{name}", name)
            .replace("{cols}", &COLUMNS.to_string())
            .replace("{rows}", &ROWS.to_string())
    }

    fn program_args(&self, name: &str) -> [String; 3] {
        [inner::RUN.to_owned(), self.control.dir().display().to_string(), name.to_owned()]
    }

    /// An executable file that runs the program of session `name`.
    pub fn script(&self, name: &str) -> Result<String> {
        let path = self.dir.join("home").join(format!("run-{name}"));
        let program = self.bench.display();
        fs::write(&path, format!("#!/bin/sh\nexec '{program}' {}\n", self.program_args(name).join(" ")))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        Ok(path.display().to_string())
    }
}

impl Drop for Sandbox<'_> {
    fn drop(&mut self) {
        // By force and not by the multiplexer's own command: it works for all of them, hung ones too.
        if let Err(err) = kill_belonging_to(&self.mark()) {
            eprintln!("{}: {err}", self.mux.row.name);
        }
        if let Some(mut server) = self.server.take() {
            let _ = server.wait();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}
