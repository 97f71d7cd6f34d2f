//! This login: who it is, and what its systemd can do for it.

use std::cell::OnceCell;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use abide_model::Pid;
use abide_model::placement::{
    EndRule, Home, KillRules, Linger, LingerPolicy, ManagerEnd, ManagerFault, PlacementFacts,
};
use abide_model::vars;
use abide_sys::clock::eventually;
use abide_sys::{passwd, process};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::host::cgroup::{self, CgroupPart};
use crate::host::scope::TO_HAPPEN;
use crate::host::{boot_service, bus, moving};

/// Where to look, so that tests can look elsewhere.
#[derive(Debug, Clone)]
pub struct Login {
    /// The root of the file system.
    pub root: PathBuf,
    /// Where the user manager has its bus.
    pub runtime_dir: PathBuf,
    pub uid: u32,
    /// The operator's name; `None` for a user who is in no passwd file.
    pub user: Option<String>,
}

impl Login {
    /// The login we are.
    pub fn here() -> Self {
        let uid = rustix::process::getuid().as_raw();
        let set = std::env::var_os(vars::XDG_RUNTIME_DIR).map(PathBuf::from);
        Self {
            root: "/".into(),
            runtime_dir: runtime_dir(set, format!("/run/user/{uid}").into(), uid),
            uid,
            user: passwd::entry(uid).map(|entry| entry.name),
        }
    }

    /// What can be seen of this process without starting another: everything but what logind and services end.
    pub fn look(&self) -> PlacementFacts {
        let home = self.home_of(process::own_pid(), &|_| EndRule::Unknown, &|_, _| EndRule::Unknown);
        self.facts_with(home)
    }

    /// Everything there is to know about what this process starts, without trying it.
    pub fn examine(&self) -> PlacementFacts {
        Inspector::new(self.clone()).facts_of(process::own_pid())
    }

    /// The same, found out by the calls that a start makes.
    pub fn rehearse(&self) -> PlacementFacts {
        let mut facts = self.examine();
        if facts.systemd && facts.manager_fault.is_none() {
            facts.manager_fault = moving::rehearse(self, facts.linger).err();
        }
        facts
    }

    pub fn linger_policy(&self) -> LingerPolicy {
        match self.has_systemd() && answers(&self.system_bus()).is_ok() {
            true => bus::linger_policy(self, &process::this()),
            false => LingerPolicy::Unknown,
        }
    }

    fn facts_with(&self, home: Home) -> PlacementFacts {
        let systemd = self.has_systemd();
        PlacementFacts {
            systemd,
            manager_fault: self.bus_fault().map(ManagerFault::Absent),
            linger: if systemd { self.linger() } else { Linger::Off },
            linger_refused: None,
            home,
            user: self.user.clone().unwrap_or_else(|| self.uid.to_string()),
        }
    }

    fn has_systemd(&self) -> bool {
        self.root.join("run/systemd/system").is_dir()
    }

    /// What process `pid` is part of. `login_rule` says what logind does to what logins of a user leave behind,
    /// `service_rule` what the end of a service, of a user's manager or of the system, does to what it started.
    fn home_of(
        &self,
        pid: Pid,
        login_rule: &dyn Fn(u32) -> EndRule,
        service_rule: &dyn Fn(Option<u32>, &str) -> EndRule,
    ) -> Home {
        let path = cgroup::of(pid).unwrap_or_default();
        let end = |user| self.manager_end(user, pid, &path, login_rule);
        match cgroup::part(&path) {
            CgroupPart::Login(owner) => Home::Login { at_end: owner.map_or(EndRule::Unknown, login_rule) },
            CgroupPart::Manager(user) => Home::Manager(end(user)),
            // It stays until its manager ends, so it takes nothing along before that.
            CgroupPart::UserService(user, boot_service::NAME) => Home::Manager(end(user)),
            CgroupPart::UserService(user, name) => Home::Service {
                name: name.to_owned(),
                at_end: service_rule(Some(user), name),
                manager: Some(end(user)),
            },
            CgroupPart::SystemService(name) => {
                Home::Service { name: name.to_owned(), at_end: service_rule(None, name), manager: None }
            }
            CgroupPart::Elsewhere => Home::Elsewhere,
        }
    }

    fn manager_end(
        &self,
        user: u32,
        pid: Pid,
        path: &str,
        login_rule: &dyn Fn(u32) -> EndRule,
    ) -> ManagerEnd {
        let linger = match user == self.uid {
            true => self.linger(),
            false => passwd::entry(user).map_or(Linger::Off, |entry| self.linger_of(&entry.name)),
        };
        let in_pane = || path.split('/').any(|part| part.starts_with("tmux-spawn-"));
        match linger {
            Linger::On => ManagerEnd::Shutdown,
            Linger::Off if in_pane() && tmux_keeps_login(pid, login_rule) => ManagerEnd::TmuxServer,
            Linger::Off => ManagerEnd::LastLogout,
        }
    }

    /// Turns linger on for the operator, and waits until the user manager is there; else says why not.
    pub fn enable_linger(&self) -> Result<(), String> {
        bus::set_linger(self).map_err(|error| error.to_string())?;
        if !eventually(TO_HAPPEN, || self.linger() == Linger::On) {
            return Err("logind agreed, but did not do it".to_owned());
        }
        // logind starts the manager of a user who was not logged in. Without its bus linger alone is no use yet, which
        // is for the next look to find.
        eventually(TO_HAPPEN, || self.bus_fault().is_none());
        Ok(())
    }

    /// The socket of the user manager's bus.
    pub(crate) fn user_bus(&self) -> PathBuf {
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

    fn linger(&self) -> Linger {
        match &self.user {
            Some(user) => self.linger_of(user),
            None => bus::linger(self).unwrap_or(Linger::Off),
        }
    }

    fn linger_of(&self, user: &str) -> Linger {
        match self.root.join("var/lib/systemd/linger").join(user).exists() {
            true => Linger::On,
            false => Linger::Off,
        }
    }
}

/// Looks at processes of one login, and asks logind at most once however many they are.
pub struct Inspector {
    login: Login,
    rules: OnceCell<Option<KillRules>>,
}

impl Inspector {
    /// An inspector of what belongs to `login`.
    pub fn new(login: Login) -> Self {
        Self { login, rules: OnceCell::new() }
    }

    /// Everything there is to know about process `pid` and the systemd around it.
    pub fn facts_of(&self, pid: Pid) -> PlacementFacts {
        let login = &self.login;
        if !login.has_systemd() {
            return login.facts_with(Home::Elsewhere);
        }
        let rules = || {
            let answers = || answers(&login.system_bus()).is_ok();
            self.rules.get_or_init(|| answers().then(|| bus::kill_rules(login)).flatten())
        };
        let login_rule = |owner: u32| {
            let name = match owner == login.uid {
                true => login.user.clone(),
                false => passwd::entry(owner).map(|entry| entry.name),
            };
            let name = name.unwrap_or_else(|| owner.to_string());
            rules().as_ref().map_or(EndRule::Unknown, |rules| rules.apply_to(&name))
        };
        let service_rule = |user: Option<u32>, name: &str| match user {
            None => bus::service_rule(&login.system_bus(), name),
            Some(user) if user == login.uid => bus::service_rule(&login.user_bus(), name),
            Some(_) => EndRule::Unknown,
        };
        login.facts_with(login.home_of(pid, &login_rule, &service_rule))
    }
}

/// Where the user manager has its bus: where the environment says, unless that is stale or another user's, as after
/// `su` from a shell of root; else where systemd puts it. A directory of ours without a bus was made on purpose.
fn runtime_dir(set: Option<PathBuf>, default: PathBuf, uid: u32) -> PathBuf {
    let is_ours = |dir: &PathBuf| {
        let owner = std::fs::metadata(dir).map(|about| about.uid());
        dir.is_absolute() && owner.is_ok_and(|owner| owner == uid)
    };
    let is_stale = |dir: &PathBuf| matches!(answers(&dir.join("bus")), Err(Errno::CONNREFUSED));
    set.filter(|dir| is_ours(dir) && !is_stale(dir)).unwrap_or(default)
}

/// Whether the tmux server in whose pane `pid` was started stays in its login, and keeps that from closing.
fn tmux_keeps_login(pid: Pid, login_rule: &dyn Fn(u32) -> EndRule) -> bool {
    let told = process::in_environment(pid, vars::TMUX).unwrap_or_default();
    let server = told.split(',').rev().nth(1).and_then(|pid| pid.parse().ok()).and_then(cgroup::of);
    match server.as_deref().map(cgroup::part) {
        Some(CgroupPart::Login(Some(owner))) => login_rule(owner) == EndRule::Keeps,
        _ => false,
    }
}

/// Whether a process listens at `socket`. Never waits: a manager that hangs with a full queue counts as not there.
pub(crate) fn answers(socket: &Path) -> Result<(), Errno> {
    let address = SocketAddrUnix::new(socket)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let end = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&end, &address)
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
            !facts.systemd
                && facts.linger == Linger::Off
                && facts.manager_fault.is_some()
                && facts.home == Home::Elsewhere,
            "{facts:?}"
        );
    }

    #[test]
    fn only_a_bus_that_answers_counts() {
        let (_dir, login) = machine();
        assert!(login.bus_fault().unwrap().contains("No such file"));
        let listener = UnixListener::bind(login.user_bus()).unwrap();
        assert_eq!(login.bus_fault(), None);
        drop(listener);
        assert!(login.bus_fault().unwrap().contains("refused"), "a socket without a listener is no bus");
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
        assert!(login.bus_fault().is_some());
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
        assert_eq!(login.look().linger, Linger::Off);
        std::fs::create_dir_all(dir.path().join("var/lib/systemd/linger")).unwrap();
        std::fs::write(dir.path().join("var/lib/systemd/linger/ada"), "").unwrap();
        assert_eq!(login.look().linger, Linger::On);
    }

    #[test]
    fn a_runtime_directory_that_is_stale_or_not_ours_is_not_used() {
        let (dir, login) = machine();
        let (ours, default) = (login.runtime_dir.clone(), PathBuf::from("/run/user/4711"));
        let uid = rustix::process::getuid().as_raw();
        let chosen = |set: Option<PathBuf>, uid| runtime_dir(set, default.clone(), uid);
        assert_eq!(chosen(None, uid), default);
        assert_eq!(chosen(Some(dir.path().join("gone")), uid), default);
        assert_eq!(chosen(Some("relative".into()), uid), default);
        assert_eq!(chosen(Some(ours.clone()), uid + 1), default, "another user's");
        assert_eq!(chosen(Some(ours.clone()), uid), ours, "made on purpose");
        let listener = UnixListener::bind(login.user_bus()).unwrap();
        assert_eq!(chosen(Some(ours.clone()), uid), ours);
        drop(listener);
        assert_eq!(chosen(Some(ours), uid), default, "its bus is dead");
    }
}
