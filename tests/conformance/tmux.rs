//! A program in a tmux server of its own.

use std::process::Command;

use crate::capture;
use crate::machine::{Machine, Side};
use crate::pair::{Key, Size};
use crate::screen::{Cursor, Screen};

const CONF: &str = "runtime/judge.conf";
const SETTINGS: &str = "\
set -g status off
set -g default-terminal xterm-256color
set -s escape-time 0
set -g remain-on-exit on
set -g remain-on-exit-format ''
set -g history-limit 10000
";
const STATE: &str = "#{cursor_x} #{cursor_y} #{cursor_flag} #{alternate_on} #{pane_width} #{pane_title}";

pub struct Tmux<'a> {
    machine: &'a Machine,
}

impl<'a> Tmux<'a> {
    pub fn start(machine: &'a Machine, (cols, rows): Size, argv: &[&str]) -> Self {
        machine.sandbox.write(CONF, SETTINGS);
        let tmux = Self { machine };
        let (cols, rows) = (cols.to_string(), rows.to_string());
        let mut command = tmux.command();
        command.args(["new-session", "-d", "-x", &cols, "-y", &rows, "--", "env"]);
        let out = command.args(machine.gated(Side::Tmux, argv)).output().unwrap();
        assert!(out.status.success(), "tmux: {}", String::from_utf8_lossy(&out.stderr));
        tmux
    }

    fn command(&self) -> Command {
        let mut command = self.machine.sandbox.command("tmux");
        command.args(["-u", "-L", "judge", "-f"]).arg(self.machine.sandbox.path(CONF));
        command
    }

    fn ask(&self, args: &[&str]) -> String {
        let out = self.command().args(args).output().unwrap();
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    pub fn resize(&self, (cols, rows): Size) {
        self.ask(&["resize-window", "-t", ":0", "-x", &cols.to_string(), "-y", &rows.to_string()]);
    }

    pub fn type_keys(&self, keys: &[Key]) {
        for key in keys {
            match key {
                Key::Named(name) => self.ask(&["send-keys", "-t", ":0", name]),
                Key::Text(text) => self.ask(&["send-keys", "-t", ":0", "-l", "--", text]),
            };
        }
    }

    pub fn screen(&self) -> Screen {
        let said =
            self.ask(&["display-message", "-p", "-t", ":0", STATE, ";", "capture-pane", "-epN", "-t", ":0"]);
        let (state, captured) = said.split_once('\n').unwrap();
        let mut fields = state.splitn(6, ' ');
        let mut number = || fields.next().unwrap().parse::<usize>().unwrap();
        let (col, row, visible, alternate, cols) = (number(), number(), number(), number(), number());
        Screen {
            rows: capture::rows(captured, cols),
            // Past the last column tmux says that the next character will wrap.
            cursor: Cursor { col: col.min(cols - 1), row, visible: visible == 1 },
            alternate: alternate == 1,
            title: fields.next().unwrap().to_owned(),
        }
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.ask(&["kill-server"]);
    }
}
