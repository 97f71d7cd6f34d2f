//! A real terminal for a test to sit at: a tmux server of its own, driven by keys and read as a screen.

use std::path::PathBuf;
use std::process::Command;

use crate::{Sandbox, eventually};

const CONF: &str = "runtime/tmux.conf";

/// One terminal of a fixed size, running one command. Dropped with everything in it.
pub struct Terminal<'a> {
    sandbox: &'a Sandbox,
    socket: String,
}

impl<'a> Terminal<'a> {
    /// Opens a terminal of `cols` × `rows` that runs `argv` in the sandbox, and stays open when that ends.
    pub fn open(sandbox: &'a Sandbox, (cols, rows): (u16, u16), argv: &[&str]) -> Self {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let terminal = Self { sandbox, socket: format!("t{number}") };
        // A command that ends at once must still leave its screen behind.
        sandbox.write(CONF, "set -g remain-on-exit on\nset -g remain-on-exit-format \"\"\nset -g status off\nset -s escape-time 0\n");
        let mut command = terminal.tmux();
        command.args(["new-session", "-d", "-x", &cols.to_string(), "-y", &rows.to_string()]);
        for (name, value) in sandbox.env() {
            command.arg("-e").arg(format!("{}={}", name.to_string_lossy(), value.to_string_lossy()));
        }
        // The exit code goes through a file: tmux does not always learn the status of a pane that died.
        command.args(["-e", "TERM=tmux-256color", "--", "sh", "-c", "trap : INT; \"$@\"; echo $? >\"$0\""]);
        let out = command.arg(terminal.exit_file()).args(argv).output().unwrap();
        assert!(out.status.success(), "tmux: {}", String::from_utf8_lossy(&out.stderr));
        terminal
    }

    fn tmux(&self) -> Command {
        let mut command = self.sandbox.command("tmux");
        command.args(["-L", &self.socket, "-f"]).arg(self.sandbox.path(CONF));
        command
    }

    fn ask(&self, args: &[&str]) -> String {
        let out = self.tmux().args(args).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// Types keys as tmux names them: `C-b`, `Enter`, `Up`, or text.
    pub fn keys(&self, keys: &[&str]) {
        self.ask(&[&["send-keys", "-t", ":0"], keys].concat());
    }

    /// Types text as it is.
    pub fn text(&self, text: &str) {
        self.ask(&["send-keys", "-t", ":0", "-l", text]);
    }

    /// What is on the screen.
    pub fn screen(&self) -> String {
        self.ask(&["capture-pane", "-p", "-t", ":0"])
    }

    /// Waits until the screen holds `text`, and gives the screen.
    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        let mut last = String::new();
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(text, || {
                last = self.screen();
                last.contains(text).then(|| last.clone())
            })
        }));
        found.unwrap_or_else(|_| panic!("`{text}` never appeared; the screen was:\n{}", self.screen()))
    }

    /// Changes the size of the terminal.
    pub fn resize(&self, cols: u16, rows: u16) {
        self.ask(&["resize-window", "-t", ":0", "-x", &cols.to_string(), "-y", &rows.to_string()]);
    }

    fn exit_file(&self) -> PathBuf {
        self.sandbox.path(format!("runtime/{}.exit", self.socket))
    }

    /// The process that runs in the terminal.
    pub fn pid(&self) -> u32 {
        let shell = self.ask(&["display-message", "-p", "-t", ":0", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        eventually("the command to start", || {
            std::fs::read_to_string(&children).ok()?.split_whitespace().next()?.parse().ok()
        })
    }

    /// Waits until the command has ended, and gives its exit code.
    #[track_caller]
    pub fn wait_for_end(&self) -> i32 {
        eventually("the command to end", || {
            std::fs::read_to_string(self.exit_file()).ok()?.trim().parse().ok()
        })
    }

    /// Closes the terminal as a person closes a window: everything in it is hung up.
    pub fn close(self) {}
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.tmux().arg("kill-server").output();
    }
}
