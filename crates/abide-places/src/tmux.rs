//! The tmux server of the host place: a server of abide's own, which loads the operator's own configuration.
//!
//! Everything that is asked of tmux is asked here: as argument vectors, with exact targets, and bounded in time, because
//! a server that hangs must not hang us. What the sessions in it mean is for others to know.
//!
//! The server is started with a bare environment. It gives its own to every window that is opened by a key, and so would
//! give the first launch's to all later ones. It does not get the address of the user bus either: with that, newer versions of tmux
//! move each pane into a scope of the user manager, which ends with the last logout where linger is off.

mod attach;
pub mod enter;
mod pane;
pub mod pane_process;
mod sessions;

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use abide_model::{Liveness, Pid, vars};
use abide_sys::clock::eventually;
use abide_sys::run::{self, RunError};
use rustix::io::Errno;

pub use attach::TmuxClient;
pub use pane::{GENERATION, HOME, ID, SESSION, TmuxPane, home_mark};
pub(crate) use sessions::Tmux;
pub use sessions::sweep;

use crate::host::answers;

/// What the server is called, as in `tmux -L abide`.
const LABEL: &str = "abide";

/// The first version that knows everything that is asked of it.
const OLDEST: (u32, u32) = (3, 2);

/// Whether the server ends when its last session has.
const EXIT_EMPTY: &str = "exit-empty";

/// How long a question may take.
const TO_TELL: Duration = Duration::from_secs(3);

/// How long a server that ends may take to be gone.
const TO_END: Duration = Duration::from_millis(500);

/// How long a server may take to start: it reads the operator's configuration, which may run programs.
const TO_START: Duration = Duration::from_secs(15);

/// What the server needs to know of the operator, and all that it gets.
const ENVIRONMENT: [&str; 13] = [
    vars::HOME,
    vars::PATH,
    vars::SHELL,
    vars::TERM,
    vars::XDG_CONFIG_HOME,
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "TMPDIR",
    vars::TMUX_TMPDIR,
    "TZ",
    "USER",
];

/// Why tmux cannot be used here.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// It is not there, or does not say what it is.
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{0} is too old, 3.2 or later is needed")]
    TooOld(String),
}

/// What a new tmux session is to be.
#[derive(Debug)]
pub struct NewSession<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What is to be known of it: options of the session.
    pub options: &'a [(&'a str, String)],
    /// Variables of every window in it. Every user of the machine may see them in the process list.
    pub env: &'a [(&'a str, OsString)],
    /// Columns and rows, until a client attaches.
    pub size: (u16, u16),
    /// Lines of scrollback at least.
    pub scrollback: u32,
}

/// A window to be opened.
#[derive(Debug)]
pub struct Window<'a> {
    /// What it is called.
    pub name: &'a str,
    pub cwd: &'a Path,
    /// What runs in it.
    pub argv: &'a [OsString],
}

/// One tmux server, whether it runs or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmuxServer {
    socket: PathBuf,
}

impl TmuxServer {
    /// The server of this login, as `tmux -L abide` finds it.
    pub fn here() -> Self {
        let set = std::env::var_os(vars::TMUX_TMPDIR).map(PathBuf::from);
        // Without links, and the one that is there, as tmux itself chooses.
        let mut dirs =
            set.into_iter().chain([PathBuf::from("/tmp")]).filter_map(|dir| dir.canonicalize().ok());
        let dir =
            dirs.next().unwrap_or_default().join(format!("tmux-{}", rustix::process::getuid().as_raw()));
        Self { socket: dir.join(LABEL) }
    }

    /// The server that has its socket at `socket`.
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into() }
    }

    /// The server whose pane this process is in, by the variable that tmux sets there: socket, server, session.
    pub fn around(tmux: &OsStr) -> Option<Self> {
        let socket = tmux.as_bytes().rsplitn(3, |byte| *byte == b',').nth(2)?;
        Some(Self::at(OsStr::from_bytes(socket)))
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether tmux can be used here at all.
    pub fn check() -> Result<(), Unusable> {
        let said = run::succeed(&mut run::command("tmux", ["-V"]), TO_TELL)?.text();
        match version(&said) {
            Some(version) if version < OLDEST => Err(Unusable::TooOld(said)),
            // A version that is not numbered is one between two releases.
            _ => Ok(()),
        }
    }

    /// Whether it runs. Nothing is asked of it, and nothing is started.
    pub fn runs(&self) -> Liveness {
        match answers(&self.socket) {
            Ok(()) => Liveness::Alive,
            Err(Errno::NOENT | Errno::CONNREFUSED | Errno::NOTDIR) => Liveness::Dead,
            Err(_) => Liveness::Unknown,
        }
    }

    /// Its panes; none where it does not run.
    pub fn panes(&self) -> Result<Vec<TmuxPane>, RunError> {
        if self.runs() == Liveness::Dead {
            return Ok(Vec::new());
        }
        match self.ask(&[words(["list-panes", "-a", "-F", pane::FORMAT])], TO_TELL) {
            Ok(listed) => Ok(String::from_utf8_lossy(&listed).lines().filter_map(TmuxPane::parse).collect()),
            // It may have been on its way out.
            Err(_) if eventually(TO_END, || self.runs() == Liveness::Dead) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Keeps others from starting a server in this place until the lock is dropped, so that one of them places it.
    pub fn lock(&self) -> io::Result<File> {
        let dir = self.socket.parent().ok_or(io::ErrorKind::InvalidInput)?;
        match DirBuilder::new().mode(0o700).create(dir) {
            Err(err) if err.kind() != io::ErrorKind::AlreadyExists => return Err(err),
            _ => {}
        }
        self.check_place()?;
        let dir = File::open(dir)?;
        match eventually(TO_START, || dir.try_lock().is_ok()) {
            true => Ok(dir),
            false => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "another process has been starting the server for too long",
            )),
        }
    }

    /// A user who can put a socket where ours is expected makes us talk to their server. tmux looks at this itself only
    /// where it chose the place.
    fn check_place(&self) -> io::Result<()> {
        let dir = self.socket.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let meta = dir.symlink_metadata()?;
        if meta.is_dir() && meta.uid() == rustix::process::getuid().as_raw() && meta.mode() & 0o7 == 0 {
            return Ok(());
        }
        let text = format!("{} must be a directory that only you can enter", dir.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }

    /// Starts the server, with nothing in it: its command line is then that of no session, by which another program might end
    /// them all who means one.
    pub fn start(&self) -> Result<(), RunError> {
        let stay = words(["set-option", "-s", EXIT_EMPTY, "off"]);
        self.ask(&[words(["start-server"]), stay], TO_START).map(drop)
    }

    /// Lets a server go that has nothing in it, as it does by itself once it had a session.
    pub fn release(&self) -> Result<(), RunError> {
        self.ask(&[words(["set-option", "-s", EXIT_EMPTY, "on"])], TO_TELL).map(drop)
    }

    /// Makes a session with its first window; gives the server's process.
    pub fn new_session(&self, session: &NewSession<'_>, first: &Window<'_>) -> Result<Pid, RunError> {
        let (cols, rows) = (session.size.0.to_string(), session.size.1.to_string());
        let mut new = words(["new-session", "-d", "-P", "-F", "#{pid}"]);
        new.extend(words(["-s", session.name, "-x", &cols, "-y", &rows]));
        for (name, value) in session.env {
            let mut pair = OsString::from(format!("{name}="));
            pair.push(value);
            new.extend([OsString::from("-e"), pair]);
        }
        new.extend(first.words());
        let target = exact(session.name);
        let mut commands = vec![at_least(session.scrollback), new];
        // In the same command: a configuration that ends unattached sessions would end it before the next one.
        for (name, value) in session.options {
            commands.push(words(["set-option", "-t", &target, name, value]));
        }
        commands.push(words(["set-option", "-s", EXIT_EMPTY, "on"]));
        let said = self.ask(&commands, TO_START)?;
        let pid = String::from_utf8_lossy(&said).trim().parse();
        pid.map_err(|_| RunError::Io {
            program: "tmux".to_owned(),
            source: io::ErrorKind::InvalidData.into(),
        })
    }

    /// Opens a further window in the session called `session`.
    pub fn new_window(&self, session: &str, window: &Window<'_>) -> Result<(), RunError> {
        let mut new = words(["new-window", "-d", "-t", &exact(session)]);
        new.extend(window.words());
        self.ask(&[new], TO_TELL).map(drop)
    }

    /// Writes down what a pane is, wherever it is moved to; it closes when its process has ended, whatever the
    /// configuration says.
    pub fn mark(&self, pane: &str, options: &[(&str, &str)]) -> Result<(), RunError> {
        let set = |(name, value): &(&str, &str)| words(["set-option", "-p", "-t", pane, name, value]);
        let options = options.iter().chain(&[("remain-on-exit", "off")]);
        self.ask(&options.map(set).collect::<Vec<_>>(), TO_TELL).map(drop)
    }

    /// Ends a pane with everything in it. A session ends with its last one.
    pub fn kill_pane(&self, pane: &str) -> Result<(), RunError> {
        self.ask(&[words(["kill-pane", "-t", pane])], TO_TELL).map(drop)
    }

    /// What a pane shows, with colours.
    pub fn capture(&self, pane: &str) -> Result<Vec<u8>, RunError> {
        self.ask(&[words(["capture-pane", "-p", "-e", "-t", pane])], TO_TELL)
    }

    /// The same, after all that scrolled off.
    pub fn capture_scrollback(&self, pane: &str) -> Result<Vec<u8>, RunError> {
        self.ask(&[words(["capture-pane", "-p", "-e", "-t", pane, "-S", "-"])], TO_TELL)
    }

    /// Pastes the contents of a file into a pane, as a paste if the program there wants to know.
    pub fn paste(&self, pane: &str, file: &Path) -> Result<(), RunError> {
        let buffer = format!("abide-{}", std::process::id());
        let mut load = words(["load-buffer", "-b", &buffer]);
        load.push(file.into());
        let paste = words(["paste-buffer", "-p", "-d", "-b", &buffer, "-t", pane]);
        self.ask(&[load, paste], TO_TELL).map(drop)
    }

    /// Types bytes into a pane as they are.
    pub fn send(&self, pane: &str, bytes: &[u8]) -> Result<(), RunError> {
        let mut send = words(["send-keys", "-H", "-t", pane]);
        send.extend(bytes.iter().map(|byte| format!("{byte:02x}").into()));
        self.ask(&[send], TO_TELL).map(drop)
    }

    /// Has the server do `commands`, one after the other; gives what they printed.
    fn ask(&self, commands: &[Vec<OsString>], limit: Duration) -> Result<Vec<u8>, RunError> {
        self.check_place().map_err(failed)?;
        let mut tmux = self.command();
        // What is printed is cut down to ASCII for a client that is not known to take more.
        tmux.arg("-u");
        for (index, command) in commands.iter().enumerate() {
            if index > 0 {
                tmux.arg(";");
            }
            tmux.args(command.iter().map(|word| inert(word)));
        }
        run::succeed(&mut tmux, limit).map(|output| output.stdout)
    }

    fn command(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.env_clear().current_dir("/");
        tmux.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        tmux.arg("-S").arg(&self.socket);
        tmux
    }
}

impl Window<'_> {
    fn words(&self) -> Vec<OsString> {
        let mut words = vec!["-n".into(), literal(OsStr::new(self.name)), "-c".into()];
        words.push(literal(self.cwd.as_os_str()));
        words.push("--".into());
        words.extend_from_slice(self.argv);
        words
    }
}

fn failed(source: io::Error) -> RunError {
    RunError::Io { program: "tmux".to_owned(), source }
}

/// What raises the limit of the scrollback, where the operator's is lower. It counts for windows made from then on.
fn at_least(scrollback: u32) -> Vec<OsString> {
    let lower = format!("#{{e|<:#{{history-limit}},{scrollback}}}");
    words(["if-shell", "-F", &lower, &format!("set-option -g history-limit {scrollback}")])
}

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.into_iter().map(Into::into).collect()
}

/// The session of that very name: without the sign any session that begins like it may be meant.
fn exact(name: &str) -> String {
    format!("={name}:")
}

/// A value that tmux would expand, kept as it is: a name must not run a program.
fn literal(value: &OsStr) -> OsString {
    let doubled = value
        .as_bytes()
        .iter()
        .flat_map(|byte| std::iter::repeat_n(*byte, if *byte == b'#' { 2 } else { 1 }));
    OsString::from_vec(doubled.collect())
}

/// A word that cannot be taken for the end of a command, as one that ends in a semicolon is.
fn inert(word: &OsStr) -> OsString {
    let mut bytes = word.as_bytes().to_vec();
    if bytes.last() == Some(&b';') {
        bytes.insert(bytes.len() - 1, b'\\');
    }
    OsString::from_vec(bytes)
}

/// The version in what `tmux -V` says: `tmux 3.3a`, `tmux next-3.6`.
fn version(said: &str) -> Option<(u32, u32)> {
    let number = said.split(' ').nth(1)?.trim_start_matches("next-");
    let (major, minor) = number.split_once('.')?;
    let minor = minor.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests;
