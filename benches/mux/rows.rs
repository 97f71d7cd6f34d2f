//! The multiplexers, each a row of command templates. To compare another one, add its row.
//!
//! In a template `{mux}` is the multiplexer's program, `{name}` the session, `{dir}` the sandbox, `{cols}` and `{rows}`
//! the size. `{program}` is the program to run and `{args}` its arguments; `{script}` is an executable file that runs
//! it, for those that take a single word.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One multiplexer.
pub struct Row {
    /// What it is called here, and its program on `PATH`.
    pub name: &'static str,
    /// The Debian package that has it.
    pub package: Option<&'static str>,
    /// Its arguments to print its version.
    pub version: &'static [&'static str],
    /// Variables it needs to keep to the sandbox.
    pub env: &'static [(&'static str, &'static str)],
    /// Its configuration: as it comes, but for 10,000 lines of scrollback and the full width.
    pub files: &'static [(&'static str, &'static str)],
    /// A server that has to run before there can be a session.
    pub server: &'static [&'static str],
    /// Starts a session that nobody is attached to. Empty where there is no such thing.
    pub start: &'static [&'static str],
    /// Attaches the terminal to a session, or runs the program on it where nothing can be started beforehand.
    pub attach: &'static [&'static str],
    /// How much it knows about what is on the screen.
    pub screen: Screen,
    /// Its keys for tabs, if it has any.
    pub tabs: Option<Tabs>,
}

/// How several programs are reached from one terminal.
#[derive(Debug, Clone, Copy)]
pub struct Tabs {
    /// Opens a shell in a new one.
    pub open: &'static [u8],
    /// Goes back to the one before.
    pub back: &'static [u8],
}

/// What a multiplexer keeps of a session's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// Nothing: bytes pass through.
    None,
    /// Lines to draw at the next attach; questions are left to the terminal.
    Drawn,
    /// A terminal model, which answers a status query also when nobody is attached.
    Answering,
}

/// The peer that the musts are measured against.
pub const REFERENCE: &str = "tmux";
/// No multiplexer at all.
pub const BARE: &str = "bare";
/// The multiplexer that the musts are about.
pub const OURS: &str = "abide";

const NOTHING: Row = Row {
    name: "",
    package: None,
    version: &[],
    env: &[],
    files: &[],
    server: &[],
    start: &[],
    attach: &[],
    screen: Screen::None,
    tabs: None,
};

/// All that can be compared, in the order of the tables.
pub const ROWS: &[Row] = &[
    Row { name: BARE, attach: &["{program}", "{args}"], ..NOTHING },
    Row {
        name: OURS,
        version: &["--version"],
        env: &[("ABIDE_HOME", "{dir}/home/.abide")],
        start: &["{mux}", "load", "{program}", "--detach", "--name", "{name}", "--", "{args}"],
        attach: &["{mux}", "hardline", "{name}"],
        screen: Screen::Answering,
        tabs: Some(Tabs { open: b"\x02c", back: b"\x02p" }),
        ..NOTHING
    },
    Row {
        name: REFERENCE,
        package: Some("tmux"),
        version: &["-V"],
        env: &[("TMUX_TMPDIR", "{dir}/run")],
        files: &[("home/tmux.conf", "set -g history-limit 10000\n")],
        start: &[
            "{mux}", "-f", "{dir}/home/tmux.conf", "new-session", "-d", "-s", "{name}", "-x", "{cols}", "-y",
            "{rows}", "--", "{program}", "{args}",
        ],
        attach: &["{mux}", "attach-session", "-t", "={name}"],
        screen: Screen::Answering,
        tabs: Some(Tabs { open: b"\x02c", back: b"\x02p" }),
        ..NOTHING
    },
    Row {
        name: "screen",
        package: Some("screen"),
        version: &["--version"],
        env: &[("SCREENDIR", "{dir}/run")],
        files: &[("home/screenrc", "startup_message off\ndefscrollback 10000\n")],
        start: &["{mux}", "-c", "{dir}/home/screenrc", "-d", "-m", "-S", "{name}", "{program}", "{args}"],
        attach: &["{mux}", "-c", "{dir}/home/screenrc", "-r", "{name}"],
        screen: Screen::Answering,
        tabs: Some(Tabs { open: b"\x01c", back: b"\x01p" }),
        ..NOTHING
    },
    Row {
        name: "dtach",
        package: Some("dtach"),
        version: &["--version"],
        start: &["{mux}", "-n", "{dir}/run/{name}", "{program}", "{args}"],
        attach: &["{mux}", "-a", "{dir}/run/{name}", "-r", "winch"],
        ..NOTHING
    },
    Row {
        name: "abduco",
        package: Some("abduco"),
        version: &["-v"],
        env: &[("ABDUCO_SOCKET_DIR", "{dir}/run")],
        start: &["{mux}", "-n", "{name}", "{program}", "{args}"],
        attach: &["{mux}", "-a", "{name}"],
        ..NOTHING
    },
    Row {
        name: "shpool",
        version: &["version"],
        files: &[("home/shpool.toml", "output_spool_lines = 10000\nprompt_prefix = \"\"\n")],
        server: &["{mux}", "-c", "{dir}/home/shpool.toml", "-s", "{dir}/run/socket", "daemon"],
        start: &["{mux}", "-s", "{dir}/run/socket", "attach", "--background", "--cmd", "{script}", "{name}"],
        attach: &["{mux}", "-s", "{dir}/run/socket", "attach", "--force", "{name}"],
        screen: Screen::Drawn,
        ..NOTHING
    },
    Row {
        name: "zellij",
        version: &["--version"],
        env: &[("ZELLIJ_SOCKET_DIR", "{dir}/run"), ("ZELLIJ_CONFIG_DIR", "{dir}/home")],
        files: &[(
            "home/config.kdl",
            "scroll_buffer_size 10000\npane_frames false\nsession_serialization false\n\
             show_startup_tips false\nshow_release_notes false\n",
        )],
        start: &["{mux}", "attach", "--create-background", "{name}", "--", "{program}", "{args}"],
        attach: &["{mux}", "attach", "{name}"],
        screen: Screen::Answering,
        ..NOTHING
    },
];

/// A multiplexer that is there to be measured.
pub struct Mux {
    /// Its commands.
    pub row: &'static Row,
    /// Its program.
    pub program: PathBuf,
    /// What it says its version is.
    pub version: String,
}

impl Mux {
    /// Looks for the program of `row` on `PATH`, or for abide where it was built or `given`.
    pub fn find(row: &'static Row, given: Option<&Path>) -> Option<Self> {
        if row.name == BARE {
            return Some(Self { row, program: PathBuf::new(), version: "a PTY and nothing else".into() });
        }
        let built = option_env!("CARGO_BIN_EXE_abide").map(Path::new);
        let program = match given.or(built) {
            Some(path) if row.name == OURS => path.to_owned(),
            _ => on_path(row.name)?,
        };
        let version = version(&program, row.version)?;
        Some(Self { row, program, version })
    }

    /// Whether a session can run with nobody attached.
    pub fn detaches(&self) -> bool {
        !self.row.start.is_empty()
    }

    /// Whether an attach draws what was there.
    pub fn repaints(&self) -> bool {
        self.row.screen != Screen::None
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

/// The first line that names a version: some print it as an error, some print help around it.
fn version(program: &Path, args: &[&str]) -> Option<String> {
    let out = Command::new(program).args(args).output().ok()?;
    let text = [out.stdout, out.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| line.contains(|c: char| c.is_ascii_digit()))?;
    Some(line.trim().to_owned())
}
