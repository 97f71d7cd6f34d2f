//! The operator's terminal: a PTY with a client on one side and a terminal model on the other.

use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use abide_client as client;
use abide_client::{AttachEnd, AttachMode, AttachOptions};
use abide_model::Pid;
use abide_sys::process;
use abide_term::{Options, Term};
use abide_wire::instance_dir::InstanceDir;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pty::OpenptFlags;
use rustix::termios::{Termios, Winsize};

use crate::support::{Capsule, exe, id, send_signal, wait_for};

const DEADLINE: Duration = Duration::from_secs(20);

/// Plays the client: attaches, and writes down how it ended.
pub fn play_client(args: &[&str]) {
    let [instance_dir, result, flags @ ..] = args else {
        panic!("client UNIT RESULT [read-only] [panic=FILE] [session=ID]")
    };
    let session = flags.iter().find_map(|flag| flag.strip_prefix("session="));
    let options = AttachOptions {
        session: session.map(id),
        mode: if flags.contains(&"read-only") { AttachMode::ReadOnly } else { AttachMode::Control },
        ..AttachOptions::default()
    };
    // In the middle of everything, from a thread that has nothing to do with it, as soon as the file is there.
    let panicking = flags.iter().find_map(|flag| flag.strip_prefix("panic=")).map(|file| {
        let file = PathBuf::from(file);
        std::thread::spawn(move || {
            wait_for("the word to panic", || file.exists().then_some(()));
            let _ = std::panic::catch_unwind(|| panic!("on purpose"));
            std::process::exit(101);
        })
    });
    let text = match client::attach(&InstanceDir::new(instance_dir), &options, &|_| ()) {
        Ok(AttachEnd::Detached(message)) => format!("detached: {message}"),
        Ok(end @ AttachEnd::TerminalGone) => format!("detached: {}", end.message()),
        Ok(AttachEnd::SessionEnded { exit, message }) => format!("ended {exit:?}: {message}"),
        Ok(AttachEnd::Shutdown(message)) => format!("shutdown: {message}"),
        Ok(AttachEnd::Lost(message)) => format!("lost: {message}"),
        Err(err) => format!("error: {err}"),
    };
    if let Some(panicking) = panicking {
        let _ = panicking.join();
    }
    std::fs::write(result, text).unwrap();
}

pub struct Terminal {
    master: OwnedFd,
    slave: OwnedFd,
    pub term: Term,
    pub client: Child,
    result: PathBuf,
    before: Termios,
    /// Everything that the client has written.
    pub written: Vec<u8>,
    status: Option<ExitStatus>,
}

impl Terminal {
    pub fn attach(capsule: &Capsule, cols: u16, rows: u16, flags: &[&str]) -> Self {
        let env = [("TERM", "xterm-256color"), ("COLORTERM", "truecolor")];
        Self::attach_as(capsule, cols, rows, flags, &env)
    }

    /// A terminal that these variables describe.
    pub fn attach_as(capsule: &Capsule, cols: u16, rows: u16, flags: &[&str], env: &[(&str, &str)]) -> Self {
        let open = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(open).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let slave = rustix::pty::ioctl_tiocgptpeer(&master, open).unwrap();
        rustix::io::ioctl_fionbio(&master, true).unwrap();
        set_size(&slave, cols, rows);
        let before = rustix::termios::tcgetattr(&slave).unwrap();
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let result = capsule.file(&format!("result-{number}"));
        let mut command = Command::new(exe().as_os_str());
        command.arg("client").arg(capsule.instance_dir.path()).arg(&result).args(flags);
        for name in ["TERM", "COLORTERM", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG", "TMUX"] {
            command.env_remove(name);
        }
        command.envs(env.iter().copied());
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(stdio()).stdout(stdio());
        // SAFETY: system calls only.
        #[allow(unsafe_code)]
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
                Ok(())
            });
        }
        let client = command.spawn().unwrap();
        let term = Term::new(abide_term::Size { cols, rows }, Options::default());
        Self { master, slave, term, client, result, before, written: Vec::new(), status: None }
    }

    /// Waits a little for output and shows it; answers what the client asks.
    pub fn pump(&mut self) {
        let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
        rustix::event::poll(&mut fds, Some(&timeout)).unwrap();
        let mut buffer = [0; 16 << 10];
        while let Ok(n @ 1..) = rustix::io::read(&self.master, &mut buffer) {
            self.written.extend_from_slice(&buffer[..n]);
            self.term.feed(&buffer[..n]);
        }
        let replies = self.term.take_replies();
        let _ = rustix::io::write(&self.master, &replies);
    }

    pub fn screen(&self) -> String {
        self.term.text()
    }

    #[track_caller]
    pub fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&Term) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !holds(&self.term) {
            self.pump();
            if Instant::now() > deadline {
                panic!("waited in vain for {what}; the screen:\n{}", self.screen());
            }
        }
    }

    #[track_caller]
    pub fn wait_text(&mut self, text: &str) {
        self.wait_until(text, |term| term.text().contains(text));
    }

    #[track_caller]
    pub fn wait_gone(&mut self, text: &str) {
        self.wait_until(&format!("the end of {text}"), |term| !term.text().contains(text));
    }

    /// Types; also while the client is not reading as fast.
    pub fn type_keys(&mut self, keys: &str) {
        self.type_bytes(keys.as_bytes());
    }

    /// Types as much as is taken at once.
    pub fn try_type(&mut self, bytes: &[u8]) -> usize {
        rustix::io::write(&self.master, bytes).unwrap_or(0)
    }

    pub fn type_bytes(&mut self, mut bytes: &[u8]) {
        let deadline = Instant::now() + DEADLINE;
        while !bytes.is_empty() {
            match rustix::io::write(&self.master, bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(rustix::io::Errno::AGAIN) => self.pump(),
                Err(err) => panic!("typing: {err}"),
            }
            assert!(Instant::now() < deadline, "the client does not read");
        }
    }

    pub fn resize(&mut self, cols: u16, rows: u16) {
        self.term.resize(abide_term::Size { cols, rows });
        set_size(&self.slave, cols, rows);
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        send_signal(process::child_pid(&self.client), signal);
    }

    /// What it is called in the file system.
    pub fn device(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/self/fd/{}", self.slave.as_raw_fd())).unwrap()
    }

    pub fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.client.id())).unwrap();
        stat[stat.rfind(')').unwrap() + 2..].starts_with('T')
    }

    pub fn client_pid(&self) -> Pid {
        process::child_pid(&self.client)
    }

    /// Waits for the client's end, and gives how it says that it ended.
    #[track_caller]
    pub fn end(&mut self) -> String {
        let deadline = Instant::now() + DEADLINE;
        let status = loop {
            self.pump();
            if let Some(status) = self.client.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the client does not end; the screen:\n{}", self.screen());
        };
        self.pump();
        self.status = Some(status);
        std::fs::read_to_string(&self.result).unwrap_or_else(|_| format!("{status} {:?}", status.signal()))
    }

    /// Asserts that the terminal is as the client found it.
    #[track_caller]
    pub fn assert_restored(&self) {
        let now = rustix::termios::tcgetattr(&self.slave).unwrap();
        assert_eq!(format!("{now:?}"), format!("{:?}", self.before), "the line discipline");
        let fresh = Term::new(self.term.size(), Options::default());
        assert_eq!(self.term.modes(), fresh.modes());
        let look = |term: &Term| (term.cursor().visible, term.cursor().shape, term.cursor().blinking);
        assert_eq!(look(&self.term), look(&fresh));
        assert_eq!(self.screen(), "", "what was on the primary screen before");
        assert_eq!(self.term.title(), "");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.client.kill();
            let _ = self.client.wait();
        }
        if std::thread::panicking() {
            let _ = std::io::stderr().write_all(self.screen().as_bytes());
        }
    }
}

fn set_size(slave: &OwnedFd, cols: u16, rows: u16) {
    let winsize = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(slave.as_fd(), winsize).unwrap();
}
