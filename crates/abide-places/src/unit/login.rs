//! This login: who it is, and what its systemd can do for it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use abide_model::unit::{Facts, Home};
use abide_model::vars;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::{TO_HAPPEN, bus, cgroup};

/// Where to look, so that tests can look elsewhere.
#[derive(Debug, Clone)]
pub struct Login {
    /// The root of the file system.
    pub root: PathBuf,
    /// Where the user manager has its bus.
    pub runtime_dir: PathBuf,
    /// The operator's number.
    pub uid: u32,
    /// The operator's name; `None` for somebody who is in no passwd file.
    pub user: Option<String>,
}

impl Login {
    /// The login we are.
    pub fn here() -> Self {
        let uid = rustix::process::getuid().as_raw();
        let set = std::env::var_os(vars::XDG_RUNTIME_DIR).map(PathBuf::from).filter(|dir| dir.is_absolute());
        Self {
            root: "/".into(),
            // Set by a login, but not by `sudo -u`, cron or `docker exec`, where the manager may still be up.
            runtime_dir: set.unwrap_or_else(|| format!("/run/user/{uid}").into()),
            uid,
            user: std::fs::read_to_string("/etc/passwd").ok().and_then(|text| login_name(&text, uid)),
        }
    }

    /// What can be seen without starting a process: everything but what logind ends at a logout.
    pub fn look(&self) -> Facts {
        let systemd = self.root.join("run/systemd/system").is_dir();
        Facts {
            systemd,
            bus_fault: self.bus_fault(),
            linger: systemd && self.lingers(),
            kills: None,
            home: cgroup::of(std::process::id()).map_or(Home::Elsewhere, |path| cgroup::home(&path)),
            user: self.user.clone().unwrap_or_else(|| self.uid.to_string()),
        }
    }

    /// Everything there is to know.
    pub fn examine(&self) -> Facts {
        let mut facts = self.look();
        self.ask_logind(&mut facts);
        facts
    }

    /// Adds what only logind knows.
    pub(super) fn ask_logind(&self, facts: &mut Facts) {
        if facts.systemd && answers(&self.system_bus()).is_ok() {
            facts.kills = bus::kills_user_processes(self, &facts.user);
        }
    }

    /// Turns linger on for the operator, and waits until the user manager is there; else says why not.
    pub fn enable_linger(&self) -> Result<(), String> {
        bus::set_linger(self).map_err(|error| error.to_string())?;
        if !eventually(TO_HAPPEN, || self.lingers()) {
            return Err("logind agreed, but did not do it".to_owned());
        }
        // logind starts the manager of a user who was not logged in. Without its bus linger alone is no use yet, which
        // is for whoever looks next to find.
        eventually(TO_HAPPEN, || self.bus_fault().is_none());
        Ok(())
    }

    /// The socket of the user manager's bus.
    pub(super) fn user_bus(&self) -> PathBuf {
        self.runtime_dir.join("bus")
    }

    /// The socket of the system's bus.
    pub(super) fn system_bus(&self) -> PathBuf {
        self.root.join("run/dbus/system_bus_socket")
    }

    fn bus_fault(&self) -> Option<String> {
        // `systemd-run --version` answers where there is no manager. Only the bus itself counts.
        let bus = self.user_bus();
        answers(&bus).err().map(|errno| format!("{}: {}", bus.display(), std::io::Error::from(errno)))
    }

    fn lingers(&self) -> bool {
        match &self.user {
            Some(user) => self.root.join("var/lib/systemd/linger").join(user).exists(),
            None => bus::lingers(self).unwrap_or(false),
        }
    }
}

/// Whether somebody listens at `socket`. Never waits: a manager that hangs with a full queue counts as not there.
pub(crate) fn answers(socket: &Path) -> Result<(), Errno> {
    let address = SocketAddrUnix::new(socket)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let end = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&end, &address)
}

/// The name of the user `uid` in the text of a passwd file. Read by hand: a static binary must not load NSS modules.
fn login_name(passwd: &str, uid: u32) -> Option<String> {
    let line =
        passwd.lines().find(|line| line.split(':').nth(2).and_then(|f| f.parse().ok()) == Some(uid))?;
    line.split(':').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Whether `holds` comes true within `limit`.
pub(crate) fn eventually(limit: Duration, holds: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn machine() -> (tempfile::TempDir, Login) {
        let dir = tempfile::tempdir().unwrap();
        let runtime_dir = dir.path().join("runtime");
        std::fs::create_dir(&runtime_dir).unwrap();
        let login = Login { root: dir.path().to_owned(), runtime_dir, uid: 1000, user: Some("ada".into()) };
        (dir, login)
    }

    #[test]
    fn a_machine_without_systemd_is_known_as_one() {
        let (_dir, login) = machine();
        let facts = login.examine();
        assert!(
            !facts.systemd && !facts.linger && facts.bus_fault.is_some() && facts.kills.is_none(),
            "{facts:?}"
        );
    }

    #[test]
    fn only_a_bus_that_answers_counts() {
        let (_dir, login) = machine();
        assert!(login.look().bus_fault.unwrap().contains("No such file"));
        let listener = UnixListener::bind(login.user_bus()).unwrap();
        assert_eq!(login.look().bus_fault, None);
        drop(listener);
        assert!(
            login.look().bus_fault.unwrap().contains("refused"),
            "a socket that nobody answers is no bus"
        );
    }

    #[test]
    fn a_bus_that_hangs_is_not_waited_for() {
        let (_dir, login) = machine();
        let _listener = UnixListener::bind(login.user_bus()).unwrap();
        let mut queued = Vec::new();
        let full =
            std::iter::repeat_with(|| answers_and_keeps(&login.user_bus())).take(10_000).find_map(|end| {
                match end {
                    Ok(end) => {
                        queued.push(end);
                        None
                    }
                    Err(errno) => Some(errno),
                }
            });
        assert_eq!(full, Some(Errno::AGAIN));
        assert!(login.look().bus_fault.is_some());
    }

    fn answers_and_keeps(socket: &Path) -> Result<rustix::fd::OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let end = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&end, &SocketAddrUnix::new(socket)?)?;
        Ok(end)
    }

    #[test]
    fn linger_is_read_from_where_logind_keeps_it() {
        let (dir, login) = machine();
        std::fs::create_dir_all(dir.path().join("run/systemd/system")).unwrap();
        assert!(!login.look().linger);
        std::fs::create_dir_all(dir.path().join("var/lib/systemd/linger")).unwrap();
        std::fs::write(dir.path().join("var/lib/systemd/linger/ada"), "").unwrap();
        assert!(login.look().linger);
    }

    #[test]
    fn login_names_are_read_without_the_resolver() {
        let passwd = "root:x:0:0::/root:/bin/sh\nbroken\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(login_name(passwd, 1000).as_deref(), Some("ada"));
        assert_eq!(login_name(passwd, 1), None);
    }
}
